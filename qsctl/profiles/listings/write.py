"""Listings as the broker prints them; `read.py` reads equal listings from the text.

White space collapsed, the client and the neighbour of [SOL-QUEUES] are its text, word for word. Values that the sources
do not print (`client_address`) are left out; None is `unspecified`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from qsctl.profiles.listings._columns import CONNECTION_COLUMNS, SLOW_COLUMNS, TableColumn
from qsctl.profiles.listings._layout import CLIENT_TABLE, CONTROL_TABLE, NEIGHBOR_TABLE, QueueTable
from qsctl.profiles.listings._queue_rows import NO_FIGURE
from qsctl.profiles.listings.labels import (
    CLIENT_LABELS,
    NEIGHBOR_LABELS,
    ORDER_LABEL,
    ORDER_VALUE,
    TEXT,
    UNSPECIFIED,
    Label,
)
from qsctl.profiles.listings.model import ClientConnection, ClientQueues, NeighborQueues, SlowSubscriber

_LABEL_WIDTH: Final = 24


def write_clients(clients: Iterable[ClientQueues]) -> str:
    """Return the text of `show client … stats queue` for all clients in turn."""
    return "\n".join("\n".join(_client(client)) + "\n" for client in clients)


def write_neighbors(neighbors: Iterable[NeighborQueues]) -> str:
    """Return the text of `show cspf neighbor … stats queues` for all neighbours in turn."""
    return "\n".join("\n".join(_neighbor(neighbor)) + "\n" for neighbor in neighbors)


def write_slow_subscribers(rows: Sequence[SlowSubscriber]) -> str:
    """Return the text of `show client … slow-subscriber`, without columns that are empty in all rows."""
    return _table(SLOW_COLUMNS, rows)


def write_connections(rows: Sequence[ClientConnection]) -> str:
    """Return the text of `show client … connections wide`, without columns that are empty in all rows."""
    return _table(CONNECTION_COLUMNS, rows)


def _client(client: ClientQueues) -> Iterator[str]:
    yield from _labelled(CLIENT_LABELS, client, client.others)
    yield ""
    yield f"{ORDER_LABEL}:"
    yield ORDER_VALUE
    yield ""
    yield from _heading(CLIENT_TABLE)
    for queue in client.queues:
        yield _row(CLIENT_TABLE, queue.queue, queue)


def _neighbor(neighbor: NeighborQueues) -> Iterator[str]:
    yield from _labelled(NEIGHBOR_LABELS, neighbor, neighbor.others)
    yield ""
    yield from _heading(CONTROL_TABLE)
    for control in neighbor.control_queues:
        yield _row(CONTROL_TABLE, control.queue, control)
    yield ""
    yield f"{ORDER_LABEL}:"
    yield ORDER_VALUE
    yield ""
    yield from _heading(NEIGHBOR_TABLE)
    for connection in neighbor.connections:
        yield connection.name
        for queue in connection.queues:
            yield _row(NEIGHBOR_TABLE, queue.queue, queue)


def _labelled(labels: Sequence[Label], thing: object, others: Sequence[tuple[str, str]]) -> Iterator[str]:
    for number, label in enumerate(labels):
        indent = "" if number == 0 else "    " if label.grouped else "  "
        if not label.field:
            yield f"{indent}{label.text}:"
            continue
        assert label.kind is not None
        value = getattr(thing, label.field)
        text = UNSPECIFIED if value is None else label.kind.write(value)
        yield f"{f'{indent}{label.text}:':<{_LABEL_WIDTH}} {text}".rstrip()
    for text, value in others:
        yield f"{f'  {text}:':<{_LABEL_WIDTH}} {value}".rstrip()


def _heading(table: QueueTable) -> Iterator[str]:
    before, after = table.stars
    yield f"{'*' * before} {table.banner} {'*' * after}"
    for words in (table.headings, table.units):
        yield "|".join(
            _headed(word, width, number) for number, (word, width) in enumerate(_cells(table, words))
        ).rstrip()
    yield "+".join("-" * width for width in table.widths)


def _cells(table: QueueTable, words: Sequence[str]) -> Iterator[tuple[str, int]]:
    return zip(words, table.widths, strict=True)


def _headed(word: str, width: int, number: int) -> str:
    return f"{word:<{width}}" if number == 0 else f" {word:<{width - 1}}"


def _row(table: QueueTable, name: str, thing: object) -> str:
    figures = [getattr(thing, field) for field in table.fields]
    cells = [NO_FIGURE if figure is None else f"{figure}" for figure in figures]
    first = f"{name:<{table.widths[0]}}" if table.closed else f"{name:>{table.widths[0] - 1}} "
    padded = [f" {cell:>{width - 2}} " for cell, width in zip(cells, table.widths[1:], strict=True)]
    line = "|".join([first, *padded])
    return f"{line}|" if table.closed else line.rstrip()


def _table(columns: Sequence[TableColumn], rows: Sequence[SlowSubscriber] | Sequence[ClientConnection]) -> str:
    filled = {column.field for column in columns if any(getattr(row, column.field) is not None for row in rows)}
    shown = [column for column in columns if column.field in filled | {"name"}]
    cells = [[_cell(column, getattr(row, column.field)) for column in shown] for row in rows]
    widths = [
        max(len(column.heading), *(len(line[number]) for line in cells), 2) for number, column in enumerate(shown)
    ]
    lines = [
        " ".join(_leaning(column, column.heading, width) for column, width in zip(shown, widths, strict=True)),
        " ".join("-" * width for width in widths),
        *(
            " ".join(_leaning(column, cell, width) for column, cell, width in zip(shown, line, widths, strict=True))
            for line in cells
        ),
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _cell(column: TableColumn, value: object) -> str:
    return UNSPECIFIED if value is None else column.kind.write(value)  # type: ignore[arg-type]


def _leaning(column: TableColumn, text: str, width: int) -> str:
    return f"{text:<{width}}" if column.kind is TEXT else f"{text:>{width}}"
