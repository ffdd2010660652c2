"""The depth of each queue at every window's end, as a cumulative sum of the messages that entered and left.

The sum runs in each group separately, since one running sum over the whole log would put all rows into one task.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from qsctl.summary.measures.observation import listed


def depth(windows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return one row for each group, replication and window with any movement, in the schema `tables.DEPTH`.

    Args:
        windows: result of `throughput.windows`, with these keys.
        keys: the grouping columns; `replication` is always an additional one.
    """
    each = listed(*keys, "replication")
    return windows.sparkSession.sql(
        f"""select {each}, window_start_ns + window_ns as at_ns,
            sum(entered_messages - left_messages) over so_far as depth_messages,
            sum(entered_work_units - left_work_units) over so_far as depth_work_units
        from {{windows}}
        window so_far as (partition by {each} order by window_start_ns rows unbounded preceding)""",
        windows=windows,
    )
