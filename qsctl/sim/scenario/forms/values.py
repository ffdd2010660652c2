"""The texts of a scenario's single values: `250ms`, `1 Gbit/s`, `2000/s`, `256 KB`, `5%`.

Each is a `Value`, as the settings of service files are (`declared/values.py`); XML, overrides and the canonical text of
a scenario use them. KB and MB are 1,024 and 1,048,576 bytes, as the brokers count them (a maximum window of 256 KB is
262,144 bytes [SOL-QUEUES]).
"""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum
from typing import Final

from qsctl.declared.values import Value, boolean_text
from qsctl.instant import INFINITE_NS, format_duration, parse_duration
from qsctl.profiles.ranges import BY_FIELD

_NUMBER: Final = r"(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
_SIZE = re.compile(rf"{_NUMBER}\s*(B|KB|KiB|MB|MiB|GB|GiB)?")
_BIT_RATE = re.compile(rf"{_NUMBER}\s*(bit/s|kbit/s|Mbit/s|Gbit/s|b/s|kb/s|Mb/s|Gb/s|bps|kbps|Mbps|Gbps)")
_RATE = re.compile(rf"{_NUMBER}\s*(k|M)?(?:\s*/\s*(s|min|h))?")
_PERCENT = re.compile(rf"{_NUMBER}\s*(%)?")

