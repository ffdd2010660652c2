"""`spark.readStream.format("qsctl").load(recording)`: the rows of a recording in progress, part by part.

In: a recording's folder, to which its recorder adds closed parts. Out: the rows of one table, with constant facts of
the run, and a timestamp for each instant.

An offset is the number of parts that `run.json` lists of the table, with the recording's identifier and a checksum over
the names and checksums of these parts. A part is listed once it is closed and is never changed, so the rows between two
offsets are the same however often they are read: with a checkpoint and an idempotent sink, each row is delivered
exactly once. Parts that are not listed, such as an open part or one that a killed recorder left, are not read, as in a
summary. The offset contains no path: a stream continues after its recording was moved, and refuses a new recording
under the same name.

Tasks read Parquet by pyarrow. Spark passes neither the needed columns nor the filters of a streaming query to a Python
source; the option `columns`, or a schema with some of the columns, omits the others.
"""

from __future__ import annotations

import dataclasses
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import (
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from qsctl.errors import Damaged, InvalidInput, UsageError
from qsctl.eventlog.checked_files import RESTORE, ListedFile
from qsctl.eventlog.described import TimeKind, as_numbers, description_of, time_of
from qsctl.eventlog.location import Location, parquet_source
from qsctl.eventlog.run_folder import RUN_FILE, FileInfo, Recording, RunInfo, fingerprint_of, read_run_info
from qsctl.eventlog.schema import LogLevel
from qsctl.eventlog.tables import LOG_TABLES, tables_of_level
from qsctl.instant import Nanoseconds
from qsctl.summary.spark._shown_remedies import remedies_shown

TABLE: Final = "messages"
"""The default table of a stream."""
STREAMED: Final = tuple(name for name in LOG_TABLES if name != "counters")
"""The tables that only grow; counters are not among them, since they are rewritten with each part."""

ROWS_A_TASK: Final = 1 << 18
"""Approximate number of rows of a task: a task has an overhead of 50 ms, and a query over a past day has 1,440
parts.
"""

Offset: TypeAlias = dict[str, Any]
"""The content of a checkpoint: `recording`, the identifier; `parts`, their number; `checksum`, a checksum over them."""

_MOMENT: Final = pa.timestamp("us", "UTC")
_REPLICATION: Final = 0
"""The number of a recording's only replication."""


def stream_schema(table: str, columns: str = "") -> StructType:
    """Return the schema of a table's stream.

    It has the columns of the table (`qsctl help reference-event-log`), `replication`, `started_at`, the timestamp of
    instant 0, and for each instant a timestamp to the microsecond, such as `enqueued_time` for `enqueued_ns`.

    Args:
        table: name of a table of the recording.
        columns: names separated by commas, in the order of the result; empty: all.

    Raises:
        UsageError: the table or a column does not exist.
    """
    if table not in STREAMED:
        reason = ": they are written anew with each part" if table == "counters" else ""
        raise UsageError(
            f"there is no stream of the table {table!r}{reason}", remedy=f"Use one of {', '.join(STREAMED)}."
        )
    fields = {
        field.name: StructField(field.name, _spark_type(field.type), metadata={"comment": description_of(field)})
        for field in LOG_TABLES[table]
    }
    fields["replication"] = StructField("replication", IntegerType())
    for name in ("started_at", *_times(table)):
        fields[name] = StructField(name, TimestampType())
    if not columns:
        return StructType([*fields.values()])
    wanted = [name.strip() for name in columns.split(",")]
    for name in wanted:
        if name not in fields:
            raise UsageError(
                f"the table {table} has no column {name!r}", remedy=f"Name some of {', '.join(fields)}, by commas."
            )
    return StructType([fields[name] for name in dict.fromkeys(wanted)])


def check_columns(table: str, schema: StructType) -> None:
    """Validate the columns of a schema given by a program.

    Raises:
        UsageError: the table lacks a column, or has it with another type.
    """
    known = {field.name: field.dataType for field in stream_schema(table).fields}
    for field in schema.fields:
        if field.name not in known:
            raise UsageError(
                f"the table {table} has no column {field.name!r}", remedy=f"The schema may have {', '.join(known)}."
            )
        if field.dataType != known[field.name]:
            raise UsageError(
                f"column {field.name} of the table {table} is a {known[field.name].simpleString()}, "
                f"the schema has a {field.dataType.simpleString()}",
                remedy="Leave out the schema and name the columns by the option columns, or correct the type.",
            )


def _spark_type(kind: pa.DataType) -> DataType:
    if pa.types.is_int64(kind):
        return LongType()
    if pa.types.is_int32(kind):
        return IntegerType()
    return BooleanType() if pa.types.is_boolean(kind) else StringType()


def _times(table: str) -> dict[str, str]:
    """Return the names of the timestamp columns, each with the name of its instant's column."""
    instants = [field.name for field in LOG_TABLES[table] if time_of(field) is TimeKind.INSTANT]
    return {f"{name.removesuffix('_ns')}_time": name for name in instants}


@dataclasses.dataclass(frozen=True)
class PartSlice:
    """A slice of one part: the row groups whose number leaves the remainder `place` when divided by `slices`."""

    path: Location
    info: FileInfo
    started_at_ns: Nanoseconds
    place: int
    slices: int


@dataclasses.dataclass(frozen=True)
class SlicesOfTask(InputPartition):
    """The slices that one task reads: one slice of a large part, or several small parts."""

    slices: Sequence[PartSlice]


class RecordingStream(DataSourceStreamReader):
    """A stream of the parts of one table of a recording, of which each trigger reads all new ones.

    Args:
        folder: the recording's folder, an absolute path or a URI that every executor can access.
        table: one of `STREAMED`.
        columns: names of the columns of the rows, in their order.

    Raises:
        NotFound: the folder is not a run folder.
        Damaged: its `run.json` was changed.
        InvalidInput: it is not a recording, or its level lacks the table.
    """

    def __init__(self, folder: Location, table: str, columns: Sequence[str]) -> None:
        self._folder = folder
        self._table = table
        self._columns = tuple(columns)
        self._listed()

    @remedies_shown()
    def initialOffset(self) -> Offset:  # noqa: N802
        """Return the offset before the first part."""
        return self._listed().offset(0)

    @remedies_shown()
    def latestOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802
        """Return the offset after the last listed part; Spark before 4.2 calls the method without arguments."""
        return self._listed().offset()

    @remedies_shown()
    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return the tasks that read the parts between two offsets.

        Raises:
            InvalidInput: the folder holds another recording than the offsets refer to, or an older copy.
        """
        listed = self._listed()
        first, last = listed.checked(start), listed.checked(end)
        return tasks_of(listed, first, last)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task.

        Raises:
            Damaged: the part is missing here, cannot be read, or was changed.
        """
        assert isinstance(partition, SlicesOfTask)
        with remedies_shown():
            for each in partition.slices:
                yield from slice_rows(each, self._table, self._columns)

    def _listed(self) -> ListedParts:
        """Read the parts that the recording's `run.json` lists now."""
        return listed_parts_of(self._folder, self._table)


@dataclasses.dataclass(frozen=True)
class ListedParts:
    """The closed parts of one table of a recording, in their order."""

    folder: Location
    recording: str
    started_at_ns: Nanoseconds
    parts: Sequence[tuple[str, FileInfo]]

    def offset(self, count: int | None = None) -> Offset:
        """Return the offset after the first `count` parts, or after all."""
        count = len(self.parts) if count is None else count
        return {"recording": self.recording, "parts": count, "checksum": fingerprint_of(dict(self.parts[:count]))}

    def checked(self, offset: Mapping[str, Any]) -> int:
        """Return the number of parts of an offset, after a check that it refers to this recording.

        Raises:
            InvalidInput: the offset refers to another recording, or to other parts.
        """
        count = offset.get("parts")
        anew = "Read it with a new checkpoint location, or give the query the recording that it began with."
        if type(count) is not int or count < 0:
            raise InvalidInput(f"the checkpoint's offset {dict(offset)} is not of a recording", remedy=anew)
        if offset.get("recording") != self.recording:
            raise InvalidInput(
                f"{self.folder} holds the recording {self.recording}; this query has read {count} parts of the "
                f"recording {offset.get('recording')}, which was there before",
                remedy=anew,
            )
        if count > len(self.parts):
            raise InvalidInput(
                f"{self.folder} lists {len(self.parts)} parts; this query has read {count} of this recording: "
                "it is an older copy",
                remedy="Wait until the copy is complete, or name the folder that is written.",
            )
        if offset != self.offset(count):
            raise InvalidInput(
                f"the first {count} parts of {self.folder} are not those that this query has read", remedy=anew
            )
        return count


def listed_parts_of(folder: Location, table: str) -> ListedParts:
    """Read the closed parts of a table of a recording that its `run.json` lists now.

    Raises:
        NotFound: the folder is not a run folder.
        Damaged: its `run.json` was changed.
        InvalidInput: it is not a recording, or its level lacks the table.
    """
    info = read_run_info(folder)
    recording = _recording_of(folder, info)
    if table not in tables_of_level(LogLevel(info.log_level), replays=True):
        raise InvalidInput(
            f"{folder} is a recording at level {info.log_level}, which has no table {table}",
            remedy="Record with --level events, or --level messages for all tables but events.",
        )
    part = re.compile(rf"{table}/replication={_REPLICATION}/part-([0-9]{{1,9}})\.parquet")
    found = {int(name[1]): (name[0], file) for each, file in info.files.items() if (name := part.fullmatch(each))}
    return ListedParts(folder, info.run_id, recording.started_at_ns, [found[number] for number in sorted(found)])


def _recording_of(folder: Location, info: RunInfo) -> Recording:
    if not info.recording:
        raise InvalidInput(
            f"{folder} is a simulated run, which does not grow part by part",
            remedy="Read it with qsctl.summary.read_runs(spark, [folder]).",
        )
    return info.recording


def tasks_of(listed: ListedParts, first: int, last: int) -> list[SlicesOfTask]:
    """Return the tasks that read the parts from index `first` to index `last`."""
    tasks: list[SlicesOfTask] = []
    together: list[PartSlice] = []
    rows = 0
    for name, info in listed.parts[first:last]:
        slices = -(-info.rows // ROWS_A_TASK)
        mine = [PartSlice(listed.folder / name, info, listed.started_at_ns, place, slices) for place in range(slices)]
        if slices > 1:
            tasks += [SlicesOfTask((each,)) for each in mine]
            continue
        if together and rows + info.rows > ROWS_A_TASK:
            tasks.append(SlicesOfTask(tuple(together)))
            together, rows = [], 0
        together += mine
        rows += info.rows
    return [*tasks, SlicesOfTask(tuple(together))] if together else tasks


def slice_rows(part: PartSlice, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some row groups of a part, with the checksum of each page verified.

    Raises:
        Damaged: the part is missing here, cannot be read, or was changed.
    """
    import pyarrow.parquet as pq

    try:
        ListedFile(part.path, _REPLICATION, part.info).check_footer()
        with pq.ParquetFile(parquet_source(part.path), page_checksum_verification=True) as file:
            groups = range(part.place, file.num_row_groups, part.slices)
            stored = _stored_columns(table, columns, file.schema_arrow.names)
            for batch in file.iter_batches(row_groups=[*groups], columns=stored):
                yield _row_batch(as_numbers(batch), part.started_at_ns, table, columns)
    except (OSError, pa.ArrowException) as error:
        raise Damaged(
            f"{part.path} cannot be read on {socket.gethostname()}, or was changed after it was written: {error}; "
            f"{RUN_FILE} lists it",
            remedy=f"{RESTORE} Every executor must see the folder.",
        ) from None


def _stored_columns(table: str, columns: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns of a file from which rows are made; at least one, to count the rows."""
    times = _times(table)
    wanted = {times.get(name, name) for name in columns}
    return [name for name in names if name in wanted] or [*names[:1]]


def _row_batch(batch: pa.RecordBatch, started_at_ns: Nanoseconds, table: str, columns: Sequence[str]) -> pa.RecordBatch:
    """Return rows with these columns, in the types that Spark reads."""
    import pyarrow.compute as pc

    count = batch.num_rows
    times = _times(table)
    made = []
    for name in columns:
        if name == "replication":
            made.append(pa.repeat(pa.scalar(_REPLICATION, pa.int32()), count))
        elif name == "started_at":
            made.append(pa.repeat(pa.scalar(started_at_ns // 1000, pa.int64()), count).cast(_MOMENT))
        elif name in times:
            unix_ns = pc.add(batch[times[name]], pa.scalar(started_at_ns, pa.int64()))
            made.append(pc.divide(unix_ns, 1000).cast(_MOMENT))
        else:
            column = batch[name]
            made.append(column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column)
    return pa.RecordBatch.from_arrays(made, names=[*columns])
