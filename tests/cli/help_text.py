"""The help of every command as one text, whatever the version of the library that prints it.

`python -m tests.cli.help_text > tests/cli/help.txt` makes the snapshot anew.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import typer

from qsctl.cli.help import _command_tree as command_tree
from qsctl.cli.help._command_tree import Parameter, parameters
from tests.commands import command_line

__all__ = ["Parameter", "help_text", "leaves"]

WIDTH = 100


def leaves() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each command that does something, with the words that call it."""
    for path, command, _ in command_tree.leaves(typer.main.get_command(command_line())):
        yield path, command


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
