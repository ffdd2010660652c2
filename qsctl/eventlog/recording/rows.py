"""The rows of a table until they are written: rows by themselves, and ranges of rows that differ in a few cells."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Row: TypeAlias = tuple[Any, ...]

_EACH: Final = (range, list, tuple)


class RowRange(NamedTuple):
    """Several rows as one. A cell is the value of all rows, or a sequence with the value of each."""

    row_count: int
    cells: Row


class TableRows:
    """Rows of one table, in order."""

    __slots__ = ("_beyond_count", "parts")

    def __init__(self) -> None:
        self.parts: list[Row | RowRange] = []
        """Append a row here, a range by `add`."""
        self._beyond_count = 0
        """Number of rows beyond one for each part."""

    def __len__(self) -> int:
        return len(self.parts) + self._beyond_count

    def add(self, count: int, cells: Row) -> None:
        """Append a range of rows."""
        if count == 1:
            self.parts.append(tuple([cell[0] if isinstance(cell, _EACH) else cell for cell in cells]))
            return
        self.parts.append(RowRange(count, cells))
        self._beyond_count += count - 1

    def append_all(self, other: TableRows) -> None:
        """Append the rows of another table."""
        self.parts += other.parts
        self._beyond_count += other._beyond_count

    def take(self) -> TableRows:
        """Return all rows, and drop them here."""
        taken = TableRows()
        taken.append_all(self)
        self.parts.clear()
        self._beyond_count = 0
        return taken

    def columns(self) -> list[ColumnCells]:
        """Return the columns; there must be a row."""
        if not self._beyond_count:
            return [ColumnCells(values, None) for values in zip(*self.parts, strict=True)]
        counts = [part.row_count if isinstance(part, RowRange) else 1 for part in self.parts]
        cells = [part.cells if isinstance(part, RowRange) else part for part in self.parts]
        places = np.repeat(np.arange(len(counts)), counts)
        return [
            ColumnCells(_values(column, counts), None) if any(isinstance(each, _EACH) for each in column)
            else ColumnCells(column, places)
            for column in zip(*cells, strict=True)
        ]  # fmt: skip


class ColumnCells(NamedTuple):
    """The cells of a column: values, and the place of each row's value among them; None: a value for each row."""

    values: Sequence[Any]
    places: npt.NDArray[np.int64] | None


def _values(column: Sequence[Any], counts: Sequence[int]) -> list[Any]:
    each = (
        cell if isinstance(cell, _EACH) else repeat(cell, count) for cell, count in zip(column, counts, strict=True)
    )
    return list(chain.from_iterable(each))
