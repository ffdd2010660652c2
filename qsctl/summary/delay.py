"""Latency percentiles of the wait: exact by two passes where that is affordable, else from the histogram.

The histogram tells in which bucket a percentile's rank falls and how many messages lie in the buckets before. The
second pass reads only those buckets' messages and counts down the rest of the rank. An exact `percentile` over the
whole log was measured to take twice as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from qsctl.eventlog.schema import BUCKETS_PER_OCTAVE_BITS
from qsctl.summary.observation import Observation, bucket_of, counted_at, delivered, left_ns
from qsctl.summary.tables import DELAYS, shaped

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
        keys: the columns grouped by.

    Returns:
        The keys, `percentile` (the name), `bucket`, `rank` (from 1) and `messages` (of the whole group).
    """
    group = Window.partitionBy(*keys) if keys else Window.partitionBy(f.lit(0))
    ascending = group.orderBy("bucket").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    cumulated = histogram.select(
        *keys,
        "bucket",
        f.col("messages").alias("inside"),
        f.sum("messages").over(ascending).alias("up_to"),
        f.sum("messages").over(group).alias("messages"),
    )
    wanted = f.explode(
        f.array(
            *(
                f.struct(
                    f.lit(name).alias("percentile"),
                    # ceil(n × part / whole) in integers.
                    f.expr(f"(messages * {part}L + {whole - 1}L) div {whole}L").alias("overall"),
                )
                for name, (part, whole) in PERCENTILES.items()
            )
        )
    )
    return (
        cumulated.withColumn("wanted", wanted)
        .where(
            (f.col("wanted.overall") <= f.col("up_to")) & (f.col("wanted.overall") > f.col("up_to") - f.col("inside"))
        )
        .select(
            *keys,
            f.col("wanted.percentile").alias("percentile"),
            "bucket",
            (f.col("wanted.overall") - f.col("up_to") + f.col("inside")).alias("rank"),
            "messages",
        )
    )


def exact_values(messages: DataFrame, ranked: DataFrame, observation: Observation, keys: Sequence[str]) -> DataFrame:
    """The second pass: the duration at each rank, reading only the messages of the buckets that hold one.

    Returns:
        The keys, `percentile` and `value_ns`.
    """
    needed = ranked.select(*keys, "bucket").distinct()
    sent = messages.where(delivered() & counted_at(left_ns(), observation)).select(
        *keys, bucket_of("wait_ns").alias("bucket"), "wait_ns"
    )
    inside = sent.join(f.broadcast(needed), on=[*keys, "bucket"], how="left_semi")
    durations = inside.groupBy(*keys, "bucket", "wait_ns").agg(f.count(f.lit(1)).alias("alike"))
    ascending = (
        Window.partitionBy(*keys, "bucket").orderBy("wait_ns").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    cumulated = durations.withColumn("up_to", f.sum("alike").over(ascending))
    return (
        cumulated.join(f.broadcast(ranked), on=[*keys, "bucket"], how="inner")
        .where((f.col("rank") <= f.col("up_to")) & (f.col("rank") > f.col("up_to") - f.col("alike")))
        .select(*keys, "percentile", f.col("wait_ns").alias("value_ns"))
    )


def bucket_values(ranked: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The last duration of the bucket at each rank: within `BUCKET_ERROR` above the exact one."""
    return ranked.select(*keys, "percentile", bucket_end_ns().alias("value_ns"))


def bucket_end_ns() -> Column:
    """The last duration of the column `bucket`, as `eventlog.schema.bucket_bounds_ns` computes it."""
    bits = BUCKETS_PER_OCTAVE_BITS
    shift = f"greatest(0, shiftright(bucket, {bits}) - 1)"
    return f.expr(f"shiftleft(bigint(bucket - shiftleft({shift}, {bits}) + 1), {shift}) - 1L")


def delays(counters: DataFrame, values: DataFrame, keys: Sequence[str], relative_error: float) -> DataFrame:
    """One row a group: how many were delivered, the mean, the percentiles, the maximum.

    Args:
        counters: of `counters.queues`, with these keys.
        values: of `exact_values` or `bucket_values`.
        keys: the columns grouped by.
        relative_error: 0 for exact values, else `BUCKET_ERROR`.
    """
    wide = values.groupBy(*keys).pivot("percentile", list(PERCENTILES)).agg(f.first("value_ns"))
    base = counters.where(f.col("delivered_messages") > 0).select(
        *keys,
        f.col("delivered_messages").alias("messages"),
        (f.col("wait_sum_ns") / f.col("delivered_messages")).alias("mean_ns"),
        f.col("wait_max_ns").alias("max_ns"),
        f.lit(relative_error).alias("relative_error"),
    )
    joined = base.join(wide, on=list(keys), how="inner") if keys else base.crossJoin(wide)
    # The end of the last bucket may lie above the largest duration, which is known exactly.
    bounded = {name: f.least(f.col(name), f.col("max_ns")).alias(name) for name in PERCENTILES}
    return shaped(joined.select(*keys, "messages", "mean_ns", "max_ns", "relative_error", *bounded.values()), DELAYS)
