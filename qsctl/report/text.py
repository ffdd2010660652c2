"""Rendering of a page as text for a terminal: the verdict, the charts, and the tables."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len

from qsctl.report._terminal_charts import chart_lines
from qsctl.report.page import Page, PageTable

_LEAST_PROSE: Final = 24


def page_lines(page: Page, width: int, *, is_unicode: bool) -> Iterator[str]:
    """Yield the lines of a page; only lines of tables may be wider than `width`."""
    yield from (page.title, page.subtitle, "")
    for sentence in (*page.verdict, *page.notes):
        yield from textwrap.wrap(sentence, width)
    for picture in page.pictures:
        lines = chart_lines(picture, width, is_unicode=is_unicode)
        if lines:
            yield from ("", picture.title, *textwrap.wrap(picture.caption, width), "", *lines)
    for table in page.tables:
        yield from ("", *_table(table, width, is_unicode=is_unicode))
    yield from ("", "What was run")
    widest = max(map(len, page.facts), default=0)
    yield from (f"{name:<{widest}}  {value}" for name, value in page.facts.items())
    yield from ("", "Reproduce it", page.reproduce)


def _table(table: PageTable, width: int, *, is_unicode: bool) -> Iterator[str]:
    yield table.title
    columns = range(len(table.headings))
    widths = [
        max([cell_len(word) for word in heading.split()] + [cell_len(row[at]) for row in table.rows], default=0)
        for at, heading in enumerate(table.headings)
    ]
    widest = max(columns, key=lambda at: widths[at] if at not in table.numbers else 0)
    room = width - sum(widths) - 2 * (len(widths) - 1) + widths[widest]
    if any(" " in row[widest] for row in table.rows):  # a text of several words can be wrapped
        widths[widest] = min(widths[widest], max(_LEAST_PROSE, room))
    headings = list(_folded(table.headings, widths, table.numbers, is_heading=True))
    yield from headings
    yield ("─" if is_unicode else "-") * (sum(widths) + 2 * (len(widths) - 1))
    for row in table.rows:
        yield from _folded(row, widths, table.numbers)
    yield from textwrap.wrap(table.note.replace("`", ""), width)


def _folded(
    cells: Sequence[str], widths: Sequence[int], numbers: frozenset[int], *, is_heading: bool = False
) -> Iterator[str]:
    """Yield the lines of a table's row; a heading with fewer lines than others is aligned at the bottom."""
    folded = [
        textwrap.wrap(cell, max(1, size)) if is_heading or cell_len(cell) > size else [cell]
        for cell, size in zip(cells, widths, strict=True)
    ]
    height = max(map(len, folded), default=0)
    for number in range(height):
        places = [number - height + len(lines) if is_heading else number for lines in folded]
        texts = [lines[at] if 0 <= at < len(lines) else "" for lines, at in zip(folded, places, strict=True)]
        padded = [
            " " * (size - cell_len(text)) + text if at in numbers else text + " " * (size - cell_len(text))
            for at, (text, size) in enumerate(zip(texts, widths, strict=True))
        ]
        yield "  ".join(padded).rstrip()
