"""Means over replications with confidence intervals, which show the effect of other random numbers.

Each replication is one independent observation after its warm-up; the interval is Student's
(`inference/statistics.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from qsctl.instant import SECOND_NS
from qsctl.summary.finishing.arrow import Whole, columns, ordered, starts_of, whole, with_columns
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
"""The measures that have an interval, with their columns in the figures; each has one value for each replication."""


def measures(figures: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return one row for each group, replication and measure that it has.

    Args:
        figures: counters, mean and percentiles, with `replication` among its keys.
        keys: the grouping columns, without `replication`.
    """
    rate = whole(figures, "delivered_messages") * float(SECOND_NS) / whole(figures, "observed_ns")
    figures = with_columns(figures, {"delivered_per_second": pa.array(rate)})
    parts = [
        pa.table(
            {
                **columns(figures, [*keys, "replication"]),
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
    """Return the relative error of a column's values: that of percentiles from a histogram, else 0."""
    if column == MEASURES["p99_wait_ns"] and "relative_error" in figures.column_names:
        return pc.fill_null(figures["relative_error"].cast(pa.float64()), 0.0)
    return pa.array(np.zeros(figures.num_rows))


def intervals(measured: pa.Table, keys: Sequence[str], confidence: float = DEFAULT_CONFIDENCE) -> pa.Table:
    """Return the mean of each group and measure over its replications, and the half width of its interval.

    Args:
        measured: result of `measures`, with `replication`.
        keys: the grouping columns, without `replication`.
        confidence: confidence level of the two-sided interval.
    """
    place = [*keys, "measure"]
    rows = ordered(measured, [*place, "replication"])
    first = starts_of(rows, place)
    lengths = np.diff(np.append(first, rows.num_rows))
    values = np.asarray(rows["value"].to_numpy(), np.float64)
    # Each group separately, in the order of its replications: the last digits do not depend on other groups.
    means = _sums(values, first) / lengths
    squares = _sums((values - np.repeat(means, lengths)) ** 2, first)
    deviations = pa.array(np.sqrt(squares / np.maximum(1, lengths - 1)))
    found = with_columns(
        rows.select(place).take(pa.array(first)),
        {
            "value_count": pa.array(lengths),
            "value_mean": pa.array(means),
            "value_stddev": pc.if_else(pa.array(lengths > 1), deviations, None),
            "relative_error_max": pa.array(np.maximum.reduceat(rows["relative_error"].to_numpy(), first))
            if len(first)
            else pa.array([], pa.float64()),
        },
    )
    counts = whole(found, "value_count")
    # One replication has no degree of freedom; its deviation is null already.
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


def _sums(values: npt.NDArray[np.float64], first: Whole) -> npt.NDArray[np.float64]:
    """Return the sum of each group, given the first row of each group."""
    return np.add.reduceat(values, first) if len(first) else np.zeros(0)
