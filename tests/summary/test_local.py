"""Summaries by DuckDB: equal to Spark's to the last digit, of the same statements, without Java."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qsctl.errors import Damaged, Refused
from qsctl.eventlog.schema import LogLevel
from qsctl.sim.run import run
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import find_scenario, read_scenario, ready_scenarios
from qsctl.summary import job
from qsctl.summary.local._session import LocalFrame, LocalSession
from qsctl.summary.local.engine import LocalEngine
from qsctl.summary.measures.observation import literal
from qsctl.summary.run_summary import RunSummary
from qsctl.summary.spark.session import SparkOptions
from tests.campaigns import is_campaign

WINDOW_NS = 70_000_000
EVERYTHING = is_campaign()


@pytest.fixture
def session() -> Any:
    made = LocalSession()
    yield made
    made.close()


def rows(frame: LocalFrame) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return found


def tables_in(folder: Path) -> dict[str, list[str]]:
    """The rows of each table, and the types of its columns."""
    found = {}
    for table in sorted(folder.iterdir()):
        if table.is_dir():
            read = pa.concat_tables([pq.read_table(part) for part in sorted(table.glob("part-*"))])
            types = [f"{name} {kind}" for name, kind in zip(read.schema.names, read.schema.types, strict=True)]
            found[table.name] = [*types, *sorted(map(repr, read.to_pylist()))]
    return found


def by_both(
    runs: Sequence[Path], place: Path, options: SparkOptions, **asked: Any
) -> tuple[tuple[RunSummary, dict[str, list[str]]], tuple[RunSummary, dict[str, list[str]]]]:
    """The summary and the written tables, of DuckDB and of Spark."""
    made = []
    for name, of in (("local", None), ("spark", options)):
        summary = job.summarize_runs(runs, measures=job.ALL, window_ns=WINDOW_NS, options=of, out=place / name, **asked)
        made.append((summary, tables_in(place / name)))
    return made[0], made[1]


@pytest.mark.spark
@pytest.mark.parametrize(("by", "exact"), [(("client", "queue"), True), *([(("topic",), False)] if EVERYTHING else [])])
def test_runs_of_all_kinds_have_equal_figures_and_files(
    all_runs: list[Path], tmp_path: Path, options: SparkOptions, by: tuple[str, ...], exact: bool
) -> None:
    runs = all_runs if "topic" not in by else [each for place, each in enumerate(all_runs) if place != 4]
    local, spark = by_both(runs, tmp_path, options, by=by, exact=exact)
    assert local == spark
    assert set(local[1]) == {"runs", *job.ALL}
    assert local[0].queues


def short(name: str) -> Scenario:
    scenario = read_scenario(find_scenario(name))
    horizon_ns = min(scenario.horizon_ns, scenario.horizon_ns // 20 if name == "fan-out-10000" else 3_000_000_000)
    if scenario.world is not None:
        scenario = dataclasses.replace(
            scenario, world=dataclasses.replace(scenario.world, recovery_ns=horizon_ns // 8, faults=None)
        )
    return dataclasses.replace(scenario, horizon_ns=horizon_ns, warm_up_ns=horizon_ns // 3, replications=2)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.campaign
@pytest.mark.parametrize("name", ready_scenarios() if EVERYTHING else ["guaranteed"])
@pytest.mark.parametrize("level", [LogLevel.COUNTERS, LogLevel.EVENTS] if EVERYTHING else [LogLevel.EVENTS])
def test_ready_scenarios_have_equal_figures(name: str, level: LogLevel, tmp_path: Path, options: SparkOptions) -> None:
    folder = run(short(name), tmp_path / "run", level=level).folder
    for by in (("queue", "replication"), ("client", "queue"), ("client",))[: 3 if EVERYTHING else 1]:
        for exact in (True, False)[: 2 if EVERYTHING else 1]:
            place = tmp_path / f"{'-'.join(by)} {exact}"
            local, spark = by_both([folder], place, options, by=by, exact=exact)
            assert local == spark, by


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("cast(sqrt(8) as int)", 2),
        ("int(-2.9d)", -2),
        ("cast(2.5d * 3 as bigint)", 7),
        ("16.666666666666668d", 16.666666666666668),
        ("0.1d + 0.2d", 0.30000000000000004),
        ("-7 div 2", -3),
        ("-3 / 2", -1.5),
        ("greatest(null, 2)", 2),
        ("array(7, 8, 9)[1]", 8),
        ("array(array(1), array(2, 3))[1][0]", 2),
        ("element_at(array(7, 8, 9), 1)", 7),
        ("element_at(array(7, 8, 9), 1 + 1)", 8),
        ("pmod(-3, 1000)", 997),
        ("shiftright(-1L, 31)", -1),
        ("if(null, 1, 2)", 2),
        (literal("it's {x} {{y}} \\"), "it's {x} {{y}} \\"),
        ("string(timestamp_micros(1700000000123456))", "2023-11-14 22:13:20.123456"),
    ],
)
def test_an_expression_means_what_spark_means(session: LocalSession, expression: str, value: object) -> None:
    (row,) = rows(session.sql(f"select {expression} as value"))
    assert repr(row["value"]) == repr(value)


def test_a_condition_that_is_null_counts_as_none(session: LocalSession) -> None:
    frame = session.createDataFrame(pa.table({"place": pa.array([None, None], pa.int64())}))
    assert rows(session.sql("select count_if(place > 1) as count from {rows}", rows=frame)) == [{"count": 0}]
    assert rows(frame.where("place > 1")) == []


def test_a_sum_beyond_64_bits_is_an_error(session: LocalSession) -> None:
    frame = session.createDataFrame(pa.table({"wait_ns": pa.array([2**62, 2**62], pa.int64())}))
    summed = session.sql("select sum(wait_ns) as wait_ns from {rows}", rows=frame)
    with pytest.raises(Damaged, match="64 bits"):
        summed.toArrow()
    with pytest.raises(Damaged, match="64 bits"):
        summed.selectExpr("cast(wait_ns as bigint) as wait_ns").toArrow()


def test_files_of_another_schema_have_null_where_a_column_is_missing(session: LocalSession, tmp_path: Path) -> None:
    from qsctl.summary.measures.tables import MESSAGES

    pq.write_table(pa.table({"client_id": pa.array([1, 2], pa.int32())}), tmp_path / "one.parquet")
    pq.write_table(pa.table({"queue": ["D-1"]}), tmp_path / "it's.parquet")
    found = rows(session.files([tmp_path / "one.parquet", tmp_path / "it's.parquet"], MESSAGES, {"number": [4, 7]}))
    assert sorted((row["number"], row["client_id"] or 0, row["queue"]) for row in found) == [
        (4, 1, None), (4, 2, None), (7, 0, "D-1"),
    ]  # fmt: skip
    assert rows(session.files([], MESSAGES, {"number": []})) == []


def test_a_changed_log_is_found_before_a_figure_is_made(all_runs: list[Path], tmp_path: Path) -> None:
    folder = shutil.copytree(all_runs[0], tmp_path / "run")
    part = next(folder.glob("messages/*/part-*"))
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 4
    part.write_bytes(content)
    with pytest.raises(Damaged, match="was changed"):
        job.summarize_runs([folder], out=tmp_path / "tables")
    assert not (tmp_path / "tables" / "queues").exists()


def test_a_full_disk_names_the_place_that_is_full(
    all_runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the words of DuckDB."""

    class Full:
        def __init__(self, connection: Any, of: str) -> None:
            self._connection, self._of = connection, of

        def execute(self, text: str) -> Any:
            if text.startswith(self._of):
                file = text.partition("to '")[2].partition("'")[0] or "/spilled"
                raise duckdb.IOException(f'Could not write file "{file}": No space left on device')
            return self._connection.execute(text)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._connection, name)

    made: list[LocalSession] = []
    first = LocalSession.__init__

    def opened(session: LocalSession, of: str) -> None:
        first(session)
        made.append(session)
        session.connection = Full(session.connection, of)  # type: ignore[misc]

    for of, place in (("copy", str(tmp_path / "tables")), ("create temp table", "temporary files")):
        monkeypatch.setattr(LocalSession, "__init__", lambda session, of=of: opened(session, of))
        with pytest.raises(Refused, match="is full") as caught:
            job.summarize_runs([all_runs[0]], measures=job.ALL, out=tmp_path / "tables")
        assert place in caught.value.message
        assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == [".qsctl.lock"]


def test_nothing_is_left_and_a_spilled_frame_goes_with_its_session(
    all_runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert job.summarize_runs([all_runs[0]], measures=job.ALL).queues
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("asks", ["options", "size", "another machine's disk"])
def test_spark_computes_what_is_asked_of_it_or_is_elsewhere_or_large(
    asks: str, all_runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Started(Exception):
        pass

    def start(*_: Any, **__: Any) -> None:
        raise Started

    def here(_: Any) -> LocalEngine:
        raise AssertionError

    monkeypatch.setattr(job, "spark_session", start)
    options = None
    if asks == "options":
        options = SparkOptions()
    elif asks == "size":
        monkeypatch.setattr(job, "LOCAL_BYTES", 10)
    else:
        monkeypatch.setattr(job, "Path", type("NoPath", (), {}))
    with pytest.raises(Started):
        job.summarize_runs([all_runs[0]], options=options)
    monkeypatch.undo()
    monkeypatch.setattr(job, "spark_session", start)
    with suppress(Refused):
        assert job.summarize_runs([all_runs[0]]).queues
