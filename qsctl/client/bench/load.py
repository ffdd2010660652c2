"""The load of a benchmark, and the instants at which its samples are due.

Decides: the schedule. A producer with a rate has a sample due every period, beginning at an offset of its own, so that
several producers do not write at once.
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
    """The samples to write and consume; `per_second` is the rate of all producers together, 0: as fast as possible."""

    producer_count: int
    consumer_count: int
    size_bytes: int
    per_second: float
    duration_s: float
    warm_up_s: float
    window_count: int

    @property
    def total_s(self) -> float:
        """Return the duration of writing, warm-up included, in seconds."""
        return self.warm_up_s + self.duration_s


class ProducerSchedule:
    """The times at which the samples of one producer are due.

    Args:
        load: the load of all producers.
        producer: its index, from 0.
        start_ns: the common start, on the monotonic clock.
    """

    def __init__(self, load: BenchLoad, producer: int, start_ns: Nanoseconds) -> None:
        per_second = load.per_second / load.producer_count
        self._period_ns = SECOND_NS / per_second if per_second else 0.0
        self._first_ns = start_ns + self._period_ns * producer / load.producer_count
        self.end_ns = start_ns + int(load.total_s * SECOND_NS)
        self._padding = bytes(load.size_bytes - STAMP.size)
        self._number = 0

    def due(self, now_ns: Nanoseconds) -> Nanoseconds | None:
        """Return the instant at which the next sample is or was due; None: no sample is left.

        An instant later than `now_ns` is still to be waited for.
        """
        due_ns = int(self._first_ns + self._number * self._period_ns) if self._period_ns else now_ns
        return due_ns if due_ns < self.end_ns else None

    def overdue_count(self) -> int:
        """Return the number of samples that were due during the run and not written."""
        if not self._period_ns:
            return 0
        return max(0, math.ceil((self.end_ns - self._first_ns) / self._period_ns) - self._number)

    def take(self, due_ns: Nanoseconds) -> bytes:
        """Return the payload of the next sample, and count it as written."""
        self._number += 1
        return STAMP.pack(due_ns) + self._padding
