"""Throughput and discards in windows of time: what entered and what left each window, by two small group-bys."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from qsctl.eventlog.schema import Outcome
from qsctl.instant import Nanoseconds
from qsctl.summary.observation import counted, delivered, ended_as, left_ns, left_queue, summed
from qsctl.summary.tables import WINDOWS, shaped


def windows(messages: DataFrame, keys: Sequence[str], window_ns: Nanoseconds) -> DataFrame:
    """One row a group, replication and window in which anything entered or left a queue.

    Args:
        messages: the message log with the key columns.
        keys: the columns grouped by; `replication` is always one of the groups besides.
        window_ns: the windows' length; they count from the start of the run.
    """
    each = list(dict.fromkeys([*keys, "replication"]))
    lost = ended_as(Outcome.EXPIRED) | ended_as(Outcome.DEAD)
    entered = messages.groupBy(*each, _window(f.col("enqueued_ns"), window_ns)).agg(
        f.count(f.lit(1)).alias("arrived_messages"),
        f.sum(f.col("work_units").cast("long")).alias("entered_work_units"),
    )
    left = (
        messages.where(left_queue())
        .groupBy(*each, _window(left_ns(), window_ns))
        .agg(
            f.count(f.lit(1)).alias("left_messages"),
            f.sum(f.col("work_units").cast("long")).alias("left_work_units"),
            counted(delivered()).alias("delivered_messages"),
            counted(ended_as(Outcome.DISCARDED)).alias("discarded_messages"),
            counted(ended_as(Outcome.ELIDED)).alias("elided_messages"),
            counted(lost).alias("lost_messages"),
            summed(f.col("size_bytes").cast("long"), delivered()).alias("delivered_bytes"),
        )
    )
    both = entered.join(left, on=[*each, "window_start_ns"], how="full_outer").fillna(0)
    return shaped(both.withColumn("window_ns", f.lit(window_ns)), WINDOWS)


def _window(instant: Column, window_ns: Nanoseconds) -> Column:
    """The start of the instant's window: whole numbers only, a quotient of doubles is inexact beyond 2^53."""
    return (instant - instant % f.lit(window_ns)).alias("window_start_ns")
