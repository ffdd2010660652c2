"""Depth over time: what is in each queue at every window's end, a cumulative sum over the windows' ins and outs.

The sum runs in each group by itself. One running sum over the whole log would put all of it into one task.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from qsctl.summary.tables import DEPTH, shaped


def depth(windows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """One row a group, replication and window in which anything moved: the depth at the window's end.

    Args:
        windows: of `throughput.windows`, with these keys.
        keys: the columns grouped by; `replication` is always one of the groups besides.
    """
    each = list(dict.fromkeys([*keys, "replication"]))
    so_far = (
        Window.partitionBy(*each).orderBy("window_start_ns").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return shaped(
        windows.select(
            *each,
            (f.col("window_start_ns") + f.col("window_ns")).alias("at_ns"),
            f.sum(f.col("arrived_messages") - f.col("left_messages")).over(so_far).alias("depth_messages"),
            f.sum(f.col("entered_work_units") - f.col("left_work_units")).over(so_far).alias("depth_work_units"),
        ),
        DEPTH,
    )
