"""Means over replications with confidence intervals: how far a figure would move with other random numbers.

Each replication is one independent observation after its warm-up; the interval is Student's (`statistics.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qsctl.instant import SECOND_NS
from qsctl.summary.finishing.arrow import columns, whole, with_columns
from qsctl.summary.inference.statistics import STUDENT
from qsctl.summary.inference.student import t_quantile

DEFAULT_CONFIDENCE: Final = 0.95

MEASURES: Final = {
    "arrived_messages": "arrived_messages",
    "delivered_messages": "delivered_messages",
    "discarded_messages": "discarded_messages",
    "loss_ratio": "loss_ratio",
    "delivered_per_second": "delivered_per_second",
    "mean_wait_ns": "mean_ns",
    "p99_wait_ns": "p99_ns",
    "high_water_mark_work_units": "high_water_mark_work_units",
}
"""The measures with an interval, and the column of each among the figures; each is one number a replication."""


def measures(figures: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return one row a group, replication and measure that it has.

    Args:
        figures: counters, mean and percentiles, with `replication` among its keys.
        keys: the columns grouped by, without `replication`.
    """
    rate = whole(figures, "delivered_messages") * float(SECOND_NS) / whole(figures, "observed_ns")
    figures = with_columns(figures, {"delivered_per_second": pa.array(rate)})
    parts = [
        pa.table(
            {
                **columns(figures, keys),
                "measure": pa.array([measure] * figures.num_rows, pa.string()),
                "value": figures[column].cast(pa.float64(), safe=False),
                "relative_error": _reading_error(figures, column),
            }
        )
        for measure, column in MEASURES.items()
    ]
    stacked = pa.concat_tables(parts)
    return stacked.filter(pc.is_valid(stacked["value"]))


def _reading_error(figures: pa.Table, column: str) -> pa.Array | pa.ChunkedArray:
    """Return how much too high the values of a column may be: those read from a histogram's percentiles may."""
    if column == MEASURES["p99_wait_ns"] and "relative_error" in figures.column_names:
        return pc.fill_null(figures["relative_error"].cast(pa.float64()), 0.0)
    return pa.array(np.zeros(figures.num_rows))


def intervals(measured: pa.Table, keys: Sequence[str], confidence: float = DEFAULT_CONFIDENCE) -> pa.Table:
    """Return the mean of each group and measure over its replications, and the half width of its interval.

    Args:
        measured: of `measures`.
        keys: the columns grouped by; `replication` is none of them.
        confidence: of the two-sided interval.
    """
    place = [*keys, "measure"]
    found = measured.group_by(place, use_threads=False).aggregate(
        [
            ("value", "count"),
            ("value", "mean"),
            ("value", "stddev", pc.VarianceOptions(ddof=1, min_count=2)),
            ("relative_error", "max"),
        ]
    )
    counts = whole(found, "value_count")
    # One replication leaves no freedom; its deviation is null already.
    quantiles = {number: t_quantile(confidence, number - 1) if number > 1 else 0.0 for number in set(counts.tolist())}
    scale = np.array([quantiles[number] for number in counts.tolist()]) / np.sqrt(counts)
    return with_columns(
        found.select(place),
        {
            "replications": found["value_count"],
            "mean": found["value_mean"],
            "standard_deviation": found["value_stddev"],
            "half_width": pc.multiply(found["value_stddev"], pa.array(scale)),
            "confidence": pa.array(np.full(len(counts), confidence)),
            "method": pa.array([STUDENT] * len(counts), pa.string()),
            "relative_error": found["relative_error_max"],
        },
    )
