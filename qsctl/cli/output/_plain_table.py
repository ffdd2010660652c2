"""A table as lines of text, formatted as rich does if nothing needs folding.

Decides which tables are formatted here rather than by rich, which needs half a millisecond a row: a queue may hold
millions of samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from qsctl.cli.output.results import Column

_BETWEEN: Final = "   "


class ColumnLayout:
    """The widths of columns, which never shrink from one part of a table's rows to the next.

    Args:
        columns: at least one.
        width: of the terminal, in characters.
        rule: the character of the line below the heading.
    """

    def __init__(self, columns: Sequence[Column], width: int, rule: str = "─") -> None:
        self._columns = columns
        self._width = width
        self._rule = rule
        self._widths = [len(column.heading) for column in columns]
        self.has_heading = False
        """Whether the heading has been returned."""

    def lines(self, rows: Sequence[Sequence[str]]) -> Iterator[str] | None:
        """Return a line for each row, at the first call below a heading; None if a row needs folding by rich.

        Args:
            rows: the cells as texts, one per column.
        """
        from rich.cells import cell_len

        widths = self._widths
        for row in rows:
            for at, cell in enumerate(row):
                if not (cell.isprintable() and (cell.isascii() or cell_len(cell) == len(cell))):
                    return None
                if len(cell) > widths[at]:
                    widths[at] = len(cell)
        total = sum(widths) + len(_BETWEEN) * (len(widths) - 1)
        return None if total > self._width else self._lines(rows, total)

    def _lines(self, rows: Sequence[Sequence[str]], total: int) -> Iterator[str]:
        form = _BETWEEN.join(
            f"%{size}s" if column.justify == "right" else f"%-{size}s"
            for column, size in zip(self._columns, self._widths, strict=True)
        )
        if not self.has_heading:
            self.has_heading = True
            yield (form % tuple(column.heading for column in self._columns)).rstrip()
            yield self._rule * total
        for row in rows:
            yield (form % tuple(row)).rstrip()
