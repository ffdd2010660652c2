"""The text of a listing and a place in it: words one after the other, with lines for messages.

Words are found as they are asked for, so that a text of any kind costs no more than its length. A bar is a word of its
own. Line breaks are white space like any other: a listing and the same one as one flowed line have the same words.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from qsctl.config.problems import Problem
from qsctl.profiles.listings.problems import MOST_PROBLEMS, ListingError, problem

_WORD: Final = re.compile(r"\||[^\s|]+")
END: Final = ""
"""The word behind the last one."""


class ListingText:
    """A text under its name, where reading is in it, and what is wrong with it so far."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.at = 0
        self.problems: list[Problem] = []

    def line_of(self, position: int) -> int:
        """Return the number of the line in which a position is, from 1."""
        return self.text.count("\n", 0, position) + 1

    def peek(self, skip: int = 0) -> str:
        """Return the next word, or one further on; `END` behind the last one. Nothing is consumed."""
        at = self.at
        found = None
        for _ in range(skip + 1):
            found = _WORD.search(self.text, at)
            if found is None:
                return END
            at = found.end()
        assert found is not None
        return found[0]

    def take(self) -> str:
        """Consume the next word."""
        found = _WORD.search(self.text, self.at)
        if found is None:
            self.at = len(self.text)
            return END
        self.at = found.end()
        return found[0]

    def note(self, message: str, *, path: str = "", found: str = "", allowed: str = "", at: int | None = None) -> None:
        """Note one problem and go on, until there are too many.

        Raises:
            ListingError: there are.
        """
        line = self.line_of(self.place if at is None else at)
        self.problems.append(problem(self.name, line, message, path=path, found=found, allowed=allowed))
        if len(self.problems) >= MOST_PROBLEMS:
            raise ListingError(self.problems)

    def fail(
        self, message: str, *, path: str = "", found: str = "", allowed: str = "", at: int | None = None
    ) -> NoReturn:
        """Give up at a place behind which nothing can be understood.

        Raises:
            ListingError: with this problem and those before it.
        """
        self.note(message, path=path, found=found, allowed=allowed, at=at)
        raise ListingError(self.problems)

    @property
    def place(self) -> int:
        """Where the next word begins; the end of the text where there is none."""
        found = _WORD.search(self.text, self.at)
        return len(self.text.rstrip()) if found is None else found.start()
