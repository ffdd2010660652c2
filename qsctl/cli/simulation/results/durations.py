"""Durations of simulated time as text."""

from __future__ import annotations


def short_duration(duration_ns: float | None) -> str:
    """Return a duration with three or four digits and its unit; empty for None."""
    if duration_ns is None:
        return ""
    value = float(duration_ns)
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if value >= scale:
            return f"{value / scale:.4g} {unit}"
    return f"{value:.4g} ns"


def short_seconds(seconds: float | None) -> str:
    """Return a duration given in seconds, in the form of `short_duration`; empty for None."""
    return short_duration(None if seconds is None else round(seconds * 1e9))
