"""The limits of a queue's length and size, and notices when a watermark is passed [QS 2.15].

Decides: whether there is room for a sample, and when a watermark or the limit is passed. The replacement policy decides
about a sample without room: `shared_reader_queue` rejects it or lets it wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from qsctl.core.events import BounceReason, HighWatermarkPassed, LowWatermarkPassed, QueueFilled
from qsctl.core.queue.outbox import Outbox
from qsctl.core.queue.settings import PersistenceKind, SharedReaderQueueSettings
from qsctl.instant import Nanoseconds

SAMPLE_METADATA_BYTES: Final = 384
"""Bytes that a held sample counts beyond its payload: its memory in this implementation, rounded up."""

_WITHOUT_END: Final = 1 << 62
# Reading a member of an enumeration by its name takes longer than all else in a step.
_QUEUE_FULL, _TOO_LARGE = BounceReason.QUEUE_FULL, BounceReason.TOO_LARGE


class Limits:
    """Counts and bytes against `max_count` and `max_in_memory_bytes`, whichever is reached first.

    Our reading where both are set: the queue is above the high watermark when either measure is, below the low one when
    both are; so the fuller of the two decides. Watermarks count on crossing only. `initial_count` and
    `incremental_count` size a pool of buffers; memory is allocated as it is needed here, so they have no effect.
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
        """Obey other settings. Held samples stay, also above the limits: only new ones are refused, or wait.

        The level did not move, so no watermark is passed and the queue did not become full, whatever the new marks.

        Args:
            settings: the new settings.
            sizes_bytes: the memory of each held sample; read where it was not counted, because there was no limit.
        """
        was_limited = self.limited
        self._set(settings)
        if was_limited and self.limited:
            self._find_level()
            return
        self.restore(sizes_bytes if self.limited else ())

    def refusal_of(self, size_bytes: int, in_memory_bytes: int) -> BounceReason | None:
        """Return why a sample cannot be enqueued now, with respect to the limits; None: it can.

        Into an empty queue any sample fits that is not too large by itself.

        Args:
            size_bytes: of its payload.
            in_memory_bytes: what of that is in memory.
        """
        if size_bytes > self._sample_size_bytes_max:
            return _TOO_LARGE
        if self.count < self._count_max and (
            not self.count or self.in_memory_bytes + in_memory_bytes + SAMPLE_METADATA_BYTES <= self._bytes_max
        ):
            return None
        return _QUEUE_FULL

    def grow(self, now: Nanoseconds, size_bytes: int) -> None:
        """Count a sample that was enqueued."""
        self.count += 1
        self.in_memory_bytes += size_bytes + SAMPLE_METADATA_BYTES
        if not self.limited:
            return
        if self.count >= self._count_max or self.in_memory_bytes + SAMPLE_METADATA_BYTES > self._bytes_max:
            self.find_full(now)
        if self._has_watermarks:
            self._below = self._is_below()
            if not self._above and (self.count > self._count_high or self.in_memory_bytes > self._bytes_high):
                self._above = True
                self._outbox.events.append(HighWatermarkPassed(now, self._queue))

    def shrink(self, now: Nanoseconds, size_bytes: int) -> None:
        """Count a sample that left."""
        self.count -= 1
        self.in_memory_bytes -= size_bytes + SAMPLE_METADATA_BYTES
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
        """Report that the queue has no room, once until there is some again."""
        if not self._full:
            self._full = True
            self._outbox.events.append(QueueFilled(now, self._queue))

    def restore(self, sizes_bytes: Iterable[int]) -> None:
        """Count the samples that are held, all at once: a queue that is found full did not become full."""
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
    """Return a watermark in whole samples or bytes; no mark, or none of an unlimited measure, is never reached.

    A whole number is above the exact mark just when it is above the mark rounded down, and below it just when it is
    below the mark rounded up.
    """
    if percent is None or limit == _WITHOUT_END:
        return _WITHOUT_END
    return -(-limit * percent // 100) if rounded_up else limit * percent // 100
