"""Depth over time: what is in each queue at every window's end, a cumulative sum over the windows' ins and outs.

G-1 holds a message until it is acknowledged (`holders.py`), so that its depth counts those that were sent.
The sum runs in each group by itself. One running sum over the whole log would put all of it into one task.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from qsctl.summary.groups import Whole, ordered, starts_of, whole, with_columns
from qsctl.summary.observation import listed


def depths(windows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The windows of `throughput.Windows`, each with the depth at its end."""
    each = list(dict.fromkeys([*keys, "replication"]))
    rows = ordered(windows, [*each, "window_start_ns"])
    first = starts_of(rows, each)
    lengths = np.diff(np.append(first, rows.num_rows))

    def so_far(entered: str, left: str) -> Whole:
        change = whole(rows, entered) - whole(rows, left)
        total = np.cumsum(change)
        return np.asarray(total - np.repeat(total[first] - change[first], lengths), np.int64)

    return with_columns(
        rows,
        {
            "at_ns": pa.array(whole(rows, "window_start_ns") + whole(rows, "window_ns")),
            "depth_messages": pa.array(so_far("arrived_messages", "left_messages")),
            "depth_work_units": pa.array(so_far("entered_work_units", "left_work_units")),
        },
    )


def with_depth(windows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The same of a frame of Spark: one row a group, replication and window in which anything moved.

    Args:
        windows: of `throughput.windows`, with these keys.
        keys: the columns grouped by; `replication` is always one of the groups besides.
    """
    each = listed(*keys, "replication")
    return windows.sparkSession.sql(
        f"""select *, window_start_ns + window_ns as at_ns,
            sum(arrived_messages - left_messages) over so_far as depth_messages,
            sum(entered_work_units - left_work_units) over so_far as depth_work_units
        from {{windows}}
        window so_far as (partition by {each} order by window_start_ns rows unbounded preceding)""",
        windows=windows,
    )
