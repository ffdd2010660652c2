"""`qsctl.lake_rows`: the rows of a table of a run or a sweep, with types that data lakes support.

Delta, Iceberg and Hive have neither durations in nanoseconds nor dictionaries: durations become 64-bit integers of
nanoseconds, as Spark, Trino and DuckDB read them, and dictionaries become texts. A column holds the identifier of the
folder, so that a folder that is written again replaces its own rows.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from qsctl.programs.loaded import Columns, LoadedFolder, LoadedTable, load

if TYPE_CHECKING:
    import pyarrow

    from qsctl.eventlog.location import Location
    from qsctl.programs._arguments import PathName


def lake_rows(
    folder: PathName | Location, table: str = "messages", columns: Columns = None
) -> pyarrow.RecordBatchReader:
    """Return a table's rows in batches, for libraries that write Delta, Iceberg, or Parquet in Hive's layout.

    The first columns identify the folder. For a run they are `run_id`, by which a run is replaced, `scenario`, and
    `run_date`, the UTC date on which a recording began, null for a simulation. For a sweep it is `sweep`, the name of
    the folder. All columns are nullable, and have their description in the metadata `comment` (Delta, Spark) and `doc`
    (Iceberg).

    Args:
        folder: path or URI of a run, a recording or a sweep.
        table: name of a table of `qsctl.load(folder)`.
        columns: names of the columns to return, in this order; None: all.

    Raises:
        NotFound: it is neither a run folder nor a sweep folder, or has no such table.
        UsageError: a column does not exist.
        Damaged: a file of the folder is missing or was changed.

    >>> import qsctl
    >>> run = qsctl.simulate("burst", settings={"horizon": "20ms"}, level="messages", out="for-a-lake")
    >>> rows = qsctl.lake_rows("for-a-lake", "messages", ["queue", "wait_ns"])
    >>> rows.schema.names, str(rows.schema.field("wait_ns").type)
    (['run_id', 'scenario', 'run_date', 'queue', 'wait_ns'], 'int64')
    >>> rows.read_all().num_rows == run.info.done[0].message_rows
    True
    """
    import pyarrow as pa

    loaded = load(folder)
    facts = _facts(loaded)
    read = loaded[table]
    names = [name for name in (read.schema.names if columns is None else columns) if name not in facts]
    batches = read.batches(names)  # raises an error for a missing column
    schema = _lake_schema(read, names, facts)
    return pa.RecordBatchReader.from_batches(schema, _lake_batches(batches, facts, schema))


def _facts(folder: LoadedFolder) -> dict[str, pyarrow.Scalar]:
    """Return the columns that have the same value in every row of a folder, with their values."""
    import pyarrow as pa

    if folder.info is None:
        return {"sweep": pa.scalar(folder.folder.absolute().name, pa.string())}
    recording = folder.info.recording or None
    began = (
        None if recording is None else datetime.datetime.fromtimestamp(recording.started_at_ns // 10**9, datetime.UTC)
    )
    return {
        "run_id": pa.scalar(folder.info.run_id, pa.string()),
        "scenario": pa.scalar(folder.info.scenario, pa.string()),
        "run_date": pa.scalar(began, pa.date32()),
    }


_DESCRIPTIONS = {
    "sweep": "Name of the sweep's folder.",
    "run_id": "Identifier of the run: of a simulation the same wherever the same scenario runs with the same seed.",
    "scenario": "Name of the scenario, of a recording that of the service.",
    "run_date": "Day in UTC on which the recording began; null: of a simulation.",
}


def _lake_schema(table: LoadedTable, names: list[str], facts: dict[str, Any]) -> pyarrow.Schema:
    import pyarrow as pa

    own = [pa.field(name, each.type, metadata=_documented(_DESCRIPTIONS[name])) for name, each in facts.items()]
    fields = []
    for field in (table.schema.field(name) for name in names):
        kind = field.type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        elif pa.types.is_duration(kind):
            kind = pa.int64()
        metadata = {key.decode(): text.decode() for key, text in (field.metadata or {}).items()}
        fields.append(pa.field(field.name, kind, metadata=metadata | _documented(metadata.get("description", ""))))
    return pa.schema([*own, *fields])


def _documented(text: str) -> dict[str, str]:
    return {"comment": text, "doc": text} if text else {}


def _lake_batches(
    batches: Iterator[pyarrow.RecordBatch], facts: dict[str, Any], schema: pyarrow.Schema
) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow as pa

    kinds = schema.types[len(facts) :]
    for batch in batches:
        own = [pa.repeat(each, batch.num_rows) for each in facts.values()]
        rest = [each.cast(kind) for each, kind in zip(batch.columns, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays([*own, *rest], schema=schema)
