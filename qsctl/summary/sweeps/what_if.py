"""The effect of a setting on a queue: a few values simulated with the same arrivals, and the values that suffice.

Every value has the same number of replications, with common random numbers. Intervals are Student's; all reported
intervals of the deciding measure hold together with the stated confidence (Bonferroni). A value suffices if its whole
interval does. A time suffices if it is at most a tenth above the lowest one, which is tested by pairs of replications:
they have the same arrivals, so that the common variation is not part of the error.

Decides by which measure a setting is judged, and which value of it suffices if the user gives none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from qsctl.errors import UsageError
from qsctl.instant import parse_duration
from qsctl.sim.figures import Figures
from qsctl.summary.inference.statistics import Interval, interval_of
from qsctl.summary.sweeps.points import MEASURES

_OF_MESSAGES: Final = frozenset(
    {
        "duplicates",
        "parallel_duplicates",
        "lost",
        "dead",
        "expired",
        "rejected",
        "redelivered",
        "discards",
        "unfinished",
    }
)
"""Measures that count messages, whose percentages are relative to the arrivals."""
_TARGET: Final = re.compile(r"\s*([a-z][a-z0-9_]*)\s*<\s*([0-9][^<>=]*?)\s*")
_NEAR_BEST: Final = 1.1
"""Largest ratio of a sufficient time to the best one."""

_BY_PATH: Final[Mapping[str, tuple[str, ...]]] = {
    "visibility/timeout": ("duplicates", "time_to_done_p99", "dead"),
    "consumer/prefetch": ("time_in_queue_p99", "time_to_done_p99", "utilization"),
    "consumer/batch": ("time_to_done_p99", "duplicates", "requests"),
    "consumer/count": ("time_to_done_p99", "utilization", "backlog_max"),
    "consumer/servers": ("time_to_done_p99", "utilization", "backlog_max"),
    "queue/max-unacknowledged": ("time_to_done_p99", "duplicates", "utilization"),
    "queue/time-to-live": ("lost", "time_to_done_p99", "backlog_max"),
    "queue/partitions": ("time_to_done_p99", "utilization", "backlog_max"),
    "limits/max-messages": ("lost", "backlog_max", "time_to_done_p99"),
    "limits/max-bytes": ("lost", "backlog_max", "time_to_done_p99"),
    "limits/overflow": ("lost", "backlog_max", "time_to_done_p99"),
    "retry/max-deliveries": ("dead", "time_to_done_p99", "duplicates"),
    "retry/back-off": ("dead", "time_to_done_p99", "backlog_max"),
}
_USUAL: Final = ("time_to_done_p99", "lost", "backlog_max")
_ENOUGH: Final[Mapping[str, float]] = {
    "duplicates": 0.01, "parallel_duplicates": 0.01, "lost": 0.001, "dead": 0.001, "expired": 0.001, "discards": 0.001,
}  # fmt: skip
"""Default share of the messages below which a value suffices, by measure."""


@dataclass(frozen=True, slots=True)
class Enough:
    """The sufficient bound of the deciding measure: a number, a fraction of the messages, or a distance from the best
    value.
    """

    measure: str
    below: float | None
    is_share: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class ValuePoint:
    """One value of the setting, with its measures; `arrived` is the mean number of messages in a run.

    `deciding`: the deciding measure in each replication; empty if a replication lacks it.
    """

    text: str
    measures: Mapping[str, Interval]
    arrived: float
    deciding: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class WhatIfAnswer:
    """The values in their order, the deciding measure, and the first value that suffices; None if none is shown to."""

    points: tuple[ValuePoint, ...]
    enough: Enough
    chosen: ValuePoint | None
    replications: int
    confidence: float

    @property
    def best(self) -> ValuePoint | None:
        """The first value with the lowest mean of the deciding measure; None if no value has the measure."""
        known = [each for each in self.points if self.enough.measure in each.measures]
        return min(known, key=lambda each: each.measures[self.enough.measure].mean, default=None)


def measures_of(path: str) -> tuple[str, ...]:
    """Return the measures that are reported for a setting, the deciding one first."""
    return _BY_PATH.get(path, _USUAL)


def enough_of(text: str | None, measure: str) -> Enough:
    """Parse a sufficient bound: a target such as `duplicates<1%` or `time_to_done_p99<30s`; None: the usual bound.

    Raises:
        UsageError: it has another form, or the measure does not exist.
    """
    if text is None:
        share = _ENOUGH.get(measure)
        if share is None:
            return Enough(measure, None, text=f"at most {100 * (_NEAR_BEST - 1):.0f} % above the best")
        return Enough(measure, share, True, f"below {100 * share:g} % of the messages")
    found = _TARGET.fullmatch(text)
    if found is None or found[1] not in MEASURES:
        raise UsageError(
            f"--target {text[:80]!r} is not MEASURE<VALUE",
            remedy="Write it as in duplicates<1%, lost<0.1%, time_to_done_p99<30s or utilization<0.8.",
        )
    measure, value = found[1], found[2]
    if value.endswith("%"):
        if measure not in _OF_MESSAGES and measure not in {"loss_ratio", "utilization"}:
            raise UsageError(f"--target {text[:80]!r}: {measure} has no percentage", remedy="Give a number or a time.")
        share = _number(text, value.removesuffix("%")) / 100
        return Enough(measure, share, measure in _OF_MESSAGES, f"below {value}")
    if measure.startswith("time_"):
        return Enough(measure, float(parse_duration(value)), text=f"below {value}")
    return Enough(measure, _number(text, value), text=f"below {value}")


def answer_of(
    runs: Iterable[tuple[str, Sequence[Figures]]], measures: Sequence[str], enough: Enough, confidence: float
) -> WhatIfAnswer:
    """Return the answer from the runs.

    Args:
        runs: each value with the figures of the queue, one for each replication.
        measures: the reported measures, besides the deciding one.
        enough: the sufficient bound.
        confidence: probability that all intervals of the deciding measure hold together.
    """
    listed = list(runs)
    each_holds = 1.0 - (1.0 - confidence) / max(1, len(listed))
    points = tuple(_point(text, figures, measures, enough.measure, confidence, each_holds) for text, figures in listed)
    answer = WhatIfAnswer(points, enough, None, len(listed[0][1]) if listed else 0, confidence)
    best = answer.best
    chosen = next((each for each in points if best is not None and _is_enough(each, best, enough, each_holds)), None)
    return replace(answer, chosen=chosen)


def _is_enough(point: ValuePoint, best: ValuePoint, enough: Enough, confidence: float) -> bool:
    """Return whether a value is shown to suffice."""
    if not point.deciding:
        return False
    if enough.below is not None:
        limit = enough.below * point.arrived if enough.is_share else enough.below
        return point.measures[enough.measure].high <= limit
    above = [mine - _NEAR_BEST * its for mine, its in zip(point.deciding, best.deciding, strict=True)]
    return point is best or interval_of(above, confidence).high <= 0


def _point(
    text: str, figures: Sequence[Figures], measures: Sequence[str], deciding: str, confidence: float, each_holds: float
) -> ValuePoint:
    found: dict[str, Interval] = {}
    decides: tuple[float, ...] = ()
    for name in dict.fromkeys((deciding, *measures)):
        read: Callable[[Figures], float | None] = MEASURES[name]
        values = [value for each in figures if (value := read(each)) is not None]
        if len(values) == len(figures):
            found[name] = interval_of(values, each_holds if name == deciding else confidence)
            decides = tuple(values) if name == deciding else decides
    arrived = sum(each.arrived_messages for each in figures) / len(figures)
    return ValuePoint(text, found, arrived, decides)


def counts_messages(measure: str) -> bool:
    """Return whether a measure counts messages, so that it can be reported as a share of arrivals."""
    return measure in _OF_MESSAGES


def _number(given: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise UsageError(
            f"--target {given[:80]!r}: {text[:40]!r} is not a number", remedy="As in duplicates<1%."
        ) from None
    if not 0 < value < 1e18:
        raise UsageError(f"--target {given[:80]!r}: {text[:40]!r} is out of range", remedy="Give a number above 0.")
    return value
