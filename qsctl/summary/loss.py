"""What was lost, what share of the messages that is, and when each queue first lost one."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from qsctl.summary.tables import LOSSES, shaped


def losses(counters: DataFrame) -> DataFrame:
    """One row a group: losses by kind, their share of the messages whose fate is settled, the first discard.

    Args:
        counters: of `counters.queues`.
    """
    lost = f.col("discarded_messages") + f.col("expired_messages") + f.col("dead_messages")
    settled = lost + f.col("delivered_messages") + f.col("elided_messages")
    ratio = f.when(settled > 0, lost / settled).otherwise(f.lit(0.0))
    return shaped(counters.withColumn("loss_ratio", ratio), LOSSES)
