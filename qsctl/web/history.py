"""The last figures of each row, in rings of a bounded size.

Decides: which figures belong to one history. A queue that was deleted and made again under its name is another queue:
its history begins anew when the name was missing in between, or when a counter that only grows went back.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Final

from qsctl.cli.output.results import Row

POINTS_MAX: Final = 600
"""Points that a history keeps where there are few rows."""
CELLS_MAX: Final = 4_000_000
"""Figures that all histories keep together; 4 octets each."""
SERIES: Final = ("depth", "in_per_s", "out_per_s", "unacknowledged")
"""Fields that are kept, where a row has them."""
GROWING: Final = ("redelivered", "dead", "expired", "full", "high_watermark", "low_watermark", "lost", "delivered")
"""Fields that never become smaller while a row is about the same thing."""


class FigureRing:
    """The last figures of one row; a gap is NaN."""

    def __init__(self, fields: Sequence[str], size: int) -> None:
        self.size = size
        self.values = {field: array("f") for field in fields}
        self.grown: dict[str, float] = {}

    def add(self, row: Row) -> None:
        """Append the figures of a row."""
        for field, values in self.values.items():
            value = row.get(field)
            values.append(float(value) if isinstance(value, int | float) else math.nan)
            if len(values) >= 2 * self.size:
                del values[: -self.size]

    def last(self, field: str, count: int) -> list[float | None]:
        """Return the last points of a figure, oldest first; None in a gap."""
        values = self.values.get(field, array("f"))
        return [None if math.isnan(value) else value for value in values[-min(count, self.size) :]]


class History:
    """The rings of all rows, by service and name."""

    def __init__(self) -> None:
        self._rings: dict[tuple[str, str], FigureRing] = {}

    def add(self, rows: Sequence[Row]) -> None:
        """Append a look; what is not in it any more is forgotten."""
        size = max(30, min(POINTS_MAX, CELLS_MAX // max(1, 2 * len(SERIES) * len(rows))))
        kept: dict[tuple[str, str], FigureRing] = {}
        for row in rows:
            key = row_key(row)
            ring = self._rings.get(key)
            grown = {field: float(value) for field in GROWING if isinstance(value := row.get(field), int | float)}
            if ring is None or _went_back(ring.grown, grown):
                ring = FigureRing([field for field in SERIES if field in row], size)
            ring.size = size
            ring.grown = grown
            ring.add(row)
            kept[key] = ring
        self._rings = kept

    def interrupt(self) -> None:
        """Leave a gap: the source could not be looked at."""
        for ring in self._rings.values():
            ring.add({})

    def of(self, key: tuple[str, str]) -> FigureRing | None:
        """Return the ring of a row."""
        return self._rings.get(key)


def row_key(row: Row) -> tuple[str, str]:
    """Return what identifies a row: its service and its name."""
    return str(row.get("service", "")), str(row["name"])


def _went_back(before: Mapping[str, float], now: Mapping[str, float]) -> bool:
    return any(now.get(field, value) < value for field, value in before.items())
