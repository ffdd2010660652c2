"""Rows to columns: nulls, names, work units; chunks that do not depend on how a model cuts its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.eventlog.columns import ChunkBuffers, counter_table, event_table, message_table
from qsctl.eventlog.schema import (
    BUCKET_COUNT,
    COUNTERS,
    EVENTS,
    MESSAGES,
    SINCE_DONE,
    bucket_bounds_ns,
    bucket_of,
)
from qsctl.sim.kernel import records
from qsctl.sim.model import EVENT_ROW, LOG_ROW, NEVER, OUTCOMES

QUEUES = ["G-1", "D-1"]


def row(**changes: int) -> tuple[int, ...]:
    fields = dict.fromkeys(LOG_ROW.names or (), 0) | {"size_bytes": 1, "attempts": 1} | changes
    return tuple(fields[name] for name in LOG_ROW.names or ())


def test_a_message_row_becomes_a_row_of_the_log() -> None:
    rows = np.array(
        [
            row(enqueued_ns=5, enter_ns=1, wait_ns=1, send_ns=2, acknowledge_ns=3, client_id=9, topic_id=4,
                size_bytes=2049, queue=1),
            row(enter_ns=NEVER, wait_ns=NEVER, send_ns=NEVER, acknowledge_ns=NEVER, outcome=5,
                    discard_indication=1, attempts=255),
        ],
        LOG_ROW,
    )  # fmt: skip
    table = message_table(rows, "run", QUEUES)
    assert table.schema.equals(MESSAGES)
    assert table.to_pylist() == [
        {"run_id": "run", "client_id": 9, "queue": "D-1", "topic_id": 4, "size_bytes": 2049, "work_units": 2,
         "enqueued_ns": 5, "enter_ns": 1, "wait_ns": 1, "send_ns": 2, "acknowledge_ns": 3, "outcome": "delivered",
         "discard_indication": False, "attempts": 1},
        {"run_id": "run", "client_id": 0, "queue": "G-1", "topic_id": 0, "size_bytes": 1, "work_units": 1,
         "enqueued_ns": 0, "enter_ns": None, "wait_ns": None, "send_ns": None, "acknowledge_ns": None,
         "outcome": "held", "discard_indication": True, "attempts": 255},
    ]  # fmt: skip


def test_each_number_of_an_outcome_in_kernels_has_its_name_in_the_log() -> None:
    """The log's name is the counter's column and what users see: none may move when one is added."""
    names = {
        records.DELIVERED: "delivered", records.DISCARDED: "discarded", records.OUTCOME_ELIDED: "elided",
        records.EXPIRED: "expired", records.DEAD: "dead", records.HELD: "held", records.WAITING: "waiting",
        records.NOT_CONNECTED: "not_connected", records.DISCONNECTED: "disconnected",
        records.SPOOL_REFUSED: "spool_refused", records.INGRESS_REFUSED: "ingress_refused",
        records.TOO_BIG: "too_big", records.REJECTED: "rejected",
    }  # fmt: skip
    rows = np.array([row(outcome=number) for number in names], LOG_ROW)
    assert message_table(rows, "run", QUEUES)["outcome"].to_pylist() == list(names.values())
    assert [OUTCOMES[number].value for number in names] == list(names.values())
    assert len(names) == len(OUTCOMES), "a kernel has a number for each"


@given(st.integers(1, 2**31 - 1))
def test_work_units_are_the_length_over_2048_rounded_up_and_at_least_one(size: int) -> None:
    table = message_table(np.array([row(size_bytes=size)], LOG_ROW), "run", QUEUES)
    assert table["work_units"].to_pylist() == [max(1, -(-size // 2048))]


def test_an_event_without_a_queue_has_none() -> None:
    rows = np.array([(7, 3, -1, -1, 0), (8, 4, 2, 1, 1)], EVENT_ROW)
    table = event_table(rows, "run", QUEUES, ["first", "second"])
    assert table.schema.equals(EVENTS)
    assert table.to_pylist() == [
        {"run_id": "run", "at_ns": 7, "client_id": -1, "queue": None, "event": "first", "value": 3},
        {"run_id": "run", "at_ns": 8, "client_id": 2, "queue": "D-1", "event": "second", "value": 4},
    ]


def test_counters_keep_their_sparse_histograms() -> None:
    columns: dict[str, Any] = {field.name: np.array([1, 2]) for field in COUNTERS}
    columns |= {
        "client": ["a", "b"], "queue": ["D-1", "D-1"], "first_discard_ns": np.array([-1, 5]),
        "histogram_bucket": [np.array([3, 4]), np.array([], np.int32)],
        "histogram_count": [np.array([10, 20]), np.array([], np.int64)],
        **{name: [np.array([], np.int32)] * 2 for name in SINCE_DONE if name.endswith(("bucket", "count"))},
        "done_messages": np.array([-1, 0]),
    }  # fmt: skip
    table = counter_table(columns, "run")
    assert table.schema.equals(COUNTERS)
    table.validate(full=True)
    assert table["client"].to_pylist() == ["a", "b"]
    assert table["first_discard_ns"].to_pylist() == [None, 5]
    assert table["done_messages"].to_pylist() == [None, 0]
    assert table["histogram_bucket"].to_pylist() == [[3, 4], []]
    assert table["histogram_count"].to_pylist() == [[10, 20], []]


@given(st.lists(st.integers(0, 90), max_size=12), st.integers(1, 40))
def test_chunks_are_full_whatever_pieces_the_rows_come_in(pieces: list[int], chunk_rows: int) -> None:
    buffers = ChunkBuffers(2, chunk_rows)
    chunks: list[list[int]] = []
    number = 0
    for piece in pieces:
        rows = np.array([row(enqueued_ns=number + i) for i in range(piece)], LOG_ROW)
        number += piece
        for chunk in buffers.spread(rows):
            chunks.append(chunk["enqueued_ns"].tolist())
            buffers.release(chunk)
    rest = buffers.rest()
    last = [] if rest is None else rest["enqueued_ns"].tolist()
    assert [value for chunk in chunks for value in chunk] + last == list(range(number))
    assert {len(chunk) for chunk in chunks} <= {chunk_rows}
    assert len(last) < chunk_rows


@given(st.integers(0, 2**62))
def test_a_bucket_holds_its_durations_and_is_narrow(duration: int) -> None:
    bucket = bucket_of(duration)
    low, high = bucket_bounds_ns(bucket)
    assert 0 <= bucket < BUCKET_COUNT
    assert low <= duration <= high
    assert high - low <= low / 128
    if low:
        assert bucket_of(low - 1) == bucket - 1


def test_empty_tables_are_valid() -> None:
    assert message_table(np.zeros(0, LOG_ROW), "run", QUEUES).num_rows == 0
    with pytest.raises(KeyError):
        counter_table({"client_id": np.zeros(0)}, "run")
