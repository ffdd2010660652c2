"""One client, or one neighbour, in a listing: its labelled values and its tables."""

from __future__ import annotations

import re
from typing import Any, Final

from qsctl.profiles.listings._labelled import read_labelled
from qsctl.profiles.listings._layout import CLIENT_TABLE, CONTROL_TABLE, NEIGHBOR_TABLE
from qsctl.profiles.listings._queue_rows import check_complete, is_row, read_heading, read_rows
from qsctl.profiles.listings._text import ListingText
from qsctl.profiles.listings.labels import CLIENT_LABELS, NEIGHBOR_LABELS
from qsctl.profiles.listings.model import (
    APPLICATION_QUEUE,
    NEIGHBOR_QUEUES,
    PRIORITY_QUEUES,
    ClientQueues,
    ControlQueue,
    ListedQueueStatistics,
    NeighborConnection,
    NeighborQueues,
)

CONTROL_QUEUES: Final = ("CSPF", "SMRP")
_CONNECTION: Final = re.compile(r"Conn-[0-9]{1,3}")
_CLIENT_QUEUES: Final = (*PRIORITY_QUEUES, APPLICATION_QUEUE)


def read_client(source: ListingText) -> ClientQueues:
    """Read the next client, which begins with its label.

    Raises:
        NotUnderstoodError: it cannot be understood.
    """
    at = source.place
    labelled = read_labelled(source, CLIENT_LABELS)
    name = str(labelled.values.get("name") or "")
    where = f"client {name}"
    read_heading(source, CLIENT_TABLE)
    rows = read_rows(source, CLIENT_TABLE, _CLIENT_QUEUES, where)
    check_complete(source, rows, _expected(rows), where)
    _check_name(source, name, "Client", at)
    values: dict[str, Any] = {**labelled.values, "name": name}
    return ClientQueues(**values, others=tuple(labelled.others), queues=_statistics(rows))


def read_neighbor(source: ListingText) -> NeighborQueues:
    """Read the next neighbour, which begins with its label.

    Raises:
        NotUnderstoodError: it cannot be understood.
    """
    start = source.place
    labelled = read_labelled(source, NEIGHBOR_LABELS)
    name = str(labelled.values.get("name") or "")
    where = f"neighbor {name}"
    read_heading(source, CONTROL_TABLE)
    control = read_rows(source, CONTROL_TABLE, CONTROL_QUEUES, where)
    read_heading(source, NEIGHBOR_TABLE)
    connections: list[NeighborConnection] = []
    while _CONNECTION.fullmatch(source.peek()):
        at = source.place
        connection = source.take()
        rows = read_rows(source, NEIGHBOR_TABLE, NEIGHBOR_QUEUES, f"{where} {connection}")
        check_complete(source, rows, NEIGHBOR_QUEUES, f"{where} {connection}")
        if any(connection == each.name for each in connections):
            source.note(f"{connection} occurs a second time", path=where, found=connection, allowed="each once", at=at)
            continue
        connections.append(NeighborConnection(connection, _statistics(rows)))
    if not connections or is_row(source):
        found = source.peek() or "the end of the text"
        source.fail("a data connection is expected", path=where, found=found, allowed="Conn-1")
    _check_name(source, name, "Neighbor", start)
    values: dict[str, Any] = {**labelled.values, "name": name}
    return NeighborQueues(
        **values,
        others=tuple(labelled.others),
        control_queues=tuple(ControlQueue(queue, *figures) for queue, figures in control),
        connections=tuple(connections),
    )


def _check_name(source: ListingText, name: str, label: str, at: int) -> None:
    if not name:
        source.fail(f"{label} has no name", allowed=f"{label}: NAME", at=at)


def _expected(rows: list[tuple[str, list[int | None]]]) -> tuple[str, ...]:
    """Return the names of the queues that a client has: one on a TIBCO appliance, five on any other broker."""
    return (APPLICATION_QUEUE,) if any(name == APPLICATION_QUEUE for name, _ in rows) else PRIORITY_QUEUES


def _statistics(rows: list[tuple[str, list[int | None]]]) -> tuple[ListedQueueStatistics, ...]:
    return tuple(ListedQueueStatistics(queue, *figures) for queue, figures in rows)
