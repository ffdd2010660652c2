"""What is wrong with a listing: each problem with file and line, and the one error that carries them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from qsctl.config.problems import Problem, Severity, shown
from qsctl.errors import InvalidInput

MOST_PROBLEMS: Final = 20
"""Of one file: a file that is something else altogether would have one in every line."""


class ListingError(InvalidInput):
    """A text that is no listing, or one with rows that cannot be understood."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = "1 error" if len(problems) == 1 else f"{len(problems)} errors"
        text = "\n".join(str(problem) for problem in problems)
        super().__init__(f"the listing has {count}\n{text}", remedy="Capture the command's whole output, as it is.")


def problem(file: str, line: int, message: str, *, path: str = "", found: str = "", allowed: str = "") -> Problem:
    """Return an error at a line of a listing; `path` is the client or the row."""
    return Problem(Severity.ERROR, file, line, shown(path), shown(message), shown(found), allowed)
