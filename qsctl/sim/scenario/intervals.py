"""The begin and end of a scenario's intervals."""

from __future__ import annotations

from collections.abc import Iterable

from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.sim.scenario.scenario import ClientInterval


def occurrences(intervals: Iterable[ClientInterval], horizon_ns: Nanoseconds) -> list[tuple[Nanoseconds, Nanoseconds]]:
    """Return begin and end of each occurrence that begins before the horizon; INFINITE_NS as the end means no end."""
    found = []
    for interval in intervals:
        start = interval.start_ns
        while start < horizon_ns:
            end = INFINITE_NS if interval.duration_ns >= INFINITE_NS else start + interval.duration_ns
            found.append((start, end))
            if interval.every_ns >= INFINITE_NS:
                break
            start += interval.every_ns
    return found
