"""The forms that values take in real files: truth values, whole numbers, lengths, durations, kinds, lists of limits.

The schema accepts the same forms. Here they become Python values, and the ranges that a schema cannot express
(hexadecimal numbers) are checked. White space is collapsed by the caller.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Final, TypeVar

from qsctl.instant import INFINITE_NS, SECOND_NS, Nanoseconds

Kind = TypeVar("Kind", bound=StrEnum)


class ValueForm(ValueError):
    """A text that is not a value of this form; `allowed` says what would be."""

    def __init__(self, allowed: str) -> None:
        super().__init__(allowed)
        self.allowed = allowed


INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
UNLIMITED_WORDS: Final = frozenset({"LENGTH_UNLIMITED", "DDS_LENGTH_UNLIMITED"})
INFINITE_SEC: Final = INT32_MAX
STRICT_BOOLEANS: Final = frozenset({"true", "false", "1", "0"})

_DECIMAL = re.compile(r"[+-]?[0-9]{1,20}")
_HEXADECIMAL = re.compile(r"0[xX][0-9A-Fa-f]{1,16}")
_BOOLEANS: Final = {
    "true": True,
    "1": True,
    "yes": True,
    "boolean_true": True,
    "false": False,
    "0": False,
    "no": False,
    "boolean_false": False,
}


def boolean(text: str) -> bool:
    """A truth value in any of the forms of the field."""
    value = _BOOLEANS.get(text.lower().removeprefix("dds_"))
    if value is None:
        raise ValueForm("true, false, 1 or 0")
    return value


def whole_number(text: str) -> int:
    """A decimal or hexadecimal whole number."""
    if _DECIMAL.fullmatch(text):
        return int(text)
    if _HEXADECIMAL.fullmatch(text):
        return int(text, 16)
    raise ValueForm("a whole number, decimal or 0x…")


def integer(low: int, high: int) -> Callable[[str], int]:
    """A reader of whole numbers within a range, both ends included."""
    allowed = f"a whole number from {low} to {high}"

    def read(text: str) -> int:
        try:
            value = whole_number(text)
        except ValueForm:
            raise ValueForm(allowed) from None
        if not low <= value <= high:
            raise ValueForm(allowed)
        return value

    return read


count = integer(0, INT32_MAX)
positive_count = integer(1, INT32_MAX)
percent = integer(0, 100)
domain_id = integer(0, 232)


def optional_percent(text: str) -> int | None:
    """A percentage; what is not given is None, which no text stands for."""
    return percent(text)


def _minus_one_or(low: int, high: int) -> Callable[[str], int]:
    allowed = f"-1 or a whole number from {low} to {high}"

    def read(text: str) -> int:
        try:
            value = whole_number(text)
        except ValueForm:
            raise ValueForm(allowed) from None
        if value != -1 and not low <= value <= high:
            raise ValueForm(allowed)
        return value

    return read


increment = _minus_one_or(1, INT32_MAX)
buffer_size_bytes = _minus_one_or(0, INT32_MAX)
unacked_threshold = _minus_one_or(0, INT32_MAX)


def limit(text: str) -> int:
    """A limit; `-1` stands for LENGTH_UNLIMITED."""
    if text in UNLIMITED_WORDS:
        return -1
    try:
        return _minus_one_or(1, INT64_MAX)(text)
    except ValueForm:
        raise ValueForm(f"LENGTH_UNLIMITED, -1, or a whole number from 1 to {INT64_MAX}") from None


def seconds(text: str) -> int | None:
    """Whole seconds; None for infinite."""
    word = text.removeprefix("DDS_")
    if word == "DURATION_INFINITE_SEC":
        return None
    if word == "DURATION_ZERO_SEC":
        return 0
    try:
        value = count(text)
    except ValueForm as form:
        raise ValueForm(f"{form.allowed}, DURATION_INFINITE_SEC or DURATION_ZERO_SEC") from None
    return None if value == INFINITE_SEC else value


def nanoseconds(text: str) -> int | None:
    """Nanoseconds below a second; None for infinite."""
    word = text.removeprefix("DDS_")
    if word == "DURATION_INFINITE_NSEC":
        return None
    if word == "DURATION_ZERO_NSEC":
        return 0
    allowed = "a whole number from 0 to 999999999, DURATION_INFINITE_NSEC or DURATION_ZERO_NSEC"
    try:
        value = whole_number(text)
    except ValueForm:
        raise ValueForm(allowed) from None
    if value in {INT32_MAX, 2**32 - 1}:
        return None
    if not 0 <= value < SECOND_NS:
        raise ValueForm(allowed)
    return value


def duration(sec: int | None, nanosec: int | None) -> Nanoseconds:
    """Both parts as one length of time. Infinite seconds make it infinite, whatever the nanoseconds."""
    if sec is None:
        return INFINITE_NS
    if nanosec is None:
        raise ValueForm("infinite nanoseconds only with infinite seconds")
    return sec * SECOND_NS + nanosec


def duration_texts(length: Nanoseconds) -> tuple[str, str]:
    """The `<sec>` and `<nanosec>` that read back as this length of time."""
    if length >= INFINITE_SEC * SECOND_NS:
        return "DURATION_INFINITE_SEC", "DURATION_INFINITE_NSEC"
    sec, nanosec = divmod(length, SECOND_NS)
    return str(sec), str(nanosec)


def kind(kinds: type[Kind]) -> Callable[[str], Kind]:
    """A reader of an enumeration, with or without the prefix `DDS_`."""

    def read(text: str) -> Kind:
        try:
            return kinds(text.removeprefix("DDS_"))
        except ValueError:
            raise ValueForm(", ".join(kinds)) from None

    return read


def word(text: str) -> str:
    """Any text, the prefix `DDS_` dropped: names of thread options and priorities."""
    return text.removeprefix("DDS_")


def text(value: str) -> str:
    """Any text as it is."""
    return value
