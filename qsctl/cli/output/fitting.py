"""The fitting of a table that is wider than the terminal, without breaking a name.

Decides what is shortened, and in which order. First the space between columns, then figures (`1234567` becomes `1.23M`)
and headings, which become short ones. Then long names lose their middle, unless they would become equal, and texts of
several words are folded. At last whole columns are left out, those of the highest `rank` first, but never the first
column.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len

from qsctl.cli.output.results import Column, Plain

_LEAST_PROSE: Final = 16
"""Least width of a text of several words; below it, columns are left out instead."""

NAME_MAX: Final = 32
"""Width that long names are cut to, if the table does not fit otherwise."""

_SUFFIXES: Final = ("", "k", "M", "G", "T", "P", "E")


def short_figure(value: Plain, text: str) -> str:
    """Return a figure to three digits, in at most five characters and a sign; `text` if the value is not a figure."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return text
    size = abs(value)
    if size < 10_000:
        return text if len(text) <= 5 else f"{value:.0f}" if size >= 100 else f"{value:.3g}"
    for suffix in _SUFFIXES:
        if size < 999.5 or suffix == _SUFFIXES[-1]:
            rounded = f"{size:#.3g}".rstrip(".") if size < 999.5 else f"{size:.3g}"
            return f"{'-' * (value < 0)}{rounded}{suffix}"
        size /= 1000
    return text


def middle_cut(name: str, width: int) -> str:
    """Return a name in at most `width` characters, without its middle, since names differ more often in their ends."""
    if cell_len(name) <= width:
        return name
    head = name[: (width - 1) // 2]
    tail = name[-(width // 2) :]
    return f"{head}…{tail}"


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its value, and its full text."""

    value: Plain
    text: str


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table that fits: its heading, its lines, and the headings of the columns that were left out."""

    heading: str
    rule_width: int
    lines: Sequence[str]
    left_out: Sequence[str]


def fitted(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int, *, keep: bool) -> Fitted | None:
    """Return the table in at most `width` characters a line; None if its names alone are wider.

    Args:
        columns: at least one.
        rows: the cells, one per column; at least one row.
        width: of the terminal, in characters.
        keep: whether the user asked for these columns, so that none may be left out.
    """
    for gap, is_short in ((3, False), (2, False), (2, True), (1, True)):
        table = _Sized(columns, rows, is_short=is_short)
        if table.total(range(len(columns)), gap) <= width:
            return table.laid_out(range(len(columns)), gap, {})
    table = table.with_short_names()
    shown = list(range(len(columns)))
    while True:
        prose = [at for at in shown if at in table.prose]
        room = width - table.total([at for at in shown if at not in prose], 2) - 2 * len(prose)
        if not prose and room >= 0:
            return table.laid_out(shown, 2, {})
        if prose and room >= min(_LEAST_PROSE * len(prose), sum(table.widths[at] for at in prose)):
            return table.laid_out(shown, 2, table.shared(room, prose))
        droppable = shown[1:]
        if keep or len(shown) <= 2:
            return None
        shown.remove(max(droppable, key=lambda at: (columns[at].rank, at)))


class _Sized:
    """The cell texts of a table, and the widths of its columns."""

    def __init__(self, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], *, is_short: bool) -> None:
        self._columns = columns
        self._headings = [(column.short or column.heading) if is_short else column.heading for column in columns]
        self._rows = [
            [
                short_figure(cell.value, cell.text) if is_short and column.justify == "right" else cell.text
                for column, cell in zip(columns, row, strict=True)
            ]
            for row in rows
        ]
        self.widths = [
            max(cell_len(heading), *(cell_len(row[at]) for row in self._rows))
            for at, heading in enumerate(self._headings)
        ]
        self.prose = {
            at
            for at, column in enumerate(columns)
            if at and column.justify == "left" and any(" " in row[at].strip() for row in self._rows)
        }
        """Indexes of columns with texts of several words; the first column, which has names, is never one."""

    def with_short_names(self) -> _Sized:
        """Return the table with long names cut in the middle, except in columns whose names would become equal."""
        rows = [list(row) for row in self._rows]
        for at, column in enumerate(self._columns):
            if column.justify == "left" and at not in self.prose and self.widths[at] > NAME_MAX:
                names = [row[at] for row in rows]
                cut = [middle_cut(name, NAME_MAX) for name in names]
                if len(set(cut)) == len(set(names)):
                    for row, name in zip(rows, cut, strict=True):
                        row[at] = name
        return _Sized(self._columns, [[Cell(None, text) for text in row] for row in rows], is_short=True)

    def total(self, shown: Sequence[int], gap: int) -> int:
        """Return the total width of some columns, with `gap` characters between them."""
        return sum(self.widths[at] for at in shown) + gap * max(0, len(shown) - 1)

    def shared(self, room: int, prose: Sequence[int]) -> dict[int, int]:
        """Divide `room` characters among folded columns: narrow ones get their width, the others equal parts."""
        widths: dict[int, int] = {}
        for left, at in zip(range(len(prose), 0, -1), sorted(prose, key=lambda at: self.widths[at]), strict=True):
            widths[at] = min(self.widths[at], room // left)
            room -= widths[at]
        return widths

    def laid_out(self, shown: Sequence[int], gap: int, folded: dict[int, int]) -> Fitted:
        """Return the lines of some columns, with texts folded to the widths given for them."""
        widths = [folded.get(at, self.widths[at]) for at in shown]
        between = " " * gap

        def lines_of(cells: Sequence[str]) -> Iterator[str]:
            parts = [textwrap.wrap(cells[at], folded[at]) or [""] if at in folded else [cells[at]] for at in shown]
            for number in range(max(map(len, parts))):
                texts = [part[number] if number < len(part) else "" for part in parts]
                padded = [
                    " " * (size - cell_len(text)) + text
                    if self._columns[at].justify == "right"
                    else text + " " * (size - cell_len(text))
                    for at, text, size in zip(shown, texts, widths, strict=True)
                ]
                yield between.join(padded).rstrip()

        heading = "\n".join(lines_of(self._headings))
        left_out = [column.heading for at, column in enumerate(self._columns) if at not in shown]
        lines = [line for row in self._rows for line in lines_of(row)]
        return Fitted(heading, sum(widths) + gap * (len(widths) - 1), lines, left_out)
