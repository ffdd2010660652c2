"""Read a run folder: its log and counters as frames of Spark, its marks and limits as a small table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from qsctl.errors import Damaged
from qsctl.summary import tables
from qsctl.summary.observation import literal
from qsctl.summary.recorded_run import RecordedRun

_LIMITS: Final = (
    "client_id", "client", "queue", "high_water_mark_work_units", "max_depth_work_units", "observed_ns",
    "evicted_messages",
)  # fmt: skip


def read_messages(spark: SparkSession, run: RecordedRun) -> DataFrame:
    """The message log of a run, with the replication that each folder's name tells."""
    return _read(spark, run, "messages", MESSAGES_DDL).selectExpr("*", f"{literal(run.info.run_id)} as run_id")


def read_counters(spark: SparkSession, run: RecordedRun) -> DataFrame:
    """The simulator's counters of a run."""
    return _read(spark, run, "counters", COUNTERS_DDL).selectExpr("*", f"{literal(run.info.run_id)} as run_id")


def read_events(spark: SparkSession, run: RecordedRun) -> DataFrame:
    """The events of a run at level `events`."""
    return _read(spark, run, "events", EVENTS_DDL)


def _read(spark: SparkSession, run: RecordedRun, table: str, ddl: str) -> DataFrame:
    """The files that were checked, by name: whatever else lies in the folder is not read."""
    paths = [_escaped(str(part.path)) for part in run.parts[table]]
    return spark.read.schema(ddl).option("basePath", str(run.folder / table)).parquet(*paths)


def _escaped(path: str) -> str:
    """The path as a pattern that matches it alone: Spark expands `[`, `{`, `*` and `?`."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def read_limits(run: RecordedRun) -> pa.Table:
    """Of each client's queue and replication the marks, limits and observed time, which no message tells.

    Raises:
        Damaged: a file of counters cannot be read.
    """
    parts = []
    for file in run.parts["counters"]:
        try:
            part = pq.ParquetFile(file.path).read(columns=list(_LIMITS))
        except (OSError, pa.ArrowException) as error:
            raise Damaged(f"{file.path} cannot be read: {error}", remedy="Run the simulation again.") from None
        made = {name: part[name].cast(pa.string()) if name in {"client", "queue"} else part[name] for name in _LIMITS}
        rows = part.num_rows
        made["replication"] = pc.fill_null(pa.nulls(rows, pa.int32()), file.replication)
        made["run_id"] = pc.fill_null(pa.nulls(rows, pa.string()), run.info.run_id)
        parts.append(pa.table(made))
    return pa.concat_tables(parts)


def names_of(limits: pa.Table) -> Mapping[int, str]:
    """Clients' names by number."""
    return dict(zip(limits["client_id"].to_pylist(), limits["client"].to_pylist(), strict=True))


def _ddl(table: StructType) -> str:
    """A schema as one text; the run's name is not read from the files, for `run.json` has it."""
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in table if field.name != "run_id")


MESSAGES_DDL: Final = _ddl(tables.MESSAGES)
COUNTERS_DDL: Final = _ddl(tables.COUNTERS)
EVENTS_DDL: Final = _ddl(tables.EVENTS)
