"""Latency percentiles of the wait: exact by two passes where that is affordable, else from the histogram.

The first pass tells in which bucket a percentile's rank falls and how many messages lie in the buckets before. The
second pass reads only those buckets' messages and counts down the rest of the rank. An exact `percentile` over the
whole log was measured to take twice as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame

from qsctl.eventlog.schema import BUCKETS_PER_OCTAVE_BITS
from qsctl.summary.loss import LOSS_RATIO
from qsctl.summary.observation import DELIVERED, LEFT_NS, Observation, listed

PERCENTILES: Final[dict[str, tuple[int, int]]] = {
    "p50_ns": (50, 100),
    "p90_ns": (90, 100),
    "p95_ns": (95, 100),
    "p99_ns": (99, 100),
    "p999_ns": (999, 1000),
}
"""Each percentile as an exact fraction: a rank computed from 0.999 would be one off now and then."""

BUCKET_ERROR: Final = 2.0**-BUCKETS_PER_OCTAVE_BITS
"""A figure read from a bucket is its last duration: at most this share above the true one."""


def ranks(histogram: DataFrame, keys: Sequence[str]) -> DataFrame:
    """For each group and percentile: the bucket that holds its nearest rank, and the rank inside that bucket.

    Args:
        histogram: of `counters.histogram`, with these keys.
        keys: the columns grouped by, at least one.

    Returns:
        The keys, `percentile` (the name), `bucket` and `rank` (from 1).
    """
    # ceil(n × part / whole) in integers.
    wanted = ", ".join(
        f"struct('{name}' as percentile, (messages * {part} + {whole - 1}) div {whole} as overall)"
        for name, (part, whole) in PERCENTILES.items()
    )
    return histogram.sparkSession.sql(
        f"""with cumulated as (
            select {listed(*keys)}, bucket, messages as inside,
                sum(messages) over (partition by {listed(*keys)} order by bucket rows unbounded preceding) as up_to,
                sum(messages) over (partition by {listed(*keys)}) as messages
            from {{histogram}})
        select {listed(*keys)}, percentile, bucket, overall - up_to + inside as rank
        from (select *, inline(array({wanted})) from cumulated)
        where overall <= up_to and overall > up_to - inside""",
        histogram=histogram,
    )


def exact_values(
    messages: DataFrame, ranked: DataFrame, observation: Observation, keys: Sequence[str], bucket: str
) -> DataFrame:
    """The second pass: the duration at each rank, reading only the messages of the buckets that hold one.

    Args:
        messages: the message log with the key columns.
        ranked: of `ranks`, over the same bucket.
        observation: the observed part of the run.
        keys: the columns grouped by.
        bucket: the one that the ranks were found with.

    Returns:
        The keys, `percentile` and `value_ns`.
    """
    place = listed(*keys, "bucket")
    return messages.sparkSession.sql(
        f"""with sent as (
            select {listed(*keys)}, wait_ns, {bucket} as bucket from {{messages}}
            where {DELIVERED} and {observation.counts(LEFT_NS)}
        ), needed as (select distinct {place} from {{ranked}}
        ), alike as (
            select /*+ broadcast(needed) */ {place}, wait_ns, count(1) as alike
            from sent left semi join needed using ({place}) group by {place}, wait_ns
        ), cumulated as (
            select *, sum(alike) over (partition by {place} order by wait_ns rows unbounded preceding) as up_to
            from alike
        )
        select /*+ broadcast(wanted) */ {listed(*keys)}, percentile, wait_ns as value_ns
        from cumulated join {{ranked}} as wanted using ({place}) where rank <= up_to and rank > up_to - alike""",
        messages=messages,
        ranked=ranked,
    )


def bucket_values(ranked: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The last duration of the histogram's bucket at each rank: within `BUCKET_ERROR` above the exact one."""
    return ranked.selectExpr(*keys, "percentile", f"{bucket_end_ns()} as value_ns")


def bucket_end_ns() -> str:
    """The last duration of the column `bucket`, as `eventlog.schema.bucket_bounds_ns` computes it."""
    bits = BUCKETS_PER_OCTAVE_BITS
    shift = f"greatest(0, shiftright(bucket, {bits}) - 1)"
    return f"(shiftleft(bigint(bucket - shiftleft({shift}, {bits}) + 1), {shift}) - 1L)"


def figures(counters: DataFrame, values: DataFrame, keys: Sequence[str], relative_error: float) -> DataFrame:
    """The counters of each group with its mean wait and its percentiles, null where nothing was delivered.

    Args:
        counters: of `counters.queues`, with these keys.
        values: of `exact_values` or `bucket_values`.
        keys: the columns grouped by.
        relative_error: 0 for exact values, else `BUCKET_ERROR`.
    """
    wide = ", ".join(f"max(if(percentile = '{name}', value_ns, null)) as {name}" for name in PERCENTILES)
    # The end of the last bucket may lie above the largest duration, which is known exactly.
    bounded = ", ".join(f"least({name}, wait_max_ns) as {name}" for name in PERCENTILES)
    return counters.sparkSession.sql(
        f"""with wide as (select {listed(*keys)}, {wide} from {{values}} group by {listed(*keys)})
        select counters.*, {bounded}, delivered_messages as messages, wait_max_ns as max_ns,
            if(delivered_messages > 0, double(wait_sum_ns) / delivered_messages, null) as mean_ns,
            double({relative_error}) as relative_error, {LOSS_RATIO} as loss_ratio
        from {{counters}} as counters left join wide using ({listed(*keys)})""",
        counters=counters,
        values=values,
    )
