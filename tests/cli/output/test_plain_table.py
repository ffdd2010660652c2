"""A table laid out without rich looks as rich shows it."""

from __future__ import annotations

import io
import string

from hypothesis import given
from hypothesis import strategies as st
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from qsctl.cli.output._plain_table import ColumnLayout
from qsctl.cli.output.results import Column

WIDTH = 400
TEXT = st.text(string.ascii_letters + string.digits + " .,:/[]…é─", max_size=12).map(str.strip)
COLUMNS = st.lists(
    st.builds(Column, st.just("field"), TEXT.filter(bool), st.sampled_from(["left", "right"])), min_size=1, max_size=6
)


def as_rich_shows_it(columns: list[Column], rows: list[list[str]]) -> list[str]:
    out = Console(file=io.StringIO(), width=WIDTH, markup=False, highlight=False)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column.heading, justify=column.justify, overflow="fold")
    for row in rows:
        table.add_row(*row)
    with out.capture() as capture:
        out.print(table)
    return [line.rstrip() for line in capture.get().splitlines()]


@given(COLUMNS, st.data())
def test_lines_are_those_of_rich(columns: list[Column], data: st.DataObject) -> None:
    cells = st.lists(TEXT, min_size=len(columns), max_size=len(columns))
    rows = data.draw(st.lists(cells, min_size=1, max_size=5))
    lines = ColumnLayout(columns, WIDTH).lines(rows)
    assert lines is not None
    assert list(lines) == as_rich_shows_it(columns, rows)


def test_what_must_be_folded_is_left_to_rich() -> None:
    columns = [Column("a", "A"), Column("b", "B")]
    assert ColumnLayout(columns, 23).lines([["x" * 10, "y" * 10]]) is not None
    assert ColumnLayout(columns, 22).lines([["x" * 10, "y" * 10]]) is None
    assert ColumnLayout(columns, 100).lines([["two\nlines", ""]]) is None
    assert ColumnLayout(columns, 100).lines([["全角", ""]]) is None, "wider than it is long"


def test_a_later_share_of_the_rows_has_no_heading_and_is_not_narrower() -> None:
    layout = ColumnLayout([Column("a", "A"), Column("b", "B", "right")], 100)
    assert list(layout.lines([["long", "1"]]) or ()) == ["A      B", "────────", "long   1"]
    assert list(layout.lines([["x", "22"]]) or ()) == ["x      22"]
    assert list(layout.lines([["y", "3"]]) or ()) == ["y       3"]
