"""The results of a sweep: for each point and queue the mean of every measure, with its interval
(`inference/statistics.py`).

They are computed in this process, since the figures of the workers are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from qsctl.sim.figures import SUMMED, Figures
from qsctl.sim.sweep import Point
from qsctl.summary.inference.statistics import READING_ERROR, Interval, interval_of
from qsctl.summary.sweeps.sweep_folder import PointResult

MEASURES: Final[Mapping[str, Callable[[Figures], float | None]]] = {
    "discards": lambda figures: float(figures.discarded_messages),
    "lost": lambda figures: float(figures.lost_messages),
    "loss_ratio": lambda figures: figures.loss_ratio,
    "delivered": lambda figures: float(figures.delivered_messages),
    "throughput": lambda figures: figures.delivered_per_second,
    "time_in_queue_mean": lambda figures: figures.wait_mean_ns,
    "time_in_queue_p50": lambda figures: _number(figures.wait_p50_ns),
    "time_in_queue_p90": lambda figures: _number(figures.wait_p90_ns),
    "time_in_queue_p99": lambda figures: _number(figures.wait_p99_ns),
    "time_in_queue_p999": lambda figures: _number(figures.wait_p999_ns),
    "time_in_queue_max": lambda figures: float(figures.wait_max_ns) if figures.delivered_messages else None,
    "time_to_done_mean": lambda figures: figures.done_mean_ns,
    "time_to_done_p50": lambda figures: _number(figures.done_p50_ns),
    "time_to_done_p90": lambda figures: _number(figures.done_p90_ns),
    "time_to_done_p99": lambda figures: _number(figures.done_p99_ns),
    "time_to_done_p999": lambda figures: _number(figures.done_p999_ns),
    "time_to_done_max": lambda figures: _number(figures.done_max_ns),
    "unfinished": lambda figures: _number(figures.unfinished_messages),
    "high_water_mark": lambda figures: float(figures.high_water_mark_work_units),
    "redelivered": lambda figures: float(figures.redelivered_messages),
    "expired": lambda figures: float(figures.expired_messages),
    "dead": lambda figures: float(figures.dead_messages),
    "rejected": lambda figures: float(figures.rejected_messages),
    "elided": lambda figures: float(figures.elided_messages),
    "time_to_master": lambda figures: _number(figures.time_to_master_ns),
    "time_without_master": lambda figures: _number(figures.time_without_master_ns),
    "refused_before_master": lambda figures: _number(figures.refused_before_master),
    "elections": lambda figures: _number(figures.elections),
    "broken_rules": lambda figures: _number(figures.broken_rules),
    "within_objective": lambda figures: figures.within_objective,
    "duplicates": lambda figures: _number(figures.duplicates),
    "parallel_duplicates": lambda figures: _number(figures.parallel_duplicates),
    "backlog_mean": lambda figures: figures.backlog_mean,
    "backlog_max": lambda figures: _number(figures.backlog_max),
    "ready_max": lambda figures: _number(figures.ready_max),
    "time_of_oldest_max": lambda figures: _number(figures.oldest_ns),
    "time_to_drain": lambda figures: _number(figures.drain_ns),
    "utilization": lambda figures: figures.utilization,
    "requests": lambda figures: _number(figures.requests),
    "worker_hours": lambda figures: figures.worker_hours,
    "cost": lambda figures: figures.cost,
}
"""Functions that return each measure of one queue in one replication, or None if it has none.

The time in the queue ends when a message is sent to its client, the time to done when it is acknowledged; of the
latter, messages that are unfinished when the run ends are censored (`sim.done_times`).

Measures from `time_to_master` on are for clusters, and those from `within_objective` on for brokers' queues, whose time
in the queue ends when work on a message begins (`sim.figures.Figures`).
"""

TABLE_MEASURES: Final[Mapping[str, Callable[[Figures], float | None]]] = {
    **{name: (lambda figures, name=name: float(getattr(figures, name))) for name in (*SUMMED, "lost_messages")},  # type: ignore[misc]
    "loss_ratio": MEASURES["loss_ratio"],
    "delivered_per_second": MEASURES["throughput"],
    **{f"wait_{name}_ns": MEASURES[f"time_in_queue_{name}"] for name in ("mean", "p50", "p90", "p99", "p999", "max")},
    **{f"done_{name}_ns": MEASURES[f"time_to_done_{name}"] for name in ("mean", "p50", "p90", "p99", "p999", "max")},
    "done_messages": lambda figures: _number(figures.done_messages),
    "unfinished_messages": MEASURES["unfinished"],
    "high_water_mark_work_units": MEASURES["high_water_mark"],
}
"""These and further measures, by their names in the tables of `simulate` and `summarize`."""

EVERY_MEASURE: Final = {**TABLE_MEASURES, **MEASURES}
"""All measures that a target may name: columns of the tables, and the short names of sweeps."""

LARGER_IS_BETTER: Final = frozenset({"delivered", "throughput", "within_objective"})

UNITS: Final[Mapping[str, str]] = {
    **{name: "ns" for name in MEASURES if name.startswith("time_")},
    "loss_ratio": "ratio",
    "throughput": "messages/s",
    "high_water_mark": "work units",
    "elections": "elections",
    "broken_rules": "rules",
    "within_objective": "ratio",
    "utilization": "ratio",
    "requests": "requests",
    "worker_hours": "hours",
    "cost": "money",
}
"""The unit of each measure; measures that are not listed count messages."""


_FROM_HISTOGRAMS: Final = ("p50", "p90", "p99", "p999")


def reading_error(measure: str) -> float:
    """Return the largest relative error of a measure's values: above 0 for percentiles, which come from histograms.

    The mean time to done also has this error if messages are unfinished.
    """
    censored = measure in {"time_to_done_mean", "done_mean_ns"}
    return READING_ERROR if censored or any(part in _FROM_HISTOGRAMS for part in measure.split("_")) else 0.0


@dataclass(frozen=True, slots=True)
class PointMeasure:
    """One measure of one queue at one point, over its replications."""

    point: Point
    queue: str
    measure: str
    interval: Interval
    smallest: float
    largest: float

    @property
    def relative_error(self) -> float:
        """Return the largest relative error of reading a figure from a histogram, in addition to the interval."""
        return reading_error(self.measure)


def point_measures(
    results: Iterable[PointResult], confidence: float, measures: Sequence[str] = tuple(MEASURES)
) -> list[PointMeasure]:
    """Return every measure of every queue at every point, in the order of the results."""
    grouped: dict[tuple[str, str], tuple[Point, list[Figures]]] = {}
    for result in results:
        for figures in result.figures:
            grouped.setdefault((result.point.key, figures.queue), (result.point, []))[1].append(figures)
    found = []
    for (_, queue), (point, each) in grouped.items():
        for measure in measures:
            values = [value for figures in each if (value := MEASURES[measure](figures)) is not None]
            if values:
                found.append(
                    PointMeasure(point, queue, measure, interval_of(values, confidence), min(values), max(values))
                )
    return found


def _number(value: int | None) -> float | None:
    return None if value is None else float(value)
