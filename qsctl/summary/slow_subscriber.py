"""Slow subscribers: the share of the last minute's seconds in which a client had data to send and could not.

Our reading of the log: a half second counts as blocked when one message waited in the client's queues all through it,
and a second when one of its halves is. The broker's own figure looks at the connection's window and adds a penalty for
retransmissions; where the run wrote it, the event log has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from qsctl.instant import SECOND_NS
from qsctl.summary.observation import Observation, left_ns
from qsctl.summary.tables import SLOW_SUBSCRIBERS, shaped

MINUTE_SECONDS: Final = 60
_HALF_NS: Final = SECOND_NS // 2


def slow_subscribers(messages: DataFrame, observation: Observation, keys: Sequence[str]) -> DataFrame:
    """One row a client (or other group) and replication: blocked seconds and percentages.

    Args:
        messages: the message log with the key columns.
        observation: the percentages are of the last minute before its end, or of all of it when it is shorter.
        keys: the columns grouped by; `replication` is always one of the groups besides.
    """
    each = list(dict.fromkeys([*keys, "replication"]))
    first = -(-observation.warm_up_ns // SECOND_NS)
    last = max(first, observation.horizon_ns // SECOND_NS)
    seconds = last - first
    minute = max(1, min(MINUTE_SECONDS, seconds))
    blocked = _blocked_seconds(messages, observation, each).where((f.col("second") >= first) & (f.col("second") < last))
    recent = Window.partitionBy(*each).orderBy("second").rangeBetween(-(minute - 1), Window.currentRow)
    counts = (
        blocked.withColumn("recent", f.count(f.lit(1)).over(recent))
        .groupBy(*each)
        .agg(
            f.count(f.lit(1)).alias("blocked_seconds"),
            f.count(f.when(f.col("second") >= last - minute, f.lit(1))).alias("late"),
            f.max("recent").alias("most"),
        )
    )
    everyone = messages.select(*each).distinct()
    per_cent = 100.0 / minute
    return shaped(
        everyone.join(counts, on=each, how="left")
        .fillna(0)
        .select(
            *each,
            "blocked_seconds",
            f.lit(seconds).alias("seconds"),
            (f.col("late") * per_cent).alias("slow_percent"),
            (f.col("most") * per_cent).alias("slow_percent_max"),
        ),
        SLOW_SUBSCRIBERS,
    )


def _blocked_seconds(messages: DataFrame, observation: Observation, each: Sequence[str]) -> DataFrame:
    """The seconds of each group in which a half was blocked: ins and outs of half seconds, summed up."""
    end = f.coalesce(left_ns(), f.lit(observation.horizon_ns))
    start_half = f.expr(f"(enqueued_ns + {_HALF_NS - 1}L) div {_HALF_NS}L")
    spans = (
        messages.withColumn("end_ns", end)
        .where(f.col("end_ns") - f.col("enqueued_ns") >= _HALF_NS)
        .select(*each, start_half.alias("start"), f.expr(f"end_ns div {_HALF_NS}L").alias("stop"))
        .where(f.col("start") < f.col("stop"))
    )
    steps = (
        spans.groupBy(*each, f.col("start").alias("half"))
        .agg(f.count(f.lit(1)).alias("step"))
        .unionByName(spans.groupBy(*each, f.col("stop").alias("half")).agg((-f.count(f.lit(1))).alias("step")))
        .groupBy(*each, "half")
        .agg(f.sum("step").alias("step"))
    )
    in_order = Window.partitionBy(*each).orderBy("half")
    levels = steps.select(
        *each,
        "half",
        f.sum("step").over(in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)).alias("level"),
        f.lead("half").over(in_order).alias("until"),
    ).where((f.col("level") > 0) & f.col("until").isNotNull())
    halves = levels.select(*each, f.explode(f.expr("sequence(half, until - 1)")).alias("half"))
    return halves.select(*each, f.expr("half div 2L").alias("second")).distinct()
