"""The problems of a file, each with its place, and the one error that carries them all.

A problem names the file, the line, the element, the value found, the values allowed and, where one is known, the
probable correction. Problems are collected through all steps and shown together.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from qsctl.errors import ExitStatus, InvalidInput, Refused

if TYPE_CHECKING:
    from lxml.etree import _Element


class Severity(StrEnum):
    """The severity of a problem: an error stops the service, a warning is an error in strict mode, a note is for
    information.

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

    @property
    def note(self) -> str:
        """The problem as one line, for a note."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        parts = [each for each in (self.path, f"found {self.found}" if self.found else "") if each]
        what = f" ({'; '.join(parts)})" if parts else ""
        return f"{place}: {self.message}{what}"


NO_FILE: Final = "there is no such file"
"""The message of a problem that is a file's absence."""
SHOWN_MAX: Final = 50
"""Number of problems of one input that are shown; a file of another kind would have one in every line."""


class InvalidFile(InvalidInput):
    """A file, or several that are read as one, that cannot be used.

    Args:
        problems: errors, warnings and notes, in the order of the files.
        what: name of the input, as the message begins with it.
        remedy: what to do next, where that is the same for each of them.
    """

    def __init__(self, problems: Sequence[Problem], what: str = "the file", remedy: str = "") -> None:
        self.problems = tuple(problems)
        errors = [problem for problem in problems if problem.severity is Severity.ERROR]
        count = f"{len(errors)} errors" if len(errors) != 1 else "1 error"
        lines = [f"{what} has {count}", *map(str, errors[:SHOWN_MAX])]
        if len(errors) > SHOWN_MAX:
            lines.append(f"… and {len(errors) - SHOWN_MAX} more")
        super().__init__("\n".join(lines), remedy=remedy)
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


def same_problems(problems: Iterable[Problem]) -> list[list[Problem]]:
    """Return the problems in groups: those that differ in their place alone; the worst first, in each kind in order."""
    found: dict[tuple[str, ...], list[Problem]] = {}
    for each in problems:
        key = (each.severity, each.file, each.message, each.found, each.allowed, each.suggestion)
        found.setdefault(key, []).append(each)
    order = list(Severity)
    return sorted(found.values(), key=lambda same: order.index(same[0].severity))


def text_of_same(problems: Sequence[Problem]) -> str:
    """Return a group of `same_problems` as text: one problem, and where it is besides."""
    first, *others = problems
    if not others:
        return str(first)
    lines = ", ".join(str(each.line) for each in others if each.line)
    services = list(dict.fromkeys(each[1] for problem in problems for each in [_SERVICE.search(problem.path)] if each))
    place = f"  and {len(others)} more like it: line{'s' * (len(others) > 1)} {lines}"
    named = f"; services: {', '.join(services)}" if len(services) > 1 else ""
    return f"{first}\n{place}{named}"


_SERVICE: Final = re.compile(r"queuing_service\[([^]]*)\]")

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


def error_at(
    file: str, line: int, message: str, *, path: str = "", found: str = "", allowed: str = "", suggestion: str = ""
) -> Problem:
    """Return an error at a line of a file; 0: the whole file. `path` is the element, the row or the client."""
    return Problem(Severity.ERROR, file, line, shown(path), shown(message), shown(found), allowed, suggestion)


def refusal(
    file: str, message: str, *, line: int = 0, found: str = "", allowed: str = "", suggestion: str = ""
) -> InvalidFile:
    """Return the error of a file of which nothing is read."""
    return InvalidFile([error_at(file, line, message, found=found, allowed=allowed, suggestion=suggestion)])


class ProblemList:
    """The problems of one input so far: the first `most` of them; further ones are counted.

    Args:
        file: name of the file in problems; it is set anew where the next one of several is read.
        most: number of problems that are kept.
    """

    def __init__(self, file: str, most: int = SHOWN_MAX) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.uncounted = 0
        self._most = most

    @property
    def is_full(self) -> bool:
        """Return whether further ones are only counted: to read on would show no more."""
        return len(self.problems) >= self._most

    @property
    def errors(self) -> list[Problem]:
        """Return those that make the input invalid."""
        return [problem for problem in self.problems if problem.severity is Severity.ERROR]

    def add(
        self, line: int, message: str, found: str = "", allowed: str = "", *, path: str = "", suggestion: str = ""
    ) -> None:
        """Add an error at a line of the file; 0: of the whole file."""
        if self.is_full:  # a hostile file has tens of thousands: each would be made only to be counted
            self.uncounted += 1
            return
        self.problems.append(
            error_at(self.file, line, message, path=path, found=found, allowed=allowed, suggestion=suggestion)
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Each problem as one line, and the number of those that are only counted."""
        more = (f"and {self.uncounted} more that could not be read",) if self.uncounted else ()
        return (*(problem.note for problem in self.problems), *more)

    def extend(self, problems: Iterable[Problem]) -> None:
        """Add problems that were found elsewhere."""
        for each in problems:
            if self.is_full:
                self.uncounted += 1
            else:
                self.problems.append(each)

    def check(self, what: str, remedy: str = "") -> None:
        """Raise the problems, if one is an error.

        Raises:
            InvalidFile: with all of them.
        """
        if self.errors:
            raise InvalidFile(self.problems, what, remedy)


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
    """Return whether one of them makes the configuration invalid."""
    return any(problem.severity is Severity.ERROR for problem in problems)


def unsupported(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems for which `qsctl serve` refuses a valid configuration."""
    return [problem for problem in problems if problem.severity is Severity.UNSUPPORTED]
