"""A frame that several others read, computed once and for all.

Decides: where its rows stay meanwhile. `persist` would not do: Spark forgets a cached frame as soon as a temporary view
of it is dropped, and every `sql(text, name=frame)` makes and drops one. And what reads a settled frame is planned
without everything that led to it.
"""

from __future__ import annotations

import math
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame

FEW_ROWS: Final = 1_000_000
"""What one task goes through in a second or so: less than dividing the work again and again would take."""


def settled(frame: DataFrame, rows_max: float = math.inf) -> DataFrame:
    """The same rows, computed now, in memory or beside it on disk until nobody refers to them.

    On a cluster each row is kept by two executors, so that the loss of one costs nothing.

    Args:
        frame: what to compute.
        rows_max: how many rows there can be. A few are put in one part, and whatever is computed
            from them is then one task without an exchange.
    """
    if rows_max <= FEW_ROWS:
        frame = frame.coalesce(1)
    is_local = str(frame.sparkSession.conf.get("spark.master")).startswith("local")
    return frame.localCheckpoint(
        eager=True, storageLevel=StorageLevel.MEMORY_AND_DISK if is_local else StorageLevel.MEMORY_AND_DISK_2
    )
