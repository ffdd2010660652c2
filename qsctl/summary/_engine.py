"""The interface of the computation of frames: by Spark, or by DuckDB in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qsctl.eventlog.location import Location
from qsctl.summary.recorded_run import SummarizedRun


class SummaryEngine(Protocol):
    """Makes frames, which know how to compute themselves.

    The frames of DuckDB have as much of a `DataFrame` as measures use (`local.session.LocalFrame`).
    """

    def read(self, runs: Sequence[SummarizedRun], table: str) -> DataFrame:
        """Return a table of some runs, with `run_number` and `replication` (`log_frames.read_tables`)."""

    def frame(self, rows: pa.Table) -> DataFrame:
        """Return rows of this process as a frame."""

    def materialized(self, frame: DataFrame) -> DataFrame:
        """Return the rows of a frame that several others read, computed now."""

    def append(self, frame: DataFrame, folder: Location) -> None:
        """Write the rows of a frame as files of Parquet, beside those that a folder has."""

    def files(self, paths: Sequence[Location], shape: StructType) -> DataFrame:
        """Return the rows of files of Parquet."""

    def fraction(self) -> float:
        """Return how much of what is being computed is done, from 0 to 1; may be called from another thread."""