_SIZE_UNITS: Final = {"B": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
_BIT_UNITS: Final = {"b": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_RATE_UNITS: Final = {"": 1, "k": 10**3, "M": 10**6}
_PERIODS: Final = {"s": 1, "min": 60, "h": 3600}


def _matched(pattern: str | re.Pattern[str], text: str) -> re.Match[str]:
    match = re.fullmatch(pattern, text)
    if match is None:
        raise ValueError(text)
    return match


def _whole(amount: Decimal) -> int:
    if amount != amount.to_integral_value():
        raise ValueError(amount)
    return int(amount)


def _bounded(number: int, minimum: int, maximum: int | None) -> int:
    if number < minimum or (maximum is not None and number > maximum):
        raise ValueError(number)
    return number


def _range(minimum: int, maximum: int | None) -> str:
    return f"of at least {minimum:,}" if maximum is None else f"from {minimum:,} to {maximum:,}"


def integer(minimum: int = 0, maximum: int | None = None, *, unlimited: bool = False) -> Value:
    """Return the kind of whole numbers; with `unlimited`, both -1 and the word `unlimited` mean no limit."""

    def read(text: str) -> object:
        if unlimited and text in {"unlimited", "-1"}:
            return -1
        return _bounded(int(_matched(r"\d+", text)[0]), minimum, maximum)

    def write(value: object) -> str:
        return "unlimited" if unlimited and value == -1 else str(value)

    return Value(f"a whole number {_range(minimum, maximum)}" + (" or 'unlimited'" if unlimited else ""), read, write)


def whole_number_of(field: str) -> Value:
    """Return the kind of whole numbers in the range of a client profile's setting."""
    setting = BY_FIELD[field]
    return integer(setting.minimum, setting.maximum)


def size(minimum: int = 0, maximum: int | None = None, *, unlimited: bool = False) -> Value:
    """Return the kind of sizes in bytes: a number, optionally with B, KB, MB or GB; `unlimited` as in `integer`."""

    def read(text: str) -> object:
        if unlimited and text in {"unlimited", "-1"}:
            return -1
        match = _matched(_SIZE, text)
        unit = (match[2] or "B")[0]
        return _bounded(_whole(Decimal(match[1]) * _SIZE_UNITS[unit]), minimum, maximum)

    def write(value: object) -> str:
        assert isinstance(value, int)
        if unlimited and value == -1:
            return "unlimited"
        for unit, scale in (("GB", 1024**3), ("MB", 1024**2), ("KB", 1024)):
            if value and value % scale == 0:
                return f"{value // scale} {unit}"
        return str(value)

    words = f"a size {_range(minimum, maximum)} bytes, as in 1500, 256 KB or 1 MB (KB = 1,024 bytes)"
    return Value(words + (", or 'unlimited'" if unlimited else ""), read, write)


def _read_bit_rate(text: str) -> object:
    if text == "0":
        return 0
    match = _matched(_BIT_RATE, text)
    return _bounded(_whole(Decimal(match[1]) * _BIT_UNITS[match[2][0]]), 1, 10**13)


def _write_bit_rate(value: object) -> str:
    assert isinstance(value, int)
    for unit, scale in (("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3)):
        if value and value % scale == 0:
            return f"{value // scale} {unit}"
    return f"{value} bit/s" if value else "0"


def _read_port_rate(text: str) -> object:
    if text == "0":
        raise ValueError(text)
    return _read_bit_rate(text)


def _read_rate(text: str) -> object:
    match = _matched(_RATE, text)
    rate = float(Decimal(match[1]) * _RATE_UNITS[match[2] or ""] / _PERIODS[match[3] or "s"])
    if not 0 <= rate <= 1e9:
        raise ValueError(text)
    return rate


def _write_number(value: object) -> str:
    assert isinstance(value, int | float)
    return str(int(value)) if value == int(value) else repr(float(value))


def _read_probability(text: str) -> object:
    match = _matched(_PERCENT, text)
    probability = float(Decimal(match[1]) / (100 if match[2] else 1))
    if not 0 <= probability <= 1:
        raise ValueError(text)
    return probability


REAL_MAX: Final = 1e9


def _read_real(text: str) -> object:
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", text) or float(text) > REAL_MAX:
        raise ValueError(text)
    return float(text)


def _read_positive_real(text: str) -> object:
    value = float(str(_read_real(text)))
    if value <= 0:
        raise ValueError(text)
    return value


def _read_finite_duration(text: str) -> object:
    value = parse_duration(text)
    if value >= INFINITE_NS:
        raise ValueError(text)
    return value


def _read_positive_duration(text: str) -> object:
    value = _read_finite_duration(text)
    if value == 0:
        raise ValueError(text)
    return value


def _read_boolean(text: str) -> object:
    """Read a boolean as in service files: true, false, 1, 0, yes or no, in upper or lower case."""
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]


FINITE_DURATION: Final = Value(
    "a finite duration with a unit, as in 250ms or 1.5s", _read_finite_duration, format_duration
)
POSITIVE_DURATION: Final = Value(
    "a duration above zero with a unit, as in 250ms or 60s", _read_positive_duration, format_duration
)
BIT_RATE: Final = Value("a rate in bits, as in 1 Gbit/s, 100 Mbit/s or 0 for none", _read_bit_rate, _write_bit_rate)
PORT_RATE: Final = Value("a rate in bits, as in 1 Gbit/s or 100 Mbit/s", _read_port_rate, _write_bit_rate)
RATE: Final = Value(
    "a rate of messages up to 10^9 a second, as in 2000/s, 2 k/s or 90/min",
    _read_rate,
    lambda value: f"{_write_number(value)}/s",
)
PROBABILITY: Final = Value("a probability from 0 to 1, or from 0% to 100%", _read_probability, _write_number)
PERCENTAGE: Final = Value(
    "a percentage, as in 50 or 50%", lambda text: float(_matched(_PERCENT, text)[1]), _write_number
)
REAL: Final = Value("a number from 0 to 1e9, as in 1.2", _read_real, _write_number)
POSITIVE_REAL: Final = Value("a number above 0, at most 1e9, as in 1.2", _read_positive_real, _write_number)
BOOLEAN: Final = Value("true or false (1, 0, yes, no)", _read_boolean, boolean_text)
NAME: Final = Value("a name of letters, digits and _ . : @ / -", lambda text: _matched(r"[A-Za-z0-9_.:@/\-]+", text)[0])
PROFILE_NAME: Final = Value(
    "a client profile's name: up to 32 letters, digits and _", lambda text: _matched(r"[A-Za-z0-9_]{1,32}", text)[0]
)
"""[SOL-QUEUES], "Configuring Egress Per-Client Priority Queues"."""
CONSUMERS: Final = Value(
    "a whole number from 0 to 10,000, or 'recorded'",
    lambda text: -1 if text == "recorded" else _bounded(int(_matched(r"\d+", text)[0]), 0, 10_000),
    lambda value: "recorded" if value == -1 else str(value),
)
TEXT: Final = Value("a text that is not empty", lambda text: _matched(r"(?s:.+)", text)[0])


def choice(kind: type[StrEnum], **aliases: StrEnum) -> Value:
    """Return the kind of an enumeration's members; `aliases` are further spellings."""
    names = {member.value: member for member in kind} | aliases

    def read(text: str) -> object:
        if text not in names:
            raise ValueError(text)
        return names[text]

    return Value("one of " + ", ".join(names), read)
