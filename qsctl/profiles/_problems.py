"""The problems of a file of client profiles: all in one error, with file, line, place and values.

Decides: the one error that any input leads to, and how many problems of one file are reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from qsctl.config.problems import Problem, Severity, shown, status_of
from qsctl.errors import InvalidInput

PROBLEMS_MAX: Final = 50
"""Of one file; more are counted."""


class ProfileError(InvalidInput):
    """A file that no client profile can be read from; `problems` holds errors, warnings and notes."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        errors = [problem for problem in problems if problem.severity is Severity.ERROR]
        lines = [str(problem) for problem in errors[:PROBLEMS_MAX]]
        if len(errors) > PROBLEMS_MAX:
            lines.append(f"… and {len(errors) - PROBLEMS_MAX} more")
        count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
        super().__init__(f"{count}: no client profile is read\n" + "\n".join(lines))
        self.exit_status = status_of(problems)


def refusal(
    file: str, message: str, *, line: int = 0, found: str = "", allowed: str = "", suggestion: str = ""
) -> ProfileError:
    """Return the error of a file as a whole."""
    return ProfileError([Problem(Severity.ERROR, file, line, "", message, shown(found), allowed, suggestion)])
