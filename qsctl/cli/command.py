"""The wrapper around every command: it prints the returned result or the error, and sets the exit status.

A command is a plain function that returns a `Result` and raises `QsctlError`. A command whose work depends on
successful printing, such as `consume`, is a generator of results instead: it is resumed when a result is printed and
flushed, and closed if that fails. The wrapper adds `-o`, `--format-help` and the options that choose columns; options
that several commands share are groups (`option_groups`).
"""

from __future__ import annotations

import copy
import errno
import functools
import inspect
import os
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from enum import IntEnum
from typing import Annotated, Any, Final, TypeVar

import typer
from typer.core import TyperCommand
from typer.models import OptionInfo

from qsctl.cli._completers import with_completer
from qsctl.cli._synonyms import SYNONYMS, options_meant
from qsctl.cli.context.use import shown_context, source_of_service
from qsctl.cli.option_groups import command_line_parameters, grouped, is_group
from qsctl.cli.output import render
from qsctl.cli.output.render import OutputFormat
from qsctl.cli.output.results import Result
from qsctl.cli.output.streaming import Printer
from qsctl.cli.output.view import View, check_fields, view_of
from qsctl.distribution import missing
from qsctl.errors import (
    ExitStatus,
    Interrupted,
    NoAnswer,
    NotFound,
    OutputClosed,
    QsctlError,
    Refused,
    UsageError,
)

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Result | Iterator[Result]])

_output_panel = functools.partial(typer.Option, rich_help_panel="Output")


class Output(typing.NamedTuple):
    """The value of `-o`: a format, or a template of one line."""

    format: OutputFormat
    template: str = ""


def _parse_output(text: str) -> Output:
    """Parse a value of `-o`.

    Raises:
        typer.BadParameter: it is neither a format nor a template.
    """
    if "{{" in text or "{%" in text:
        return Output(OutputFormat.TABLE, text)
    if text not in list(OutputFormat):
        names = ", ".join(map(repr, map(str, OutputFormat)))
        raise typer.BadParameter(f"{text!r} is not one of {names}, and no template, which has {{{{ a field }}}}.")
    return Output(OutputFormat(text))


def _formats(_context: typer.Context, incomplete: str) -> list[str]:
    return [str(each) for each in OutputFormat if each.startswith(incomplete)]


OutputOption = Annotated[
    Output,
    _output_panel(
        "--output",
        "-o",
        metavar="FORMAT",
        parser=_parse_output,
        autocompletion=_formats,
        help="Format of the result: table, json, jsonl, yaml, csv or, where the command has one, xml or prometheus; or "
        "a Jinja template of a line for each row, such as '{{ field }}'.",
    ),
]
WideOption = Annotated[
    bool, _output_panel("--wide", help="Show every column and whole figures, even where the terminal is narrower.")
]


def _columns_option(fields: Iterable[str]) -> Any:
    return Annotated[
        str,
        _output_panel(
            "--columns",
            metavar="FIELDS",
            autocompletion=_completed(fields),
            help="Fields to show, separated by commas, in this order; --format-help lists them.",
            show_default="those of the command",
        ),
    ]


def _sort_option(fields: Iterable[str]) -> Any:
    return Annotated[
        str,
        _output_panel(
            "--sort",
            metavar="FIELDS",
            autocompletion=_completed(fields),
            help="Fields to sort rows by, separated by commas; with - in front the largest first.",
            show_default="the order of the command",
        ),
    ]


