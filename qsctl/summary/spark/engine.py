"""The engine that computes frames with Spark, on any session: of this process, of a platform, of Spark Connect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from qsctl.eventlog.location import Location, spark_path, spark_pattern
from qsctl.summary._log_frames import read_tables
from qsctl.summary.recorded_run import SummarizedRun
from qsctl.summary.spark.faults import full_disk_as_of_the_system


class SparkEngine:
    """An engine on a Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Final = spark
        self._tracker: Any = None

    def read(self, runs: Sequence[SummarizedRun], table: str) -> DataFrame:
        """Return a table of some runs."""
        return read_tables(self._spark, runs, table)

    def frame(self, rows: pa.Table) -> DataFrame:
        """Return an Arrow table as a frame with one partition, since the rows are few."""
        if rows.num_rows:
            return self._spark.createDataFrame(rows).coalesce(1)
        # Spark Connect refuses an Arrow table without rows, although it has a schema.
        unknown = pa.Table.from_pylist([dict.fromkeys(rows.schema.names)], pa.schema([*map(_nullable, rows.schema)]))
        return self._spark.createDataFrame(unknown).limit(0)

    def materialized(self, frame: DataFrame) -> DataFrame:
        """Compute a frame now and keep its rows in memory or on disk while a frame refers to them.

        `persist` does not suffice: Spark drops a cached frame as soon as a temporary view of it is dropped, and every
        `sql(text, name=frame)` makes and drops one. Moreover, plans that read the result do not include its
        computation. On a cluster each row is stored by two executors, so that the loss of one needs no recomputation.
        """
        is_local = str(self._spark.conf.get("spark.master")).startswith("local")
        return frame.localCheckpoint(
            eager=True, storageLevel=StorageLevel.MEMORY_AND_DISK if is_local else StorageLevel.MEMORY_AND_DISK_2
        )

    def append(self, frame: DataFrame, folder: Location) -> None:
        """Write the rows of a frame as Parquet files into a folder, in addition to the files there.

        Raises:
            OSError: the disk is full.
        """
        with full_disk_as_of_the_system():
            frame.write.mode("append").parquet(spark_path(folder))

    def files(self, paths: Sequence[Location], shape: StructType) -> DataFrame:
        """Return the rows of Parquet files."""
        return self._spark.read.schema(shape).parquet(*map(spark_pattern, paths))

    def fraction(self) -> float:
        """Return the completed fraction of the tasks of all running stages; 0 if none runs.

        Raises:
            PySparkException: the session is remote, and does not expose its stages.
        """
        if self._tracker is None:
            self._tracker = self._spark.sparkContext.statusTracker()
        stages = [self._tracker.getStageInfo(each) for each in self._tracker.getActiveStageIds()]
        known = [each for each in stages if each is not None]
        tasks = sum(each.numTasks for each in known)
        return sum(each.numCompletedTasks for each in known) / tasks if tasks else 0.0


def _nullable(field: pa.Field) -> pa.Field:
    return field.with_nullable(True)
