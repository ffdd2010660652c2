"""Tables that are read by their heading: `slow-subscriber`, `connections wide`.

A rule of dashes gives the columns; the lines above it, up to three, are their headings; blank line ends the table. A
row whose figures are all blank goes on with the names of the row above, as the broker folds long names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from qsctl.profiles.listings.columns import (
    CONNECTION_COLUMNS,
    ONLY_OF_CONNECTIONS,
    SLOW_COLUMNS,
    TableColumn,
    plain_heading,
)
from qsctl.profiles.listings.labels import TEXT, UNSPECIFIED
from qsctl.profiles.listings.model import ClientConnection, SlowSubscriber
from qsctl.profiles.listings.text import ListingText

_RULE: Final = re.compile(r"\s*-{2,}(?:[ +|]+-{2,})*\s*\Z")
_DASHES: Final = re.compile(r"-{2,}")
HEADING_LINES: Final = 3
_MOST_COLUMNS: Final = 100
ALLOWED_COLUMNS: Final = "Client, and one of Slow Subscriber, Blocked %, State, Send-Q and the like"
"""What a table needs to be read."""
_MOST_FOLDS: Final = 10
"""Lines that one name may go on in."""
_PROMPT: Final = re.compile(r"\S+[>#]\s*(show\s|\Z)")
"""The next command, or the prompt that waits for it; a client's name may end like one."""


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    at: int


def _lines(source: ListingText, at: int, most: int | None = None) -> list[_Line]:
    """Lines from a position on, to the first blank one behind it or until there are `most`."""
    found: list[_Line] = []
    while at < len(source.text) and (most is None or len(found) < most):
        end = source.text.find("\n", at)
        end = len(source.text) if end < 0 else end
        text = source.text[at:end]
        if not text.strip() or (found and _PROMPT.match(text)):
            break
        found.append(_Line(text.expandtabs(), at))
        at = end + 1
    return found


def is_heading(source: ListingText, at: int) -> bool:
    """Return whether the line at a position begins a table: a rule of dashes is among the lines that follow."""
    return any(_RULE.match(line.text) for line in _lines(source, at, HEADING_LINES + 1)[1:])


def unknown_headings(source: ListingText, at: int) -> str | None:
    """Return the headings of the table whose heading begins at a line, where its columns are not known; else None."""
    headings, columns = _layout(source, at)[2:]
    fields = {column.field for column in columns if column is not None}
    known = "name" in fields and (fields & ONLY_OF_CONNECTIONS or fields & {"slow_subscriber", "blocked_percent"})
    return None if known else ", ".join(heading.strip() for heading in headings)


def pass_over_table(source: ListingText, at: int) -> None:
    """Leave the source behind the table whose heading begins at a line."""
    lines = _lines(source, at)
    source.at = min(len(source.text), lines[-1].at + len(_whole_line(source, lines[-1].at)))


def read_table(source: ListingText, at: int) -> list[SlowSubscriber] | list[ClientConnection]:
    """Read the table whose heading begins at a line, whose columns are known, and leave the source behind it.

    Raises:
        ListingError: too much of it cannot be understood.
    """
    rule, starts, _, columns = _layout(source, at)
    body = _lines(source, rule.at + len(_whole_line(source, rule.at)) + 1)
    rows = _rows(source, body, starts, columns)
    source.at = body[-1].at + len(_whole_line(source, body[-1].at)) if body else rule.at + len(rule.text)
    source.at = min(source.at, len(source.text))
    if any(column is not None and column.field in ONLY_OF_CONNECTIONS for column in columns):
        return [ClientConnection(**row) for row in rows]
    return [SlowSubscriber(**row) for row in rows]


def _layout(source: ListingText, at: int) -> tuple[_Line, list[int], list[str], list[TableColumn | None]]:
    """Return the rule of dashes, where each column begins, the headings, and the columns that they are."""
    top = _lines(source, at, HEADING_LINES + 1)
    rule = next(number for number, line in enumerate(top) if number and _RULE.match(line.text))
    starts = [0, *(match.start() for match in _DASHES.finditer(top[rule].text))][:_MOST_COLUMNS]
    del starts[1]  # the first column begins with the line
    headings = [" ".join(words) for words in zip(*(_cut(line.text, starts) for line in top[:rule]), strict=True)]
    plain = [plain_heading(heading) for heading in headings]
    wanted = {key: column for column in CONNECTION_COLUMNS for key in column.keys}
    connections = any(name in wanted and wanted[name].field in ONLY_OF_CONNECTIONS for name in plain)
    return top[rule], starts, headings, _chosen(plain, CONNECTION_COLUMNS if connections else SLOW_COLUMNS)


def _whole_line(source: ListingText, at: int) -> str:
    end = source.text.find("\n", at)
    return source.text[at : len(source.text) if end < 0 else end]


def _cut(line: str, starts: Sequence[int]) -> list[str]:
    """Return the cells of a line, each from its column's start to the next one's."""
    ends = [*starts[1:], len(line)]
    return [line[start:end].strip(" |+") for start, end in zip(starts, ends, strict=True)]


def _chosen(plain: Sequence[str], known: Sequence[TableColumn]) -> list[TableColumn | None]:
    """Return the column that each heading is; None for one that is not known or stood before."""
    chosen: list[TableColumn | None] = []
    for heading in plain:
        column = next((each for each in known if heading in each.keys and each not in chosen), None)
        chosen.append(column)
    return chosen


def _rows(
    source: ListingText, body: Sequence[_Line], starts: Sequence[int], columns: Sequence[TableColumn | None]
) -> list[dict[str, Any]]:
    texts: list[tuple[list[str], int]] = []
    figures = [number for number, column in enumerate(columns) if column is not None and column.kind is not TEXT]
    folds = 0
    for line in body:
        cells = _cut(line.text, starts)
        for start in starts[1:]:
            if "|" not in line.text and line.text[start - 1 : start].strip():
                source.note(
                    "a cell is wider than its column", found=line.text[max(0, start - 20) : start + 20].strip(),
                    allowed="cells as wide as the dashes above them", at=line.at,
                )  # fmt: skip
                break
        folded = bool(texts) and not any(cells[number] for number in figures)
        if folded and folds < _MOST_FOLDS:
            folds += 1
            texts[-1] = [above + more for above, more in zip(texts[-1][0], cells, strict=True)], texts[-1][1]
        else:
            folds = 0
            texts.append((cells, line.at))
    return [_row(source, cells, at, columns) for cells, at in texts]


def _row(source: ListingText, cells: Sequence[str], at: int, columns: Sequence[TableColumn | None]) -> dict[str, Any]:
    row: dict[str, Any] = {"name": ""}
    for column, cell in zip(columns, cells, strict=True):
        if column is None or cell in {UNSPECIFIED, "", "-"}:
            continue
        try:
            row[column.field] = column.kind.read(cell)
        except ValueError:
            source.note(
                f"{column.heading} is not {column.kind.allowed}", path=f"client {cells[0]}", found=cell,
                allowed=column.kind.allowed, at=at,
            )  # fmt: skip
    if not row["name"]:
        source.note("a row has no client", allowed="a name below Client", at=at)
    return row
