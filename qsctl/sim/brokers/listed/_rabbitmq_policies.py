"""Policies of RabbitMQ's definitions: which one applies to a queue.

Of the policies whose pattern matches, the one of the highest priority applies, alone (RabbitMQ, "Parameters and
Policies").

Decides: that a pattern is never run by a backtracking engine, for a file may come from anybody. What patterns mostly
consist of (a beginning, an end, any characters, alternatives) is matched here, each part from where the one before
ended; a policy with anything else is not applied, and named in a note.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

PATTERN_MAX: Final = 1_000
_TOKEN: Final = re.compile(r"\\(?P<escaped>[^A-Za-z0-9])|(?P<any>\.[*+]?)|(?P<plain>[^\\.*+?()\[\]{}|^$])")
_GROUPED: Final = re.compile(r"(\^?)\((?:\?:)?([^()]*)\)(\$?)")


@dataclass(frozen=True, slots=True)
class _Alternative:
    """One alternative of a pattern: literal parts with any characters between, and whether each end is anchored."""

    parts: tuple[re.Pattern[str], ...]
    lengths: tuple[int, ...]
    is_at_start: bool
    is_at_end: bool

    def is_in(self, name: str) -> bool:
        """Return whether a name contains the parts, in their order and without overlap."""
        first, last = self.parts[0], len(self.parts) - 1
        if not last and self.is_at_start and self.is_at_end:
            return first.fullmatch(name) is not None
        at = 0
        for number, part in enumerate(self.parts):
            if number == last and self.is_at_end:
                start = len(name) - self.lengths[number]
                return start >= at and part.match(name, start) is not None
            found = part.match(name, at) if not number and self.is_at_start else part.search(name, at)
            if found is None:
                return False
            at = found.end()
        return True


@dataclass(frozen=True, slots=True)
class NamePattern:
    """A pattern for names; matching takes time proportional to the length of both."""

    alternatives: tuple[_Alternative, ...]

    def is_in(self, name: str) -> bool:
        """Return whether the pattern matches a name; without an anchor, anywhere in it."""
        return any(each.is_in(name) for each in self.alternatives)


def read_pattern(text: str) -> NamePattern | None:
    """Parse a policy's pattern; return None where it is too long or uses unsupported syntax."""
    if len(text) > PATTERN_MAX:
        return None
    grouped = _GROUPED.fullmatch(text)
    before, body, behind = ("", text, "") if grouped is None else grouped.groups()
    made = [_alternative(f"{before}{each}{behind}") for each in re.split(r"(?<!\\)\|", body)]
    known = tuple(each for each in made if each is not None)
    return NamePattern(known) if len(known) == len(made) else None


def _alternative(text: str) -> _Alternative | None:
    is_at_start = text.startswith("^")
    is_at_end = text.endswith("$") and not text.endswith("\\$")
    text = text[is_at_start : len(text) - is_at_end]
    parts: list[list[str]] = [[]]
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return None
        at = token.end()
        gap = token["any"]
        if gap is None and text[at : at + 1] in {"*", "+", "?", "{"}:
            return None
        if gap != ".*":
            parts[-1].append("." if gap else re.escape(token["escaped"] or token["plain"]))
        if gap in {".*", ".+"} and (parts[-1] or len(parts) == 1):
            parts.append([])
    return _Alternative(
        tuple(re.compile("".join(each), re.DOTALL) for each in parts),
        tuple(len(each) for each in parts),
        is_at_start,
        is_at_end,
    )