def _completed(fields: Iterable[str]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        """Return completions of the last field in a comma-separated list."""
        before, comma, typed = incomplete.rpartition(",")
        minus = "-" * typed.startswith("-")
        return [f"{before}{comma}{minus}{each}" for each in fields if each.startswith(typed.removeprefix("-"))]

    return complete


_PROGRAM: Final = "qsctl"


class Commands:
    """The commands of a module, or of a group; the decorator `command` adds a function.

    Args:
        panel: heading of the commands in `qsctl --help`.
        group: the group's word, as `get` in `qsctl get status`; empty for commands of the application itself.
        help: the purpose of the group.
        parts: commands of the same group in other modules, listed after those of this module.
    """

    def __init__(
        self, *, panel: str | None = None, group: str = "", help: str = "", parts: tuple[Commands, ...] = ()
    ) -> None:
        self._panel = panel
        self._group = group
        self._help = help
        self._parts = parts
        self._added: list[Callable[[typer.Typer, str | None], None]] = []

    def command(
        self,
        name: str,
        *,
        examples: tuple[str, ...] = (),
        kind: type[TyperCommand] | None = None,
    ) -> Callable[[CommandFunction], CommandFunction]:
        """Return a decorator that makes a function the command `name`.

        Its options are created only when its own command line is parsed, since that takes time.

        Args:
            name: as the user types it.
            examples: command lines for its help, each with a description after ` # `.
            kind: the class that parses its command line, if it is not the usual one.
        """

        def decorate(function: CommandFunction) -> CommandFunction:
            def add(app: typer.Typer, panel: str | None) -> None:
                line = tuple(dict.fromkeys((_PROGRAM, app.info.name or _PROGRAM, name)))

                def alone() -> TyperCommand:
                    app = typer.Typer(add_completion=False)
                    app.command(name, help=_help(function), epilog=_epilog(examples), cls=kind)(_runner(function, line))
                    return typing.cast("TyperCommand", typer.main.get_command(app))

                app.command(name, rich_help_panel=panel, epilog=_epilog(examples), cls=_late(alone))(_listed(function))

            self._added.append(add)
            return function

        return decorate

    def add_to(self, app: typer.Typer) -> None:
        """Add the commands to the application, or to their group of it."""
        if not self._group:
            self._add_all(app, self._panel)
            return
        group = typer.Typer(name=self._group, no_args_is_help=True, help=self._help)
        self._add_all(group, None)
        app.add_typer(group, rich_help_panel=self._panel)

    def _add_all(self, app: typer.Typer, panel: str | None) -> None:
        for add in self._added:
            add(app, panel)
        for part in self._parts:
            part.add_to(app)


def _late(make: Callable[[], TyperCommand]) -> type[TyperCommand]:
    made = functools.cache(make)

    class Late(TyperCommand):
        """A placeholder in the list of commands, which creates the command on use of its parameters or context."""

        params = property(lambda _: made().params, lambda *_: None)

        def make_context(self, *arguments: Any, **named: Any) -> Any:
            try:
                return made().make_context(*arguments, **named)
            except Exception as error:
                _suggest(error, made())
                raise

    return Late


def _suggest(error: Any, command: TyperCommand) -> None:
    """Add to the error of an unknown option the command's option for the same word in other programs."""
    word = getattr(error, "option_name", "")
    if hasattr(error, "possibilities") and word in SYNONYMS:
        known = [option for each in command.params for option in each.opts]
        error.possibilities = options_meant(word, known) or error.possibilities


def _listed(function: Callable[..., object]) -> Callable[[], None]:
    """Return a placeholder with the command's help, for the list of commands; it is never invoked."""

    def listed() -> None: ...

    listed.__doc__ = _help(function)
    listed.command_function = function  # type: ignore[attr-defined]
    return listed


def _help(function: Callable[..., object]) -> str:
    """Return a docstring as help, each paragraph on one line, since Typer keeps the source's line breaks."""
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    return "\n\n".join(each if "\n " in each or "\n-" in each else " ".join(each.split()) for each in paragraphs)


def _epilog(examples: tuple[str, ...]) -> str | None:
    # Typer joins the lines of a paragraph: empty lines between the examples keep each on its own line.
    return "\n\n".join(["Examples:", *(f"  {line}" for line in examples)]) if examples else None


def _runner(function: Callable[..., Result | Iterator[Result]], line: Sequence[str]) -> Callable[..., None]:
    """Return the function that Typer calls for a command; `line` has the words that the command is typed as."""
    hints = typing.get_type_hints(function, include_extras=True)
    result_type = _result_type(hints.pop("return"))
    groups = {name: hint for name, hint in hints.items() if is_group(hint)}

    def show_format_help(wanted: bool) -> None:
        if wanted:
            render.show_format_help(result_type)
            raise typer.Exit

    # Eager and a callback, so that it works without the command's required arguments.
    format_help_option = Annotated[
        bool,
        typer.Option(
            "--format-help",
            help="Print the fields of the result and exit.",
            is_eager=True,
            callback=show_format_help,
            rich_help_panel="Output",
        ),
    ]

    def checked(output: OutputFormat, view: View) -> None:
        """Refuse an output format or field that the result does not support, before the command does anything."""
        check_fields(view, result_type)
        if view.template:
            from qsctl.cli.output.template import line_maker

            line_maker(view.template)
        if output is OutputFormat.XML and result_type.xml is Result.xml:
            raise UsageError("this command prints no XML", remedy="Choose -o table, json, jsonl, yaml or csv.")
        if output is OutputFormat.PROMETHEUS and result_type.prometheus is Result.prometheus:
            raise UsageError("this command prints no metrics", remedy="Choose -o table, json, jsonl, yaml or csv.")

    def show_error(error: QsctlError, output: OutputFormat, arguments: Mapping[str, Any]) -> None:
        error.context = shown_context(arguments.get("context"), arguments.get("service"))
        service = arguments.get("service")
        if isinstance(error, NoAnswer) and isinstance(service, str) and service.startswith("dds:"):
            error.place = f"{service}, {source_of_service()}"
        render.show_error(error, output)

    def printed(arguments: dict[str, Any], output: OutputFormat, view: View) -> IntEnum:
        made = function(**grouped(groups, arguments))
        if isinstance(made, Result):
            render.show(made, output, view)
            return made.exit_status
        status: IntEnum | None = None
        # Closed in any case: the command releases its service and files before the process ends.
        with closing(typing.cast("typing.Generator[Result]", made)) as results:
            printer = Printer(output, view)
            try:
                for result in results:
                    printer.show(result)
                    status = result.exit_status if status is None else status
            except KeyboardInterrupt:
                if not printer.is_watching or status is None:
                    raise
            printer.end()
        assert status is not None, "a command has a result"
        return status

    @functools.wraps(function)
    def run(*, output: Output, columns: str, sort: str, wide: bool, format_help: bool, **arguments: Any) -> None:
        assert not format_help  # its callback has ended the command
        try:
            view = view_of(columns, sort, output.template, wide=wide)
            checked(output.format, view)
            status: IntEnum = printed(arguments, output.format, view)
        except OutputClosed as error:
            status = error.exit_status
        except QsctlError as error:
            show_error(error, output.format, arguments)
            status = error.exit_status
        except ModuleNotFoundError as error:
            unavailable = missing(error.name or "")
            if unavailable is None:
                raise
            show_error(unavailable, output.format, arguments)
            status = unavailable.exit_status
        except OSError as error:
            if os.environ.get("QSCTL_DEBUG"):
                raise
            refused = _name_too_long(error) if error.errno == errno.ENAMETOOLONG else _refused(error)
            show_error(refused, output.format, arguments)
            status = refused.exit_status
        except KeyboardInterrupt:
            render.show_error(Interrupted("interrupted"), output.format)
            status = ExitStatus.INTERRUPTED
        raise typer.Exit(int(status))

    keyword_only = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        *(with_completer(_with_stated_default(each)) for each in command_line_parameters(function, hints)),
        inspect.Parameter("output", keyword_only, default="table", annotation=OutputOption),
        inspect.Parameter("columns", keyword_only, default="", annotation=_columns_option(result_type.field_help)),
        inspect.Parameter("sort", keyword_only, default="", annotation=_sort_option(result_type.field_help)),
        inspect.Parameter("wide", keyword_only, default=False, annotation=WideOption),
        inspect.Parameter("format_help", keyword_only, default=False, annotation=format_help_option),
    ]
    parameters = [_in_the_environment(each, line) for each in parameters]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _with_stated_default(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return an option's parameter, with "none" as the default in help if it has neither default nor text."""
    kind, *stated = typing.get_args(parameter.annotation)
    for at, info in enumerate(stated):
        is_flag = kind in (bool, bool | None)
        if (
            isinstance(info, OptionInfo)
            and info.show_default is True
            and parameter.default in (None, "")
            and not is_flag
        ):
            stated[at] = copy.copy(info)
            stated[at].show_default = "none"
            return parameter.replace(annotation=Annotated[(kind, *stated)])
    return parameter


def _in_the_environment(parameter: inspect.Parameter, line: Sequence[str]) -> inspect.Parameter:
    """Return an option's parameter that an environment variable may set, too.

    For `get status --timeout` it is QSCTL_GET_STATUS_TIMEOUT; help does not show these. Options with a variable of
    their own keep only that; options that end a command at once, such as --format-help, have none.
    """
    kind, *stated = typing.get_args(parameter.annotation)
    for at, info in enumerate(stated):
        if isinstance(info, OptionInfo) and info.envvar is None and not info.is_eager:
            names = [each for each in info.param_decls or () if each.startswith("--")]
            option = names[0].removeprefix("--").partition("/")[0] if names else parameter.name
            stated[at] = copy.copy(info)
            stated[at].envvar = "_".join((*line, option)).replace("-", "_").upper()
            stated[at].show_envvar = False
            return parameter.replace(annotation=Annotated[(kind, *stated)])
    return parameter


def _name_too_long(error: OSError) -> NotFound:
    name = str(error.filename)
    return NotFound(
        f"{name[:40]}…: a name of {len(name)} characters; no file system here has room for it",
        remedy="Name a file or folder that exists.",
    )


def _refused(error: OSError) -> Refused:
    """Return the error for an OSError that no command expects, such as a full disk or a missing permission."""
    place = f"{error.filename}: " if error.filename else ""
    return Refused(
        f"{place}{error.strerror or error}", remedy="The system refuses: check the disk's space and the permissions."
    )


def result_type_of(function: Callable[..., object]) -> type[Result]:
    """Return the type of the results that a command returns or yields."""
    return _result_type(typing.get_type_hints(function, include_extras=True)["return"])


def _result_type(returned: Any) -> type[Result]:
    found: type[Result] = (typing.get_args(returned) or (returned,))[0]
    return found
