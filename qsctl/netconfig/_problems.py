"""The list of problems of one NetConfig, limited to the number that is shown."""

from __future__ import annotations

from collections.abc import Sequence

from qsctl.config.problems import Problem, Severity, shown
from qsctl.netconfig.text import MOST_PROBLEMS


class TooManyProblems(Exception):
    """The list of problems has reached its limit; reading ends."""


class ProblemList:
    """The problems of one file; it raises TooManyProblems at `MOST_PROBLEMS` errors."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def add(self, line: int, message: str, found: str = "", allowed: str = "", path: str = "") -> None:
        """Add an error."""
        self._keep(Problem(Severity.ERROR, self.file, line, shown(path), shown(message), shown(found), allowed))

    def extend(self, problems: Sequence[Problem]) -> None:
        """Add problems found by another part of the reader."""
        for each in problems:
            self._keep(each)

    @property
    def has_errors(self) -> bool:
        """Return whether a problem of the list is an error."""
        return any(each.severity is Severity.ERROR for each in self.problems)

    def _keep(self, problem: Problem) -> None:
        self.problems.append(problem)
        if sum(each.severity is Severity.ERROR for each in self.problems) >= MOST_PROBLEMS:
            raise TooManyProblems
