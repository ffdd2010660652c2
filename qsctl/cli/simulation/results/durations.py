"""Durations of simulated time, for people."""

from __future__ import annotations


def short_duration(duration_ns: float | None) -> str:
    """Return a duration to three or four digits; empty for none."""
    if duration_ns is None:
        return ""
    value = float(duration_ns)
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if value >= scale:
            return f"{value / scale:.4g} {unit}"
    return f"{value:.4g} ns"


def short_seconds(seconds: float | None) -> str:
    """Return a duration in seconds as `short_duration` has it."""
    return short_duration(None if seconds is None else round(seconds * 1e9))
