"""Writes one replication's parts while its model runs on: copies of chunks, a bounded queue, one thread.

Three buffers: one being filled by the model, two waiting or being written, so that memory is bounded and a model is
held back only when the disk is slower. Times are DELTA_BINARY_PACKED, names and small numbers dictionaries. No part
holds a time of day, so that the same run writes the same bytes.
"""

from __future__ import annotations

import hashlib
import queue
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from qsctl.errors import QsctlError
from qsctl.eventlog.run_folder import part_folder
from qsctl.eventlog.schema import COUNTERS, EVENTS, MESSAGES, Outcome

Rows: TypeAlias = npt.NDArray[Any]
"""A structured array of message or event rows, see `message_table` and `event_table`."""

WAITING_CHUNKS: Final = 2
ROW_GROUP_ROWS: Final = 1 << 20
PART_ROW_GROUPS: Final = 16
"""A part closes after this many row groups: a long run becomes a few files, which Spark reads side by side."""

WORK_UNIT_SHIFT: Final = 11
"""2^11 bytes are one work unit (seeds 000, 003, 004)."""

COMPRESSION: Final = "none"
"""Measured on 13 columns: zstd saves 5 % of the bytes of delta-packed times and dictionaries.

Statistics of the row groups halve the speed of writing; only `enqueued_ns` keeps them, the one column that a reader
can skip row groups by."""

_DELTA: Final = {
    "enqueued_ns": "DELTA_BINARY_PACKED",
    "wait_ns": "DELTA_BINARY_PACKED",
    "send_ns": "DELTA_BINARY_PACKED",
    "acknowledge_ns": "DELTA_BINARY_PACKED",
    "topic_id": "DELTA_BINARY_PACKED",
}
_DICTIONARY: Final = frozenset(
    {"run_id", "client_id", "client", "queue", "size_bytes", "work_units", "outcome", "attempts", "event"}
)


def message_table(rows: Rows, run_id: str, queues: Sequence[str]) -> pa.Table:
    """Message rows as a table of `MESSAGES`.

    Args:
        rows: fields enqueued_ns, wait_ns, send_ns, acknowledge_ns (int64, negative for never), client_id, topic_id,
            size_bytes (int32), queue (index into `queues`), outcome (index of `Outcome`), discard_indication, attempts.
        run_id: the run's.
        queues: names of the queues by index.
    """
    sizes = np.ascontiguousarray(rows["size_bytes"])
    work_units = np.maximum(1, (sizes + ((1 << WORK_UNIT_SHIFT) - 1)) >> WORK_UNIT_SHIFT).astype(np.int32)
    return pa.Table.from_arrays(
        [
            _constant(run_id, len(rows)),
            pa.array(np.ascontiguousarray(rows["client_id"])),
            _named(rows["queue"], queues),
            pa.array(np.ascontiguousarray(rows["topic_id"])),
            pa.array(sizes),
            pa.array(work_units),
            pa.array(np.ascontiguousarray(rows["enqueued_ns"])),
            _optional(rows["wait_ns"]),
            _optional(rows["send_ns"]),
            _optional(rows["acknowledge_ns"]),
            _named(rows["outcome"], [outcome.value for outcome in Outcome]),
            pa.array(rows["discard_indication"].astype(np.bool_)),
            pa.array(rows["attempts"].astype(np.int16)),
        ],
        schema=MESSAGES,
    )


def event_table(rows: Rows, run_id: str, queues: Sequence[str], events: Sequence[str]) -> pa.Table:
    """Event rows (at_ns, value, client_id, queue or -1, event) as a table of `EVENTS`."""
    return pa.Table.from_arrays(
        [
            _constant(run_id, len(rows)),
            pa.array(np.ascontiguousarray(rows["at_ns"])),
            pa.array(np.ascontiguousarray(rows["client_id"])),
            _named(rows["queue"], queues),
            _named(rows["event"], events),
            pa.array(np.ascontiguousarray(rows["value"])),
        ],
        schema=EVENTS,
    )


def counter_table(columns: Mapping[str, Any], run_id: str) -> pa.Table:
    """A model's counters as a table of `COUNTERS`: one row a client and queue."""
    rows = len(columns["client_id"])
    arrays = []
    for field in COUNTERS:
        if field.name == "run_id":
            arrays.append(_constant(run_id, rows))
        elif field.name == "first_discard_ns":
            arrays.append(_optional(np.asarray(columns[field.name], dtype=np.int64)))
        elif pa.types.is_dictionary(field.type):
            arrays.append(pa.array(list(columns[field.name]), pa.string()).dictionary_encode().cast(field.type))
        elif pa.types.is_list(field.type):
            arrays.append(_lists(columns[field.name], field.type))
        else:
            arrays.append(pa.array(np.asarray(columns[field.name]).astype(field.type.to_pandas_dtype())))
    return pa.Table.from_arrays(arrays, schema=COUNTERS)


def _constant(text: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([text]))


def _named(indexes: npt.NDArray[Any], names: Sequence[str]) -> pa.Array:
    numbers = indexes.astype(np.int32)
    mask = numbers < 0 if indexes.dtype.kind == "i" else None
    return pa.DictionaryArray.from_arrays(pa.array(numbers, mask=mask), pa.array(list(names), pa.string()))


def _optional(values: npt.NDArray[Any]) -> pa.Array:
    numbers = np.ascontiguousarray(values)
    never = numbers < 0
    return pa.array(numbers, mask=never if never.any() else None)


