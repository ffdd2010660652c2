"""The interface of the engines that compute frames: Spark, or DuckDB in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qsctl.eventlog.location import Location
from qsctl.summary.recorded_run import SummarizedRun


class SummaryEngine(Protocol):
    """An engine that creates lazily computed frames.

    The frames of DuckDB have the part of the `DataFrame` interface that measures use (`local._session.LocalFrame`).
    """

    def read(self, runs: Sequence[SummarizedRun], table: str) -> DataFrame:
        """Return a table of some runs, with `run_number` and `replication` (`_log_frames.read_tables`)."""

    def frame(self, rows: pa.Table) -> DataFrame:
        """Return an Arrow table as a frame."""

    def materialized(self, frame: DataFrame) -> DataFrame:
        """Compute a frame now, for use by several others, and return a frame of the stored rows."""

    def append(self, frame: DataFrame, folder: Location) -> None:
        """Write the rows of a frame as Parquet files into a folder, in addition to the files there."""

    def files(self, paths: Sequence[Location], shape: StructType) -> DataFrame:
        """Return the rows of Parquet files."""

    def fraction(self) -> float:
        """Return the completed fraction, from 0 to 1, of the computation in progress; thread-safe."""
