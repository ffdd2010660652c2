"""The counters after warm-up, out of the message log: one pass that every figure of `queues` and `delays` comes from.

`tally` reads the log once and keeps one row a group, replication and latency bucket; the rest works on that small
frame. `from_counters` gives the same frame out of the simulator's own counters, for runs without a message log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from qsctl.eventlog.schema import Outcome
from qsctl.summary.observation import (
    Observation,
    bucket_of,
    counted,
    counted_at,
    delivered,
    ended_as,
    left_ns,
    still_queued,
    summed,
)
from qsctl.summary.tables import COUNTS, HISTOGRAM, QUEUES, shaped

_SUMS: Final = (*COUNTS, "observed_ns")


def tally(messages: DataFrame, observation: Observation, keys: Sequence[str]) -> DataFrame:
    """One row a group, replication and bucket of the wait (null for what was not delivered).

    Args:
        messages: the message log with the key columns.
        observation: the observed part of the run.
        keys: the columns grouped by; `replication` is always one of the groups besides.
    """
    since = counted_at(f.col("enqueued_ns"), observation)
    left = counted_at(left_ns(), observation)
    sent = delivered() & left
    groups = list(dict.fromkeys([*keys, "replication"]))
    bucket = f.when(sent, bucket_of("wait_ns")).alias("bucket")
    return messages.groupBy(*groups, bucket).agg(
        counted(since).alias("arrived_messages"),
        counted(sent).alias("delivered_messages"),
        *(
            counted(ended_as(outcome) & left).alias(f"{outcome.value}_messages")
            for outcome in (Outcome.DISCARDED, Outcome.ELIDED, Outcome.EXPIRED, Outcome.DEAD)
        ),
        summed(f.col("attempts").cast("long") - f.lit(1), left & (f.col("attempts") > 1)).alias("redelivered_messages"),
        counted(f.col("discard_indication") & left).alias("discard_indications"),
        summed(f.col("size_bytes").cast("long"), sent).alias("delivered_bytes"),
        counted(still_queued()).alias("length_messages"),
        summed(f.col("work_units").cast("long"), still_queued()).alias("length_work_units"),
        summed(f.col("wait_ns"), sent).alias("wait_sum_ns"),
        f.max(f.when(sent, f.col("wait_ns"))).alias("wait_max_ns"),
        f.min(f.when(ended_as(Outcome.DISCARDED) & left, left_ns())).alias("first_discard_ns"),
    )


def histogram(tallied: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The latency histogram of each group, summed over the replications unless they are a key."""
    return shaped(
        tallied.where(f.col("bucket").isNotNull())
        .groupBy(*keys, "bucket")
        .agg(f.sum("delivered_messages").alias("messages")),
        HISTOGRAM,
    )


def queues(tallied: DataFrame, limits: DataFrame, observation: Observation, keys: Sequence[str]) -> DataFrame:
    """The counters of each group: the tally rolled up, with the marks and limits that the log cannot tell.

    Args:
        tallied: of `tally`, with these keys.
        limits: of `limits_of`, with these keys less the topic: one row a group and replication.
        observation: the observed part of the run.
        keys: the columns grouped by.
    """
    each = list(dict.fromkeys([*keys, "replication"]))
    per_replication = tallied.groupBy(*each).agg(
        *(f.sum(name).alias(name) for name in COUNTS),
        f.max("wait_max_ns").alias("wait_max_ns"),
        f.min("first_discard_ns").alias("first_discard_ns"),
    )
    shared = [name for name in each if name in limits.columns]
    # A queue that no message met still has a row; a topic's row takes its queue's marks.
    how = "full_outer" if shared == each else "right"
    joined = limits.join(per_replication, on=shared, how=how)
    # A client that no counter names took part all the time.
    return shaped(
        _rolled_up(joined.fillna({**dict.fromkeys(COUNTS, 0), "observed_ns": observation.observed_ns}), keys), QUEUES
    )


def limits_of(counters: DataFrame, keys: Sequence[str]) -> DataFrame:
    """High-water mark, limit and observed time of each group and replication: the largest of its queues."""
    each = list(dict.fromkeys([*keys, "replication"]))
    return counters.groupBy(*each).agg(
        f.max("high_water_mark_work_units").alias("high_water_mark_work_units"),
        f.max("max_depth_work_units").alias("max_depth_work_units"),
        f.max("observed_ns").alias("observed_ns"),
    )


def queues_from_counters(counters: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The same figures out of the simulator's own counters, for a run without a message log."""
    each = list(dict.fromkeys([*keys, "replication"]))
    per_replication = counters.groupBy(*each).agg(
        *(f.sum(name).alias(name) for name in COUNTS),
        f.max("high_water_mark_work_units").alias("high_water_mark_work_units"),
        f.max("max_depth_work_units").alias("max_depth_work_units"),
        f.max(f.when(f.col("delivered_messages") > 0, f.col("wait_max_ns"))).alias("wait_max_ns"),
        f.min("first_discard_ns").alias("first_discard_ns"),
        f.max("observed_ns").alias("observed_ns"),
    )
    return shaped(_rolled_up(per_replication, keys), QUEUES)


def histogram_from_counters(counters: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The latency histogram of each group out of the simulator's sparse ones: they merge exactly."""
    pairs = counters.select(*keys, f.explode(f.arrays_zip("histogram_bucket", "histogram_count")).alias("pair"))
    return shaped(
        pairs.groupBy(*keys, f.col("pair.histogram_bucket").alias("bucket")).agg(
            f.sum("pair.histogram_count").alias("messages")
        ),
        HISTOGRAM,
    )


def _rolled_up(per_replication: DataFrame, keys: Sequence[str]) -> DataFrame:
    return per_replication.groupBy(*keys).agg(
        f.count_distinct("replication").alias("replications"),
        *(f.sum(name).alias(name) for name in _SUMS),
        f.max("high_water_mark_work_units").alias("high_water_mark_work_units"),
        f.max("max_depth_work_units").alias("max_depth_work_units"),
        f.max("wait_max_ns").alias("wait_max_ns"),
        f.min("first_discard_ns").alias("first_discard_ns"),
    )
