"""The commands with their arguments and options as data, for help, the reference, man pages and their tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from qsctl.cli.output.results import Result


_KINDS: Final = {"int": "NUMBER", "float": "NUMBER", "path": "PATH"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument or option, as help describes it."""

    command: str
    name: str
    help: str
    is_argument: bool
    is_flag: bool
    is_required: bool
    metavar: str
    panel: str
    default: str
    """Text of the default in help; empty if there is none."""
    variable: str
    """The environment variable that sets it; empty if there is none."""


@dataclass(frozen=True, slots=True)
class CommandHelp:
    """A command (not a group), with the words that call it and the content of its help."""

    words: tuple[str, ...]
    text: str
    panel: str
    parameters: tuple[Parameter, ...]
    examples: tuple[tuple[str, str], ...]
    """Example command lines, each with a description."""
    result: type[Result]

    @property
    def name(self) -> str:
        """Return the command's words after `qsctl`."""
        return " ".join(self.words)

    @property
    def usage(self) -> str:
        """Return the command's usage line, with its mandatory parameters."""
        pieces = [_placeholder(each) for each in self.parameters if each.is_argument]
        required = [
            f"{each.name} {each.metavar}" for each in self.parameters if each.is_required and not each.is_argument
        ]
        return " ".join(["qsctl", self.name, *pieces, *required, "[OPTIONS]"])


def _placeholder(argument: Parameter) -> str:
    return argument.name if argument.is_required or argument.name.startswith("[") else f"[{argument.name}]"


@cache
def commands() -> tuple[CommandHelp, ...]:
    """Return every command, in the order of `qsctl --help`."""
    import typer

    from qsctl.cli.app import build_app

    return tuple(_command(path, each, panel) for path, each, panel in leaves(typer.main.get_command(build_app())))


def leaves(command: Any, path: tuple[str, ...] = (), panel: str = "") -> Iterator[tuple[tuple[str, ...], Any, str]]:
    """Yield each command that is not a group, with its words and the heading of its panel."""
    children = getattr(command, "commands", None)
    if not children:
        yield path, command, panel
        return
    for name, child in children.items():
        yield from leaves(child, (*path, name), panel or getattr(child, "rich_help_panel", None) or "")


def _command(path: tuple[str, ...], command: Any, panel: str) -> CommandHelp:
    lines = [line.strip() for line in (command.epilog or "").split("\n\n")[1:]]
    examples = tuple((line.partition("  # ")[0], line.partition("  # ")[2]) for line in lines)
    result = result_type(command.callback)
    return CommandHelp(path, command.help or "", panel, tuple(parameters(path, command)), examples, result)


def result_type(callback: Callable[..., Any]) -> type[Result]:
    """Return the type of a command's result, from the function that Typer calls for it."""
    from qsctl.cli.command import result_type_of

    return result_type_of(callback.command_function)  # type: ignore[attr-defined]


def parameters(path: tuple[str, ...], command: Any) -> list[Parameter]:
    """Return the arguments and options of a command in their order, except `--help`, which Typer adds."""
    found = []
    for each in command.params:
        is_argument = each.param_type_name == "argument"
        is_flag = bool(getattr(each, "is_flag", False))
        if not is_argument and "--help" in each.opts:
            continue
        found.append(
            Parameter(
                " ".join(path),
                each.metavar or each.name.upper() if is_argument else ", ".join([*each.opts, *each.secondary_opts]),
                each.help or "",
                is_argument,
                is_flag,
                each.required,
                "" if is_argument or is_flag else _metavar(each),
                each.rich_help_panel or "",
                _default(each, is_flag),
                each.envvar if isinstance(each.envvar, str) and each.show_envvar else "",
            )
        )
    return found


def _metavar(parameter: Any) -> str:
    """Return the placeholder of a parameter's value: its own, its choices, or its type."""
    if parameter.metavar:
        return str(parameter.metavar)
    kind = getattr(parameter, "type_descriptor", None) or parameter.type
    choices = getattr(kind, "choices", None)
    if choices:
        return "|".join(str(each.value if isinstance(each, Enum) else each) for each in choices)
    named = str(getattr(kind, "annotation", None) or getattr(kind, "name", ""))
    return next((word for part, word in _KINDS.items() if part in named.lower()), "TEXT")


def _default(parameter: Any, is_flag: bool) -> str:
    shown, default = parameter.show_default, parameter.default
    if isinstance(shown, str):
        return f"({shown})"
    if not shown or default is None or default == "" or (is_flag and not parameter.secondary_opts):
        return ""
    if is_flag:
        return str((parameter.opts if default else parameter.secondary_opts)[0])
    return str(default.value if isinstance(default, Enum) else default)
