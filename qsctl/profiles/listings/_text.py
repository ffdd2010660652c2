"""The text of a listing and a position in it: words in sequence, with lines for messages.

Words are found as they are asked for, so that reading a text of any kind takes no more than its length. A bar is a word
of its own. Line breaks are white space like any other: a listing and the same one as one flowed line have the same
words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NoReturn

from qsctl.declared.problems import ProblemList

_WORD: Final = re.compile(r"\||[^\s|]+")
END: Final = ""
"""The word behind the last one."""


class NotUnderstoodError(Exception):
    """An error for a part of a text that is not what its beginning resembles; the reason is among the findings."""


class ListingText:
    """A text with its name, the reading position, and the problems so far.

    Args:
        text: the lines.
        name: the file's name in problems.
        numbers: of each line in the file; None: they are consecutive.
    """

    def __init__(self, text: str, name: str, numbers: Sequence[int] | None = None) -> None:
        self.text = text
        self.name = name
        self.at = 0
        self.findings = ProblemList(name)
        self._numbers = numbers
        self._counted = 0, 0
        """A position and the line breaks before it: the next one that is asked for is mostly behind it."""
        self._searched: dict[re.Pattern[str], tuple[int, re.Match[str] | None]] = {}

    def line_of(self, position: int) -> int:
        """Return the number of the line that contains a position, from 1, as the file counts lines."""
        before, counted = self._counted
        if position < before:
            before, counted = 0, 0
        at = counted + self.text.count("\n", before, position)
        self._counted = position, at
        return at + 1 if self._numbers is None else self._numbers[at]

    def next_match(self, pattern: re.Pattern[str], position: int) -> re.Match[str] | None:
        """Return the first match from a position on; calls with increasing positions search the text once in all."""
        start, found = self._searched.get(pattern, (-1, None))
        if not 0 <= start <= position or (found is not None and found.start() < position):
            found = pattern.search(self.text, position)
            self._searched[pattern] = position, found
        return found

    def peek(self, skip: int = 0) -> str:
        """Return the next word, or the one `skip` words later, without consuming it; `END` after the last one."""
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
        """Record one problem; reading continues."""
        if self.findings.is_full:
            self.findings.uncounted += 1
            return
        line = self.line_of(self.place if at is None else at)
        self.findings.add(line, message, found, allowed, path=path)

    def fail(
        self, message: str, *, path: str = "", found: str = "", allowed: str = "", at: int | None = None
    ) -> NoReturn:
        """Record a problem and abort reading the current part.

        Raises:
            NotUnderstoodError: the problem is noted.
        """
        self.note(message, path=path, found=found, allowed=allowed, at=at)
        raise NotUnderstoodError(message)

    @property
    def place(self) -> int:
        """Return the position of the next word; the end of the text where there is none."""
        found = _WORD.search(self.text, self.at)
        return len(self.text.rstrip()) if found is None else found.start()
