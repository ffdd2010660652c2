"""Means over replications with confidence intervals: how far a figure would move with other random numbers.

Each replication is one independent observation after its warm-up; the interval is Student's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from qsctl.instant import SECOND_NS
from qsctl.summary.student import t_quantile
from qsctl.summary.tables import INTERVALS, KEYS, shaped

DEFAULT_CONFIDENCE: Final = 0.95

MEASURES: Final = (
    "arrived_messages",
    "delivered_messages",
    "discarded_messages",
    "loss_ratio",
    "delivered_per_second",
    "mean_wait_ns",
    "p99_wait_ns",
    "high_water_mark_work_units",
)
"""What an interval is given for; each is one number a replication."""


def measures(counters: DataFrame, delays: DataFrame) -> DataFrame:
    """One row a group, replication and measure.

    Args:
        counters: of `counters.queues`, with `replication` among its keys.
        delays: of `delay.delays`, with the same keys.
    """
    lost = f.col("discarded_messages") + f.col("expired_messages") + f.col("dead_messages")
    settled = lost + f.col("delivered_messages") + f.col("elided_messages")
    names = [column for column, _ in KEYS.values()]
    percentile = delays.select(*(f.col(name).alias(f"{name}_of") for name in names), "p99_ns")
    # Null-safe: a column that is not grouped by is null on both sides.
    same = [counters[name].eqNullSafe(percentile[f"{name}_of"]) for name in names]
    wide = counters.join(percentile, on=same, how="left").select(
        *names,
        *(f.col(name).cast("double") for name in ("arrived_messages", "delivered_messages", "discarded_messages")),
        f.when(settled > 0, lost / settled).otherwise(f.lit(0.0)).alias("loss_ratio"),
        (f.col("delivered_messages") * f.lit(float(SECOND_NS)) / f.col("observed_ns")).alias("delivered_per_second"),
        f.when(f.col("delivered_messages") > 0, f.col("wait_sum_ns") / f.col("delivered_messages")).alias(
            "mean_wait_ns"
        ),
        f.col("p99_ns").cast("double").alias("p99_wait_ns"),
        f.col("high_water_mark_work_units").cast("double"),
    )
    return wide.unpivot([*names], [*MEASURES], "measure", "value").where(f.col("value").isNotNull())


def intervals(
    measured: DataFrame, keys: Sequence[str], replications: int, confidence: float = DEFAULT_CONFIDENCE
) -> DataFrame:
    """The mean of each group and measure over its replications, and the half width of its interval.

    Args:
        measured: of `measures`.
        keys: the columns grouped by; `replication` is none of them.
        replications: the most that a group can have: how many quantiles are needed.
        confidence: of the two-sided interval.
    """
    quantiles = f.array(*(f.lit(t_quantile(confidence, freedom)) for freedom in range(1, max(2, replications))))
    count = f.col("replications")
    return shaped(
        measured.groupBy(*keys, "measure")
        .agg(
            f.count(f.lit(1)).alias("replications"),
            f.avg("value").alias("mean"),
            f.when(f.count(f.lit(1)) > 1, f.stddev_samp("value")).alias("standard_deviation"),
        )
        .withColumn(
            "half_width",
            f.when(
                count > 1,
                f.element_at(quantiles, f.greatest(f.lit(1), count - 1).cast("int"))
                * f.col("standard_deviation")
                / f.sqrt(count),
            ),
        )
        .withColumn("confidence", f.lit(confidence)),
        INTERVALS,
    )
