"""Little's law as a check of the log: mean depth = arrivals per second × mean wait.

The left side is the waiting time inside the observation, the right side the rate and the mean of the messages that
left. Over a run that starts and ends empty both are the same sum; what waits at either end makes the difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from qsctl.instant import SECOND_NS
from qsctl.summary.observation import Observation, counted, counted_at, left_ns, left_queue, summed
from qsctl.summary.tables import LITTLES_LAW, shaped


def littles_law(messages: DataFrame, observation: Observation, keys: Sequence[str]) -> DataFrame:
    """One row a group: both sides of the law, and their difference as a share of the larger.

    Args:
        messages: the message log with the key columns.
        observation: the observed part of the run.
        keys: the columns grouped by; several replications count as one long run.
    """
    start, end = f.lit(observation.warm_up_ns), f.lit(observation.horizon_ns)
    left = left_queue() & counted_at(left_ns(), observation)
    inside = f.greatest(
        f.lit(0),
        f.least(f.coalesce(left_ns(), end), end) - f.greatest(f.col("enqueued_ns"), start),
    )
    sums = messages.groupBy(*keys).agg(
        f.count_distinct("replication").alias("replications"),
        f.sum(inside).alias("inside_ns"),
        counted(counted_at(f.col("enqueued_ns"), observation)).alias("arrived"),
        counted(left).alias("left"),
        summed(f.col("wait_ns"), left).alias("wait_sum_ns"),
    )
    observed = f.col("replications") * f.lit(observation.observed_ns)
    expected = f.col("arrivals_per_second") * f.col("mean_wait_ns") / f.lit(float(SECOND_NS))
    larger = f.greatest(f.col("mean_depth_messages"), f.col("expected_depth_messages"))
    difference = f.abs(f.col("mean_depth_messages") - f.col("expected_depth_messages")) / larger
    return shaped(
        sums.withColumn("mean_depth_messages", f.col("inside_ns") / observed)
        .withColumn("arrivals_per_second", f.col("arrived") * f.lit(float(SECOND_NS)) / observed)
        .withColumn("mean_wait_ns", f.when(f.col("left") > 0, f.col("wait_sum_ns") / f.col("left")).otherwise(0.0))
        .withColumn("expected_depth_messages", expected)
        .withColumn("relative_difference", f.when(larger > 0, difference).otherwise(0.0)),
        LITTLES_LAW,
    )
