"""A frame that several others read, computed once and for all.

Decides: where its rows stay meanwhile. `persist` would not do: Spark forgets a cached frame as soon as a temporary view
of it is dropped, and every `sql(text, name=frame)` makes and drops one. And what reads such a frame is planned
without everything that led to it.
"""

from __future__ import annotations

from pyspark import StorageLevel
from pyspark.sql import DataFrame


def materialized(frame: DataFrame) -> DataFrame:
    """Return the rows of a frame, computed now and kept in memory or on disk until nothing refers to them.

    On a cluster each row is kept by two executors, so that the loss of one costs nothing.
    """
    is_local = str(frame.sparkSession.conf.get("spark.master")).startswith("local")
    return frame.localCheckpoint(
        eager=True, storageLevel=StorageLevel.MEMORY_AND_DISK if is_local else StorageLevel.MEMORY_AND_DISK_2
    )
