"""The results of a what-if question: figures of each queue with intervals, differences, and sentences about both.

In: repetitions of one or two sides. Out: JSON documents. Intervals are Student's over repetitions; a difference is
tested over pairs of repetitions with the same random numbers (`qsctl.summary.inference.statistics`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from qsctl.sim.figures import Figures
from qsctl.summary.inference.statistics import Interval, interval_of, paired_difference
from qsctl.summary.sweeps.points import MEASURES, UNITS
from qsctl.web._what_if_answerer import Repetition, WhatIfQuestion

CONFIDENCE: Final = 0.95
TITLES: Final[Mapping[str, str]] = {
    "loss_ratio": "Lost",
    "throughput": "Delivered",
    "time_in_queue_p50": "Wait, median",
    "time_in_queue_p99": "Wait, 99 %",
    "time_in_queue_max": "Wait, longest",
    "time_to_done_p99": "To done, 99 %",
    "high_water_mark": "High-water mark",
    "backlog_max": "Largest backlog",
    "lost": "Lost messages",
    "dead": "Dead-lettered",
    "expired": "Expired",
    "redelivered": "Redelivered",
    "duplicates": "Duplicates",
    "utilization": "Consumers busy",
    "elided": "Elided",
}
"""The displayed measures, in their order; except for the first, those that are zero on every side are omitted."""
_ALWAYS: Final = ("loss_ratio", "throughput", "time_in_queue_p50", "time_in_queue_p99", "time_in_queue_max")


def answer_of(question: WhatIfQuestion) -> dict[str, Any]:
    """Return the figures of the complete repetitions by side, queue and measure."""
    runs = [question.of_side(side) for side in range(len(question.sides))]
    count = len(runs[0])
    queues = [_by_queue(side) for side in runs]
    names = list(dict.fromkeys(name for side in queues for name in side))
    shown = [
        name
        for name in TITLES
        if name in _ALWAYS or any(_is_known(figures, name) for side in queues for figures in side.values())
    ]
    sides = [
        {
            "queues": [
                {
                    "queue": name,
                    "arrived": _mean_arrived(side[name]),
                    "clients": side[name][0].clients,
                    "measures": _measures(side[name], shown),
                    "depth": _depth(run[0], name),
                    "sentence": sentence(name, _intervals(side[name], shown)),
                }
                for name in names
                if name in side
            ],
        }
        for side, run in zip(queues, runs, strict=True)
    ]
    differences = [] if len(queues) < 2 else [_difference(name, queues, shown, count) for name in names]
    return {
        "kind": "answer",
        "repetitions": count,
        "of": question.repetitions,
        "confidence": CONFIDENCE,
        "horizon_ns": question.sides[0].horizon_ns,
        "warm_up_ns": question.sides[0].warm_up_ns,
        "measures": [{"name": name, "title": TITLES[name], "unit": UNITS.get(name, "messages")} for name in shown],
        "sides": sides,
        "differences": [each for each in differences if each is not None],
    }


def _by_queue(runs: Sequence[Repetition]) -> dict[str, list[Figures]]:
    """Return the figures of each queue that occurs in every repetition, with one entry for each repetition."""
    found: dict[str, list[Figures]] = {}
    for run in runs:
        for figures in run.figures:
            found.setdefault(figures.queue, []).append(figures)
    return {name: figures for name, figures in found.items() if len(figures) == len(runs)}


def _is_known(figures: Sequence[Figures], name: str) -> bool:
    return any(MEASURES[name](each) for each in figures)


def _mean_arrived(figures: Sequence[Figures]) -> float:
    return sum(each.arrived_messages for each in figures) / len(figures)


def _intervals(figures: Sequence[Figures], names: Sequence[str]) -> dict[str, Interval]:
    found = {}
    for name in names:
        values = [value for each in figures if (value := MEASURES[name](each)) is not None]
        if len(values) == len(figures):
            found[name] = interval_of(values, CONFIDENCE)
    return found


def _measures(figures: Sequence[Figures], names: Sequence[str]) -> dict[str, list[float | None]]:
    return {name: _pair(interval) for name, interval in _intervals(figures, names).items()}


def _pair(interval: Interval) -> list[float | None]:
    """Return mean and half width of an interval; the half width is None with a single repetition."""
    return [interval.mean, interval.half_width if math.isfinite(interval.half_width) else None]


def _depth(run: Repetition, queue: str) -> dict[str, Any] | None:
    found = None if run.depth is None else run.depth.get(queue)
    return None if found is None else {"low": found.low, "high": found.high, "mean": found.mean}


def _difference(
    queue: str, sides: Sequence[Mapping[str, Sequence[Figures]]], names: Sequence[str], count: int
) -> dict[str, Any] | None:
    if not all(queue in side for side in sides):
        return None
    first, second = (side[queue] for side in sides[:2])
    found: dict[str, list[float | None]] = {}
    for name in names:
        pairs = [(MEASURES[name](one), MEASURES[name](other)) for one, other in zip(first, second, strict=True)]
        known = [other - one for one, other in pairs if one is not None and other is not None]
        if len(known) == count:
            found[name] = _pair(paired_difference(known, CONFIDENCE).interval)
    return {"queue": queue, "measures": found, "sentence": difference_sentence(queue, found)}


def sentence(queue: str, found: Mapping[str, Interval]) -> str:
    """Return a queue's figures as a sentence, for readers who cannot see the chart."""
    lost, p99, longest = (found.get(name) for name in ("loss_ratio", "time_in_queue_p99", "time_in_queue_max"))
    parts = []
    if lost is not None:
        parts.append("loses nothing" if lost.mean == 0 == _width(lost) else f"loses {_percent(lost)} of its messages")
    if p99 is not None:
        parts.append(f"99 % wait at most {_time(p99)}")
    if longest is not None:
        parts.append(f"the longest wait is {_time(longest)}")
    return f"{queue} {'; '.join(parts)}." if parts else f"{queue} had no messages."


