"""Formatting of durations, counts, rates and other measures, the same in every report."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from qsctl.instant import SECOND_NS, Nanoseconds


def duration_text(duration_ns: float | None) -> str:
    """Format a duration with three or four digits and its unit."""
    if duration_ns is None:
        return "–"
    if math.isinf(duration_ns):
        return "∞"
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(duration_ns) >= scale:
            return f"{duration_ns / scale:.4g} {unit}"
    return f"{duration_ns:.4g} ns"


def count_text(count: float | None) -> str:
    """Format a count with separators between thousands."""
    if count is None:
        return "–"
    return f"{count:,.0f}" if float(count).is_integer() or abs(count) >= 1000 else f"{count:,.4g}"


def utc_text(at_ns: Nanoseconds) -> str:
    """Format a Unix time as a UTC date and time, to the second."""
    return datetime.fromtimestamp(at_ns // SECOND_NS, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def replications_text(count: int) -> str:
    """Format a number of replications."""
    return "1 replication" if count == 1 else f"{count} replications"


def percent_text(ratio: float) -> str:
    """Format a ratio in percent."""
    return f"{100 * ratio:.3g} %"


def measure_text(measure: str, value: float | None) -> str:
    """Format the value of a measure in the measure's unit."""
    if value is None:
        return "–"
    if measure.startswith("time_") or measure.endswith("_ns"):
        return duration_text(value)
    return percent_text(value) if measure == "loss_ratio" else count_text(value)


MEASURE_WORDS = {
    "discards": "Discarded messages",
    "lost": "Lost messages, all causes",
    "loss_ratio": "Share of messages lost",
    "time_in_queue_p99": "p99 of the time in the queue",
    "time_in_queue_mean": "Mean time in the queue",
    "time_to_done_p99": "p99 of the time to done",
    "time_to_done_mean": "Mean time to done",
    "throughput": "Delivered messages a second",
    "time_without_master": "Longest time without a master",
}


def listed(words: list[str], most: int = 4) -> str:
    """Join words as in a sentence; at most `most` of them, then the number of the others."""
    if len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
