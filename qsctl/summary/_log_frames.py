"""The tables of run folders as Spark DataFrames: of one run, and of many in one plan with the facts of each run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StructType

from qsctl.errors import UsageError
from qsctl.eventlog.checked_files import PAGE_CHECKSUMS
from qsctl.eventlog.described import TimeKind, time_of
from qsctl.eventlog.location import Location, location, spark_path, spark_pattern
from qsctl.eventlog.schema import SINCE_REJECTED
from qsctl.eventlog.tables import LOG_TABLES
from qsctl.summary.measures import tables
from qsctl.summary.measures.by_run import RUN_NUMBER
from qsctl.summary.measures.tables import time_of_day
from qsctl.summary.recorded_run import SummarizedRun, read_run

READ: Final[Mapping[str, StructType]] = {
    "messages": tables.MESSAGES, "counters": tables.COUNTERS, "events": tables.EVENTS,
}  # fmt: skip
"""The tables of a run folder and their schemas."""


def read_tables(spark: SparkSession, runs: Sequence[SummarizedRun], table: str) -> DataFrame:
    """Return a table of some runs as one frame: the files that the runs list, with `run_number` and `replication`.

    Other files in the folders are not read, nor are the runs' names in the files, which `run.json` has. The files of
    several runs are one scan; a broadcast table has the run of each file.

    Args:
        spark: any session of Spark 4.
        runs: at least one; those without files of the table have no rows.
        table: one of `READ`.
    """
    shape = StructType([field for field in READ[table].fields if field.name not in {"run_id", "replication"}])
    parts = {
        spark_path(part.path): (number, part.replication)
        for number, run in enumerate(runs)
        for part in run.parts[table]
    }
    patterns = [spark_pattern(part.path) for run in runs for part in run.parts[table]]
    if not parts:
        return spark.createDataFrame([], shape.add(RUN_NUMBER, IntegerType()).add("replication", IntegerType()))
    reader = spark.read.options(**PAGE_CHECKSUMS)
    if len(runs) == 1:
        shape = shape.add("replication", IntegerType())
        reader = reader.option("basePath", spark_path(runs[0].folder / table))
    frame = reader.schema(shape).parquet(*patterns)
    if table == "counters":
        frame = frame.fillna(0, [*SINCE_REJECTED])  # columns that runs of earlier versions lack
    if len(runs) == 1:
        return frame.selectExpr("*", f"0 as {RUN_NUMBER}")
    places = spark.createDataFrame(_places(frame, parts))
    return spark.sql(
        f"""select /*+ broadcast(places) */ log.* except ({_FILE}),
            coalesce(places.{RUN_NUMBER}, raise_error(concat({_FILE}, ' is not of these runs'))) as {RUN_NUMBER},
            places.replication
        from {{log}} as log left join {{places}} as places on log.{_FILE} = places.file""",
        log=frame.selectExpr("*", f"_metadata.file_path as {_FILE}"),
        places=places,
    )


_FILE: Final = "file_of_row"
_LOCAL: Final = re.compile(r"file:/+")


def _places(frame: DataFrame, parts: Mapping[str, tuple[int, int]]) -> pa.Table:
    """Return the run and replication of each file of a frame, by Spark's URI of the file.

    Spark escapes paths in its own way, and begins the URI of a local file with one slash or with three.
    """
    files, numbers, replications = [], [], []
    for uri in frame.inputFiles():
        number, replication = parts[_LOCAL.sub("/", unquote(uri))]
        for variant in {uri, _LOCAL.sub("file:/", uri), _LOCAL.sub("file:///", uri)}:
            files.append(variant)
            numbers.append(number)
            replications.append(replication)
    return pa.table(
        {
            "file": pa.array(files, pa.string()),
            RUN_NUMBER: pa.array(numbers, pa.int32()),
            "replication": pa.array(replications, pa.int32()),
        }
    )


def read_runs(spark: SparkSession, runs: Sequence[Location | str], table: str = "messages") -> DataFrame:
    """Return a table of many runs as one lazily computed frame, in one plan.

    Besides the columns of the table (`qsctl help reference-event-log`) each row has the facts of its run: `folder`,
    `scenario`, `model`, `seed`, `is_complete`, `warm_up_ns`, `horizon_ns` and `started_at`, the timestamp of instant 0.
    Each instant also has a timestamp column, to the microsecond, such as `enqueued_time` for `enqueued_ns`. Timestamps
    are null for a simulation, and are shown in the session's time zone.

    Before it returns, the files' names, sizes and footers, and the whole counters, are verified against each
    `run.json`. Spark verifies the checksum of each page that it reads. The session's settings stay as they are.

    Args:
        spark: any session of Spark 4.
        runs: run folders, by path or URI; recordings and simulations.
        table: `messages`, `counters` or `events`; a run whose level lacks it has no rows.

    Raises:
        UsageError: no run is named, or the table does not exist.
        NotFound: a folder is not a run folder.
        Damaged: a file of a run is missing or was changed.
    """
    if table not in READ:
        raise UsageError(f"there is no table {table!r} of a run for Spark", remedy=f"Use one of {', '.join(READ)}.")
    if isinstance(runs, str) or not runs:
        raise UsageError("no list of runs is given", remedy='Name them as in ["run"], as `qsctl simulate` prints them.')
    found = [read_run(location(run)) for run in runs]
    frame = read_tables(spark, found, table)
    instants = [field.name for field in LOG_TABLES[table] if time_of(field) is TimeKind.INSTANT]
    started_ns = [run.info.recording.started_at_ns if run.info.recording else None for run in found]
    facts = spark.createDataFrame(
        pa.table(
            {
                RUN_NUMBER: pa.array(range(len(found)), pa.int32()),
                **{name: pa.array([value(run) for run in found], kind) for name, (kind, value) in _FACTS.items()},
            }
        )
    )
    columns = [field.name for field in READ[table].fields if field.name != "run_id"]
    times = [f"{time_of_day(name, started_ns)} as {name.removesuffix('_ns')}_time" for name in instants]
    started = f"{time_of_day('0L', started_ns)} as started_at"
    return spark.sql(
        f"""select /*+ broadcast(facts) */ {", ".join([*columns, *_FACTS, started, *times])}
        from {{log}} as log join {{facts}} as facts using ({RUN_NUMBER})""",
        log=frame,
        facts=facts,
    )


_FACTS: Final[Mapping[str, tuple[pa.DataType, Callable[[SummarizedRun], Any]]]] = {
    "run_id": (pa.string(), lambda run: run.info.run_id),
    "folder": (pa.string(), lambda run: str(run.folder)),
    "scenario": (pa.string(), lambda run: run.info.scenario),
    "model": (pa.string(), lambda run: run.info.model),
    "seed": (pa.int64(), lambda run: run.info.seed),
    "is_complete": (pa.bool_(), lambda run: run.info.complete),
    "warm_up_ns": (pa.int64(), lambda run: run.warm_up_ns),
    "horizon_ns": (pa.int64(), lambda run: run.horizon_ns),
}
"""The columns of a run's facts, except the instant of its start."""
