"""Self-describing columns: Arrow fields with a description, a unit, and whether they are instants or durations.

The metadata of a field is stored in the Parquet files that pyarrow writes, and shown by pyarrow, pandas and Polars.
Durations have the Arrow type `duration` in files, so that no program subtracts one from an instant by mistake;
Parquet stores them as 64-bit integers, which is what DuckDB and Spark read. Inside qsctl both are integers.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import pyarrow as pa

NANOSECONDS: Final = "ns"
NAME: Final = pa.dictionary(pa.int32(), pa.string())
"""A text that few rows differ in."""


class TimeKind(StrEnum):
    """The kind of a time."""

    NONE = ""
    INSTANT = "instant"
    """An instant, since the beginning of the run; negative: before it."""
    DURATION = "duration"


_DURATION: Final = pa.duration("ns")


def column(name: str, kind: pa.DataType, description: str, *, unit: str = "", nullable: bool = False) -> pa.Field:
    """Return a field with its description.

    Args:
        name: the name of the column.
        kind: the column's type inside qsctl.
        description: whole sentences that state the meaning, the encoding, and when it is null.
        unit: the unit of its numbers.
        nullable: whether values may be null.
    """
    return _described(name, kind, description, unit, TimeKind.NONE, nullable)


def instant(name: str, description: str, *, nullable: bool = False) -> pa.Field:
    """Return a field of instants: nanoseconds since the run began, as integers everywhere."""
    return _described(name, pa.int64(), description, NANOSECONDS, TimeKind.INSTANT, nullable)


def duration(name: str, description: str, *, nullable: bool = False) -> pa.Field:
    """Return a field of durations: nanoseconds, which files store as durations."""
    return _described(name, pa.int64(), description, NANOSECONDS, TimeKind.DURATION, nullable)


def _described(name: str, kind: pa.DataType, description: str, unit: str, time: TimeKind, nullable: bool) -> pa.Field:
    metadata = {"description": description, "unit": unit, "time": str(time)}
    return pa.field(name, kind, nullable=nullable, metadata={key: text for key, text in metadata.items() if text})


def _member(field: pa.Field, key: bytes) -> str:
    return str((field.metadata or {}).get(key, b"").decode())


def description_of(field: pa.Field) -> str:
    """Return a field's description."""
    return _member(field, b"description")


def unit_of(field: pa.Field) -> str:
    """Return the unit of a field's numbers; empty where they have none."""
    return _member(field, b"unit")


def time_of(field: pa.Field) -> TimeKind:
    """Return whether a field contains instants, durations or neither."""
    return TimeKind(_member(field, b"time"))


def stored(schema: pa.Schema) -> pa.Schema:
    """Return the schema of files, in which durations have the Arrow type `duration`."""
    return pa.schema(
        [field.with_type(_DURATION) if time_of(field) is TimeKind.DURATION else field for field in schema],
        schema.metadata,
    )


def with_durations(table: pa.Table) -> pa.Table:
    """Return the table with durations of the Arrow type `duration`, without copying numbers."""
    schema = stored(table.schema)
    columns = [
        # Not `cast`: it imports pyarrow.compute, which takes longer than a small simulation.
        pa.chunked_array([chunk.view(_DURATION) for chunk in each.chunks], _DURATION)
        if field.type != each.type
        else each
        for field, each in zip(schema, table.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def viewed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows with a schema that differs only in integers that are durations, without copying numbers."""
    columns = [
        each if each.type == field.type else each.view(field.type)
        for field, each in zip(schema, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def as_numbers(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with durations as integers."""
    return viewed(batch, _numbered(batch.schema))


def with_numbers(table: pa.Table) -> pa.Table:
    """Return the table with durations as integers."""
    batches = [as_numbers(each) for each in table.to_batches()]
    return pa.Table.from_batches(batches, _numbered(table.schema))


def _numbered(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(pa.int64()) if field.type == _DURATION else field for field in schema])
