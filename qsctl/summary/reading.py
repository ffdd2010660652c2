"""Read a run folder: its log and counters as frames of Spark, its marks and limits as a small table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from qsctl.errors import Damaged
from qsctl.eventlog.run_folder import parts_of
from qsctl.summary import tables
from qsctl.summary.observation import literal
from qsctl.summary.recorded_run import RecordedRun

_LIMITS: Final = ("client_id", "client", "queue", "high_water_mark_work_units", "max_depth_work_units", "observed_ns")


def read_messages(spark: SparkSession, run: RecordedRun) -> DataFrame:
    """The message log of a run, with the replication that each folder's name tells."""
    folder = run.folder / "messages"
    numbers = ", ".join(map(str, run.replications))
    messages = spark.read.schema(MESSAGES_DDL).option("basePath", str(folder)).parquet(str(folder))
    return messages.where(f"replication in ({numbers})").selectExpr("*", f"{literal(run.info.run_id)} as run_id")


def read_counters(spark: SparkSession, run: RecordedRun) -> DataFrame:
    """The simulator's counters of a run."""
    folder = run.folder / "counters"
    counters = spark.read.schema(COUNTERS_DDL).option("basePath", str(folder)).parquet(str(folder))
    return counters.selectExpr("*", f"{literal(run.info.run_id)} as run_id")


def read_events(spark: SparkSession, run: RecordedRun) -> DataFrame:
    """The events of a run at level `events`."""
    folder = run.folder / "events"
    return spark.read.schema(EVENTS_DDL).option("basePath", str(folder)).parquet(str(folder))


def read_limits(run: RecordedRun) -> pa.Table:
    """Of each client's queue and replication the marks, limits and observed time, which no message tells.

    Raises:
        Damaged: a file of counters cannot be read.
    """
    parts = []
    for path in parts_of(run.folder, "counters"):
        try:
            part = pq.ParquetFile(path).read(columns=list(_LIMITS))
        except (OSError, pa.ArrowException) as error:
            raise Damaged(f"{path} cannot be read: {error}", remedy="Run the simulation again.") from None
        replication = int(path.parent.name.partition("=")[2])
        made = {name: part[name].cast(pa.string()) if name in {"client", "queue"} else part[name] for name in _LIMITS}
        rows = part.num_rows
        made["replication"] = pc.fill_null(pa.nulls(rows, pa.int32()), replication)
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
