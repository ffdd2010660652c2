"""Kinds of values: the accepted texts, the value of each, and the text that is written for it.

A `Value` is one kind; the tables of settings and the simulator's forms name one for each setting. The kinds here are
those of service files, in the spellings of the field: truth values, whole numbers, lengths, durations, kinds. The
schema accepts the same; where it cannot express a range (hexadecimal numbers), the range is checked here. White space
is collapsed by the caller.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from qsctl.errors import InvalidInput, UsageError
from qsctl.instant import INFINITE_NS, SECOND_NS, Nanoseconds, format_duration, parse_duration


class ValueForm(ValueError):
    """A text that is not a value of this form; `allowed` describes the accepted ones."""

    def __init__(self, allowed: str) -> None:
        super().__init__(allowed)
        self.allowed = allowed


@dataclass(frozen=True, slots=True)
class Value:
    """One kind of value: `read` raises ValueError where the text is not of the kind; `allowed` completes a sentence.

    `schema_type` names the type of the service's XSD; `low` and `high` are the ends of the range of a number.
    """

    allowed: str
    read: Callable[[str], Any]
    write: Callable[[Any], str] = str
    schema_type: str = ""
    low: int | None = None
    high: int | None = None

    def parse(self, text: str) -> Any:
        """Return the value of a text, white space around it collapsed.

        Raises:
            InvalidInput: with the value found and the values allowed.
        """
        try:
            return self.read(" ".join(text.split()))
        except (ValueError, ArithmeticError, UsageError):  # of decimals: too large for any setting
            raise InvalidInput(f"{text.strip()!r} is not {self.allowed}") from None


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
    """Return the truth value of a text in any of the forms of the field."""
    value = _BOOLEANS.get(text.lower().removeprefix("dds_"))
    if value is None:
        raise ValueForm("true, false, 1 or 0")
    return value


def whole_number(text: str) -> int:
    """Return the value of a decimal or hexadecimal whole number."""
    if _DECIMAL.fullmatch(text):
        return int(text)
    if _HEXADECIMAL.fullmatch(text):
        return int(text, 16)
    raise ValueForm("a whole number, decimal or 0x…")


def integer(low: int, high: int, schema_type: str, *, or_minus_one: bool = False, unlimited: bool = False) -> Value:
    """Return the kind of whole numbers from `low` to `high`, both included; with the flags also -1, or `unlimited`."""
    allowed = f"a whole number from {low} to {high}"
    if or_minus_one or unlimited:
        allowed = f"LENGTH_UNLIMITED, -1, or {allowed}" if unlimited else f"-1 or {allowed}"

    def read(text: str) -> int:
        if unlimited and text in UNLIMITED_WORDS:
            return -1
        try:
            value = whole_number(text)
        except ValueForm:
            raise ValueForm(allowed) from None
        if low <= value <= high or (value == -1 and (or_minus_one or unlimited)):
            return value
        raise ValueForm(allowed)

    def write(value: int) -> str:
        return "LENGTH_UNLIMITED" if unlimited and value == -1 else str(value)

    return Value(allowed, read, write, schema_type, -1 if or_minus_one or unlimited else low, high)


def choice(kinds: type[StrEnum], schema_type: str) -> Value:
    """Return the kind of an enumeration's members, with or without the prefix `DDS_`."""
    return Value(", ".join(kinds), lambda text: kinds(text.removeprefix("DDS_")), str, schema_type)


def word(schema_type: str) -> Value:
    """Return the kind of any word; a prefix `DDS_` is dropped, as of the names of thread options and priorities."""
    return Value("any word", lambda text: text.removeprefix("DDS_"), str, schema_type)


def text(schema_type: str = "text") -> Value:
    """Return the kind of any text, which is not changed."""
    return Value("any text", str, str, schema_type)


def boolean_text(value: object) -> str:
    """Return a truth value as it is written."""
    return "true" if value else "false"


BOOLEAN: Final = Value("true, false, 1 or 0", boolean, boolean_text, "boolean")
COUNT: Final = integer(0, INT32_MAX, "count")
POSITIVE_COUNT: Final = integer(1, INT32_MAX, "positive_count")
PERCENT: Final = integer(0, 100, "percent")
MEMORY_PERCENT: Final = integer(1, 100, "memory_percent")
DOMAIN_ID: Final = integer(0, 232, "domain_id")
INCREMENT: Final = integer(1, INT32_MAX, "increment", or_minus_one=True)
BUFFER_SIZE_BYTES: Final = integer(1, INT32_MAX, "buffer_size_bytes", or_minus_one=True)
"""Our reading of [QS 3.3.6.1]: a buffer that is made in advance has this size, and there is none of 0 bytes."""
LIMIT: Final = integer(1, INT64_MAX, "limit", unlimited=True)
DURATION: Final = Value(
    "a duration with a unit, as in 250ms, 1.5s, 1min30s or infinite", parse_duration, format_duration, "duration"
)
PATH: Final = Value("the name of a file or directory", Path, str, "text")

UNACKED_THRESHOLD: Final = integer(0, INT32_MAX, "", or_minus_one=True)
NUMERIC_BOOLEAN: Final = Value("true, false, 1 or 0", boolean, lambda value: str(int(value)))
"""A truth value among properties, whose values the schema leaves open; written as the number 0 or 1."""


def seconds(text: str) -> int | None:
    """Return whole seconds; None for infinite."""
    return _part(text, "SEC", INT32_MAX, frozenset({INFINITE_SEC}))


def nanoseconds(text: str) -> int | None:
    """Return nanoseconds below a second; None for infinite."""
    return _part(text, "NSEC", SECOND_NS - 1, frozenset({INT32_MAX, 2**32 - 1}))


def _part(text: str, unit: str, high: int, infinite: frozenset[int]) -> int | None:
    word = text.removeprefix("DDS_")
    if word == f"DURATION_INFINITE_{unit}":
        return None
    if word == f"DURATION_ZERO_{unit}":
        return 0
    allowed = f"a whole number from 0 to {high}, DURATION_INFINITE_{unit} or DURATION_ZERO_{unit}"
    try:
        value = whole_number(text)
    except ValueForm:
        raise ValueForm(allowed) from None
    if value in infinite:
        return None
    if not 0 <= value <= high:
        raise ValueForm(allowed)
    return value


def duration(sec: int | None, nanosec: int | None) -> Nanoseconds:
    """Return both parts as one length of time. Infinite seconds make it infinite, whatever the nanoseconds."""
    if sec is None:
        return INFINITE_NS
    if nanosec is None:
        raise ValueForm("infinite nanoseconds only with infinite seconds")
    return sec * SECOND_NS + nanosec


def duration_texts(length: Nanoseconds) -> tuple[str, str]:
    """Return the `<sec>` and `<nanosec>` that read back as this length of time."""
    if length >= INFINITE_SEC * SECOND_NS:
        return "DURATION_INFINITE_SEC", "DURATION_INFINITE_NSEC"
    sec, nanosec = divmod(length, SECOND_NS)
    return str(sec), str(nanosec)
