"""`qsctl completion`: the completion scripts that come with qsctl, printed or installed.

Decides the place of each shell's script, and the block that is added, once, between two marker lines, to the file that
the shell reads at its start; `remove` removes it.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.output.declared import DeclaredResult
from qsctl.cli.output.results import Block, Done, TextBlock
from qsctl.cli.panels import MORE_PANEL
from qsctl.errors import UsageError
from qsctl.shipped import shipped

COMMANDS: Final = Commands(
    panel=MORE_PANEL, group="completion", help="Complete commands in a shell: queues, scenarios, runs and more."
)

_BEGIN: Final = "# >>> qsctl completion >>>"
_END: Final = "# <<< qsctl completion <<<"


class Shell(StrEnum):
    """The shells with a completion script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


ShellOption = Annotated[
    Shell | None, typer.Option(help="Shell to complete commands in.", show_default="that of the variable SHELL")
]


@dataclass(frozen=True)
class CompletionScript(DeclaredResult):
    """A completion script, printed."""

    shell: Annotated[Shell, "the shell it is for"]
    script: Annotated[str, "the text"]

    def blocks(self) -> list[Block]:
        """Return the script alone, so that it can be piped."""
        return [TextBlock(self.script.rstrip("\n"))]


@dataclass(frozen=True)
class _Places:
    """The paths of a shell's script, and of the start-up file that sources it (None if not needed)."""

    script: Path
    start: Path | None
    lines: tuple[str, ...] = ()


@COMMANDS.command("bash", examples=('eval "$(qsctl completion bash)"  # in this shell alone',))
def bash() -> CompletionScript:
    """Print the completion script of bash."""
    return _script(Shell.BASH)


@COMMANDS.command("zsh", examples=('eval "$(qsctl completion zsh)"  # in this shell alone',))
def zsh() -> CompletionScript:
    """Print the completion script of zsh."""
    return _script(Shell.ZSH)


@COMMANDS.command("fish", examples=("qsctl completion fish | source  # in this shell alone",))
def fish() -> CompletionScript:
    """Print the completion script of fish."""
    return _script(Shell.FISH)


@COMMANDS.command("install", examples=("qsctl completion install", "qsctl completion install --shell zsh"))
def install(shell: ShellOption = None) -> Done:
    """Install the completion script for new shells. Running it again changes nothing."""
    chosen = shell or _own_shell()
    places = _places(chosen)
    places.script.parent.mkdir(parents=True, exist_ok=True)
    places.script.write_text(_script(chosen).script, encoding="utf-8")
    done = f"{places.script} is written"
    if places.start is not None:
        block = "\n".join((_BEGIN, *places.lines, _END, ""))
        before = places.start.read_text(encoding="utf-8") if places.start.exists() else ""
        others = _without_block(before)
        kept = f"{others}\n" if others and not others.endswith("\n") else others
        if before != kept + block:
            places.start.write_text(kept + block, encoding="utf-8")
        done += f", and {places.start} reads it"
    return Done(f"{done}: new {chosen} shells complete qsctl")


@COMMANDS.command("remove", examples=("qsctl completion remove",))
def remove(shell: ShellOption = None) -> Done:
    """Remove what `install` installed."""
    chosen = shell or _own_shell()
    places = _places(chosen)
    places.script.unlink(missing_ok=True)
    if places.start is not None and places.start.exists():
        before = places.start.read_text(encoding="utf-8")
        after = _without_block(before)
        if after != before:
            places.start.write_text(after, encoding="utf-8")
    return Done(f"new {chosen} shells do not complete qsctl")


def _script(shell: Shell) -> CompletionScript:
    return CompletionScript(shell, shipped(f"completions/qsctl.{shell}").read_text(encoding="utf-8"))


def _own_shell() -> Shell:
    """Return the user's login shell.

    Raises:
        UsageError: there is no script for it.
    """
    name = Path(os.environ.get("SHELL", "")).name
    try:
        return Shell(name)
    except ValueError:
        known = ", ".join(Shell)
        raise UsageError(f"SHELL is {name!r}", remedy=f"Name a shell with --shell: {known}.") from None


def _places(shell: Shell) -> _Places:
    home = Path.home()
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    if shell is Shell.FISH:
        configuration = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        return _Places(configuration / "fish" / "completions" / "qsctl.fish", None)
    if shell is Shell.ZSH:
        script = data / "qsctl" / "completion.zsh"
        lines = ("(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }", _sourced(script))
        return _Places(script, Path(os.environ.get("ZDOTDIR") or home) / ".zshrc", lines)
    directory = Path(os.environ.get("BASH_COMPLETION_USER_DIR") or data / "bash-completion")
    script = directory / "completions" / "qsctl"
    return _Places(script, home / ".bashrc", (_sourced(script),))


def _sourced(script: Path) -> str:
    quoted = shlex.quote(str(script))
    return f"[ ! -r {quoted} ] || . {quoted}"


def _without_block(text: str) -> str:
    """Return a file's text without the block that `install` added."""
    before, begin, rest = text.partition(f"{_BEGIN}\n")
    if not begin or _END not in rest:
        return text
    return before + rest.partition(f"{_END}\n")[2]
