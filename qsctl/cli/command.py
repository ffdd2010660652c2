"""The wrapper around every command: it prints what the command returns, or the one error, and sets the exit status.

A command is a plain function that returns a `Result` and raises `QsctlError`. The wrapper gives it `-o` and
`--format-help`; it needs no other global state.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

from qsctl.cli import render
from qsctl.cli.render import OutputFormat
from qsctl.cli.results import Result
from qsctl.errors import ExitStatus, Interrupted, QsctlError

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Result])

OutputOption = Annotated[
    OutputFormat,
    typer.Option(
        "--output",
        "-o",
        metavar="FORMAT",
        help="How to print the result: table, json, jsonl, yaml, csv or, where there is one, xml.",
        rich_help_panel="Output",
    ),
]


def command(
    app: typer.Typer, name: str, *, panel: str | None = None, examples: tuple[str, ...] = ()
) -> Callable[[CommandFunction], CommandFunction]:
    """Add a function to the application as the command `name`.

    Args:
        app: the application or noun group that it belongs to.
        name: as the user types it.
        panel: the heading it stands under in `qsctl --help`.
        examples: command lines for its help, each with what it does after ` # `.
    """

    def decorate(function: CommandFunction) -> CommandFunction:
        runner = _runner(function)
        app.command(name, rich_help_panel=panel, epilog=_epilog(examples))(runner)
        return function

    return decorate


def _epilog(examples: tuple[str, ...]) -> str | None:
    # Typer joins the lines of a paragraph: an empty line between keeps one example a line.
    return "\n\n".join(["Examples:", *(f"  {line}" for line in examples)]) if examples else None


def _runner(function: Callable[..., Result]) -> Callable[..., None]:
    hints = typing.get_type_hints(function, include_extras=True)
    result_type = hints.pop("return")
    signature = inspect.signature(function)

    def show_format_help(wanted: bool) -> None:
        if wanted:
            render.show_format_help(result_type)
            raise typer.Exit

    # Eager and a callback, so that it works without the command's required arguments.
    format_help_option = Annotated[
        bool,
        typer.Option(
            "--format-help",
            help="Print the fields of the output and exit.",
            is_eager=True,
            callback=show_format_help,
            rich_help_panel="Output",
        ),
    ]

    @functools.wraps(function)
    def run(*, output: OutputFormat, format_help: bool, **arguments: Any) -> None:
        assert not format_help  # its callback has ended the command
        try:
            result = function(**arguments)
            render.show(result, output)
            status = result.exit_status
        except QsctlError as error:
            render.show_error(error, output)
            status = error.exit_status
        except KeyboardInterrupt:
            render.show_error(Interrupted("interrupted"), output)
            status = ExitStatus.INTERRUPTED
        raise typer.Exit(int(status))

    parameters = [
        parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in signature.parameters.items()
    ]
    extra = [
        inspect.Parameter(
            "output", inspect.Parameter.KEYWORD_ONLY, default=OutputFormat.TABLE, annotation=OutputOption
        ),
        inspect.Parameter("format_help", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=format_help_option),
    ]
    run.__signature__ = signature.replace(parameters=[*parameters, *extra], return_annotation=None)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*parameters, *extra]}
    return run
