"""The problems of a listing: each with file and line, as a finding, or in the one error of a whole file.

A value that cannot be read loses only that value: it is a finding, a line among the notes. Only a file of which nothing
can be read is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from qsctl.config.problems import Problem, Severity, shown
from qsctl.errors import InvalidInput

MOST_PROBLEMS: Final = 20
"""Number of a file's problems that are reported; more are counted, since a file of another kind would have one in every
line.
"""


class ListingError(InvalidInput):
    """A text that is not a listing, or one that cannot be understood at all."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = "1 error" if len(problems) == 1 else f"{len(problems)} errors"
        text = "\n".join(str(problem) for problem in problems)
        super().__init__(f"the listing has {count}\n{text}", remedy="Capture the command's whole output, as it is.")


class Findings:
    """The problems of one file so far, the first `MOST_PROBLEMS` of them; the others are counted."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.uncounted = 0

    @property
    def is_full(self) -> bool:
        """Return whether further ones are only counted."""
        return len(self.problems) >= MOST_PROBLEMS

    def add(self, *problems: Problem) -> None:
        """Add problems."""
        for one in problems:
            if self.is_full:
                self.uncounted += 1
            else:
                self.problems.append(one)

    @property
    def notes(self) -> tuple[str, ...]:
        """Each as one line, and how many more there are."""
        more = (f"and {self.uncounted} more that could not be read",) if self.uncounted else ()
        return (*(finding(one) for one in self.problems), *more)


def finding(one: Problem) -> str:
    """Return a problem as one line, for a note."""
    place = f"{one.file}:{one.line}" if one.line else one.file
    parts = [each for each in (one.path, f"found {one.found}" if one.found else "") if each]
    what = f" ({'; '.join(parts)})" if parts else ""
    return f"{place}: {one.message}{what}"


def problem(file: str, line: int, message: str, *, path: str = "", found: str = "", allowed: str = "") -> Problem:
    """Return an error at a line of a listing; `path` is the client or the row."""
    return Problem(Severity.ERROR, file, line, shown(path), shown(message), shown(found), allowed)
