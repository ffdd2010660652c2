"""The command line that repeats a run, as a user would type it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping


def command_line(
    command: str,
    argument: str | None,
    options: Iterable[tuple[str, object]],
    variables: Mapping[str, str],
    assignments: Mapping[str, str],
) -> str:
    """Return a command with its arguments, quoted for a shell.

    Args:
        command: the command's words, as in `simulate`.
        argument: the scenario; None if none was named.
        options: each with its value; None if it was not given.
        variables: of `--var`.
        assignments: of `--set`.
    """
    words = ["qsctl", command, *([argument] if argument else [])]
    for option, value in options:
        if value is not None:
            words += [option, str(value)]
    for option, given in (("--var", variables), ("--set", assignments)):
        for name, text in given.items():
            words += [option, f"{name}={text}"]
    return shlex.join(words)
