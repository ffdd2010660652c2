"""The content of replies of `qsctl reply`: a text, or the output of a command."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from typing import TypeAlias

from qsctl.cli.samples._request_queue import printable
from qsctl.errors import InvalidInput, NotFound, UsageError

ReplyMaker: TypeAlias = Callable[[bytes], bytes | None]
"""A function from a request's content to the reply's; None rejects the request."""


def reply_maker(text: str | None, command_line: str | None) -> ReplyMaker:
    """Return the function that makes replies, from the options --text and --exec.

    Raises:
        UsageError: neither or both are given, or the command's quoting is not valid.
    """
    if (text is None) == (command_line is None):
        raise UsageError("a reply is made by --text or by --exec", remedy="Give one of them.")
    if text is not None:
        template = text
        return lambda content: template.replace("{}", printable(content)).encode("utf-8", "surrogateescape")
    assert command_line is not None
    try:
        words = shlex.split(command_line)
    except ValueError as error:
        raise UsageError(f"--exec {command_line!r}: {error}", remedy="Quote it as for a shell.") from None
    if not words:
        raise UsageError("--exec names no command", remedy="Write it as in --exec './quote --fast'.")
    return lambda content: _output(words, content)


def _output(words: list[str], content: bytes) -> bytes | None:
    """Run a command with a request on standard input and return its output; None if it fails.

    Raises:
        NotFound, InvalidInput: it cannot be run.
    """
    try:
        done = subprocess.run(words, input=content, stdout=subprocess.PIPE, check=False)
    except FileNotFoundError:
        raise NotFound(f"--exec: there is no command {words[0]}", remedy="Check the path.") from None
    except OSError as error:
        raise InvalidInput(
            f"--exec: {words[0]} cannot be run: {error.strerror}", remedy="Name a program that can be run."
        ) from None
    return None if done.returncode else done.stdout
