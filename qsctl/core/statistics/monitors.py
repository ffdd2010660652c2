"""The statistics of all queues of a service: counting of events, periodic publication, snapshot and restore [QS 6].

Decides: which events belong to which queue's statistics, and when they are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import nlargest
from itertools import groupby
from operator import attrgetter
from typing import Final

import msgspec

from qsctl.core.events import SamplesRestored
from qsctl.core.messages import StatusPublication
from qsctl.core.queue.consumer import Consumer
from qsctl.core.queue.outbox import Outbox
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.core.statistics._counters import QueueStatistics
from qsctl.core.statistics.status import CONSUMERS_MAX, ConsumerStatus, CurrentCounts, SharedReaderQueueStatus
from qsctl.errors import UNREADABLE, Damaged
from qsctl.identity import NIL_INCARNATION
from qsctl.instant import INFINITE_NS, Nanoseconds

_QUEUE_OF: Final = attrgetter("queue")


def _outstanding_count(consumer: Consumer) -> int:
    return consumer.outstanding_count


class Monitor:
    """The statistics of one queue, and the agenda entry of their periodic publication [QS 6]."""

    __slots__ = ("_count", "_outbox", "at_rest_count", "queue", "statistics", "wakes_at_ns")

    def __init__(self, queue: SharedReaderQueue, now: Nanoseconds, outbox: Outbox, count: Callable[[], None]) -> None:
        self.queue = queue
        self.statistics = QueueStatistics(queue.settings, now)
        self.at_rest_count: int | None = None
        """Number of samples that are in the store and were not read into the queue; None: they were read."""
        self.wakes_at_ns: Nanoseconds = INFINITE_NS
        self._outbox = outbox
        self._count = count

    def next_deadline(self) -> Nanoseconds | None:
        """Return the time of the next publication; None while monitoring is off."""
        return self.statistics.next_deadline()

    def advance(self, now: Nanoseconds) -> None:
        """Publish the status if it is due."""
        if self.statistics.advance(now):
            self._count()
            status = self.statistics.publication(now, self.queue.name, self.counts())
            rests_on = self.queue.stream.last_index
            self._outbox.messages.append(StatusPublication(self.queue.name, status, rests_on))

    def counts(self) -> CurrentCounts:
        """Return the queue's current counts; that of acknowledged samples is 0, for these are removed at once."""
        queue = self.queue
        held = len(queue.held) if self.at_rest_count is None else self.at_rest_count
        outside, undeliverable = len(queue.reader_cache), queue.undeliverable_count()
        consumer_count = len(queue.deliveries.consumers)
        return CurrentCounts(held, 0, held, queue.sent_count(), outside, undeliverable, consumer_count)

    def consumers(self) -> tuple[ConsumerStatus, ...]:
        """Return the consumers with the most outstanding samples, at most `CONSUMERS_MAX`."""
        most = nlargest(CONSUMERS_MAX, self.queue.deliveries.consumers.values(), key=_outstanding_count)
        return tuple(
            ConsumerStatus(
                each.guid, each.source_guid, each.outstanding_count, each.unacked_threshold, each.reception_enabled
            )
            for each in most
        )


class Monitors:
    """The statistics of each queue, from the events that the queues append to the outbox.

    Args:
        outbox: receives the events of all queues; status publications are appended to it.
    """

    __slots__ = ("_counted_events", "_monitors", "_outbox")

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._counted_events = 0
        """Number of events of the open batch that are already counted."""
        self._monitors: dict[str, Monitor] = {}

    def watch(self, now: Nanoseconds, queues: Iterable[SharedReaderQueue]) -> None:
        """Start the statistics of queues, and schedule their publication."""
        for queue in queues:
            monitor = self._monitors[queue.name] = Monitor(queue, now, self._outbox, self.count_events)
            deadline = monitor.next_deadline()
            if deadline is not None:
                self._outbox.agenda.wake(monitor, deadline)

    def rest(self, now: Nanoseconds, queue: str, count: int) -> None:
        """Set the number of samples that a queue has in its store, unread, and count them as restored."""
        self._monitors[queue].at_rest_count = count
        if count:
            self._outbox.events.append(SamplesRestored(now, queue, count))

    def unwatch(self, queues: Iterable[SharedReaderQueue]) -> None:
        """Drop the statistics of deleted queues, and their publication."""
        for queue in queues:
            self._outbox.agenda.forget(self._monitors.pop(queue.name))

    def count_events(self) -> None:
        """Count the events in the outbox that were appended since the last call."""
        self._outbox.end_counts()
        events = self._outbox.events
        new = events[self._counted_events :] if self._counted_events else events
        self._counted_events = len(events)
        if len(self._monitors) == 1 and new:
            self._monitors[new[0].queue].statistics.count_all(new)
            return
        for queue, of_queue in groupby(new, _QUEUE_OF):
            self._monitors[queue].statistics.count_all(list(of_queue))

    def close_batch(self) -> None:
        """Count the remaining events of a batch; the next batch is counted from its first event."""
        self.count_events()
        self._counted_events = 0

    def status(self, now: Nanoseconds, queue: str, *, with_consumers: bool = False) -> SharedReaderQueueStatus:
        """Return the status of the queue with this full name, and restart its `change` from zero [QS 5.4.4]."""
        self.count_events()
        monitor = self._monitors[queue]
        status = monitor.statistics.status(now, queue, monitor.counts())
        return msgspec.structs.replace(status, consumers=monitor.consumers()) if with_consumers else status

    def snapshot(self) -> bytes:
        """Return the counters and windows of every queue for `restore`, so that they outlive the process."""
        self.count_events()
        snapshots = {
            name: (each.statistics.snapshot(), each.queue.incarnation) for name, each in self._monitors.items()
        }
        return msgspec.msgpack.encode(snapshots)

    def restore(self, stored: bytes) -> None:
        """Resume the statistics of a `snapshot`; those of deleted queues are ignored, even if a new queue has the name.

        Call it before the first turn. `QueueStatistics.restore` ignores counters that do not match the queue's content.

        Raises:
            Damaged: the bytes are not such a snapshot; the statistics of queues restored before the damage are kept.
        """
        try:
            snapshots = msgspec.msgpack.decode(stored, type=dict[str, bytes | tuple[bytes, int]])
        except UNREADABLE as error:
            raise Damaged(
                f"the stored statistics cannot be read: {error}", remedy="Counting starts again from zero."
            ) from error
        self.count_events()
        for name, each in snapshots.items():
            # An earlier version stored no incarnation.
            snapshot, incarnation = each if isinstance(each, tuple) else (each, NIL_INCARNATION)
            monitor = self._monitors.get(name)
            if monitor is not None and incarnation in (NIL_INCARNATION, monitor.queue.incarnation):
                monitor.statistics.restore(snapshot)
