"""Readers of the values in a listing's columns and lines.

Decides: the allowed texts of each field. A reader raises `ValueError`; `ALLOWED` describes the allowed texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from qsctl.core.integration.message import MessageId, parse_id
from qsctl.dumps.model import CLASSES, TYPES
from qsctl.dumps.moments import KNOWN_DATES
from qsctl.errors import UsageError

MOST: Final = 2**63 - 1

_GROUPED: Final = re.compile(r"\d{1,3}(?:[.,'’\u00a0\u202f]\d{3})+")
_DIGITS: Final = re.compile(r"[0-9]{1,19}")
_YES: Final = frozenset({"y", "yes", "true", "t", "1"})
_NO: Final = frozenset({"n", "no", "false", "f", "0"})


class Trouble(NamedTuple):
    """A fault of one value, or of a line as a whole."""

    message: str
    found: str = ""
    allowed: str = ""


def whole_number(text: str) -> int:
    """Return a count, with or without marks between thousands."""
    digits = re.sub(r"\D", "", text) if _GROUPED.fullmatch(text) else text
    if not _DIGITS.fullmatch(digits) or int(digits) > MOST:
        raise ValueError(text)
    return int(digits)


def plain_number(text: str) -> int:
    """Return a number without marks between thousands, such as an identifier."""
    if not _DIGITS.fullmatch(text) or int(text) > MOST:
        raise ValueError(text)
    return int(text)


def state_number(text: str) -> int:
    """Return the number of a state: at most five digits."""
    if not _DIGITS.fullmatch(text) or len(text) > 5:
        raise ValueError(text)
    return int(text)


def message_id(text: str) -> MessageId:
    """Return an id, with or without brackets."""
    try:
        return parse_id(text)
    except UsageError:
        raise ValueError(text) from None


def class_letter(text: str) -> str:
    """Return a class by its letter or its name."""
    return _letter(text, CLASSES)


def type_letter(text: str) -> str:
    """Return a type by its letter or its name."""
    return _letter(text, TYPES)


def _letter(text: str, names: Mapping[str, str]) -> str:
    upper = text.upper()
    if upper in names:
        return upper
    for letter, name in names.items():
        if name.upper() == upper:
            return letter
    raise ValueError(text)


def yes_or_no(text: str) -> bool:
    """Return the truth value of a word or letter that listings use for yes or no."""
    word = text.lower()
    if word in _YES:
        return True
    if word in _NO:
        return False
    raise ValueError(text)


READERS: Final[dict[str, tuple[str, Callable[[str], object], str]]] = {
    "message_class": ("Class", class_letter, "P (protocol), E (engine) or I (indeterminate)"),
    "type": ("Type", type_letter, "D (data), R (reply) or U (unknown)"),
    "forward": ("Fwd", yes_or_no, "Y or N"),
    "priority": ("Prio", plain_number, "a whole number"),
    "state": ("State", state_number, "a whole number of at most five digits"),
    "size_bytes": ("Length", whole_number, "a whole number of octets"),
}
"""A column's field: its heading, how it is read, and what is allowed."""


@lru_cache(maxsize=8192)
def read_value(field: str, text: str) -> object:
    """Return the value of a column in `READERS`; results are cached, as a listing repeats few different values.

    Raises:
        ValueError: it is not understood.
    """
    return READERS[field][1](text)


ALLOWED_MOMENT: Final = KNOWN_DATES
