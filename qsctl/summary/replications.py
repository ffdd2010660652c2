"""Means over replications with confidence intervals: how far a figure would move with other random numbers.

Each replication is one independent observation after its warm-up; the interval is Student's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame

from qsctl.instant import SECOND_NS
from qsctl.summary.loss import LOSS_RATIO
from qsctl.summary.observation import listed
from qsctl.summary.student import t_quantile

DEFAULT_CONFIDENCE: Final = 0.95

MEASURES: Final = {
    "arrived_messages": "arrived_messages",
    "delivered_messages": "delivered_messages",
    "discarded_messages": "discarded_messages",
    "loss_ratio": LOSS_RATIO,
    "delivered_per_second": f"double(delivered_messages) * {SECOND_NS} / observed_ns",
    "mean_wait_ns": "mean_ns",
    "p99_wait_ns": "p99_ns",
    "high_water_mark_work_units": "high_water_mark_work_units",
}
"""What an interval is given for, out of the columns of `delay.figures`; each is one number a replication."""


def measures(figures: DataFrame, keys: Sequence[str]) -> DataFrame:
    """One row a group, replication and measure that it has.

    Args:
        figures: of `delay.figures`, with `replication` among its keys.
        keys: the columns grouped by, without `replication`.
    """
    stacked = ", ".join(f"'{name}', double({value})" for name, value in MEASURES.items())
    return figures.selectExpr(*keys, f"stack({len(MEASURES)}, {stacked}) as (measure, value)").where(
        "value is not null"
    )


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
    quantiles = ", ".join(f"{t_quantile(confidence, freedom)!r}d" for freedom in range(1, max(2, replications)))
    return measured.sparkSession.sql(
        f"""select *, if(replications > 1,
            element_at(array({quantiles}), int(greatest(1, replications - 1))) * standard_deviation
                / sqrt(replications), null) as half_width, double({confidence!r}) as confidence
        from (
            select {listed(*keys, "measure")}, count(1) as replications, avg(value) as mean,
                if(count(1) > 1, stddev_samp(value), null) as standard_deviation
            from {{measured}} group by {listed(*keys, "measure")})""",
        measured=measured,
    )
