"""Depth over time: what is in each queue at every window's end, a cumulative sum over the windows' ins and outs.

The sum runs in each group by itself. One running sum over the whole log would put all of it into one task.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from qsctl.summary.measures.observation import listed


def depth(windows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return one row a group, replication and window with any movement: a table of `tables.DEPTH`, with these keys.

    Args:
        windows: of `throughput.windows`, with these keys.
        keys: the columns grouped by; `replication` is always one of the groups besides.
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
