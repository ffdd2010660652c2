"""The reader of measured durations from a CSV file, which reports missing columns and invalid values."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

from qsctl.declared.problems import shown
from qsctl.errors import InvalidInput
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.sim.scenario.parts.work_time import WORK_MAX_NS

UNITS_NS: Final = {"duration_ns": 1, "duration_ms": SECOND_NS // 1000, "duration_s": SECOND_NS}
"""Columns that may contain a duration, and their units."""
COUNT: Final = "count"
DISTINCT_MAX: Final = 100_000
_COLUMNS: Final = f"Give one of the columns {', '.join(UNITS_NS)}, and optionally {COUNT}."


def read_times(path: Path) -> tuple[tuple[Nanoseconds, ...], tuple[int, ...]]:
    """Return the distinct durations of a file, ascending, and the number of occurrences of each.

    Raises:
        InvalidInput: the file cannot be read, lacks the column, or has an invalid value; the message names the line.
    """
    found: dict[Nanoseconds, int] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            names = [name for name in reader.fieldnames or () if name in UNITS_NS]
            if len(names) != 1:
                raise InvalidInput(f"{shown(str(path))} has no column of durations, or several", remedy=_COLUMNS)
            for row in reader:
                time = _duration(path, reader.line_num, names[0], row[names[0]])
                found[time] = found.get(time, 0) + _count(path, reader.line_num, row.get(COUNT) or "1")
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as error:
        raise InvalidInput(f"{shown(str(path))}: cannot be read: {shown(str(error))}", remedy=_COLUMNS) from None
    if not sum(found.values()) or len(found) > DISTINCT_MAX:
        raise InvalidInput(
            f"{shown(str(path))} has {len(found)} distinct durations", remedy=f"Give from 1 to {DISTINCT_MAX}."
        )
    times = tuple(sorted(found))
    return times, tuple(found[time] for time in times)


def _duration(path: Path, line: int, name: str, cell: str | None) -> Nanoseconds:
    try:
        time = round(float(cell or "") * UNITS_NS[name])
    except (ValueError, OverflowError):
        time = -1
    if not 0 <= time <= WORK_MAX_NS:
        raise InvalidInput(
            f"{shown(str(path))}: line {line}: {name} is {shown(str(cell))!r}", remedy="Write a number of at least 0."
        )
    return time


def _count(path: Path, line: int, cell: str) -> int:
    if not cell.strip().isdecimal() or len(cell) > 18:
        raise InvalidInput(
            f"{shown(str(path))}: line {line}: {COUNT} is {shown(cell)!r}", remedy="Write a whole number."
        )
    return int(cell)
