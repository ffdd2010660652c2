"""The engine that computes frames with DuckDB, in this process, from local files."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
from pyspark.sql.types import StructType

from qsctl.eventlog.location import Location
from qsctl.eventlog.schema import SINCE_REJECTED
from qsctl.summary._log_frames import READ
from qsctl.summary.local._session import LocalSession
from qsctl.summary.measures.by_run import RUN_NUMBER
from qsctl.summary.recorded_run import SummarizedRun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class LocalEngine:
    """An engine on a DuckDB session."""

    def __init__(self, session: LocalSession) -> None:
        self._session: Final = session

    def read(self, runs: Sequence[SummarizedRun], table: str) -> DataFrame:
        """Return a table of some runs."""
        shape = StructType([field for field in READ[table].fields if field.name not in {"run_id", "replication"}])
        parts = [(number, part) for number, run in enumerate(runs) for part in run.parts[table]]
        constants = {
            RUN_NUMBER: [number for number, _ in parts],
            "replication": [part.replication for _, part in parts],
        }
        frame = self._session.files([Path(str(part.path)) for _, part in parts], shape, constants)
        if table == "counters":  # some of its columns are missing in runs of earlier versions
            frame = frame.selectExpr(
                f"* except ({', '.join(SINCE_REJECTED)})",
                *(f"coalesce({name}, 0) as {name}" for name in SINCE_REJECTED),
            )
        return _as_frame(frame)

    def frame(self, rows: pa.Table) -> DataFrame:
        """Return an Arrow table as a frame."""
        return _as_frame(self._session.createDataFrame(rows))

    def materialized(self, frame: DataFrame) -> DataFrame:
        """Compute a frame now and return a frame of the stored rows."""
        return _as_frame(self._session.materialized(cast("Any", frame)))

    def append(self, frame: DataFrame, folder: Location) -> None:
        """Write the rows of a frame as a Parquet file into a folder, in addition to the files there.

        Raises:
            OSError: the disk is full, or the folder cannot be written.
        """
        folder.mkdir(parents=True, exist_ok=True)
        file = Path(str(folder)) / f"part-{secrets.token_hex(8)}.parquet"
        self._session.write(cast("Any", frame), file)

    def files(self, paths: Sequence[Location], shape: StructType) -> DataFrame:
        """Return the rows of Parquet files."""
        return _as_frame(self._session.files([Path(str(path)) for path in paths], shape, {}))

    def fraction(self) -> float:
        """Return the completed fraction of the computation in progress."""
        return self._session.fraction()


@contextmanager
def local_engine() -> Iterator[LocalEngine]:
    """Yield an engine whose memory and files are freed when the block ends.

    Raises:
        OSError: the folder for temporary files cannot be written.
    """
    session = LocalSession()
    try:
        yield LocalEngine(session)
    finally:
        session.close()


def _as_frame(frame: Any) -> DataFrame:
    """Cast a local frame to the type `DataFrame`, whose common part measures use."""
    return cast("DataFrame", frame)
