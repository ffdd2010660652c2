"""Options that several commands share, each defined once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from qsctl.errors import UsageError

ServiceOption = Annotated[
    str,
    typer.Option(
        "--service",
        envvar="QSCTL_SERVICE",
        help="Where the service is: 'embedded:' (in the state directory), 'embedded:FILE.xml' (configured by a file), "
        "'embedded:FILE.xml#NAME' (by one of its services), or 'dds:DOMAIN'.",
        rich_help_panel="Service",
    ),
]
StateDirOption = Annotated[
    Path,
    typer.Option(
        "--state-dir",
        envvar="QSCTL_STATE_DIR",
        help="Where the embedded service lives.",
        rich_help_panel="Service",
    ),
]
TimeoutOption = Annotated[
    str,
    typer.Option("--timeout", help="How long to wait for an answer, as in 500ms or 10s.", rich_help_panel="Service"),
]
VariableOption = Annotated[
    list[str] | None,
    typer.Option("--var", metavar="NAME=VALUE", help="A value for $(NAME) in the XML; may be repeated."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Override one value of the scenario; may be repeated."),
]

DEFAULT_SERVICE = "embedded:"
DEFAULT_STATE_DIR = Path(".qsctl")
DEFAULT_TIMEOUT = "10s"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def variables_of(assignments: Sequence[str] | None) -> dict[str, str]:
    """The mapping that `--var NAME=VALUE` options make (manual, section 3.4).

    Raises:
        UsageError: one has no `=`, no proper name, or a name is given twice with two values.
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
    """The mapping that `--set PATH=VALUE` options make, in order; the value may contain `=`.

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
    """Split at the first `=` outside brackets: names in `[…]` may contain one."""
    depth = 0
    for at, character in enumerate(assignment):
        depth += (character == "[") - (character == "]")
        if character == "=" and depth <= 0:
            return assignment[:at].strip(), "=", assignment[at + 1 :].strip()
    return assignment, "", ""
