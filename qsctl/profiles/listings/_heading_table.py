"""Tables that are read by their heading: `slow-subscriber`, `connections wide`, queues, message VPNs of the spool.

A rule of dashes gives the columns; the lines above it, up to three, are their headings; a blank line ends the table. A
row whose figures are all blank continues the names of the row above, as the broker folds long names. Where the heading
has the message VPN below the name, the last line of a row that is not indented is the message VPN.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from qsctl.profiles.listings._columns import TableColumn, plain_heading
from qsctl.profiles.listings._table_kinds import TableKind, TableRow, kind_of
from qsctl.profiles.listings._text import ListingText
from qsctl.profiles.listings.labels import TEXT, UNSPECIFIED

_RULE: Final = re.compile(r"\s*-{2,}(?:[ +|]+-{2,})*\s*\Z")
_DASHES: Final = re.compile(r"-{2,}")
HEADING_LINES: Final = 3
_MOST_COLUMNS: Final = 100
ALLOWED_COLUMNS: Final = (
    "Client, and one of Slow Subscriber, Blocked %, State, Send-Q and the like; Queue Name or Message VPN, and one of "
    "Messages Spooled, Spool Usage (MB) and the like"
)
"""The columns that a table needs to be read."""
_MOST_FOLDS: Final = 10
"""Lines that one name may go on in."""
_PROMPT: Final = re.compile(r"\S+[>#]\s*(show\s|\Z)")
"""The next command, or the prompt that waits for it; a client's name may end like one."""


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    at: int


def _lines(source: ListingText, at: int, most: int | None = None) -> list[_Line]:
    """Return the lines from a position up to the first blank line, at most `most`."""
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
    """Return the headings of the table that begins at a line if its columns are not known; else None."""
    layout = _layout(source, at)
    return None if layout.kind is not None else ", ".join(heading.strip() for heading in layout.headings)


def pass_over_table(source: ListingText, at: int) -> None:
    """Move the position behind the table whose heading begins at a line."""
    lines = _lines(source, at)
    source.at = min(len(source.text), lines[-1].at + len(_whole_line(source, lines[-1].at)))


def read_table(source: ListingText, at: int) -> list[TableRow]:
    """Read the table with known columns whose heading begins at a line, and move the position behind it."""
    layout = _layout(source, at)
    assert layout.kind is not None, "the columns are known"
    rule = layout.rule
    body = _lines(source, rule.at + len(_whole_line(source, rule.at)) + 1)
    rows = _rows(source, body, layout)
    source.at = body[-1].at + len(_whole_line(source, body[-1].at)) if body else rule.at + len(rule.text)
    source.at = min(source.at, len(source.text))
    return [layout.kind.make(**row) for row in rows]


@dataclass(frozen=True, slots=True)
class _TableLayout:
    """The offsets of a table's columns and their meanings; `kind` None: the table is unknown."""

    rule: _Line
    starts: list[int]
    headings: list[str]
    columns: list[TableColumn | None]
    kind: TableKind | None

    @property
    def has_message_vpn_below(self) -> bool:
        """Return whether the first column holds the name and below it the message VPN."""
        return plain_heading(self.headings[0]).endswith("namemessagevpn")


def _layout(source: ListingText, at: int) -> _TableLayout:
    top = _lines(source, at, HEADING_LINES + 1)
    rule = next(number for number, line in enumerate(top) if number and _RULE.match(line.text))
    starts = [0, *(match.start() for match in _DASHES.finditer(top[rule].text))][:_MOST_COLUMNS]
    del starts[1]  # the first column begins with the line
    headings = [" ".join(words) for words in zip(*(_cut(line.text, starts) for line in top[:rule]), strict=True)]
    columns, kind = kind_of(headings)
    return _TableLayout(top[rule], starts, headings, columns, kind)


def _whole_line(source: ListingText, at: int) -> str:
    end = source.text.find("\n", at)
    return source.text[at : len(source.text) if end < 0 else end]


def _cut(line: str, starts: Sequence[int]) -> list[str]:
    """Return the cells of a line, each from its column's start to the next one's."""
    ends = [*starts[1:], len(line)]
    return [line[start:end].strip(" |+") for start, end in zip(starts, ends, strict=True)]


def _rows(source: ListingText, body: Sequence[_Line], layout: _TableLayout) -> list[dict[str, Any]]:
    texts: list[tuple[list[str], int]] = []
    below: dict[int, str] = {}
    columns = layout.columns
    figures = [number for number, column in enumerate(columns) if column is not None and column.kind is not TEXT]
    folds = 0
    for line in body:
        cells = _cells(source, line, layout.starts)
        if cells is None:
            continue
        folded = bool(texts) and not any(cells[number] for number in figures)
        if folded and layout.has_message_vpn_below and not line.text.startswith(" "):
            below[len(texts) - 1] = cells[0]
        elif folded and folds < _MOST_FOLDS:
            folds += 1
            texts[-1] = [above + more for above, more in zip(texts[-1][0], cells, strict=True)], texts[-1][1]
        else:
            folds = 0
            texts.append((cells, line.at))
    rows = [_row(source, cells, at, columns) for cells, at in texts]
    for number, message_vpn in below.items():
        rows[number]["message_vpn"] = message_vpn
    return [row for row in rows if row["name"]]


def _cells(source: ListingText, line: _Line, starts: Sequence[int]) -> list[str] | None:
    """Return a row's cells; if one is wider than its column, the row's words, provided that there is one a column."""
    for start in starts[1:]:
        if "|" not in line.text and line.text[start - 1 : start].strip():
            words = line.text.split()
            if len(words) == len(starts):
                return words
            source.note(
                "a cell is wider than its column", found=line.text[max(0, start - 20) : start + 20].strip(),
                allowed="cells as wide as the dashes above them", at=line.at,
            )  # fmt: skip
            return None
    return _cut(line.text, starts)


def _row(source: ListingText, cells: Sequence[str], at: int, columns: Sequence[TableColumn | None]) -> dict[str, Any]:
    row: dict[str, Any] = {"name": ""}
    for column, cell in zip(columns, cells, strict=True):
        if column is None or cell in {UNSPECIFIED, "", "-"}:
            continue
        try:
            row[column.field] = column.kind.read(cell)
        except ValueError:
            source.note(
                f"{column.heading} is not {column.kind.allowed}", path=f"row {cells[0]}", found=cell,
                allowed=column.kind.allowed, at=at,
            )  # fmt: skip
    if not row["name"]:
        source.note("a row has no name", allowed="a name in the first column", at=at)
    return row
