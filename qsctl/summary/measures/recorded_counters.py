"""The simulator's own counters, from which runs without a message log are summarized."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from qsctl.summary.measures.observation import exact_sum, listed
from qsctl.summary.run_summary import COUNTS


def recorded(counters: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the counters of each group and replication, with the sum of waits in two parts (`exact_sum`).

    With these combined, they equal the result of `finishing.counters.counted` for a log.

    Args:
        counters: rows of `tables.COUNTERS`.
        keys: the grouping columns.
    """
    sums = ", ".join(exact_sum(name, name) if name == "wait_sum_ns" else f"sum({name}) as {name}" for name in COUNTS)
    each = listed(*keys, "replication")
    return counters.sparkSession.sql(
        f"""select {each}, {sums}, max(high_water_mark_work_units) as high_water_mark_work_units,
            max(max_depth_work_units) as max_depth_work_units, min(first_discard_ns) as first_discard_ns,
            max(if(delivered_messages > 0, wait_max_ns, null)) as wait_max_ns, max(observed_ns) as observed_ns
        from {{counters}} group by {each}""",
        counters=counters,
    )


def histogram(counters: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return delivered messages by these keys and latency bucket from the sparse histograms, which merge exactly.

    Args:
        counters: rows of `tables.COUNTERS`.
        keys: the grouping columns; `replication` is always an additional one.
    """
    each = listed(*keys, "replication")
    return counters.sparkSession.sql(
        f"""with pairs as (
            select {each}, posexplode(histogram_bucket) as (place, bucket), histogram_count as counts from {{counters}}
        )
        select {each}, bucket, sum(element_at(counts, place + 1)) as messages from pairs group by {each}, bucket""",
        counters=counters,
    )
