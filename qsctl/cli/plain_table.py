"""A table as lines of text, laid out as rich does it where nothing needs folding.

Decides: which tables are laid out here. Rich takes half a millisecond a row; a queue may hold millions of samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from qsctl.cli.results import Column

_BETWEEN: Final = "   "


def table_lines(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> Iterator[str] | None:
    """The heading, a rule, and a line a row; None: the table must be folded, or a cell is not as wide as it is long.

    Args:
        columns: at least one.
        rows: the cells as texts, one a column.
        width: of the terminal, in characters.
    """
    from rich.cells import cell_len

    widths = [len(column.heading) for column in columns]
    for row in rows:
        for at, cell in enumerate(row):
            if not (cell.isprintable() and (cell.isascii() or cell_len(cell) == len(cell))):
                return None
            if len(cell) > widths[at]:
                widths[at] = len(cell)
    total = sum(widths) + len(_BETWEEN) * (len(widths) - 1)
    return None if total > width else _lines(columns, rows, widths, total)


def _lines(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], widths: Sequence[int], total: int
) -> Iterator[str]:
    form = _BETWEEN.join(
        f"%{size}s" if column.justify == "right" else f"%-{size}s" for column, size in zip(columns, widths, strict=True)
    )
    yield (form % tuple(column.heading for column in columns)).rstrip()
    yield "─" * total
    for row in rows:
        yield (form % tuple(row)).rstrip()
