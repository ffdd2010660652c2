"""The reader of a run folder: `run.json`, counters, and rows in batches; any damage is one error.

A partial run is read like a complete one; `info.status` shows which it is. Of a run that was killed, only finished
replications are read. Each file is compared with its checksum before its first row is returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qsctl.errors import Damaged, NotFound
from qsctl.eventlog.checked_files import RESTORE, listed_file, listed_parts
from qsctl.eventlog.described import as_numbers, stored
from qsctl.eventlog.location import Location, RemotePath, parquet_source
from qsctl.eventlog.names import NAME_TABLES
from qsctl.eventlog.run_folder import RunInfo, read_run_info
from qsctl.eventlog.schema import COUNTERS, SINCE_DONE, SINCE_REJECTED
from qsctl.eventlog.tables import LOG_TABLES

BATCH_ROWS: Final = 1 << 17
_EARLIER: Final = ((*SINCE_DONE, *SINCE_REJECTED), SINCE_REJECTED)
"""Columns of the counters that earlier versions did not write, one group a version."""
_EARLIER_COUNTERS: Final = [
    (names, pa.schema([field for field in COUNTERS if field.name not in names])) for names in _EARLIER
]


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """An opened run folder; `info` is its `run.json`."""

    folder: Location
    info: RunInfo

    def counters(self) -> pa.Table:
        """Return all counters, with a column `replication`."""
        return counters_of(self.folder, self.info)

    def messages(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Return message rows in bounded batches, part by part, each with a column `replication`.

        Raises:
            NotFound: the run logged no messages.
            Damaged: a part is missing, does not belong to the run, was changed, or cannot be read.
        """
        if self.info.log_level == "counters":
            raise NotFound(
                f"{self.folder} has no message rows: its log level is counters",
                remedy="Run it again with --level messages.",
            )
        return batches_of(self.folder, self.info, "messages", columns)

    def events(self) -> Iterator[pa.RecordBatch]:
        """Return event rows, as `messages`.

        Raises:
            NotFound: the run logged no events.
            Damaged: a part is missing, does not belong to the run, was changed, or cannot be read.
        """
        if self.info.log_level != "events":
            raise NotFound(
                f"{self.folder} has no event rows: its log level is {self.info.log_level}",
                remedy="Run it again with --level events.",
            )
        return batches_of(self.folder, self.info, "events", None)


def open_run(folder: Location) -> RecordedRun:
    """Open a run folder.

    Raises:
        NotFound: the folder is not a run folder.
        Damaged: its `run.json` cannot be read.
    """
    return RecordedRun(folder, read_run_info(folder))


def counters_of(folder: Location, info: RunInfo) -> pa.Table:
    """Return the counters of all finished replications, with a column `replication`; empty without any.

    Raises:
        Damaged: as `batches_of`.
    """
    batches = list(batches_of(folder, info, "counters", None))
    schema = COUNTERS.append(pa.field("replication", pa.int32()))
    return pa.Table.from_batches(batches, schema) if batches else schema.empty_table()


def batches_of(
    folder: Location, info: RunInfo, table: str, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Return a table's rows in batches, with a column `replication` from the names of the folders.

    Raises:
        Damaged: a part is missing, does not belong to the run, was changed, cannot be read, or has other columns.
    """
    for part in listed_parts(folder, info, table):
        part.check()
        yield from part_batches(part.path, part.replication, table, columns)


def names_of(folder: Location, info: RunInfo, table: str) -> pa.Table | None:
    """Return a table of names, with its durations as integers; None where the folder does not have it.

    Raises:
        Damaged: its file is missing, was changed or cannot be read, or another one is beside it.
    """
    part = listed_file(folder, info, table)
    if part is None:
        return None
    part.check()
    schema = NAME_TABLES[table]
    try:
        with pq.ParquetFile(parquet_source(part.path)) as file:
            if not file.schema_arrow.equals(stored(schema)):
                raise Damaged(
                    f"{part.path} does not have the columns of {table}",
                    remedy="Another version wrote it: run it again.",
                )
            found = file.read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise Damaged(f"{part.path} is damaged: {str(error).splitlines()[0]}", remedy=RESTORE) from None
    return pa.Table.from_batches([as_numbers(each) for each in found.to_batches()], schema)


def part_batches(
    path: Location, replication: int, table: str, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Return the rows of one checked part, with a column `replication`, as at least one batch.

    Raises:
        Damaged: it cannot be read, or has other columns.
    """
    schema = LOG_TABLES[table]
    try:
        with pq.ParquetFile(parquet_source(path)) as file:
            found = file.schema_arrow
            missing = _not_written(table, found)
            # Files of format 3 have their durations as integers.
            if not missing and not found.equals(schema) and not found.equals(stored(schema)):
                raise Damaged(
                    f"{path} does not have the columns of {table}", remedy="Another version wrote it: run it again."
                )
            there = None if columns is None else [name for name in columns if name not in missing]
            # Threads of the library's own may let go of a file object of Python while the interpreter ends, which
            # aborts the process (apache/arrow#34314).
            rows = file.iter_batches(BATCH_ROWS, columns=there, use_threads=not isinstance(path, RemotePath))
            # A run that was stopped as it began has no rows, and columns.
            for batch in rows if file.metadata.num_rows else [_no_rows(found, there)]:
                batch.validate(full=True)  # the library believes a file which of its shared values a row has
                batch = as_numbers(batch)
                if missing:
                    batch = _with_columns(batch, missing, columns)
                yield batch.append_column("replication", _repeated(replication, len(batch)))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise Damaged(
            f"{path} is damaged: {reason}", remedy="Run the scenario again: the seed is in run.json."
        ) from None


def _not_written(table: str, schema: pa.Schema) -> Sequence[str]:
    """Return the columns of counters that the version which wrote them did not have; none for other tables."""
    if table != "counters":
        return ()
    return next((names for names, earlier in _EARLIER_COUNTERS if schema.equals(earlier)), ())


def _with_columns(batch: pa.RecordBatch, missing: Sequence[str], columns: Sequence[str] | None) -> pa.RecordBatch:
    """Return counters of an earlier version with the missing columns added, in the order of COUNTERS.

    Added values are null, and lists empty; where null is not allowed, they are 0.
    """
    found = dict(zip(batch.schema.names, batch.columns, strict=True))
    for name in missing:
        field = COUNTERS.field(name)
        empty: object = [] if pa.types.is_list(field.type) else None if field.nullable else 0
        found[name] = pa.array([empty] * len(batch), field.type)
    names = COUNTERS.names if columns is None else list(columns)
    return pa.RecordBatch.from_arrays(
        [found[name] for name in names], schema=pa.schema([COUNTERS.field(name) for name in names])
    )


def _no_rows(schema: pa.Schema, columns: Sequence[str] | None) -> pa.RecordBatch:
    fields = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    return pa.RecordBatch.from_pylist([], fields)


def _repeated(number: int, count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(np.full(count, number, np.int32))])
