"""Tables of queues, word by word: banner, headings, rule and rows, in lines or flowed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from qsctl.profiles.listings._layout import QueueTable
from qsctl.profiles.listings._text import END, ListingText
from qsctl.profiles.listings.labels import read_count

_RULE: Final = re.compile(r"[-+]{3,}")
_STARS: Final = re.compile(r"\*{3,}")
_MOST_WORDS: Final = 60
"""Of a banner or a heading: what has more of them is none."""

BAR: Final = "|"
NO_FIGURE: Final = "-"
"""The text of a figure that could not be read."""


def read_heading(source: ListingText, table: QueueTable) -> None:
    """Consume the lines above the rows, from the line above the banner to the rule.

    Raises:
        NotUnderstoodError: the heading is not this table's.
    """
    if source.peek() == "Listed":
        for _ in range(_MOST_WORDS):
            if _STARS.fullmatch(source.peek()) or source.peek() == END:
                break
            source.take()
    at = source.place
    banner = _words_between_stars(source)
    if banner != table.banner.split():
        source.fail("this is another table", found=" ".join(banner), allowed=f"*** {table.banner} ***", at=at)
    at = source.place
    words: list[str] = []
    while not _RULE.fullmatch(source.peek()) and source.peek() != END and len(words) < _MOST_WORDS:
        word = source.take()
        words += [word] * (word != BAR)
    if not _RULE.fullmatch(source.peek()) or [*map(_plain, words)] != [*map(_plain, table.words)]:
        source.fail(
            f"the columns of {table.banner} are not the known ones", found=" ".join(words),
            allowed=" ".join(table.words), at=at,
        )  # fmt: skip
    source.take()


def _words_between_stars(source: ListingText) -> list[str]:
    words: list[str] = []
    stars = 0
    while stars < 2 and source.peek() != END and len(words) < _MOST_WORDS:
        word = source.take()
        if _STARS.fullmatch(word):
            stars += 1
        else:
            words.append(word)
    return words


def _plain(word: str) -> str:
    """Return a word of a heading in the singular and without parentheses, of which the sources omit some."""
    return re.sub(r"[^a-z0-9]", "", word.lower()).removesuffix("s")


def is_row(source: ListingText) -> bool:
    """Return whether a row is next: a word, then a bar."""
    return source.peek() not in {BAR, END} and source.peek(1) == BAR


def read_rows(
    source: ListingText, table: QueueTable, names: Sequence[str], where: str
) -> list[tuple[str, list[int | None]]]:
    """Consume the following rows: each queue's name and its figures, None for one that cannot be read.

    A row of an unknown queue, or of one that was listed before, is left out with a note.

    Args:
        source: positioned after the rule, or after a connection's name.
        table: whose columns are read.
        names: the queues that exist.
        where: the owner of the queues, for messages.

    Raises:
        NotUnderstoodError: a row is cut.
    """
    rows: list[tuple[str, list[int | None]]] = []
    while is_row(source):
        at = source.place
        name = source.take()
        is_wanted = False
        if name not in names:
            source.note(f"there is no queue {name}", path=where, found=name, allowed=", ".join(names), at=at)
        elif any(name == each for each, _ in rows):
            source.note(f"queue {name} occurs a second time", path=where, found=name, allowed="each once", at=at)
        else:
            is_wanted = True
        figures = [_cell(source, table.columns[1 + number], f"{where} {name}") for number in range(len(table.fields))]
        if source.peek() == BAR:
            source.take()
        if is_wanted:
            rows.append((name, figures))
    return rows


def _cell(source: ListingText, column: str, where: str) -> int | None:
    if source.peek() != BAR:
        found = source.peek() or "the end of the text"
        source.fail("the row ends too early", path=where, found=found, allowed=f"| and the figure of {column}")
    source.take()
    at = source.place
    word = source.peek()
    if word in {BAR, END}:
        source.note(f"{column} is empty", path=where, allowed="a whole number", at=at)
        return None
    source.take()
    if word == NO_FIGURE:
        return None
    try:
        return read_count(word)
    except ValueError:
        source.note(f"{column} is not a whole number", path=where, found=word, allowed="a whole number", at=at)
        return None


def check_complete(
    source: ListingText, rows: Sequence[tuple[str, list[int | None]]], names: Sequence[str], where: str
) -> None:
    """Note the queues that a table lacks: the listing was cut."""
    missing = [name for name in names if all(name != each for each, _ in rows)]
    if missing:
        source.note(
            "the table is cut", path=where, found=", ".join(each for each, _ in rows) or "no row",
            allowed=f"also {', '.join(missing)}",
        )  # fmt: skip
