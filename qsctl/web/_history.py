"""The recent figures of each row, in ring buffers.

Decides which figures belong to one history. A queue that was deleted and created again under its name is another queue:
its history begins anew if a poll did not list the name, or a counter that only grows has decreased.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Final

from qsctl.cli.output.results import Row

POINTS_MAX: Final = 600
"""Largest number of values of a figure's history, if there are few rows."""
CELLS_MAX: Final = 4_000_000
"""Largest number of values in all histories together; each takes 4 octets."""
SERIES: Final = ("depth", "in_per_s", "out_per_s", "unacknowledged")
"""The fields whose histories are kept, if a row has them."""
GROWING: Final = ("redelivered", "dead", "expired", "full", "high_watermark", "low_watermark", "lost", "delivered")
"""Counter fields, whose decrease shows that a row is about another object."""


class FigureRing:
    """A ring buffer of the figures of one row; a gap is NaN."""

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
        """Return the last values of a figure, oldest first; None for a gap."""
        values = self.values.get(field, array("f"))
        return [None if math.isnan(value) else value for value in values[-min(count, self.size) :]]


class History:
    """The ring buffers of all rows, by service and name."""

    def __init__(self) -> None:
        self._rings: dict[tuple[str, str], FigureRing] = {}

    def add(self, rows: Sequence[Row]) -> None:
        """Append the rows of a poll; forget the rows that it does not contain."""
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
        """Append a gap to every row, for a poll that failed."""
        for ring in self._rings.values():
            ring.add({})

    def of(self, key: tuple[str, str]) -> FigureRing | None:
        """Return the ring buffer of a row; None if it has none."""
        return self._rings.get(key)


def row_key(row: Row) -> tuple[str, str]:
    """Return the key of a row: its service and its name."""
    return str(row.get("service", "")), str(row["name"])


def _went_back(before: Mapping[str, float], now: Mapping[str, float]) -> bool:
    return any(now.get(field, value) < value for field, value in before.items())