def difference_sentence(queue: str, found: Mapping[str, Sequence[float | None]]) -> str:
    """Return the differences of side B from side A in a queue, as a sentence."""
    mean, width = found.get("loss_ratio", (None, None))
    p99, p99_width = found.get("time_in_queue_p99", (None, None))
    parts = []
    if mean is not None:
        parts.append(_changed(mean, width, lambda value: f"{100 * value:.2g} percentage points", "loses"))
    if p99 is not None:
        parts.append(_changed(p99, p99_width, duration_text, "the wait of 99 % is", "longer", "shorter"))
    return f"With B, {queue} {'; '.join(parts)}." if parts else ""


def _changed(
    mean: float, width: float | None, text: Any, verb: str, more: str = "more", less: str = "less"
) -> str:  # fmt: skip
    if mean == 0:
        return f"{verb} the same" if verb == "loses" else f"{verb} unchanged"
    error = "" if width is None else f" ± {text(width)}"
    if width is not None and abs(mean) <= width:
        return f"{verb} about the same (difference {'-' if mean < 0 else ''}{text(abs(mean))}{error})"
    return f"{verb} {text(abs(mean))}{error} {more if mean > 0 else less}"


def _width(interval: Interval) -> float:
    return interval.half_width if math.isfinite(interval.half_width) else 0.0


def _percent(interval: Interval) -> str:
    width = _width(interval)
    return f"{100 * interval.mean:.3g} %" + (f" ± {100 * width:.2g} %" if width else "")


def _time(interval: Interval) -> str:
    width = _width(interval)
    return duration_text(interval.mean) + (f" ± {duration_text(width)}" if width else "")


def duration_text(duration_ns: float) -> str:
    """Format a duration with three digits and a usual unit: 251 ms, 1.5 h."""
    for scale, unit in ((3_600e9, "h"), (60e9, "min"), (1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if duration_ns >= (scale if unit not in {"h", "min"} else 2 * scale):
            return f"{duration_ns / scale:.3g} {unit}"
    return f"{duration_ns:.3g} ns" if duration_ns else "0 s"
