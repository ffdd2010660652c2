"""Dates and times of day in a listing, as different locales write them.

Decides: which ways to write a date are understood. A listing states the local clock of its host; only a time with an
offset, and the seconds since 1970 of the extended form, are UTC. A date of three numbers with strokes is read in the
order that the user names; one that does not fit it is an error, never turned round.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Final

SECOND_NS: Final = 1_000_000_000
DAY_NS: Final = 86_400 * SECOND_NS

_EPOCH: Final = date(1970, 1, 1).toordinal()


class DateOrder(StrEnum):
    """The meaning of 04/05/2026."""

    MONTH_FIRST = "mdy"
    DAY_FIRST = "dmy"


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """An instant on the listing's clock.

    `at_ns` counts from 1970-01-01 00:00 on that clock; without a date, from midnight.
    """

    at_ns: int
    has_date: bool = True
    is_utc: bool = False

    def __str__(self) -> str:
        days, within_ns = divmod(self.at_ns, DAY_NS)
        text = time_text(within_ns)
        if not self.has_date:
            return text
        return f"{date.fromordinal(_EPOCH + days).isoformat()}T{text}{'Z' if self.is_utc else ''}"

    @property
    def day(self) -> date | None:
        """The date; None where only the time of day is known."""
        return date.fromordinal(_EPOCH + self.at_ns // DAY_NS) if self.has_date else None

    @property
    def time_of_day(self) -> str:
        """Hours, minutes and seconds, as listings have them."""
        return time_text(self.at_ns % DAY_NS // SECOND_NS * SECOND_NS)


def time_text(within_ns: int) -> str:
    """Return the time of day at a number of nanoseconds after midnight; a fraction only where there is one."""
    seconds, rest_ns = divmod(within_ns, SECOND_NS)
    minutes, second = divmod(seconds, 60)
    fraction = f".{rest_ns:09d}".rstrip("0") if rest_ns else ""
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}{fraction}"


_MONTHS: Final = (
    "january januar janvier enero gennaio januari janeiro",
    "february februar fevrier febrero febbraio februari fevereiro",
    "march marz mrz mars marzo maart mrt marco marts",
    "april avril abril aprile",
    "may mai mayo maggio mei maio maj",
    "june juni juin junio giugno junho",
    "july juli juillet julio luglio julho",
    "august aout agosto augustus augusti",
    "september septembre septiembre settembre setembro",
    "october oktober octobre octubre ottobre outubro",
    "november novembre noviembre novembro",
    "december dezember decembre diciembre dicembre dezembro desember",
)
"""Names of the months, without accents, in languages of Latin letters that hospitals' systems speak."""

_TIME_ALONE: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d):([0-5]\d)")
_TIME: Final = re.compile(
    r"(?<![\d:])(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?P<half>\s*[AaPp]\.?[Mm]\b\.?)?(?P<zone>\s*(?:Z\b|[+-]\d{2}:?\d{2}(?!\d)|\b[A-Z]{2,5}\b))?"
)
_YEAR_FIRST: Final = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})")
_CJK: Final = re.compile(r"(\d{4})年\s*(\d{1,2})月\s*(\d{1,2})日")
_DOTTED: Final = re.compile(r"(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4}|\d{2})")
_STROKES: Final = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4}|\d{2})")
_WORDS: Final = re.compile(r"[^\W\d_]+")
_NUMBERS: Final = re.compile(r"\d+")
_NAMED: Final = re.compile(r"[\w\s.,'-]+")
_PREPOSITIONS: Final = frozenset({"de", "of"})
_UTC_NAMES: Final = frozenset({"Z", "UTC", "GMT"})

KNOWN_DATES: Final = (
    "a time as in 16:52:14 or 4:52:14 PM, with or without a date as in 2026-11-22, 22.11.2026, 11/22/2026, "
    "Sun Nov 22 2026 or 22 nov. 2026"
)


@lru_cache(maxsize=4096)
def parse_moment(text: str, order: DateOrder = DateOrder.MONTH_FIRST) -> Moment:
    """Read a time of day, a date, or both.

    Raises:
        ValueError: it is neither; the message names the fault.
    """
    alone = _TIME_ALONE.fullmatch(text)
    if alone is not None:
        return Moment((int(alone[1]) * 3600 + int(alone[2]) * 60 + int(alone[3])) * SECOND_NS, has_date=False)
    words = text.strip()
    if _looks_iso(words):
        words = f"{words[:10]} {words[11:]}"
    found = _TIME.search(words)
    if found is None:
        return Moment(_in_range(_days(words, order) * DAY_NS))
    within_ns = _within_ns(found)
    offset, used = _offset(found)
    rest = f"{words[: found.start()]} {words[used:]}".strip(" ,\t")
    if not rest:
        if offset is not None:
            raise ValueError("it has an offset from UTC and no date")
        return Moment(within_ns, has_date=False)
    at_ns = _days(rest, order) * DAY_NS + within_ns
    if offset is None:
        return Moment(_in_range(at_ns))
    return Moment(_in_range(at_ns - int(offset.total_seconds()) * SECOND_NS), is_utc=True)


