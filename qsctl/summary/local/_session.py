"""A DuckDB session and its frames, with the part of Spark's interface that measures use.

A frame is a DuckDB SQL text, which is executed when its rows are requested. DuckDB's 128-bit sums are returned as
64-bit integers, as Spark does.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
from pyspark.sql.types import ArrayType, StructField, StructType

from qsctl.endings import TemporaryFolder
from qsctl.errors import Damaged, QsctlError, Refused
from qsctl.processors import processors
from qsctl.summary.local._dialect import FUNCTIONS, translated

_SETTINGS: Final = ("set TimeZone = 'UTC'", "set enable_progress_bar = true", "set enable_progress_bar_print = false")
_PREFIX: Final = "qsctl-duckdb-"
_WIDE: Final = "HUGEINT"
_FULL: Final = os.strerror(errno.ENOSPC)


class LocalFrame:
    """The rows of a statement, which is executed on request."""

    def __init__(self, session: LocalSession, query: str) -> None:
        self.sparkSession: Final = session
        self.query: Final = query

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [name for name, _ in self._types()]

    def where(self, condition: str) -> LocalFrame:
        """Return the rows for which a condition in Spark SQL holds."""
        return self.sparkSession.sql(f"select * from {{rows}} where {condition}", rows=self)

    def selectExpr(self, *expressions: str) -> LocalFrame:
        """Return columns computed by expressions in Spark SQL."""
        return self.sparkSession.sql(f"select {', '.join(expressions)} from {{rows}}", rows=self)

    def limit(self, count: int) -> LocalFrame:
        """Return at most `count` of the rows."""
        return LocalFrame(self.sparkSession, f"select * from ({self.query}) limit {count}")

    def toArrow(self) -> pa.Table:
        """Execute the statement and return the rows.

        Raises:
            Damaged: a sum does not fit in 64 bits.
            Refused: the memory or the disk space does not suffice.
        """
        wide = [name for name, kind in self._types() if kind == _WIDE]
        narrowed = f"replace ({', '.join(f'{_quoted(name)}::bigint as {_quoted(name)}' for name in wide)}) "
        rows = f"select * {narrowed if wide else ''}from ({self.query})"
        with _faults():
            return self.sparkSession.connection.sql(rows).to_arrow_table()

    def _types(self) -> list[tuple[str, str]]:
        with _faults():
            rows = self.sparkSession.connection.execute(f"describe {self.query}").fetchall()
        return [(row[0], row[1]) for row in rows]


class LocalSession:
    """An in-memory database, which spills to disk; the caller must close it."""

    def __init__(self) -> None:
        self._folder = TemporaryFolder(_PREFIX)
        self.connection: Final = duckdb.connect(
            config={
                "temp_directory": str(self._folder.path),
                "threads": processors(),
                "preserve_insertion_order": False,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
        )
        for statement in (*_SETTINGS, *FUNCTIONS):
            self.connection.execute(statement)
        self._count = 0

    def sql(self, text: str, **frames: LocalFrame) -> LocalFrame:
        """Return the rows of a statement in Spark SQL, with `{name}` in place of a frame."""
        return LocalFrame(self, translated(text, {name: each.query for name, each in frames.items()}))

    def createDataFrame(self, rows: pa.Table) -> LocalFrame:
        """Return an Arrow table as a frame."""
        name = self._new_name()
        self.connection.register(name, rows)
        return LocalFrame(self, f"select * from {name}")

    def files(self, paths: Sequence[Path], shape: StructType, constants: Mapping[str, Sequence[int]]) -> LocalFrame:
        """Return the rows of Parquet files.

        Args:
            paths: files of one table.
            shape: the columns to read; a column that files of an earlier version lack is null.
            constants: additional columns, each with a value for each file.
        """
        if not paths:
            none = [f"null::{_type_of(each)} as {_quoted(each.name)}" for each in shape.fields]
            none += [f"null::integer as {name}" for name in constants]
            return LocalFrame(self, f"select {', '.join(none)} where false")
        listed = ", ".join(_literal(str(path)) for path in paths)
        source = f"read_parquet([{listed}], union_by_name = true, hive_partitioning = false)"
        there = set(LocalFrame(self, f"select * from {source}").columns)
        read = [
            f"{_quoted(each.name) if each.name in there else 'null'}::{_type_of(each)} as {_quoted(each.name)}"
            for each in shape.fields
        ]
        for name, values in constants.items():
            read.append(f"list_extract({list(values)}, file_index::bigint + 1) as {name}")
        return LocalFrame(self, f"select {', '.join(read)} from {source}")

    def materialized(self, frame: LocalFrame) -> LocalFrame:
        """Execute the statement of a frame now and return a frame of the stored rows."""
        name = self._new_name()
        with _faults():
            self.connection.execute(f"create temp table {name} as {frame.query}")
        return LocalFrame(self, f"select * from {name}")

    def write(self, frame: LocalFrame, file: Path) -> None:
        """Write the rows of a frame as a Parquet file.

        Raises:
            OSError: the disk is full.
        """
        with _faults(file):
            self.connection.execute(f"copy ({frame.query}) to {_literal(str(file))} (format parquet)")

    def fraction(self) -> float:
        """Return the completed fraction of the statement in progress."""
        return max(0.0, float(self.connection.query_progress())) / 100

    def close(self) -> None:
        """Close the database and remove its files."""
        self.connection.close()
        self._folder.remove()

    def _new_name(self) -> str:
        self._count += 1
        return f"rows_{self._count}"


_TYPES: Final = {
    "string": "varchar",
    "boolean": "boolean",
    "int": "integer",
    "bigint": "bigint",
    "double": "double",
    "tinyint": "tinyint",
    "smallint": "smallint",
    "timestamp": "timestamptz",
}


def _type_of(field: StructField) -> str:
    """Return the DuckDB type of a Spark column."""
    if isinstance(field.dataType, ArrayType):
        return f"{_TYPES[field.dataType.elementType.simpleString()]}[]"
    return _TYPES[field.dataType.simpleString()]


def _quoted(name: str) -> str:
    return f'"{name}"'


def _literal(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


@contextmanager
def _faults(file: Path | None = None) -> Iterator[None]:
    """Convert errors of the database to `QsctlError`; on writing `file`, a full disk to OSError."""
    try:
        yield
    except duckdb.Error as error:
        if file is not None and _FULL in str(error) and str(file) in str(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        meant = _meant(error)
        if meant is None:
            raise
        raise meant from error


def _meant(error: duckdb.Error) -> QsctlError | None:
    if isinstance(error, duckdb.OutOfMemoryException):
        return Refused("the summary ran out of memory", remedy="Summarize by fewer columns, or on Spark with --spark.")
    if _FULL in str(error):
        return Refused(
            "the disk of the folder for temporary files is full",
            remedy="Free some space there, or name a folder on a larger disk with TMPDIR.",
        )
    if isinstance(error, duckdb.ConversionException | duckdb.OutOfRangeException):
        return Damaged(
            "a group's times or counts add up to more than 64 bits hold",
            remedy="Group by more, as in --by client,queue,replication, or simulate a shorter time.",
        )
    return None
