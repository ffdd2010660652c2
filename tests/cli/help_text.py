"""The help of every command as one text, whatever the version of the library that prints it.

`python -m tests.cli.help_text > tests/cli/help.txt` makes the snapshot anew.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import typer

from tests.commands import command_line

WIDTH = 100


@dataclass(frozen=True)
class Parameter:
    """An argument or option as help shows it."""

    command: str
    name: str
    help: str
    is_argument: bool
    is_flag: bool
    is_required: bool
    metavar: str
    panel: str
    default: str
    """What help says of the default; empty: nothing."""


def leaves(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each command that does something, with the words that call it."""
    command = typer.main.get_command(command_line()) if command is None else command
    children = getattr(command, "commands", None)
    if not children:
        yield path, command
        return
    for name, child in children.items():
        yield from leaves(child, (*path, name))


def parameters(path: tuple[str, ...], command: Any) -> list[Parameter]:
    """The arguments and options of a command, in their order; `--help` is the library's own."""
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
                "" if is_argument or is_flag else each.metavar or "",
                each.rich_help_panel or "",
                _default(each, is_flag),
            )
        )
    return found


def _default(parameter: Any, is_flag: bool) -> str:
    shown, default = parameter.show_default, parameter.default
    if isinstance(shown, str):
        return f"({shown})"
    if not shown or default is None or default == "" or (is_flag and not parameter.secondary_opts):
        return ""
    if is_flag:
        return (parameter.opts if default else parameter.secondary_opts)[0]
    return str(default.value if isinstance(default, Enum) else default)


def help_text() -> str:
    """All of it."""
    lines: list[str] = []
    for path, command in leaves():
        lines += [f"qsctl {' '.join(path)}", ""]
        text = (command.help or "").split("\n\n")
        for paragraph in text:
            lines += [*textwrap.wrap(paragraph, WIDTH, initial_indent="  ", subsequent_indent="  "), ""]
        for each in parameters(path, command):
            notes = [f"[{each.panel}]"] if each.panel else []
            notes += ["[required]"] if each.is_required else [f"[default: {each.default}]"] if each.default else []
            head = f"  {each.name}{' ' * bool(each.metavar)}{each.metavar}"
            lines.append(head)
            lines += textwrap.wrap(
                " ".join([each.help, *notes]), WIDTH, initial_indent="      ", subsequent_indent="      "
            )
        lines += ["", *(f"  {line.strip()}" for line in (command.epilog or "").split("\n\n")), "", ""]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.stdout.write(help_text())
