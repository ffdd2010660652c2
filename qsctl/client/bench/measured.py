"""The measurements of a benchmark: counts, and latencies as histograms that are added over processes.

Decides: the resolution. A value keeps its eleven highest bits, so that it is known to a thousandth, from a microsecond
to a thousand seconds, and a histogram has some thousand classes however much it counts. A class represents its largest
value, as in an HDR histogram.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from qsctl.instant import Nanoseconds

if TYPE_CHECKING:
    from collections.abc import Iterable

PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9, 99.99)
_HIGHEST_US: Final = 1_000_000_000
_BITS: Final = 11


class Latencies:
    """Latencies of samples, in microseconds."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        """Counts by the largest value of each class."""

    def record(self, latency_ns: Nanoseconds) -> None:
        """Count one sample."""
        value_us = min(max(latency_ns // 1000, 1), _HIGHEST_US)
        shift = value_us.bit_length() - _BITS
        highest_us = value_us if shift <= 0 else value_us | (1 << shift) - 1
        self._counts[highest_us] = self._counts.get(highest_us, 0) + 1

    def encoded(self) -> bytes:
        """Return it for another process."""
        return msgspec.msgpack.encode(self._counts)

    def add(self, encoded: bytes) -> None:
        """Add what another process counted."""
        for highest_us, count in msgspec.msgpack.decode(encoded, type=dict[int, int]).items():
            self._counts[highest_us] = self._counts.get(highest_us, 0) + count

    @property
    def count(self) -> int:
        """Return how many samples were counted."""
        return sum(self._counts.values())

    def figures(self) -> dict[str, float]:
        """Return percentiles, the mean and the largest, in microseconds; zeros where nothing was counted."""
        ordered = sorted(self._counts.items())
        count = self.count
        return {
            **{f"p{percentile:g}_us": _value_at(ordered, percentile * count / 100) for percentile in PERCENTILES},
            "max_us": float(ordered[-1][0]) if ordered else 0.0,
            "mean_us": round(sum(value * each for value, each in ordered) / count, 1) if count else 0.0,
        }


def _value_at(ordered: list[tuple[int, int]], rank: float) -> float:
    """Return the smallest value that the given number of samples do not exceed; 0 where there are none."""
    passed = 0
    for value, count in ordered:
        passed += count
        if passed >= math.ceil(rank):
            return float(value)
    return 0.0


@dataclass
class BenchCounts:
    """Counts of producers and consumers, of one or of all. Those `in_time` are of the measured time alone."""

    written: int = 0
    written_in_time: int = 0
    accepted: int = 0
    rejected: int = 0
    unanswered: int = 0
    received: int = 0
    received_in_time: int = 0
    redelivered: int = 0
    overdue: int = 0
    """Due in time, and never written: the rate was too high for the producers, the window or the service."""

    def add(self, others: Iterable[BenchCounts]) -> None:
        """Add what others counted."""
        for other in others:
            for name in vars(other):
                setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass
class BenchResult:
    """A benchmark: its counts and both latencies, from the instant at which a sample was due."""

    counts: BenchCounts = field(default_factory=BenchCounts)
    to_acknowledgment: Latencies = field(default_factory=Latencies)
    """To the acknowledgment of the queue at its producer."""
    to_consumer: Latencies = field(default_factory=Latencies)
    """To the consumer."""
