"""What is wrong with a configuration: every problem with its place, and the one error that carries them all.

A problem names the file, the line, the element, the value found, the values allowed and, where one is known, what was
probably meant. Problems are collected through all steps and shown together.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from qsctl.errors import ExitStatus, InvalidInput, Refused

if TYPE_CHECKING:
    from lxml.etree import _Element


class Severity(StrEnum):
    """How bad: an error stops the service, a warning is an error in strict mode, a note is for information.

    What is unsupported stops `qsctl serve` too, but the file is valid: it can be read, rendered and compared.
    """

    ERROR = "error"
    UNSUPPORTED = "unsupported"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, or worth knowing. `line` 0: the whole file."""

    severity: Severity
    file: str
    line: int
    path: str
    message: str
    found: str = ""
    allowed: str = ""
    suggestion: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        parts = [f"{place}: {self.severity}: {self.message}"]
        if self.path:
            parts.append(f"  at {self.path}")
        if self.found:
            parts.append(f"  found: {self.found}")
        if self.allowed:
            parts.append(f"  allowed: {self.allowed}")
        if self.suggestion:
            parts.append(f"  {self.suggestion}")
        return "\n".join(parts)


NO_FILE: Final = "there is no such file"
"""The message of a problem that is a file's absence."""


class ConfigError(InvalidInput):
    """A configuration that cannot be used; `problems` holds errors, warnings and notes, in the order of the files."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        errors = [problem for problem in problems if problem.severity is Severity.ERROR]
        count = f"{len(errors)} errors" if len(errors) != 1 else "1 error"
        text = "\n".join(str(problem) for problem in errors)
        super().__init__(f"the configuration has {count}\n{text}")
        self.exit_status = status_of(problems)


def status_of(problems: Sequence[Problem]) -> ExitStatus:
    """Return what a command exits with: NOT_FOUND where files are missing and nothing else is wrong."""
    messages = {problem.message for problem in problems if problem.severity is Severity.ERROR}
    if not messages:
        return ExitStatus.DONE
    return ExitStatus.NOT_FOUND if messages == {NO_FILE} else ExitStatus.NO


class NotServed(Refused):
    """A valid configuration that this version, or this machine's DDS library, cannot serve as it promises."""

    def __init__(self, name: str, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        text = "\n".join(map(str, problems))
        super().__init__(f"the service {name} is valid and not supported here\n{text}")


_SHOWN_CHARACTERS = 120


def shown(text: str) -> str:
    """Return a value as a message shows it: on one line, without control characters, no longer than it should be."""
    line = " ".join(text.split())
    line = "".join(character if character.isprintable() else "�" for character in line)
    return line if len(line) <= _SHOWN_CHARACTERS else line[: _SHOWN_CHARACTERS - 1] + "…"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a sentence with the known word that is nearest, or nothing where none is near."""
    near = difflib.get_close_matches(shown(word), list(known), n=1, cutoff=0.7)
    return f"Did you mean {near[0]}?" if near else ""


def path_of(element: _Element) -> str:
    """Return the element's path for people: tags from the root, with names in brackets."""
    steps = []
    at: _Element | None = element
    while at is not None:
        name = at.get("name")
        steps.append(f"{shown(str(at.tag))}[{shown(name)}]" if name else shown(str(at.tag)))
        at = at.getparent()
    return "/".join(reversed(steps))


def file_of(element: _Element) -> str:
    """Return the name of the source that the element was read from."""
    return str(element.getroottree().docinfo.URL or "")


def line_of(element: _Element) -> int:
    """Return the line of the element's start tag; 0 where it has none."""
    line: object = element.sourceline
    return line if isinstance(line, int) else 0


def problem_at(
    element: _Element,
    message: str,
    *,
    severity: Severity = Severity.ERROR,
    found: str = "",
    allowed: str = "",
    suggestion: str = "",
) -> Problem:
    """Return a problem with this element."""
    return Problem(
        severity,
        file_of(element),
        line_of(element),
        path_of(element),
        message,
        shown(found),
        allowed,
        suggestion,
    )


def strictly(problems: Iterable[Problem]) -> list[Problem]:
    """Return the same problems with every warning made an error, as `--strict` does."""
    return [
        replace(problem, severity=Severity.ERROR) if problem.severity is Severity.WARNING else problem
        for problem in problems
    ]


def has_errors(problems: Iterable[Problem]) -> bool:
    """Whether one of them makes the configuration invalid."""
    return any(problem.severity is Severity.ERROR for problem in problems)


def unsupported(problems: Iterable[Problem]) -> list[Problem]:
    """Those for which `qsctl serve` refuses a valid configuration."""
    return [problem for problem in problems if problem.severity is Severity.UNSUPPORTED]
