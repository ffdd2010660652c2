"""Rendering of a page as Markdown, for a merge request or a wiki; charts are separate files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from qsctl.report.page import Page, PageTable


def picture_names(page: Page, stem: str) -> list[str]:
    """Return the file name of each chart, which begins with the stem of the page's name."""
    titles = (re.sub(r"[^a-z0-9]+", "-", each.title.casefold()).strip("-") for each in page.pictures)
    return [f"{stem}-{number}-{title}.svg" for number, title in enumerate(titles, 1)]


def page_markdown(page: Page, pictures: Sequence[str]) -> str:
    """Return the page as Markdown.

    Args:
        page: the report.
        pictures: path of each chart's file, relative to the page.
    """
    return "\n".join(_lines(page, pictures)).rstrip() + "\n"


def _lines(page: Page, pictures: Sequence[str]) -> Iterator[str]:
    yield from (f"# {_text(page.title)}", "", _text(page.subtitle), "")
    first, *others = page.verdict
    yield from (f"**{_text(first)}**", "")
    yield from (f"- {_text(each)}" for each in others)
    if others:
        yield ""
    for note in page.notes:
        yield from (f"> {_text(note)}", "")
    for picture, name in zip(page.pictures, pictures, strict=True):
        yield from (f"## {_text(picture.title)}", "", _text(picture.caption), "")
        yield from (f"![{_text(picture.title)}](<{name}>)", "")
    for table in page.tables:
        yield from _table(table)
    yield from ("## What was run", "")
    yield from _rows(["", ""], [[name, value] for name, value in page.facts.items()], frozenset())
    yield from ("", "## Reproduce it", "", *_fenced(page.reproduce, ""))
    if page.configuration:
        yield from ("", "## The configuration", "", *_fenced(page.configuration, "xml"))


def _table(table: PageTable) -> Iterator[str]:
    yield from (f"## {_text(table.title)}", "")
    yield from _rows(table.headings, table.rows, table.numbers)
    yield ""
    if table.note:
        yield from (table.note, "")


def _rows(headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: frozenset[int]) -> Iterator[str]:
    yield f"| {' | '.join(map(_cell, headings))} |"
    yield f"| {' | '.join('---:' if at in numbers else '---' for at in range(len(headings)))} |"
    yield from (f"| {' | '.join(map(_cell, row))} |" for row in rows)


def _fenced(text: str, language: str) -> Iterator[str]:
    """Yield the lines of a fenced code block, with a fence longer than any in the text."""
    longest = max((len(found) for found in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}{language}", text.rstrip("\n"), fence)


def _cell(text: object) -> str:
    return _text(str(text)).replace("|", "\\|")


def _text(text: str) -> str:
    """Escape a text for Markdown, since names come from scenarios and peers."""
    return re.sub(r"([\\`*_\[\]<>#~&])", r"\\\1", " ".join(text.split()))
