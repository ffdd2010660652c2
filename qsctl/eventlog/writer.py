"""The writer of one replication's parts while its model runs: chunks of columns, encoded in one thread.

What a row of the messages costs, in ns of the processor, where one message takes 75 to be drawn and simulated without a
log (4 × 10^6 messages to one port): 2 to 5 in the kernel, which stores 60 bytes; 22 to spread it into columns, beside
the model; 15 to make columns of Arrow and 105 to encode them, in this thread: 4 to 10 for each of 14 columns, however
few bits they come to; 10 for the checksum. So a replication of cheap messages waits for this thread: with the log it
takes 2.2 times as long on two processors, and 1.4 times where a message takes 150 ns, of links that lose. Rows of
24 bytes in the kernel, packed there and widened here, were slower: its stores are not what the log costs, and what
could be derived from the arrivals is written to the file all the same.

Three sets of columns: one being filled, two waiting or being written, so that memory is bounded and a model is
held back only when the disk is slower. Times are DELTA_BINARY_PACKED, names and small numbers dictionaries. No part
holds a time of day, so that the same run writes the same bytes.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from qsctl.errors import QsctlError
from qsctl.eventlog.columns import ChunkBuffers, Rows, counter_table, event_table, message_table
from qsctl.eventlog.described import stored, with_durations
from qsctl.eventlog.location import Location, RemotePath, move, parquet_sink, path_within
from qsctl.eventlog.recording.rows import TableRows
from qsctl.eventlog.recording.schema import REPLAY_TABLES
from qsctl.eventlog.recording.tables import table_of
from qsctl.eventlog.run_folder import FileInfo, describe_part, part_folder
from qsctl.eventlog.schema import COUNTERS, EVENTS, MESSAGES

WAITING_CHUNKS: Final = 2
ROW_GROUP_ROWS: Final = 1 << 17
"""Few enough that a chunk's columns stay in the caches, that their memory is used again instead of paged in, and that
the first chunk is written soon: with 2^20 rows a replication of a million messages took half as long again, one of four
million a tenth, and 150 MB more. A row takes 1 % more bytes on the disk."""
EVENT_GROUP_ROWS: Final = 1 << 16
TABLE_GROUP_ROWS: Final = 1 << 17
PART_ROW_GROUPS: Final = 128
"""A part closes after this many row groups: a long run becomes a few files, which Spark reads side by side."""

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
    **dict.fromkeys(
        ("step", "sequence_number", "sent_ns", "answered_ns", "answered_step", "late_ns", "late_step"),
        "DELTA_BINARY_PACKED",
    ),
}
SIZES_SEEN: Final = 1 << 14
FEW_SIZES: Final = 256
"""Different sizes of the first messages of a part up to which a dictionary is smaller, and no slower: each message is
looked up in it. Of 2,000 sizes that takes 20 ns, and a difference 9 ns."""
_DICTIONARY: Final = frozenset(
    {
        "run_id",
        "client_id",
        "client",
        "queue",
        "enter_ns",
        "size_bytes",
        "work_units",
        "outcome",
        "attempts",
        "event",
        "producer",
        "origin",
        "lifespan_ns",
        "address",
        "answer",
        "reason",
        "attempt",
        "consumer",
        "happening",
        "participant",
        "topic",
        "command",
    }
)


class PartWriter:
    """The parts of one table and replication, closed one after another. Not safe for two threads at once."""

    def __init__(self, folder: Location, table: str, replication: int, schema: pa.Schema) -> None:
        self._folder = part_folder(folder, table, replication)
        self._schema = schema
        self._numbers = 0
        self._groups = 0
        self._writer: pq.ParquetWriter | None = None
        self._sink: Any = None
        self._part_rows = 0
        self.rows = 0
        self.files: dict[str, FileInfo] = {}
        """Each finished part, by its path within the run folder."""
        self._root = folder

    def write(self, table: pa.Table) -> None:
        """Append a table as one row group, opening and closing parts as needed."""
        if self._writer is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            names = [field.name for field in self._schema]
            encodings = dict(_DELTA)
            if "size_bytes" in names and _differ_much(table["size_bytes"]):
                encodings["size_bytes"] = "DELTA_BINARY_PACKED"
            self._sink = parquet_sink(self._hidden)
            self._writer = pq.ParquetWriter(
                self._sink,
                stored(self._schema),
                compression=COMPRESSION,
                use_dictionary=[name for name in names if name in _DICTIONARY and name not in encodings],
                column_encoding={name: kind for name, kind in encodings.items() if name in names} or None,
                write_statistics=["enqueued_ns"] if self._schema is MESSAGES else True,
                data_page_size=1 << 20,
                write_page_checksum=True,
            )
        self._writer.write_table(with_durations(table), row_group_size=ROW_GROUP_ROWS)
        self.rows += table.num_rows
        self._part_rows += table.num_rows
        self._groups += -(-table.num_rows // ROW_GROUP_ROWS)
        if self._groups >= PART_ROW_GROUPS:
            self.close()

    @property
    def open_bytes(self) -> int:
        """Return the octets of the open part that were written to the operating system."""
        if self._writer is None or isinstance(self._hidden, RemotePath):
            return 0
        return self._hidden.stat().st_size

    @property
    def _hidden(self) -> Location:
        return self._folder / f".part-{self._numbers:05}.parquet.tmp"

    def begin(self) -> None:
        """Begin a part without rows if no part exists, so that a reader finds the table."""
        if self._numbers == 0 and self._writer is None:
            self.write(self._schema.empty_table())

    def close(self) -> None:
        """Finish the open part, if any, and rename it to its name."""
        if self._writer is None:
            return
        self._writer.close()
        self._writer = None
        if isinstance(self._hidden, RemotePath):
            self._sink.close()
        final = self._folder / f"part-{self._numbers:05}.parquet"
        move(self._hidden, final)
        self.files[path_within(self._root, final)] = describe_part(final, self._part_rows)
        self._part_rows = 0
        self._numbers += 1
        self._groups = 0


def _differ_much(sizes: pa.ChunkedArray) -> bool:
    """Return whether the first sizes have more than `FEW_SIZES` values; nulls count as one."""
    first = sizes.slice(0, SIZES_SEEN).combine_chunks().to_numpy(zero_copy_only=False)
    return len(np.unique(first)) > FEW_SIZES


class ReplicationWriter:
    """A writer that accepts chunks from a running model and writes them in a separate thread.

    To be used in a `with` statement, which waits for the thread and closes the parts at its end, also after an error.

    Args:
        folder: the run's folder.
        replication: the replication's number.
        run_id: the run's id.
        queues: the queues' names by number.
        events: the events' names by number.
        always: the tables that have a part even without rows.
    """

    def __init__(
        self,
        folder: Location,
        replication: int,
        run_id: str,
        queues: Sequence[str],
        events: Sequence[str] = (),
        always: Iterable[str] = (),
    ) -> None:
        self._run_id = run_id
        self._queues = list(queues)
        self._event_names = list(events)
        self._messages = PartWriter(folder, "messages", replication, MESSAGES)
        self._events = PartWriter(folder, "events", replication, EVENTS)
        self._counters = PartWriter(folder, "counters", replication, COUNTERS)
        self._tables = {"messages": self._messages, "events": self._events} | {
            name: PartWriter(folder, name, replication, schema) for name, schema in REPLAY_TABLES.items()
        }
        self._always = tuple(always)
        self._rows = {name: TableRows() for name in self._tables}
        self._buffers = {
            self._messages: ChunkBuffers(WAITING_CHUNKS + 1, ROW_GROUP_ROWS),
            self._events: ChunkBuffers(WAITING_CHUNKS + 1, EVENT_GROUP_ROWS),
        }
        self._waiting: queue.SimpleQueue[tuple[PartWriter, dict[str, npt.NDArray[Any]]] | None] = queue.SimpleQueue()
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
        """Accept message rows, which may change afterwards; waits while two full chunks wait already."""
        self._put(self._messages, rows)

    def events(self, rows: Rows) -> None:
        """Accept event rows."""
        self._put(self._events, rows)

    def tables(self, rows: Mapping[str, TableRows]) -> None:
        """Accept rows that `recording.fold` made, by table; those of `messages` and `events` come here or as arrays."""
        for name, each in rows.items():
            self._rows[name].append_all(each)
            if len(self._rows[name]) >= TABLE_GROUP_ROWS:
                self._write_rows(name)

    def _write_rows(self, name: str) -> None:
        rows, self._rows[name] = self._rows[name], TableRows()
        if not rows:
            return
        try:
            self._tables[name].write(table_of(name, rows, self._run_id))
        except (OSError, pa.ArrowException) as failure:
            self._failure = failure
            raise self._written_error() from failure

    def counters(self, columns: Mapping[str, Any]) -> pa.Table:
        """Write the counters, at the end of a replication; return the written table."""
        table = counter_table(columns, self._run_id)
        self._counters.write(table)
        return table

    @property
    def message_rows(self) -> int:
        """The number of message rows written; final after the `with` statement."""
        return self._messages.rows

    @property
    def event_rows(self) -> int:
        """The number of event rows written; final after the `with` statement."""
        return self._events.rows

    @property
    def files(self) -> dict[str, FileInfo]:
        """The finished parts, by their path within the run folder."""
        files = dict(self._counters.files)
        for parts in self._tables.values():
            files |= parts.files
        return files

    def close(self) -> None:
        """Write the remaining rows, wait for the thread and finish the parts; further calls do nothing."""
        if self._thread.is_alive():
            for parts, buffers in self._buffers.items():
                rest = buffers.rest()
                if rest is not None:
                    self._waiting.put((parts, rest))
            self._waiting.put(None)
            self._thread.join()
        for name in self._tables if self._failure is None else ():
            self._write_rows(name)
        for name in self._always if self._failure is None else ():
            try:
                self._tables[name].begin()
            except (OSError, pa.ArrowException) as failure:
                self._failure = failure
        for parts in (*self._tables.values(), self._counters):
            try:
                parts.close()
            except (OSError, pa.ArrowException) as failure:
                self._failure = self._failure or failure

    def _put(self, parts: PartWriter, rows: Rows) -> None:
        if self._failure is not None:
            raise self._written_error() from self._failure
        for chunk in self._buffers[parts].spread(rows):
            self._waiting.put((parts, chunk))

    def _work(self) -> None:
        while (item := self._waiting.get()) is not None:
            parts, columns = item
            try:
                if self._failure is not None:
                    continue  # the model must not wait for a buffer until it notices
                if parts is self._messages:
                    table = message_table(columns, self._run_id, self._queues)
                else:
                    table = event_table(columns, self._run_id, self._queues, self._event_names)
                parts.write(table)
            except (OSError, pa.ArrowException) as failure:
                self._failure = failure
            finally:
                self._buffers[parts].release(columns)

    def _written_error(self) -> QsctlError:
        assert self._failure is not None
        return QsctlError(
            f"the event log cannot be written: {self._failure}",
            remedy="Free space or choose another folder with --out; at level counters nothing large is written.",
        )
