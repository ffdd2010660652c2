"""What a benchmark measured: counts, and latencies as HDR histograms that are added over processes.

Decides: the resolution: three digits, from a microsecond to a thousand seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from qsctl.errors import Unavailable
from qsctl.instant import Nanoseconds

if TYPE_CHECKING:
    from collections.abc import Iterable

PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9, 99.99)
_HIGHEST_US: Final = 1_000_000_000
_DIGITS: Final = 3


class Latencies:
    """Latencies of samples, in microseconds.

    Raises:
        Unavailable: the library of the histograms is not installed.
    """

    def __init__(self) -> None:
        try:
            from hdrh.histogram import HdrHistogram
        except ImportError as error:
            raise Unavailable(
                f"the benchmark keeps latencies in HDR histograms: {error}", remedy="pip install 'qsctl[bench]'"
            ) from None
        self._histogram: Any = HdrHistogram(1, _HIGHEST_US, _DIGITS)

    def record(self, latency_ns: Nanoseconds) -> None:
        """Count one sample."""
        self._histogram.record_value(min(max(latency_ns // 1000, 1), _HIGHEST_US))

    def encoded(self) -> bytes:
        """Return it for another process."""
        octets: bytes = self._histogram.encode()
        return octets

    def add(self, encoded: bytes) -> None:
        """Add what another process counted."""
        self._histogram.decode_and_add(encoded)

    @property
    def count(self) -> int:
        """How many samples were counted."""
        return int(self._histogram.get_total_count())

    def figures(self) -> dict[str, float]:
        """Return percentiles, the mean and the largest, in microseconds; zeros where nothing was counted."""
        histogram, count = self._histogram, self.count
        found = {
            f"p{percentile:g}_us": float(histogram.get_value_at_percentile(percentile)) if count else 0.0
            for percentile in PERCENTILES
        }
        return {
            **found,
            "max_us": float(histogram.get_max_value()) if count else 0.0,
            "mean_us": round(float(histogram.get_mean_value()), 1) if count else 0.0,
        }


@dataclass
class Counts:
    """What producers and consumers counted, of one or of all. Those `in_time` are of the measured time alone."""

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

    def add(self, others: Iterable[Counts]) -> None:
        """Add what others counted."""
        for other in others:
            for name in vars(other):
                setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass
class Measured:
    """A benchmark: its counts and both latencies, from the instant at which a sample was due."""

    counts: Counts = field(default_factory=Counts)
    to_acknowledgment: Latencies = field(default_factory=Latencies)
    """To the acknowledgment of the queue at its producer."""
    to_consumer: Latencies = field(default_factory=Latencies)
    """To the consumer."""
