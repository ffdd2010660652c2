"""`qsctl completion SHELL`: the completion script that comes with qsctl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.output.results import Block, Result, TextBlock
from qsctl.shipped import shipped

COMMANDS: Final = Commands(panel="Help")


class Shell(StrEnum):
    """Shells that a script is shipped for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@dataclass(frozen=True)
class CompletionScript(Result):
    """A script to be evaluated or saved."""

    shell: Shell
    script: str

    field_help: ClassVar[Mapping[str, str]] = {"shell": "the shell it is for", "script": "the text"}

    def blocks(self) -> list[Block]:
        """The script alone, so that it can be piped."""
        return [TextBlock(self.script.rstrip("\n"))]


@COMMANDS.command(
    "completion",
    examples=(
        "qsctl completion bash > ~/.local/share/bash-completion/completions/qsctl",
        "qsctl completion fish > ~/.config/fish/completions/qsctl.fish",
    ),
)
def completion(
    shell: Annotated[Shell, typer.Argument(help="Shell that the script is for.", show_default=False)],
) -> CompletionScript:
    """Print the completion script of a shell."""
    return CompletionScript(shell, shipped(f"completions/qsctl.{shell}").read_text(encoding="utf-8"))
