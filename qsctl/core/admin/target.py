"""Matching of a command's target pattern against application names by POSIX `fnmatch` [QS 5.2].

Unlike Python's `fnmatch`, the POSIX one reads a backslash as an escape, and has character classes such as
`[[:digit:]]`. Case is significant. The pattern comes from outside, so matching takes at most time proportional to the
pattern's length times the name's.
"""

from __future__ import annotations

import string
from typing import Final, NamedTuple

from qsctl.errors import UsageError

MAX_PATTERN_LENGTH: Final = 255
"""Maximum length of `service_name` on the wire, in characters."""

_CLASSES: Final[dict[str, frozenset[str]]] = {
    "alnum": frozenset(string.ascii_letters + string.digits),
    "alpha": frozenset(string.ascii_letters),
    "blank": frozenset(" \t"),
    "cntrl": frozenset([*map(chr, range(32)), chr(127)]),
    "digit": frozenset(string.digits),
    "graph": frozenset(map(chr, range(33, 127))),
    "lower": frozenset(string.ascii_lowercase),
    "print": frozenset(map(chr, range(32, 127))),
    "punct": frozenset(string.punctuation),
    "space": frozenset(" \t\n\v\f\r"),
    "upper": frozenset(string.ascii_uppercase),
    "xdigit": frozenset(string.hexdigits),
}
_STAR: Final = "*"
_ANY: Final = "?"


class _Literal(NamedTuple):
    """An element that matches one given character."""

    character: str


class _Bracket(NamedTuple):
    """An element that matches one character of a bracket expression, or, negated, one character outside it."""

    negated: bool
    characters: frozenset[str]
    ranges: tuple[tuple[str, str], ...]

    def holds(self, character: str) -> bool:
        inside = character in self.characters or any(low <= character <= high for low, high in self.ranges)
        return inside is not self.negated


_Element = _Literal | _Bracket | str


def matches(pattern: str, application_name: str) -> bool:
    """Return whether a pattern matches an application name; a pattern longer than the wire allows matches none."""
    if len(pattern) > MAX_PATTERN_LENGTH:
        return False
    elements = _elements(pattern)
    at = name_at = 0
    star_at, star_name_at = -1, 0
    while name_at < len(application_name):
        element = elements[at] if at < len(elements) else None
        if element == _STAR:
            star_at, star_name_at = at, name_at
            at += 1
        elif element is not None and _takes(element, application_name[name_at]):
            at += 1
            name_at += 1
        elif star_at >= 0:
            # Only the last star is worth another try: an earlier one took the shortest that fits.
            star_name_at += 1
            at, name_at = star_at + 1, star_name_at
        else:
            return False
    return all(element == _STAR for element in elements[at:])


def check_pattern(pattern: str) -> str:
    """Return the pattern itself if a command may carry it.

    Raises:
        UsageError: the pattern is empty or too long.
    """
    if not pattern:
        raise UsageError("the target service is empty", remedy="Write its application name, or * for every service.")
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise UsageError(
            f"the target service has {len(pattern)} characters",
            remedy=f"A pattern has at most {MAX_PATTERN_LENGTH}; shorten it with *.",
        )
    return pattern


def _takes(element: _Element, character: str) -> bool:
    match element:
        case _Literal(wanted):
            return character == wanted
        case _Bracket():
            return element.holds(character)
        case _:
            return element == _ANY


def _elements(pattern: str) -> list[_Element]:
    elements: list[_Element] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character in (_STAR, _ANY):
            elements.append(character)
        elif character == "\\" and at < len(pattern):
            elements.append(_Literal(pattern[at]))
            at += 1
        elif character == "[" and (found := _bracket(pattern, at)) is not None:
            bracket, at = found
            elements.append(bracket)
        else:
            elements.append(_Literal(character))
    return elements


def _bracket(pattern: str, at: int) -> tuple[_Bracket, int] | None:
    """Return the bracket expression that begins at `at`, just behind its `[`, and the index behind its `]`.

    Return None if no `]` follows: the `[` is then a literal character.
    """
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    first = at
    characters: set[str] = set()
    ranges: list[tuple[str, str]] = []
    while at < len(pattern) and (pattern[at] != "]" or at == first):
        if pattern.startswith("[:", at) and (end := pattern.find(":]", at)) > 0:
            characters |= _CLASSES.get(pattern[at + 2 : end], frozenset())
            at = end + 2
            continue
        low, at = _member(pattern, at)
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("", "]"):
            high, at = _member(pattern, at + 1)
            ranges.append((low, high))
        else:
            characters.add(low)
    if at >= len(pattern):
        return None
    return _Bracket(negated, frozenset(characters), tuple(ranges)), at + 1


def _member(pattern: str, at: int) -> tuple[str, int]:
    r"""Return one character of a bracket expression and the index behind it; it may be `\x`, `[.x.]` or `[=x=]`."""
    for mark in (".", "="):
        if pattern.startswith(f"[{mark}", at) and pattern.startswith(f"{mark}]", at + 3):
            return pattern[at + 2], at + 5
    if pattern[at] == "\\" and at + 1 < len(pattern):
        return pattern[at + 1], at + 2
    return pattern[at], at + 1
