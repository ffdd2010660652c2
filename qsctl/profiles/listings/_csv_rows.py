"""Listings as CSV, exported by a tool or printed by `qsctl show … -o csv`; columns are known by their headings.

Tables of clients and connections, queues and topic endpoints, message VPNs of the spool, and the priority queues of
clients, one queue a row. Cells are separated by commas, semicolons or tabs; an empty cell and an unknown column are
left out. A cell that cannot be read is None, with a note.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any, Final

from qsctl.declared.problems import ProblemList, error_at
from qsctl.profiles._heading import heading_of
from qsctl.profiles.listings._columns import TableColumn, plain_heading
from qsctl.profiles.listings._table_kinds import TableKind, kind_of
from qsctl.profiles.listings.labels import UNSPECIFIED, read_count
from qsctl.profiles.listings.model import (
    ClientConnection,
    ClientQueues,
    EndpointUsage,
    ListedQueueStatistics,
    Listings,
    SlowSubscriber,
    SpoolUsage,
)
from qsctl.profiles.listings.problems import unread

_CLIENT, _QUEUE, _MESSAGE_VPN = "client", "queue", "messagevpn"
_FIGURES: Final = {
    plain_heading(field): field for field in ListedQueueStatistics.__dataclass_fields__ if field != "queue"
}  # fmt: skip
_NO_VALUE: Final = frozenset({"", "-", UNSPECIFIED})


def looks_like_csv_rows(text: str) -> bool:
    """Return whether the first line is a CSV heading with columns of a known table."""
    headings, _ = heading_of(text)
    return len(headings) > 1 and (_is_of_queues(headings) or kind_of(headings)[1] is not None)


def _is_of_queues(headings: Sequence[str]) -> bool:
    plain = {plain_heading(heading) for heading in headings}
    return {_CLIENT, _QUEUE} <= plain and bool(plain & _FIGURES.keys())


def read_csv_rows(text: str, name: str) -> Listings:
    """Read the rows of a table.

    Args:
        text: for which `looks_like_csv_rows` is true.
        name: the file's name in problems.

    Raises:
        InvalidFile: it is not CSV.
    """
    headings, delimiter = heading_of(text)
    before = len(text) - len(text.lstrip())
    findings = ProblemList(name)
    rows = _rows(text[before:], delimiter, len(headings), name, text.count("\n", 0, before))
    if _is_of_queues(headings):
        clients = _clients(rows, [plain_heading(heading) for heading in headings], findings)
        return Listings(clients=clients, notes=findings.notes)
    columns, kind = kind_of(headings)
    assert kind is not None, "it looks like one"
    made = list(_made(rows, columns, kind, findings))
    return Listings(
        slow_subscribers=tuple(each for each in made if isinstance(each, SlowSubscriber)),
        connections=tuple(each for each in made if isinstance(each, ClientConnection)),
        endpoints=tuple(each for each in made if isinstance(each, EndpointUsage)),
        spools=tuple(each for each in made if isinstance(each, SpoolUsage)),
        notes=findings.notes,
    )


def _rows(text: str, delimiter: str, width: int, name: str, first: int) -> Iterator[tuple[list[str], int]]:
    """Yield the cells of each row, filled up or cut to the number of headings, and its line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        next(reader, None)
        for row in reader:
            if any(cell.strip() for cell in row):
                yield [cell.strip() for cell in [*row, *[""] * (width - len(row))][:width]], first + reader.line_num
    except csv.Error as error:
        line, allowed = first + reader.line_num, "cells of at most 128 KiB"
        raise unread([error_at(name, line, f"this is not CSV: {error}", allowed=allowed)]) from None


def _made(
    rows: Iterator[tuple[list[str], int]],
    columns: Sequence[TableColumn | None],
    kind: TableKind,
    findings: ProblemList,
) -> Iterator[object]:
    for cells, line in rows:
        row: dict[str, Any] = {}
        for column, cell in zip(columns, cells, strict=True):
            if column is None or cell in _NO_VALUE:
                continue
            try:
                row[column.field] = column.kind.read(_BOOLEANS.get(cell, cell))
            except ValueError:
                allowed = column.kind.allowed
                findings.add(line, f"{column.heading} is not {allowed}", cell, allowed, path=f"row {cells[0]}")
        if "name" in row:
            yield kind.make(**row)
        else:
            findings.add(line, "a row has no name", allowed="a name")


_BOOLEANS: Final = {"true": "Yes", "false": "No", "True": "Yes", "False": "No"}


def _clients(
    rows: Iterator[tuple[list[str], int]], plain: Sequence[str], findings: ProblemList
) -> tuple[ClientQueues, ...]:
    clients: dict[tuple[str, str | None], dict[str, ListedQueueStatistics]] = {}
    for cells, line in rows:
        by_name = dict(zip(plain, cells, strict=True))
        client, queue = by_name[_CLIENT], by_name[_QUEUE]
        figures: dict[str, int | None] = dict.fromkeys(_FIGURES.values())
        for heading, field in _FIGURES.items():
            text = by_name.get(heading, "")
            if text in _NO_VALUE:
                continue
            try:
                figures[field] = read_count(text)
            except ValueError:
                path = f"client {client} {queue}"
                findings.add(line, f"{field} is not a whole number", text, "a count", path=path)
        if client and queue:
            queues = clients.setdefault((client, by_name.get(_MESSAGE_VPN) or None), {})
            queues.setdefault(queue, ListedQueueStatistics(queue, **figures))
    return tuple(
        ClientQueues(client, message_vpn=vpn, queues=tuple(queues.values()))
        for (client, vpn), queues in clients.items()
    )
