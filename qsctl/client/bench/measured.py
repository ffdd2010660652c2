"""The measurements of a benchmark: counts, and latencies as histograms that are added over processes.

Decides: the resolution. A value keeps its eleven highest bits, a precision of one thousandth from a microsecond to a
thousand seconds, so that a histogram has some thousand classes however many values it counts. A class represents its
largest value, as in an HDR histogram.
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
    """A histogram of the latencies of samples, in microseconds."""

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
        """Return the histogram as octets, for another process."""
        return msgspec.msgpack.encode(self._counts)

    def add(self, encoded: bytes) -> None:
        """Add the histogram of another process."""
        for highest_us, count in msgspec.msgpack.decode(encoded, type=dict[int, int]).items():
            self._counts[highest_us] = self._counts.get(highest_us, 0) + count

    @property
    def count(self) -> int:
        """Return the number of samples counted."""
        return sum(self._counts.values())

    def figures(self) -> dict[str, float]:
        """Return percentiles, mean and maximum in microseconds; zeros without samples."""
        ordered = sorted(self._counts.items())
        count = self.count
        return {
            **{f"p{percentile:g}_us": _value_at(ordered, percentile * count / 100) for percentile in PERCENTILES},
            "max_us": float(ordered[-1][0]) if ordered else 0.0,
            "mean_us": round(sum(value * each for value, each in ordered) / count, 1) if count else 0.0,
        }


def _value_at(ordered: list[tuple[int, int]], rank: float) -> float:
    """Return the smallest value that at least `rank` samples do not exceed; 0 without samples."""
    passed = 0
    for value, count in ordered:
        passed += count
        if passed >= math.ceil(rank):
            return float(value)
    return 0.0


@dataclass
class BenchCounts:
    """Counts of producers and consumers, of one or of all; those `in_time` exclude the warm-up."""

    written: int = 0
    written_in_time: int = 0
    accepted: int = 0
    rejected: int = 0
    unanswered: int = 0
    received: int = 0
    received_in_time: int = 0
    redelivered: int = 0
    overdue: int = 0
    """Samples due in the measured time and never written: the rate was too high for producers, window or service."""

    def add(self, others: Iterable[BenchCounts]) -> None:
        """Add the counts of other processes."""
        for other in others:
            for name in vars(other):
                setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass
class BenchResult:
    """A benchmark: its counts and both latencies, from the instant at which a sample was due."""

    counts: BenchCounts = field(default_factory=BenchCounts)
    to_acknowledgment: Latencies = field(default_factory=Latencies)
    """Latencies until the producer received the queue's acknowledgment."""
    to_consumer: Latencies = field(default_factory=Latencies)
    """Latencies until the consumer received the sample."""
