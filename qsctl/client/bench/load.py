"""The load of a benchmark, and when each sample of it is due.

Decides: the schedule. A producer of a rate has a sample due every period, from its own offset on, so that several do
not write at once.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Final

from qsctl.instant import SECOND_NS, Nanoseconds

STAMP: Final = struct.Struct("<Q")
"""The instant at which a sample was due begins its payload: nanoseconds of the monotonic clock."""

GRACE_NS: Final[Nanoseconds] = SECOND_NS
"""So long after the end what was due before it is still written; what then is left is overdue."""


@dataclass(frozen=True, slots=True)
class BenchLoad:
    """The samples that are written and consumed. `per_second` is of all producers together; 0: as fast as they can."""

    producer_count: int
    consumer_count: int
    size_bytes: int
    per_second: float
    duration_s: float
    warm_up_s: float
    window_count: int

    @property
    def total_s(self) -> float:
        """Return how long producers write."""
        return self.warm_up_s + self.duration_s


class ProducerSchedule:
    """The times at which the samples of one producer are due.

    Args:
        load: that of all producers.
        producer: its index, from 0.
        start_ns: the start of the first producer, on the monotonic clock.
    """

    def __init__(self, load: BenchLoad, producer: int, start_ns: Nanoseconds) -> None:
        per_second = load.per_second / load.producer_count
        self._period_ns = SECOND_NS / per_second if per_second else 0.0
        self._first_ns = start_ns + self._period_ns * producer / load.producer_count
        self.end_ns = start_ns + int(load.total_s * SECOND_NS)
        self._padding = bytes(load.size_bytes - STAMP.size)
        self._number = 0

    def due(self, now_ns: Nanoseconds) -> Nanoseconds | None:
        """Return the instant at which the next sample is, or was, due; None: none is to come.

        One that is still to come is later than `now_ns`.
        """
        due_ns = int(self._first_ns + self._number * self._period_ns) if self._period_ns else now_ns
        return due_ns if due_ns < self.end_ns else None

    def overdue_count(self) -> int:
        """Return how many samples were due in all the time, and were not written."""
        if not self._period_ns:
            return 0
        return max(0, math.ceil((self.end_ns - self._first_ns) / self._period_ns) - self._number)

    def take(self, due_ns: Nanoseconds) -> bytes:
        """Return the payload of the next sample, which counts as written."""
        self._number += 1
        return STAMP.pack(due_ns) + self._padding
