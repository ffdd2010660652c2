"""The simulator's own counters: what a run without a message log is summarized from."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from qsctl.summary.measures.observation import exact_sum, listed
from qsctl.summary.run_summary import COUNTS


def recorded(counters: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the counters of each group and replication, with the sum of waits in two parts (`exact_sum`).

    With that put together they are what `finishing.counters.counted` makes of a log.

    Args:
        counters: of `tables.COUNTERS`.
        keys: the columns grouped by.
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
    """Return delivered messages by these keys and latency bucket out of the sparse histograms: they merge exactly.

    Args:
        counters: of `tables.COUNTERS`.
        keys: the columns grouped by; `replication` is always one of the groups besides.
    """
    each = listed(*keys, "replication")
    return counters.sparkSession.sql(
        f"""with pairs as (
            select {each}, posexplode(histogram_bucket) as (place, bucket), histogram_count as counts from {{counters}}
        )
        select {each}, bucket, sum(element_at(counts, place + 1)) as messages from pairs group by {each}, bucket""",
        counters=counters,
    )
