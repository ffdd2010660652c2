"""The conversion of a model's rows to tables: structured arrays to columns, numbers to names, negative to null."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qsctl.eventlog.schema import COUNTERS, EVENTS, MESSAGES, Outcome

Rows: TypeAlias = npt.NDArray[Any]
"""A structured array of message or event rows, see `message_table` and `event_table`."""

_BLOCK_ROWS: Final = 1 << 14
"""Rows that stay in a processor's cache while their fields are spread."""

WORK_UNIT_SHIFT: Final = 11
"""2^11 bytes are one work unit [SOL-QUEUES], [P7500]."""


class ChunkBuffers:
    """Buffers that a model's rows are copied into as columns; each is passed on when it is full, and then reused.

    Rows are copied block by block, so that a block is read from memory once for all of its fields: three times as fast
    as copying the structured array, and the writer needs columns in any case. All chunks but the last are full, however
    the model divides its rows, so that the same run writes the same row groups.
    """

    def __init__(self, count: int, chunk_rows: int) -> None:
        self._free: queue.SimpleQueue[dict[str, npt.NDArray[Any]]] = queue.SimpleQueue()
        for _ in range(count):
            self._free.put({})
        self._chunk_rows = chunk_rows
        self._current: dict[str, npt.NDArray[Any]] | None = None
        self._filled = 0

    def spread(self, rows: Rows) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """Copy rows in, and yield each chunk that became full. Waits while the writer has all buffers."""
        copied = 0
        while copied < len(rows):
            if self._current is None:
                self._current = self._set(rows)
                self._filled = 0
            count = min(len(rows) - copied, self._chunk_rows - self._filled, _BLOCK_ROWS)
            block = rows[copied : copied + count]
            for name, column in self._current.items():
                column[self._filled : self._filled + count] = block[name]
            copied += count
            self._filled += count
            if self._filled == self._chunk_rows:
                full, self._current = self._current, None
                yield full

    def rest(self) -> dict[str, npt.NDArray[Any]] | None:
        """Return the rows of the last chunk, which is not full, or None."""
        current, self._current = self._current, None
        return None if current is None else {name: column[: self._filled] for name, column in current.items()}

    def release(self, columns: dict[str, npt.NDArray[Any]]) -> None:
        """Return a chunk's buffers for reuse, after the writer has finished with them."""
        self._free.put(columns)

    def _set(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        columns = self._free.get()
        names = rows.dtype.names or ()
        if tuple(columns) != names or len(columns[names[0]]) != self._chunk_rows:
            columns = {name: np.empty(self._chunk_rows, rows.dtype[name]) for name in names}
        return columns


def message_table(rows: Rows | Mapping[str, npt.NDArray[Any]], run_id: str, queues: Sequence[str]) -> pa.Table:
    """Return message rows as a table of `MESSAGES`.

    Args:
        rows: a structured array or columns: enqueued_ns, enter_ns, wait_ns, send_ns, acknowledge_ns (int64, negative
            for never), client_id, topic_id, size_bytes (int32), queue (index into `queues`), outcome (index of
            `Outcome`), discard_indication, attempts.
        run_id: the run's.
        queues: names of the queues by index.
    """
    sizes = rows["size_bytes"]
    work_units = np.maximum(1, ((sizes - 1) >> WORK_UNIT_SHIFT) + 1)
    arrays = [
        _constant(run_id, len(sizes)),
        _numbers(rows["client_id"], pa.int32()),
        _named(rows["queue"], queues),
        _numbers(rows["topic_id"], pa.int32()),
        _numbers(sizes, pa.int32()),
        _numbers(work_units, pa.int32()),
        _numbers(rows["enqueued_ns"], pa.int64()),
        _optional(rows["enter_ns"]),
        _optional(rows["wait_ns"]),
        _optional(rows["send_ns"]),
        _optional(rows["acknowledge_ns"]),
        _named(rows["outcome"], [outcome.value for outcome in Outcome]),
        _booleans(rows["discard_indication"]),
        _numbers(rows["attempts"], pa.int16()),
    ]
    return pa.Table.from_arrays(arrays, schema=MESSAGES)


def event_table(
    rows: Rows | Mapping[str, npt.NDArray[Any]], run_id: str, queues: Sequence[str], events: Sequence[str]
) -> pa.Table:
    """Return event rows (at_ns, value, client_id, queue or -1, event) as a table of `EVENTS`."""
    arrays = [
        _constant(run_id, len(rows["at_ns"])),
        _numbers(rows["at_ns"], pa.int64()),
        _numbers(rows["client_id"], pa.int32()),
        _named(rows["queue"], queues),
        _named(rows["event"], events),
        _numbers(rows["value"], pa.int64()),
    ]
    return pa.Table.from_arrays(arrays, schema=EVENTS)


def counter_table(columns: Mapping[str, Any], run_id: str) -> pa.Table:
    """Return a model's counters as a table of `COUNTERS`, with a row for each client and queue."""
    arrays = []
    for field in COUNTERS:
        if field.name == "run_id":
            arrays.append(_constant(run_id, len(columns["client_id"])))
        elif field.nullable:
            arrays.append(_optional(np.asarray(columns[field.name], dtype=np.int64)))
        elif pa.types.is_dictionary(field.type):
            arrays.append(_texts_by_number(columns[field.name]))
        elif pa.types.is_list(field.type):
            arrays.append(_lists(columns[field.name], field.type))
        else:
            arrays.append(_numbers(np.asarray(columns[field.name]), field.type))
    return pa.Table.from_arrays(arrays, schema=COUNTERS)


# Arrays are made from their buffers: `pa.array` imports pandas, which is slower than a small simulation.


def _numbers(values: npt.NDArray[Any], kind: pa.DataType, valid: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    data = np.ascontiguousarray(values, dtype=str(kind))
    present = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(data), [present, pa.py_buffer(data)])


def _optional(values: npt.NDArray[Any]) -> pa.Array:
    valid = values >= 0
    return _numbers(values, pa.int64(), None if valid.all() else valid)


def _booleans(values: npt.NDArray[Any]) -> pa.Array:
    bits = np.packbits(values.astype(np.bool_), bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])


def _texts(texts: Sequence[str]) -> pa.Array:
    encoded = [str(text).encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int32)
    offsets[1:] = np.cumsum([len(text) for text in encoded])
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


def _named(indexes: npt.NDArray[Any], names: Sequence[str]) -> pa.Array:
    valid = indexes >= 0 if indexes.dtype.kind == "i" else None
    if valid is not None and valid.all():
        valid = None
    numbers = indexes if valid is None else np.where(valid, indexes, 0)
    return pa.DictionaryArray.from_arrays(_numbers(numbers, pa.int32(), valid), _texts(names))


def _texts_by_number(texts: Sequence[str]) -> pa.Array:
    numbers: dict[str, int] = {}
    indexes = np.array([numbers.setdefault(str(text), len(numbers)) for text in texts], np.int32)
    return pa.DictionaryArray.from_arrays(_numbers(indexes, pa.int32()), _texts(list(numbers)))


def _constant(text: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(_numbers(np.zeros(count, np.int32), pa.int32()), _texts([text]))


def _lists(values: Sequence[npt.NDArray[Any]], kind: pa.DataType) -> pa.Array:
    offsets = np.zeros(len(values) + 1, np.int32)
    offsets[1:] = np.cumsum([len(each) for each in values])
    flat = np.concatenate([np.asarray(each) for each in values]) if len(values) else np.empty(0)
    return pa.ListArray.from_arrays(_numbers(offsets, pa.int32()), _numbers(flat, kind.value_type))