def _lists(values: Sequence[npt.NDArray[Any]], kind: pa.DataType) -> pa.Array:
    offsets = np.zeros(len(values) + 1, np.int32)
    offsets[1:] = np.cumsum([len(each) for each in values])
    flat = np.concatenate([np.asarray(each) for each in values]) if len(values) else np.empty(0)
    return pa.ListArray.from_arrays(offsets, pa.array(flat.astype(kind.value_type.to_pandas_dtype()), kind.value_type))


class PartWriter:
    """The parts of one table and replication, closed one after another. Not safe for two threads at once."""

    def __init__(self, folder: Path, table: str, replication: int, schema: pa.Schema) -> None:
        self._folder = part_folder(folder, table, replication)
        self._schema = schema
        self._numbers = 0
        self._groups = 0
        self._writer: pq.ParquetWriter | None = None
        self.rows = 0
        self.digests: dict[str, str] = {}
        """BLAKE2b of each finished part, by its path within the run folder."""
        self._root = folder

    def write(self, table: pa.Table) -> None:
        """Append as one row group; opens and closes parts as needed."""
        if self._writer is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            names = [field.name for field in self._schema]
            self._writer = pq.ParquetWriter(
                self._hidden,
                self._schema,
                compression=COMPRESSION,
                use_dictionary=[name for name in names if name in _DICTIONARY],
                column_encoding={name: kind for name, kind in _DELTA.items() if name in names} or None,
                write_statistics=["enqueued_ns"] if self._schema is MESSAGES else True,
                data_page_size=1 << 20,
            )
        self._writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        self.rows += table.num_rows
        self._groups += -(-table.num_rows // ROW_GROUP_ROWS)
        if self._groups >= PART_ROW_GROUPS:
            self.close()

    @property
    def _hidden(self) -> Path:
        return self._folder / f".part-{self._numbers:05}.parquet.tmp"

    def close(self) -> None:
        """Finish the part in hand, if there is one, and give it its name."""
        if self._writer is None:
            return
        self._writer.close()
        self._writer = None
        final = self._folder / f"part-{self._numbers:05}.parquet"
        self._hidden.replace(final)
        with final.open("rb") as file:
            self.digests[str(final.relative_to(self._root))] = hashlib.file_digest(file, "blake2b").hexdigest()
        self._numbers += 1
        self._groups = 0


class ReplicationWriter:
    """Takes chunks from a running model and writes them in a thread of its own.

    Used in a `with` statement: leaving it waits for the thread and closes the parts, also after an error.
    """

    def __init__(
        self, folder: Path, replication: int, run_id: str, queues: Sequence[str], events: Sequence[str] = ()
    ) -> None:
        self._run_id = run_id
        self._queues = list(queues)
        self._event_names = list(events)
        self._messages = PartWriter(folder, "messages", replication, MESSAGES)
        self._events = PartWriter(folder, "events", replication, EVENTS)
        self._counters = PartWriter(folder, "counters", replication, COUNTERS)
        self._waiting: queue.Queue[tuple[PartWriter, Rows] | None] = queue.Queue(WAITING_CHUNKS)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="event-log", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if self._failure is not None and error is None:
            raise self._written_error() from self._failure

    def messages(self, rows: Rows) -> None:
        """Queue message rows; waits while two chunks wait already. The rows may change afterwards."""
        self._put(self._messages, rows)

    def events(self, rows: Rows) -> None:
        """Queue event rows."""
        self._put(self._events, rows)

    def counters(self, columns: Mapping[str, Any]) -> pa.Table:
        """Write the counters, at the end of a replication; returns the table written."""
        table = counter_table(columns, self._run_id)
        self._counters.write(table)
        return table

    @property
    def message_rows(self) -> int:
        """Message rows written; final after the `with` statement."""
        return self._messages.rows

    @property
    def event_rows(self) -> int:
        """Event rows written; final after the `with` statement."""
        return self._events.rows

    @property
    def digests(self) -> dict[str, str]:
        """BLAKE2b of each finished part, by its path within the run folder."""
        return self._messages.digests | self._events.digests | self._counters.digests

    def close(self) -> None:
        """Wait for the thread and finish the parts; a second call does nothing."""
        if self._thread.is_alive():
            self._waiting.put(None)
            self._thread.join()
        for parts in (self._messages, self._events, self._counters):
            try:
                parts.close()
            except (OSError, pa.ArrowException) as failure:
                self._failure = self._failure or failure

    def _put(self, parts: PartWriter, rows: Rows) -> None:
        if self._failure is not None:
            raise self._written_error() from self._failure
        if len(rows):
            self._waiting.put((parts, rows.copy()))

    def _work(self) -> None:
        while (item := self._waiting.get()) is not None:
            parts, rows = item
            if self._failure is not None:
                continue  # the queue must not block the model until it is told
            try:
                if parts is self._messages:
                    table = message_table(rows, self._run_id, self._queues)
                else:
                    table = event_table(rows, self._run_id, self._queues, self._event_names)
                parts.write(table)
            except (OSError, pa.ArrowException) as failure:
                self._failure = failure

    def _written_error(self) -> QsctlError:
        assert self._failure is not None
        return QsctlError(
            f"the event log cannot be written: {self._failure}",
            remedy="Free space or choose another folder with --out; at level counters nothing large is written.",
        )
