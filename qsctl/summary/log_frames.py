"""The tables of run folders as frames of Spark: of one run, and of many in one plan with the facts of each run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from qsctl.errors import UsageError
from qsctl.eventlog.checked_files import PAGE_CHECKSUMS
from qsctl.eventlog.described import TimeKind, time_of
from qsctl.eventlog.location import Location, location, spark_path
from qsctl.eventlog.run_folder import Recording
from qsctl.eventlog.schema import SINCE_REJECTED
from qsctl.eventlog.tables import LOG_TABLES
from qsctl.summary.measures import tables
from qsctl.summary.measures.observation import literal
from qsctl.summary.recorded_run import SummarizedRun, read_run

READ: Final[Mapping[str, StructType]] = {
    "messages": tables.MESSAGES, "counters": tables.COUNTERS, "events": tables.EVENTS,
}  # fmt: skip
"""The tables of a run folder and their schemas."""


def read_table(spark: SparkSession, run: SummarizedRun, label: str, table: str) -> DataFrame:
    """Return a table of a run: the files that it lists, by name, with the replication in their folders' names.

    Whatever else lies in the folder is not read. The run's name is not read from the files, for `run.json` has it.
    """
    shape = StructType([field for field in READ[table].fields if field.name != "run_id"])
    paths = [_escaped(spark_path(part.path)) for part in run.parts[table]]
    reader = spark.read.schema(shape).options(basePath=spark_path(run.folder / table), **PAGE_CHECKSUMS)
    frame = reader.parquet(*paths)
    if table == "counters":
        frame = frame.fillna(0, [*SINCE_REJECTED])  # which runs of earlier versions have no column for
    return frame.selectExpr("*", f"{literal(label)} as run_id")


def read_runs(spark: SparkSession, runs: Sequence[Location | str], table: str = "messages") -> DataFrame:
    """Return a table of many runs as one frame, which is computed when it is asked for, in one plan.

    Beside the columns of the table (`qsctl help reference-event-log`) each row has the facts of its run: `folder`,
    `scenario`, `model`, `seed`, `is_complete`, `warm_up_ns`, `horizon_ns` and `started_at`, the time of day of instant
    0, null of a simulation. For each instant there is a time of day, too, to the microsecond: `enqueued_time` beside
    `enqueued_ns`, null of a simulation. Times of day are shown in the session's time zone.

    Before it returns, the files' names, sizes and footers are compared with each `run.json`, and the counters whole.
    Spark compares the checksum of each page that it reads. The session's settings stay as they are.

    Args:
        spark: any session of Spark 4.
        runs: run folders, by path or URI; recordings and simulations.
        table: `messages`, `counters` or `events`; a run whose level lacks it has no rows.

    Raises:
        UsageError: no run is named, or there is no such table.
        NotFound: a folder is not a run folder.
        Damaged: a file of a run is missing or was changed.
    """
    if table not in READ:
        raise UsageError(f"there is no table {table!r} of a run for Spark", remedy=f"Use one of {', '.join(READ)}.")
    if isinstance(runs, str) or not runs:
        raise UsageError("no list of runs is given", remedy='Name them as in ["run"], as `qsctl simulate` prints them.')
    found = [read_run(location(run)) for run in runs]
    frames = [
        _with_facts(read_table(spark, run, run.info.run_id, table), run, table) for run in found if run.parts[table]
    ]
    if not frames:
        shape = StructType([field for field in READ[table].fields if field.name != "run_id"])
        rows = spark.createDataFrame([], shape).selectExpr("*", f"{literal('')} as run_id")
        return _with_facts(rows, found[0], table)
    if len(frames) == 1:
        return frames[0]
    # One statement is analyzed once; frames that are united one by one are each time.
    named: dict[str, Any] = {f"run{number}": frame for number, frame in enumerate(frames)}
    return spark.sql(" union all ".join(f"select * from {{{name}}}" for name in named), **named)


def _with_facts(frame: DataFrame, run: SummarizedRun, table: str) -> DataFrame:
    """Return the rows with their run's facts, and a time of day beside each instant."""
    info = run.info
    recording = info.recording or None
    started = "cast(null as timestamp)"
    if recording is not None:
        started = f"timestamp_micros({recording.started_at_ns // 1000})"
    instants = [field.name for field in LOG_TABLES[table] if time_of(field) is TimeKind.INSTANT]
    return frame.selectExpr(
        "*",
        f"{literal(str(run.folder))} as folder",
        f"{literal(info.scenario)} as scenario",
        f"{literal(info.model)} as model",
        f"cast({info.seed} as bigint) as seed",
        f"{'true' if info.complete else 'false'} as is_complete",
        f"cast({run.warm_up_ns} as bigint) as warm_up_ns",
        f"cast({run.horizon_ns} as bigint) as horizon_ns",
        f"{started} as started_at",
        *(f"{_time_of_day(name, recording)} as {name.removesuffix('_ns')}_time" for name in instants),
    )


def _time_of_day(instant: str, recording: Recording | None) -> str:
    """Return the expression of an instant's time of day, in whole numbers: Unix times are too large for fractions."""
    if recording is None:
        return "cast(null as timestamp)"
    unix_ns = f"({recording.started_at_ns} + {instant})"
    return f"timestamp_micros(({unix_ns} - pmod({unix_ns}, 1000)) div 1000)"


def _escaped(path: str) -> str:
    """Return the path as a pattern that matches it alone: Spark expands `[`, `{`, `*` and `?`."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)