def _in_range(at_ns: int) -> int:
    if not 0 <= at_ns < (date.max.toordinal() + 1 - _EPOCH) * DAY_NS:
        raise ValueError("it is before 1970 or after 9999")
    return at_ns


def _looks_iso(text: str) -> bool:
    return text[10:11] == "T" and _YEAR_FIRST.fullmatch(text[:10]) is not None


def _within_ns(found: re.Match[str]) -> int:
    hour, minute, second = int(found["hour"]), int(found["minute"]), int(found["second"] or 0)
    half = (found["half"] or "").strip().lower()
    if half:
        if not 1 <= hour <= 12:
            raise ValueError(f"there is no hour {hour} with AM or PM")
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    time(hour, minute, second)  # raises where there is no such time
    return (hour * 3600 + minute * 60 + second) * SECOND_NS + int((found["fraction"] or "0").ljust(9, "0"))


def _offset(found: re.Match[str]) -> tuple[timedelta | None, int]:
    """Return the offset from UTC, and the end of the text that belongs to the time. Names of zones are those of the
    local clock, and are ignored.
    """
    zone = (found["zone"] or "").strip()
    if not zone or _month(zone):
        return None, found.end() - len(found["zone"] or "")
    if zone in _UTC_NAMES:
        return timedelta(0), found.end()
    if zone[0] in "+-":
        digits = zone[1:].replace(":", "")
        minutes = int(digits[:2]) * 60 + int(digits[2:])
        if minutes > 18 * 60 or int(digits[2:]) > 59:
            raise ValueError(f"unknown time zone offset {zone}")
        return timedelta(minutes=-minutes if zone[0] == "-" else minutes), found.end()
    return None, found.end()


def _days(text: str, order: DateOrder) -> int:
    return _date(text.strip(" ,\t"), order).toordinal() - _EPOCH


def _date(text: str, order: DateOrder) -> date:
    found = _YEAR_FIRST.fullmatch(text) or _CJK.fullmatch(text)
    if found is not None:
        return date(int(found[1]), int(found[2]), int(found[3]))
    found = _DOTTED.fullmatch(text)
    if found is not None:
        return date(_year(found[3]), int(found[2]), int(found[1]))
    found = _STROKES.fullmatch(text)
    if found is not None:
        first, second = int(found[1]), int(found[2])
        month, day = (first, second) if order is DateOrder.MONTH_FIRST else (second, first)
        if month > 12:
            other = DateOrder.DAY_FIRST if order is DateOrder.MONTH_FIRST else DateOrder.MONTH_FIRST
            raise ValueError(f"there is no month {month}; if the other number is the month: --date-order {other}")
        return date(_year(found[3]), month, day)
    return _named_date(text)


def _named_date(text: str) -> date:
    """Return a date with the month's name.

    The month is the last such word, for a day of the week may look like one: "mar." is Tuesday, too.
    """
    words = [word for word in _WORDS.findall(text) if word.lower() not in _PREPOSITIONS]
    numbers = _NUMBERS.findall(text)
    if not _NAMED.fullmatch(text) or not 1 <= len(words) <= 2:
        raise ValueError("its date has an unknown form")
    month = _month(words[-1])
    if not month:
        raise ValueError(f"{words[-1]!r} is not a month in a language that is known here")
    if len(numbers) == 1:
        raise ValueError("its date has no year")
    if len(numbers) != 2:
        raise ValueError("its date has an unknown form")
    day, year = (numbers[1], numbers[0]) if len(numbers[0]) == 4 else (numbers[0], numbers[1])
    if len(year) not in {2, 4} or len(day) > 2:
        raise ValueError("its date has an unknown form")
    return date(_year(year), month, int(day))


def _year(text: str) -> int:
    """Return the year; two digits are a year from 1969 to 2068, as POSIX defines."""
    if len(text) == 4:
        return int(text)
    year = int(text)
    return year + (1900 if year >= 69 else 2000)


def _month(word: str) -> int:
    """Return the number of a month by its name, or by at least three letters of it; 0: it is none."""
    folded = "".join(
        letter for letter in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(letter)
    )
    if len(folded) < 3:
        return 0
    for number, names in enumerate(_MONTHS, start=1):
        if any(name.startswith(folded) for name in names.split()):
            return number
    return 0


def from_epoch(text: str) -> Moment:
    """Read seconds since 1970 with a fraction, as the extended form has them.

    Raises:
        ValueError: it is no such number, or beyond the years that have four digits.
    """
    whole, _, fraction = text.partition(".")
    if not whole.isascii() or not whole.isdigit() or len(whole) > 12 or not (fraction or "0").isdigit():
        raise ValueError("it is not a number of seconds since 1970")
    return Moment(_in_range(int(whole) * SECOND_NS + int(fraction[:9].ljust(9, "0"))), is_utc=True)


def epoch_text(moment: Moment) -> str:
    """Return the same moment as the extended form has it: seconds, and for people the date."""
    seconds, rest_ns = divmod(moment.at_ns, SECOND_NS)
    words = datetime.fromtimestamp(seconds, UTC).strftime("%a %b %e %H:%M:%S %Y")
    fraction = f"{rest_ns:09d}".rstrip("0").ljust(3, "0")
    return f"{seconds}.{fraction} ({words})"
