"""Options with assignments that several commands share: `--var NAME=VALUE` and `--set PATH=VALUE`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from qsctl.cli.option_groups import OptionGroup
from qsctl.errors import UsageError

VariableOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Value of the variable $(NAME) in the XML; may be repeated."),
]

WITHOUT_TCP_HELP: Final = (
    "Use UDP alone where a participant of the file requires plain TCP; peers that use TCP alone do not reach it."
)
WithoutTcpOption = Annotated[bool, typer.Option("--without-tcp", help=WITHOUT_TCP_HELP)]


def _show_version(wanted: bool) -> None:
    if wanted:
        from qsctl import __version__

        typer.echo(f"qsctl {__version__}")
        raise typer.Exit


VersionOption = Annotated[
    bool,
    typer.Option(
        "--version",
        help="Print the version and exit.",
        is_eager=True,
        callback=_show_version,
    ),
]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def variables_of(assignments: Sequence[str] | None) -> dict[str, str]:
    """Return the values of `--var NAME=VALUE` options by name [QS 3.4].

    Raises:
        UsageError: one has no `=`, no valid name, or a name is given twice with two values.
    """
    variables: dict[str, str] = {}
    for assignment in assignments or ():
        name, equals, value = assignment.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise UsageError(f"--var {assignment!r} is not NAME=VALUE", remedy="Write it as in --var DOMAIN=7.")
        if variables.setdefault(name, value) != value:
            raise UsageError(f"--var {name} is given as {variables[name]!r} and as {value!r}", remedy="Give it once.")
    return variables


def assignments_of(assignments: Sequence[str] | None, option: str = "--set") -> dict[str, str]:
    """Return the values of `--set PATH=VALUE` options by path, in order; the value may contain `=`.

    Raises:
        UsageError: one has no `=` or no path.
    """
    values: dict[str, str] = {}
    for assignment in assignments or ():
        path, equals, value = _split_assignment(assignment)
        if not equals or not path:
            raise UsageError(
                f"{option} {assignment!r} is not PATH=VALUE", remedy=f"Write it as in {option} horizon=60s."
            )
        values[path] = value
    return values


def _split_assignment(assignment: str) -> tuple[str, str, str]:
    """Split an assignment at its first `=` outside brackets, since names in `[…]` may contain one."""
    depth = 0
    for at, character in enumerate(assignment):
        depth += (character == "[") - (character == "]")
        if character == "=" and depth <= 0:
            return assignment[:at].strip(), "=", assignment[at + 1 :].strip()
    return assignment, "", ""


@dataclass(frozen=True)
class ScenarioChanges(OptionGroup):
    """The options that change a scenario's file: values at paths, and variables."""

    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            help="Value of the scenario that is replaced, as in horizon=60s; may be repeated.",
        ),
    ] = None
    var: VariableOption = None

    @property
    def variables(self) -> dict[str, str]:
        """Return the values of `--var` by name; raises as `variables_of`."""
        return variables_of(self.var)

    @property
    def overrides(self) -> dict[str, str]:
        """Return the values of `--set` by path; raises as `assignments_of`."""
        return assignments_of(self.assignments)
