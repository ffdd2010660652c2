"""Counters that earlier versions wrote, without the columns that came since: nothing was counted in these."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qsctl.errors import Damaged
from qsctl.eventlog.reader import part_batches
from qsctl.eventlog.schema import COUNTERS, SINCE_DONE, SINCE_REJECTED

SINCE = {"times to done": (*SINCE_DONE, *SINCE_REJECTED), "rejections": SINCE_REJECTED, "now": ()}


def counters(rows: int) -> pa.Table:
    """Rows whose numbers are all different."""
    columns = []
    for place, field in enumerate(COUNTERS):
        if pa.types.is_list(field.type):
            columns.append(pa.array([[place]] * rows, field.type))
        elif pa.types.is_dictionary(field.type):
            columns.append(pa.array([f"{field.name}-{row}" for row in range(rows)]).cast(field.type))
        else:
            columns.append(pa.array([100 * place + row for row in range(rows)], field.type))
    return pa.Table.from_arrays(columns, schema=COUNTERS)


@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize("version", SINCE)
def test_columns_that_a_version_did_not_write_are_zero_or_null(version: str, rows: int, tmp_path: Path) -> None:
    whole = counters(rows)
    pq.write_table(whole.drop_columns(list(SINCE[version])), tmp_path / "part.parquet")
    read = pa.Table.from_batches(part_batches(tmp_path / "part.parquet", 7, "counters"))
    assert read.schema.remove(len(COUNTERS)).equals(COUNTERS)
    assert read["replication"].to_pylist() == [7] * rows
    for field in COUNTERS:
        expected = whole[field.name].to_pylist()
        if field.name in SINCE[version]:
            expected = [[] if pa.types.is_list(field.type) else None if field.nullable else 0] * rows
        assert read[field.name].to_pylist() == expected, field.name


@pytest.mark.parametrize("version", SINCE)
def test_some_columns_are_read_in_the_order_that_is_asked_for(version: str, tmp_path: Path) -> None:
    whole = counters(2)
    pq.write_table(whole.drop_columns(list(SINCE[version])), tmp_path / "part.parquet")
    columns = ["rejected_messages", "client", "done_messages"]
    (batch,) = part_batches(tmp_path / "part.parquet", 0, "counters", columns)
    assert batch.schema.names == [*columns, "replication"]
    assert batch["client"].to_pylist() == whole["client"].to_pylist()


def test_counters_without_another_column_are_damaged(tmp_path: Path) -> None:
    pq.write_table(counters(1).drop_columns(["dead_messages"]), tmp_path / "part.parquet")
    with pytest.raises(Damaged, match="does not have the columns of counters"):
        list(part_batches(tmp_path / "part.parquet", 0, "counters"))
