"""What keys do, and that every screen fits its terminal."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from qsctl.cli.output.results import Row
from qsctl.cli.top._display import Display
from qsctl.cli.top._screen import common_path, screen
from qsctl.cli.top.look import QUEUE_FIGURES, ROLE, Look


def row(name: str, **figures: float) -> Row:
    return {"name": name, "service": "", "role": "", **{each.field: 0 for each in QUEUE_FIGURES}, **figures}


LOOK = Look(
    "Queue",
    QUEUE_FIGURES,
    [row("P/S/Orders", depth=5, in_per_s=1.25), row("P/S/Jobs", depth=70), row("P/S/Dead", depth=5, dead=1234567)],
    "3 queues",
)
KEYS = st.sampled_from(
    ["up", "down", "page up", "page down", "home", "end", "enter", "escape", "backspace", "left", "right"]
) | st.sampled_from("hjknqr<>/+-[] ?*o[x")


def after(*keys: str, look: Look = LOOK) -> Display:
    display = Display()
    for key in keys:
        display = display.press(key, look, 10)
    return display


def names(*keys: str) -> list[str]:
    return [str(each["name"]).rpartition("/")[2] for each in after(*keys).shown(LOOK)]


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        ((), ["Jobs", "Dead", "Orders"]),
        (("r",), ["Dead", "Orders", "Jobs"]),
        (("n",), ["Dead", "Jobs", "Orders"]),
        (("n", "r"), ["Orders", "Jobs", "Dead"]),
        (("<",), ["Dead", "Jobs", "Orders"]),
        ((">", ">", ">"), ["Orders", "Dead", "Jobs"]),
        (("/", "o", "r"), ["Orders"]),
        (("/", "*", "/", "D", "*"), ["Dead"]),
        (("/", "o", "r", "backspace", "backspace", "j", "o", "enter"), ["Jobs"]),
        (("/", "z", "escape"), ["Jobs", "Dead", "Orders"]),
    ],
)
def test_keys_sort_and_filter(keys: tuple[str, ...], order: list[str]) -> None:
    assert names(*keys) == order


def test_the_chosen_row_is_kept_when_others_move() -> None:
    display = after("down")
    assert str(display.shown(LOOK)[display.place(display.shown(LOOK))]["name"]) == "P/S/Dead"
    grown = replace(LOOK, rows=[row("P/S/Orders", depth=999), *LOOK.rows[1:]])
    shown = display.shown(grown)
    assert str(shown[display.place(shown)]["name"]) == "P/S/Dead"


def test_a_queue_is_looked_into_and_left() -> None:
    assert after("down", "enter").of == "P/S/Dead"
    assert after("down", "enter", "escape").of == ""
    assert after("q").is_over
    assert not after("h", "x").shows_help
    assert (after("+", "+", "-").speed_steps, after("]", "[", "[").seek_steps, after(" ").is_paused) == (1, -1, True)


@pytest.mark.parametrize(
    ("names", "common"),
    [
        (["P/S/A", "P/S/B"], "P/S/"),
        (["P/S/A", "P/T/B"], "P/"),
        (["P/S/A"], "P/S/"),
        (["P/S/A", "PS/B"], ""),
        (["A", "B"], ""),
        ([], ""),
    ],
)
def test_the_path_that_all_names_have(names: list[str], common: str) -> None:
    assert common_path(names) == common


def test_figures_are_whole_where_there_is_room_and_names_are_always() -> None:
    wide = screen("title", LOOK, Display(), 200, 12)
    assert any("P/S/Dead" in line.text and "1234567" in line.text for line in wide)
    assert any("Redelivered" in line.text for line in wide)
    narrow = [line.text for line in screen("title", LOOK, Display(), 80, 24)]
    assert "in P/S/" in narrow[2]
    assert narrow[3].split() == [
        "Queue", "DEPTH", "Unack", "Sent", "In/s", "Out/s", "Redel", "Dead", "HiWat", "LoWat", "Expir", "Full", "Cons",
    ]  # fmt: skip
    assert any(line.startswith("Dead ") and "1.23M" in line for line in narrow)
    tiny = [line.text for line in screen("title", LOOK, Display(sort="dead"), 18, 24)]
    assert tiny[3].split() == ["Queue", "Depth", "DEAD"], "that which rows are sorted by is left out last"


def test_the_role_is_shown_where_there_is_one() -> None:
    rows = [{**each, "role": "master"} for each in LOOK.rows]
    lines = screen("title", Look("Queue", [ROLE, *QUEUE_FIGURES], rows), Display(), 80, 24)
    assert any("master" in line.text for line in lines)


NAMES = st.lists(st.text(min_size=1, max_size=60), unique=True, max_size=40)


@given(NAMES, st.lists(KEYS, max_size=12), st.integers(1, 130), st.integers(1, 40), st.integers(0, 2**62))
def test_whatever_is_pressed_the_screen_fits(
    found: list[str], keys: list[str], width: int, height: int, figure: int
) -> None:
    look = Look("Queue", QUEUE_FIGURES, [row(name, depth=figure, in_per_s=figure / 7) for name in found], note="a note")
    display = after(*keys, look=look)
    lines = screen("a title", look, display, width, height)
    assert len(lines) == height
    assert all(cell_len(line.text) <= width for line in lines)
    assert not any(unicodedata.category(each) in {"Cc", "Cs", "Zl", "Zp"} for line in lines for each in line.text)
