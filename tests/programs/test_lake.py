"""Runs, recordings and sweeps in tables of lakes: types, a run that is written again, and the page's programs."""

from __future__ import annotations

import datetime
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import qsctl
from qsctl.errors import NotFound, UsageError
from tests.documents import page, programs

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "fixtures/recordings/monday"
MADE = {"burst-1": 1, "burst-2": 2}


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The runs and the sweep of the page, smaller; rows of messages by run."""
    monkeypatch.chdir(tmp_path)
    rows = {}
    for name, seed in MADE.items():
        run = qsctl.simulate("burst", settings={"horizon": "20ms"}, level="messages", seed=seed, out=name)
        rows[run.info.run_id] = run.info.done[0].message_rows
    assert len(rows) == 2
    qsctl.sweep(
        "burst", grid={"max-depth(D-1)": [1000, 2000]}, settings={"horizon": "20ms"}, replications=2, out="sweep-1"
    )
    return rows


def examples(about: str) -> list[str]:
    found = [each for each in programs(page("lakes")) if about in each]
    assert found, about
    return found


@pytest.mark.parametrize("table", ["messages", "counters", "arrivals", "deliveries", "peers", "clients"])
def test_rows_are_those_of_the_table_with_types_of_lakes(table: str) -> None:
    loaded = qsctl.load(RECORDING)
    rows = qsctl.lake_rows(RECORDING, table).read_all()
    own = loaded[table].arrow()
    assert rows.num_rows == own.num_rows > 0
    allowed = {pa.int32(), pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.date32(), pa.list_(pa.int32()),
               pa.list_(pa.int64())}  # fmt: skip
    assert {field.type for field in rows.schema} <= allowed
    assert all(field.nullable and field.metadata[b"comment"] == field.metadata[b"doc"] for field in rows.schema)
    assert rows.schema.names[:3] == ["run_id", "scenario", "run_date"]
    assert set(rows["run_date"].to_pylist()) == {datetime.date(2026, 11, 23)}
    for name in own.schema.names:
        column = own[name].cast(pa.int64()) if pa.types.is_duration(own[name].type) else own[name]
        assert rows[name].to_pylist() == column.to_pylist(), name


def test_columns_of_log_have_the_types_of_the_schema_file() -> None:
    kinds = {"string": pa.string(), "integer": pa.int32(), "long": pa.int64(), "boolean": pa.bool_()}
    written = json.loads((ROOT / "schemas/qsctl_event_log.json").read_text())
    for table in ("messages", "arrivals", "deliveries", "peers", "commands"):
        schema = qsctl.lake_rows(RECORDING, table).schema
        for field in written[table]["fields"]:
            assert schema.field(field["name"]).type == kinds[field["type"]], field["name"]


@pytest.mark.slow
def test_simulation_has_no_day_and_a_sweep_has_its_name(folders: dict[str, int]) -> None:
    assert set(qsctl.lake_rows("burst-1", columns=["queue"]).read_all()["run_date"].to_pylist()) == {None}
    measures = qsctl.lake_rows("sweep-1", "measures").read_all()
    assert set(measures["sweep"].to_pylist()) == {"sweep-1"}
    assert measures.num_rows == qsctl.load("sweep-1")["measures"].arrow().num_rows


def test_what_is_not_there_is_one_error(folders: dict[str, int]) -> None:
    with pytest.raises(NotFound, match="has no table 'arrivals'"):
        qsctl.lake_rows("burst-1", "arrivals")
    with pytest.raises(UsageError, match="has no column 'nothing'"):
        qsctl.lake_rows("burst-1", "messages", ["nothing"])
    with pytest.raises(NotFound):
        qsctl.lake_rows("none")


def counted(rows: pa.Table) -> dict[str, int]:
    return {each["values"]: each["counts"] for each in rows["run_id"].combine_chunks().value_counts().to_pylist()}


def test_hive_layout_of_the_page_replaces_a_run_that_is_written_again(folders: dict[str, int]) -> None:
    (write,) = examples("ds.write_dataset")
    for _ in range(2):
        exec(compile(write, "lakes.md", "exec"), {})
    partitions = ds.partitioning(pa.schema([("run_date", pa.date32()), ("run_id", pa.string())]), flavor="hive")
    rows = ds.dataset("lake/messages", partitioning=partitions).to_table(columns=["run_id", "wait_ns"])
    assert counted(rows) == folders
    assert rows.schema.field("wait_ns").type == pa.int64()
    shutil.copytree(RECORDING, "monday")
    exec(compile(write.replace('["burst-1", "burst-2"]', '["monday"]'), "lakes.md", "exec"), {})
    assert [path.name for path in sorted(Path("lake/messages").iterdir())] == [
        "run_date=2026-11-23", "run_date=__HIVE_DEFAULT_PARTITION__"
    ]  # fmt: skip


def test_statement_for_trino_has_each_column_once(folders: dict[str, int], capsys: pytest.CaptureFixture[str]) -> None:
    (make,) = examples("CREATE TABLE")
    exec(compile(make, "lakes.md", "exec"), {})
    columns = re.findall(r'^  "(\w+)" (\w+),?$', capsys.readouterr().out, re.MULTILINE)
    assert [name for name, _ in columns][-2:] == ["run_date", "run_id"]
    assert sorted(name for name, _ in columns) == sorted(qsctl.lake_rows("burst-1").schema.names)
    assert dict(columns)["wait_ns"] == "bigint"


@pytest.mark.parametrize("library", ["duckdb", "polars"])
def test_example_of_the_page_reads_the_hive_layout(
    library: str, folders: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(library)
    exec(compile(examples("ds.write_dataset")[0], "lakes.md", "exec"), {})
    (read,) = examples(f"import {library}")
    exec(compile(read, "lakes.md", "exec"), {})
    shown = capsys.readouterr().out
    assert all(run_id in shown for run_id in folders)


def delta_table() -> pa.Table:
    from deltalake import DeltaTable

    return DeltaTable("delta/messages").to_pyarrow_table()


def iceberg_table() -> pa.Table:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("qsctl", uri="sqlite:///iceberg/catalog.db", warehouse=Path("iceberg").absolute().as_uri())
    return catalog.load_table("runs.messages").scan().to_arrow()


@pytest.mark.parametrize(("library", "read"), [("deltalake", delta_table), ("pyiceberg.catalog.sql", iceberg_table)])
@pytest.mark.filterwarnings("ignore:Delete operation did not match any records", "default::DeprecationWarning")
def test_table_of_the_page_has_each_run_once_with_its_types(
    library: str, read: Callable[[], Any], folders: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(library, reason="pip install 'qsctl[lakes]'")
    (write,) = examples(library)
    for _ in range(2):
        exec(compile(write, "lakes.md", "exec"), {})
    assert str(sum(folders.values())) in capsys.readouterr().out
    rows = read()
    assert counted(rows) == folders
    for name in MADE:
        expected = qsctl.lake_rows(name).read_all()
        (run_id,) = set(expected["run_id"].to_pylist())
        found = rows.filter(pc.equal(rows["run_id"], run_id)).select(expected.schema.names)
        order = [("enqueued_ns", "ascending"), ("client_id", "ascending"), ("topic_id", "ascending")]
        assert found.sort_by(order).to_pylist() == expected.sort_by(order).to_pylist()
        assert found.schema.field("wait_ns").type == pa.int64()
