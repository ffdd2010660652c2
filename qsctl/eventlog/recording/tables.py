"""The conversion of the fold's rows to Arrow tables."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from qsctl.eventlog.recording.rows import ColumnCells, TableRows
from qsctl.eventlog.recording.schema import REPLAY_TABLES
from qsctl.eventlog.schema import EVENTS, MESSAGES

ROW_SCHEMAS: Final[dict[str, pa.Schema]] = {"messages": MESSAGES, "events": EVENTS, **REPLAY_TABLES}


def table_of(name: str, rows: TableRows, run_id: str) -> pa.Table:
    """Return rows of `Fold.take_rows` as a table.

    Args:
        name: the table's name.
        rows: at least one, each with the columns of the schema without `run_id`.
        run_id: the run's id.
    """
    schema = ROW_SCHEMAS[name]
    indexes = pa.array([0] * len(rows), pa.int32())
    arrays: list[pa.Array] = [pa.DictionaryArray.from_arrays(indexes, pa.array([run_id]))]
    for column, field in zip(rows.columns(), list(schema)[1:], strict=True):
        arrays.append(_array(column, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(column: ColumnCells, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        array = pa.array(column.values, pa.string()).dictionary_encode()
    else:
        array = pa.array(column.values, kind)
    return array if column.places is None else array.take(pa.array(column.places))
