"""A table on a narrow terminal: names stay whole, figures become short, columns are left out last."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.cli.output.fitting import Cell, Fitted, fitted, middle_cut, short_figure
from qsctl.cli.output.results import Column, Plain

COLUMNS = (
    Column("queue", "Queue"),
    Column("held", "Held", "right"),
    Column("received", "Received", "right", short="Recv", rank=2),
    Column("failed", "Failed", "right", short="Fail", rank=1),
    Column("in", "In/s", "right"),
)


def table(*rows: tuple[Plain, ...], columns: tuple[Column, ...] = COLUMNS, width: int, keep: bool = False) -> Fitted:
    cells = [[Cell(value, "" if value is None else str(value)) for value in row] for row in rows]
    found = fitted(columns, cells, width, keep=keep)
    assert found is not None
    return found


ROW = ("P/S/Orders", 1234567, 98765432, 0, 1234.5678)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (9999, "9999"), (10_000, "10.0k"), (99_949, "99.9k"), (99_950, "100k"), (999_499, "999k"),
        (999_500, "1.00M"), (1_234_567, "1.23M"), (-1_234_567, "-1.23M"), (2**63, "9.22E"), (0.5, "0.5"),
        (1234.5678, "1235"), (0.123456, "0.123"), (12.34567, "12.3"), (True, "True"), ("12345678", "12345678"),
    ],
)  # fmt: skip
def test_a_figure_has_three_digits_and_a_suffix(value: Plain, text: str) -> None:
    assert short_figure(value, str(value)) == text


@given(st.integers(0, 10**18))
def test_a_short_figure_is_near_the_whole_one(value: int) -> None:
    text = short_figure(value, str(value))
    assert len(text) <= 5
    scale = 1000 ** ("kMGTPE".index(text[-1]) + 1) if text[-1].isalpha() else 1
    assert float(text.rstrip("kMGTPE")) * scale == pytest.approx(value, rel=0.0051)


def test_room_goes_before_figures_and_figures_before_columns() -> None:
    whole = table(ROW, width=100)
    assert whole.lines == ["P/S/Orders   1234567   98765432        0   1234.5678"]
    closer = table(ROW, width=len(whole.lines[0]) - 1)
    assert closer.lines[0] == "P/S/Orders  1234567  98765432       0  1234.5678"
    short = table(ROW, width=len(closer.lines[0]) - 1)
    assert short.heading == "Queue        Held   Recv  Fail  In/s"
    assert short.lines[0] == "P/S/Orders  1.23M  98.8M     0  1235"
    closest = table(ROW, width=len(short.lines[0]) - 1)
    assert closest.lines[0] == "P/S/Orders 1.23M 98.8M    0 1235"
    less = table(ROW, width=len(closest.lines[0]) - 1)
    assert less.lines[0] == "P/S/Orders  1.23M     0  1235"
    assert less.left_out == ["Received"]
    least = table(ROW, width=len("P/S/Orders  1.23M"))
    assert (least.lines[0], least.left_out) == ("P/S/Orders  1.23M", ["Received", "Failed", "In/s"])


def test_a_table_whose_names_alone_are_wider_is_left_to_be_folded() -> None:
    cells = [[Cell(value, str(value)) for value in ROW]]
    assert fitted(COLUMNS, cells, 12, keep=False) is None


def test_columns_that_were_asked_for_are_not_left_out() -> None:
    cells = [[Cell(value, str(value)) for value in ROW]]
    assert fitted(COLUMNS, cells, 30, keep=False) is not None
    assert fitted(COLUMNS, cells, 30, keep=True) is None


def test_a_text_of_several_words_is_folded_and_a_name_is_not() -> None:
    columns = (Column("name", "Name"), Column("path", "Path"), Column("why", "Why"))
    row = ("a name of words", "/no/word/here/at/all", "because of what was said before this")
    found = table(row, columns=columns, width=60)
    assert found.lines == [
        "a name of words  /no/word/here/at/all  because of what was",
        "                                       said before this",
    ]
    assert found.left_out == []


NAMES = st.text(string.ascii_letters + "/全é", min_size=1, max_size=20)
FIGURES = st.integers(0, 10**15) | st.floats(0, 1e9) | st.none()


@given(st.lists(st.tuples(NAMES, FIGURES, FIGURES, FIGURES, FIGURES), min_size=1, max_size=5), st.integers(20, 120))
def test_no_line_is_wider_than_the_terminal_and_each_name_is_whole(rows: list[tuple[Plain, ...]], width: int) -> None:
    from rich.cells import cell_len

    cells = [[Cell(value, "" if value is None else str(value)) for value in row] for row in rows]
    found = fitted(COLUMNS, cells, width, keep=False)
    if found is None:
        assert max(cell_len(str(row[0])) for row in rows) + 2 + 4 > width or width < 27
        return
    assert all(cell_len(line) <= width for line in (found.heading, *found.lines))
    assert all(line.startswith(str(row[0])) for line, row in zip(found.lines, rows, strict=True))


@pytest.mark.parametrize("width", [80, 120])
def test_one_long_name_loses_its_middle_and_takes_no_figure_with_it(width: int) -> None:
    columns = (
        Column("queue", "Queue"),
        *(Column(f"f{at}", f"Figure {at}", "right", short=f"F{at}") for at in range(6)),
    )
    long = "DomainParticipant/SharedSubscriber/" + "Q" * 69
    rows = [(long, *range(6)), ("P/S/Orders", *range(6))]
    found = table(*rows, columns=columns, width=width)
    assert not found.left_out
    assert found.lines[0].startswith("DomainParticipa…" if width == 80 else "DomainParticip")
    assert found.lines[1].startswith("P/S/Orders ")


def test_names_that_would_be_alike_stay_whole() -> None:
    columns = (Column("queue", "Queue"), *(Column(f"f{at}", f"Figure {at}", "right") for at in range(9)))
    names = ["A" * 30 + each + "B" * 30 for each in "xy"]
    found = table(*((name, *range(9)) for name in names), columns=columns, width=80)
    assert [line.split()[0] for line in found.lines] == names


@given(st.text("ab/", min_size=1, max_size=80), st.integers(8, 40))
def test_a_cut_name_has_the_ends_of_the_name(name: str, width: int) -> None:
    cut = middle_cut(name, width)
    head, _, tail = cut.partition("…")
    assert len(cut) <= width
    assert cut == name or (name.startswith(head) and name.endswith(tail) and len(cut) == width)
