"""The limits of a queue's length and size, and the events when a watermark is crossed [QS 2.15].

Decides: whether there is room for a sample, and when a watermark or the limit is crossed. `_entry` rejects a sample
without room, or lets it wait, by the replacement policy.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

from qsctl.core.events import BounceReason, HighWatermarkPassed, LowWatermarkPassed, QueueFilled
from qsctl.core.queue.outbox import Outbox
from qsctl.core.queue.settings import PersistenceKind, SharedReaderQueueSettings
from qsctl.instant import Nanoseconds

SAMPLE_METADATA_BYTES: Final = 384
"""Octets that a held sample counts beyond its payload: its memory in this implementation, rounded up."""

_WITHOUT_END: Final = 1 << 62
# Reading a member of an enumeration by its name takes longer than all else in a step.
_QUEUE_FULL, _TOO_LARGE = BounceReason.QUEUE_FULL, BounceReason.TOO_LARGE


class Limits:
    """The number and octets of held samples, compared with `max_count` and `max_in_memory_bytes`.

    Our reading if both are set: whichever is reached first counts. The queue is above the high watermark when either
    measure is, and below the low one when both are. An event reports the crossing of a watermark only. `initial_count`
    and `incremental_count` size a pool of buffers; they have no effect here, where memory is allocated as needed.
    """

    __slots__ = (
        "_above",
        "_below",
        "_bytes_high",
        "_bytes_low",
        "_bytes_max",
        "_count_high",
        "_count_low",
        "_count_max",
        "_full",
        "_has_watermarks",
        "_outbox",
        "_queue",
        "_sample_size_bytes_max",
        "count",
        "in_memory_bytes",
        "limited",
    )

    def __init__(self, queue: str, settings: SharedReaderQueueSettings, outbox: Outbox) -> None:
        self._queue = queue
        self._outbox = outbox
        self.count = 0
        self.in_memory_bytes = 0
        self._set(settings)
        self._above = False
        self._below = self._is_below()
        self._full = False

    def _set(self, settings: SharedReaderQueueSettings) -> None:
        limits, persistence = settings.limits, settings.persistence
        self._sample_size_bytes_max = limits.sample_size_bytes_max
        on_disk = persistence.kind is PersistenceKind.PERSISTENT and not persistence.in_memory_state
        self._count_max = limits.max_count if limits.max_count >= 0 else _WITHOUT_END
        # Ignored where the state is kept on disk only [QS 2.15.1.2].
        bounded = limits.max_in_memory_bytes >= 0 and not on_disk
        self._bytes_max = limits.max_in_memory_bytes if bounded else _WITHOUT_END
        self.limited = self._count_max < _WITHOUT_END or self._bytes_max < _WITHOUT_END
        high, low = limits.high_watermark_percent, limits.low_watermark_percent
        self._has_watermarks = self.limited and (high is not None or low is not None)
        self._count_high = _mark(self._count_max, high, rounded_up=False)
        self._bytes_high = _mark(self._bytes_max, high, rounded_up=False)
        self._count_low = _mark(self._count_max, low, rounded_up=True) if low is not None else 0
        self._bytes_low = _mark(self._bytes_max, low, rounded_up=True) if low is not None else 0

    def change(self, settings: SharedReaderQueueSettings, sizes_bytes: Iterable[int]) -> None:
        """Apply changed settings. Samples above a new limit remain; only new ones are refused, or wait.

        The number of samples did not change, so no crossing of a watermark and no full queue is reported, whatever the
        new limits.

        Args:
            settings: the new settings.
            sizes_bytes: the octets in memory of each held sample; read only if samples were not counted before, for
                lack of a limit.
        """
        was_limited = self.limited
        self._set(settings)
        if was_limited and self.limited:
            self._find_level()
            return
        self.restore(sizes_bytes if self.limited else ())

    def refusal_of(self, size_bytes: int, in_memory_bytes: int) -> BounceReason | None:
        """Return which limit a sample exceeds now; None: it can be enqueued.

        An empty queue accepts any sample up to the maximum sample size.

        Args:
            size_bytes: size of its payload.
            in_memory_bytes: the part of that size that is kept in memory.
        """
        if size_bytes > self._sample_size_bytes_max:
            return _TOO_LARGE
        if self.count < self._count_max and (
            not self.count or self.in_memory_bytes + in_memory_bytes + SAMPLE_METADATA_BYTES <= self._bytes_max
        ):
            return None
        return _QUEUE_FULL

    def is_full(self) -> bool:
        """Return whether no sample of any size can be enqueued now."""
        return self.count >= self._count_max or (
            self.count > 0 and self.in_memory_bytes + SAMPLE_METADATA_BYTES > self._bytes_max
        )

    def fitting_count(self, sizes_bytes: Sequence[int]) -> int:
        """Return how many of these samples can be enqueued one after the other, up to the first that cannot.

        Args:
            sizes_bytes: the part of their sizes that is kept in memory.
        """
        count = min(len(sizes_bytes), self._count_max - self.count)
        room = self._bytes_max - self.in_memory_bytes
        ends = list(accumulate(each + SAMPLE_METADATA_BYTES for each in sizes_bytes[:count]))
        fitting = bisect_right(ends, room)
        return fitting if self.count or fitting or not count else 1

    def grow(self, now: Nanoseconds, size_bytes: int, count: int = 1) -> None:
        """Count enqueued samples of this size in total, and report a limit or high watermark that they cross."""
        self.count += count
        self.in_memory_bytes += size_bytes + count * SAMPLE_METADATA_BYTES
        if not self.limited:
            return
        if self._has_watermarks:
            self._below = self._is_below()
            if not self._above and (self.count > self._count_high or self.in_memory_bytes > self._bytes_high):
                self._above = True
                self._outbox.events.append(HighWatermarkPassed(now, self._queue))
        if self.count >= self._count_max or self.in_memory_bytes + SAMPLE_METADATA_BYTES > self._bytes_max:
            self.find_full(now)

    def shrink(self, now: Nanoseconds, size_bytes: int, count: int = 1) -> None:
        """Count removed samples of this size in total, and report a low watermark that they cross."""
        self.count -= count
        self.in_memory_bytes -= size_bytes + count * SAMPLE_METADATA_BYTES
        if not self.limited:
            return
        if self.count < self._count_max and self.in_memory_bytes + SAMPLE_METADATA_BYTES <= self._bytes_max:
            self._full = False
        if self._has_watermarks:
            self._above = self.count > self._count_high or self.in_memory_bytes > self._bytes_high
            if not self._below and self._is_below():
                self._below = True
                self._outbox.events.append(LowWatermarkPassed(now, self._queue))

    def find_full(self, now: Nanoseconds) -> None:
        """Report that the queue is full, unless it was reported since there was last room."""
        if not self._full:
            self._full = True
            self._outbox.events.append(QueueFilled(now, self._queue))

    def restore(self, sizes_bytes: Iterable[int]) -> None:
        """Count all held samples after a restart or a change, without reporting a full queue or a crossed watermark."""
        self.count = self.in_memory_bytes = 0
        for size_bytes in sizes_bytes:
            self.count += 1
            self.in_memory_bytes += size_bytes + SAMPLE_METADATA_BYTES
        self._find_level()

    def _find_level(self) -> None:
        self._full = self.count >= self._count_max or self.in_memory_bytes + SAMPLE_METADATA_BYTES > self._bytes_max
        self._above = self.count > self._count_high or self.in_memory_bytes > self._bytes_high
        self._below = self._is_below()

    def _is_below(self) -> bool:
        return self.count < self._count_low and self.in_memory_bytes < self._bytes_low


def _mark(limit: int, percent: int | None, *, rounded_up: bool) -> int:
    """Return a watermark as a whole number of samples or octets; without watermark or limit, a number never reached.

    An integer is above the exact watermark if and only if it is above the watermark rounded down, and below it if and
    only if it is below the watermark rounded up.
    """
    if percent is None or limit == _WITHOUT_END:
        return _WITHOUT_END
    return -(-limit * percent // 100) if rounded_up else limit * percent // 100
