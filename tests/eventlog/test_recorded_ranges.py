"""Rows of ranges of samples: the same tables as by single rows."""

from __future__ import annotations

from qsctl.core.events import Event, SampleEnqueued, SampleReceived, SampleRemoved, SampleSent, one_by_one
from qsctl.core.records import RemovalCause
from qsctl.eventlog.recording.fold import Fold
from qsctl.eventlog.recording.rows import TableRows
from qsctl.eventlog.recording.sampling import Sampling
from qsctl.eventlog.recording.tables import table_of
from qsctl.eventlog.schema import LogLevel
from qsctl.identity import Guid, SampleIdentity
from tests.properties.observed_service import assert_equal_rows

QUEUE = "P/S/Orders"
WRITER, READERS = Guid(b"w" * 16), [Guid(b"r" * 16), Guid(b"s" * 16)]
SIZES = tuple(range(1, 2_000, 200))


def identity(number: int) -> SampleIdentity:
    return SampleIdentity(WRITER, number)


def lives() -> list[Event]:
    """Return events of ten samples that two consumers are sent in turn, of which one acknowledges four."""
    return [
        SampleReceived(5, QUEUE, identity(1), SIZES, count=10),
        SampleEnqueued(5, QUEUE, identity(1), SIZES, 5, 10),
        SampleSent(7, QUEUE, identity(1), READERS[0], 1, 5, count=5, step=2),
        SampleSent(7, QUEUE, identity(2), READERS[1], 1, 5, count=5, step=2),
        SampleRemoved(9, QUEUE, identity(3), RemovalCause.DELIVERED, SIZES[2:10:2], 5, 7, 4, 2),
    ]


def rows_of(events: list[Event], share: float = 1.0) -> tuple[Fold, dict[str, TableRows]]:
    fold = Fold("svc", [(QUEUE, -1)], 0, LogLevel.EVENTS, Sampling(share))
    fold.happened(events)
    counters = fold.counters(10)
    assert counters["length_messages"].tolist() == [6]
    fold.end()
    return fold, fold.take_rows()


def test_rows_of_ranges_are_those_of_their_samples() -> None:
    for share in (1.0, 0.5, 0.1, 0.001):
        made = [
            {name: table_of(name, rows, "run").to_pylist() for name, rows in rows_of(events, share)[1].items() if rows}
            for events in (lives(), list(one_by_one(lives())))
        ]
        assert_equal_rows(*made)
        assert share < 1 or {name: len(each) for name, each in made[0].items()} == {
            "messages": 10,
            "arrivals": 10,
            "deliveries": 10,
            "peers": 1,
        }


def test_a_range_is_one_part_of_each_table_until_it_is_written() -> None:
    fold = Fold("svc", [(QUEUE, -1)], 0)
    fold.happened(lives())
    rows = fold.take_rows()
    assert {name: (len(rows[name].parts), len(rows[name])) for name in ("arrivals", "deliveries", "messages")} == {
        "arrivals": (1, 10),
        "deliveries": (1, 4),
        "messages": (1, 4),
    }


def test_a_table_has_ranges_and_rows_in_their_order() -> None:
    rows = TableRows()
    rows.parts.append((1, 0, "Orders", "first", 7))
    rows.add(3, (range(2, 5), 0, "Orders", "usual", [8, 9, 10]))
    rows.add(1, ([5], 0, "Orders", "usual", 11))
    more = TableRows()
    more.append_all(rows.take())
    assert (len(rows), len(more)) == (0, 5)
    table = table_of("events", more, "run").to_pylist()
    assert [(row["at_ns"], row["event"], row["value"]) for row in table] == [
        (1, "first", 7), (2, "usual", 8), (3, "usual", 9), (4, "usual", 10), (5, "usual", 11),
    ]  # fmt: skip
