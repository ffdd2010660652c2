"""Tables that runs are added to: a partition a run, which that run alone replaces, whole when a command is killed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from qsctl.errors import Damaged, InvalidInput, NotFound, UsageError
from qsctl.eventlog.location import spark_pattern
from qsctl.eventlog.run_folder import read_run_info, write_run_info
from qsctl.instant import SECOND_NS
from qsctl.summary import _output as output
from qsctl.summary import job
from qsctl.summary._output import output_folder
from qsctl.summary.recorded_run import read_these
from tests.summary.conftest import message

RECORDING = Path(__file__).parents[2] / "fixtures/recordings/monday"
MEASURES = {"losses", "windows"}


def some_messages(count: int) -> list[dict[str, Any]]:
    return [
        message(client_id=number % 2, enqueued_ns=number * SECOND_NS // 50, wait_ns=7 * number, outcome=outcome)
        for number in range(count)
        for outcome in ("delivered", "discarded")
    ]


def files_of(folder: Path) -> dict[str, int]:
    """The files of tables and their numbers in the file system: one that was written again has another."""
    return {
        path.relative_to(folder).as_posix(): path.stat().st_ino
        for path in folder.rglob("part-*")
        if not path.relative_to(folder).parts[0].startswith(".")
    }


def rows_of(spark: Any, lake: Path, name: str) -> list[Any]:
    """The rows of a table, in a folder whose name is a pattern for Spark."""
    parts = [spark_pattern(part) for part in (lake / name).rglob("part-*")]
    frame = spark.read.option("basePath", str(lake / name)).parquet(*parts)
    assert frame.columns[-3:] == ["date", "scenario", "run_id"]
    return list(frame.collect())


@pytest.mark.slow
@pytest.mark.spark
def test_the_same_run_replaces_its_own_partitions_and_nothing_else(
    make_run: Callable[..., Any], spark: Any, tmp_path: Path
) -> None:
    first, second = make_run(some_messages(40)), make_run(some_messages(60))
    lake = tmp_path / "a [lake] 100%"
    runs = [first.folder, second.folder, RECORDING]
    summary = job.summarize(spark, runs, by=["queue"], measures=MEASURES, out=lake, append=True)
    before = files_of(lake)
    assert {Path(name).parts[0] for name in before} >= {"runs", "queues", "delays", *MEASURES}
    losses = rows_of(spark, lake, "losses")
    assert len(losses) == len(summary.tables["losses"]) > 0
    assert {(row["run_id"], str(row["date"])) for row in losses} == {
        (first.folder.name, "None"), (second.folder.name, "None"), (read_run_info(RECORDING).run_id, "2026-11-23"),
    }  # fmt: skip

    anew = make_run(some_messages(10))
    write_run_info(anew.folder, msgspec.structs.replace(read_run_info(anew.folder), run_id=second.folder.name))
    job.summarize(spark, [anew.folder], by=["queue"], measures=MEASURES, out=lake, append=True)
    after = files_of(lake)
    own = f"run_id={second.folder.name}/"
    assert {name: place for name, place in after.items() if own not in name} == {
        name: place for name, place in before.items() if own not in name
    }
    assert not set(after) & {name for name in before if own in name}
    arrived = {row["run_id"]: row["arrived_messages"] for row in rows_of(spark, lake, "losses") if row["date"] is None}
    assert arrived == {first.folder.name: 80, second.folder.name: 20}
    assert [name for name in os.listdir(lake) if name.startswith(".qsctl-")] == []
    plain = lake.rename(tmp_path / "lake")
    for other in (arrived_by_duckdb, arrived_by_polars):
        assert other(plain) in (arrived, None)

    with pytest.raises(InvalidInput, match="added with --append: all of them would be replaced"):
        job.summarize(spark, [first.folder], measures={"losses"}, out=plain)
    with pytest.raises(UsageError, match="which another of these folders is, too"):
        job.summarize(spark, [anew.folder, second.folder], measures={"losses"}, out=plain, append=True)
    with pytest.raises(UsageError, match="none is named"):
        job.summarize(spark, [first.folder], measures={"losses"}, append=True)
    assert files_of(plain) == after
    (tmp_path / "replaced/losses").mkdir(parents=True)
    (tmp_path / "replaced/losses/part-0.parquet").touch()
    with pytest.raises(InvalidInput, match="was written without --append"):
        job.summarize(spark, [first.folder], measures={"losses"}, out=tmp_path / "replaced", append=True)


def arrived_by_duckdb(lake: Path) -> dict[str, int] | None:
    """Return the arrivals of each run without a date, as DuckDB reads them; None where it is not installed."""
    try:
        import duckdb
    except ImportError:
        return None
    return dict(
        duckdb.sql(
            f"""select run_id, sum(arrived_messages) from read_parquet('{lake}/losses/*/*/*/*.parquet',
            hive_partitioning=true, hive_types={{'date': DATE, 'scenario': VARCHAR, 'run_id': VARCHAR}})
            where scenario = 'made' and date is null group by all"""
        ).fetchall()
    )


def arrived_by_polars(lake: Path) -> dict[str, int] | None:
    """The same as Polars reads it."""
    try:
        import polars
    except ImportError:
        return None
    types = {"date": polars.Date, "scenario": polars.String, "run_id": polars.String}
    found = polars.scan_parquet(f"{lake}/losses", hive_schema=types).filter(polars.col("date").is_null())
    return dict(found.group_by("run_id").agg(polars.col("arrived_messages").sum()).collect().iter_rows())


class Killed(BaseException):
    """Ends a command as a kill does: nothing behind it runs."""


@pytest.mark.parametrize("killed_at", range(1, 10))
def test_a_command_that_is_killed_while_it_publishes_is_finished_by_the_next(
    killed_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    beside = lake / ".qsctl-0123456789abcdef"

    def write(place: Path, text: str) -> None:
        place.mkdir(parents=True)
        (place / "part-0").write_text(text)

    for table in ("runs", "losses", "depth"):
        for run in ("a", "b"):
            write(lake / table / "date=x" / run, "earlier")
    for written in ("runs/date=x/a", "losses/date=x/a", "runs/date=x/c", "depth/date=x/c"):
        write(beside / written, "new")  # of `depth` the run `a` has no rows any more
    tables = output.AppendedTables(beside, None, None)  # type: ignore[arg-type]
    tables._names = ["runs", "losses", "depth"]
    moves = 0
    move = output.move

    def killed_move(source: Path, target: Path) -> None:
        nonlocal moves
        moves += 1
        if moves == killed_at:
            raise Killed
        move(source, target)

    monkeypatch.setattr(output, "move", killed_move)
    if killed_at < 9:
        with pytest.raises(Killed):
            tables.publish(lake)
    else:
        tables.publish(lake)
        assert moves == 8
    monkeypatch.setattr(output, "move", move)
    with output_folder(lake, None, object()):  # type: ignore[arg-type]
        pass
    expected = {"losses": {"a": "new", "b": "earlier"}, "depth": {"b": "earlier", "c": "new"}}
    if killed_at == 1:  # before the list of partitions was there: as if it had not begun
        expected = {"losses": {"a": "earlier", "b": "earlier"}, "depth": {"a": "earlier", "b": "earlier"}}
    for table, rows in expected.items():
        assert {part.parent.name: part.read_text() for part in (lake / table).rglob("part-*")} == rows
    assert not beside.exists()


@pytest.mark.slow
@pytest.mark.spark
def test_damaged_runs_cost_themselves_alone_where_that_is_asked_for(
    make_run: Callable[..., Any], spark: Any, tmp_path: Path
) -> None:
    folders = [make_run(some_messages(20)).folder for _ in range(5)]
    counters = next(folders[1].glob("counters/*/part-*"))
    counters.write_bytes(counters.read_bytes()[:-1])
    (folders[2] / "run.json").unlink()
    part = next(folders[3].glob("messages/*/part-*"))
    content = bytearray(part.read_bytes())
    content[len(content) // 8] ^= 4  # in a page: found by Spark alone
    part.write_bytes(content)
    with pytest.raises(NotFound, match=r"has no run.json"):
        job.summarize(spark, folders, measures={"losses"})
    with pytest.raises(Damaged, match=r"part-00000.parquet has \d+ bytes") as caught:
        job.summarize(spark, [folders[0], folders[1]], measures={"losses"})
    assert "--skip-damaged" in caught.value.remedy
    summary = job.summarize(spark, folders, by=["queue"], skip_damaged=True, out=tmp_path / "out")
    assert {each.run_id for each in summary.queues} == {folders[0].name, folders[4].name}
    left_out = [note for note in summary.notes if note.endswith("the run was left out.")]
    assert len(left_out) == 3
    for folder in folders[1:4]:
        assert any(str(folder) in note for note in left_out), folder
    assert spark.read.parquet(str(tmp_path / "out/runs")).count() == 2


def test_runs_that_are_all_damaged_are_an_error_also_where_damaged_ones_are_left_out(
    make_run: Callable[..., Any], tmp_path: Path
) -> None:
    folders = [make_run(some_messages(5)).folder for _ in range(3)]
    for folder in folders:
        (folder / "run.json").write_text("{")
    for skip_damaged in (True, False):
        with pytest.raises(Damaged, match=r"\(2 more of the 3 runs cannot be read\)") as caught:
            read_these(folders, skip_damaged=skip_damaged)
        assert ("--skip-damaged" in caught.value.remedy) is not skip_damaged
    with pytest.raises(NotFound, match="is not a folder"):
        read_these([*folders, tmp_path / "none"], skip_damaged=True)
