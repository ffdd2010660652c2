"""Instants and durations in integer nanoseconds, and the text form of durations for people and files.

An instant counts from an epoch that its driver chooses: the Unix epoch live, zero in a simulation. `INFINITE_NS` is
DURATION_INFINITE ([QS Table 3.15]: lifespan, response_timeout).
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from qsctl.errors import UsageError

Nanoseconds: TypeAlias = int

MICROSECOND_NS: Final[Nanoseconds] = 1_000
MILLISECOND_NS: Final[Nanoseconds] = 1_000_000
SECOND_NS: Final[Nanoseconds] = 1_000_000_000
MINUTE_NS: Final[Nanoseconds] = 60 * SECOND_NS
HOUR_NS: Final[Nanoseconds] = 60 * MINUTE_NS

INFINITE_NS: Final[Nanoseconds] = 2**63 - 1
"""The value of DURATION_INFINITE, longer than any run. Instants saturate at this value, see `later`."""

_UNITS: Final[dict[str, Nanoseconds]] = {
    "ns": 1,
    "us": MICROSECOND_NS,
    "µs": MICROSECOND_NS,
    "ms": MILLISECOND_NS,
    "s": SECOND_NS,
    "min": MINUTE_NS,
    "m": MINUTE_NS,
    "h": HOUR_NS,
    "d": 24 * HOUR_NS,
}
_PART = re.compile(r"(\d+)(?:\.(\d+))?\s*(ns|us|µs|ms|min|s|m|h|d)")
_LETTERS_MAX: Final = 100
"""The largest accepted length of a duration's text, which suffices for 2**63 nanoseconds in every unit."""

_DURATION = re.compile(rf"(?:{_PART.pattern}\s*)+")


def later(now: Nanoseconds, duration: Nanoseconds) -> Nanoseconds:
    """Return the instant `duration` after `now`; with an infinite duration, an instant that is never reached."""
    if duration >= INFINITE_NS - now:
        return INFINITE_NS
    return now + duration


def parse_duration(text: str) -> Nanoseconds:
    """Read `10ms`, `1.5 s`, `1min30s` or `infinite` exactly, without conversion to a float.

    Raises:
        UsageError: the text has no unit, is not a duration, or has digits below a nanosecond.
    """
    word = text.strip()
    if word.lower() in {"infinite", "infinity", "unlimited"}:
        return INFINITE_NS
    if word == "0":
        return 0
    if len(word) > _LETTERS_MAX or not _DURATION.fullmatch(word):
        raise UsageError(
            f"{text[:_LETTERS_MAX]!r}{'…' if len(text) > _LETTERS_MAX else ''} is not a duration",
            remedy="Write a number and a unit: ns, us, ms, s, min, h or d, as in 250ms; or 'infinite'.",
        )
    total = 0
    for whole, fraction, unit in _PART.findall(word):
        scale = _UNITS[unit]
        total += int(whole) * scale
        if fraction:
            part, rest = divmod(int(fraction) * scale, 10 ** len(fraction))
            if rest:
                raise UsageError(
                    f"{text!r} has digits below one nanosecond", remedy="Write whole nanoseconds at the finest."
                )
            total += part
    return min(total, INFINITE_NS)


def format_duration(duration: Nanoseconds) -> str:
    """Return the shortest exact text that `parse_duration` reads back: 1500 ms is `1.5s`."""
    if duration >= INFINITE_NS:
        return "infinite"
    if duration < 0:
        return "-" + format_duration(-duration)
    if duration == 0:
        return "0s"
    for unit, scale in (("s", SECOND_NS), ("ms", MILLISECOND_NS), ("us", MICROSECOND_NS)):
        if duration >= scale:
            whole, rest = divmod(duration, scale)
            digits = f"{rest:0{len(str(scale)) - 1}d}".rstrip("0")
            return f"{whole}.{digits}{unit}" if digits else f"{whole}{unit}"
    return f"{duration}ns"
