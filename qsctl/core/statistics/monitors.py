"""The statistics of all queues of a service: fed with events, published when due, kept over a restart [QS 6].

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
    return len(consumer.outstanding)


class Monitor:
    """A queue's statistics, and its place in the agenda for the periodic publication (chapter 6)."""

    __slots__ = ("_count", "_outbox", "at_rest_count", "queue", "statistics", "wakes_at_ns")

    def __init__(self, queue: SharedReaderQueue, now: Nanoseconds, outbox: Outbox, count: Callable[[], None]) -> None:
        self.queue = queue
        self.statistics = QueueStatistics(queue.settings, now)
        self.at_rest_count: int | None = None
        """Number of samples in the queue, where they were not read; None: they were."""
        self.wakes_at_ns: Nanoseconds = INFINITE_NS
        self._outbox = outbox
        self._count = count

    def next_deadline(self) -> Nanoseconds | None:
        """Return when the status is next due."""
        return self.statistics.next_deadline()

    def advance(self, now: Nanoseconds) -> None:
        """Publish the status if it is due."""
        if self.statistics.advance(now):
            self._count()
            status = self.statistics.publication(now, self.queue.name, self.counts())
            rests_on = self.queue.stream.last_index
            self._outbox.messages.append(StatusPublication(self.queue.name, status, rests_on))

    def counts(self) -> CurrentCounts:
        """Return what the queue holds. An acknowledged sample leaves at once, so that none is counted as that."""
        queue = self.queue
        held = len(queue.held) if self.at_rest_count is None else self.at_rest_count
        outside, undeliverable = len(queue.reader_cache), queue.undeliverable_count()
        consumer_count = len(queue.deliveries.consumers)
        return CurrentCounts(held, 0, held, queue.sent_count(), outside, undeliverable, consumer_count)

    def consumers(self) -> tuple[ConsumerStatus, ...]:
        """Return the consumers with the most outstanding samples, as many as a status names."""
        most = nlargest(CONSUMERS_MAX, self.queue.deliveries.consumers.values(), key=_outstanding_count)
        return tuple(
            ConsumerStatus(
                each.guid, each.source_guid, len(each.outstanding), each.unacked_threshold, each.reception_enabled
            )
            for each in most
        )


class Monitors:
    """The statistics of each queue, from the events that the queues leave in the outbox.

    Args:
        outbox: of the queues.
    """

    __slots__ = ("_counted_events", "_monitors", "_outbox")

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._counted_events = 0
        """Number of events of the open batch that are counted."""
        self._monitors: dict[str, Monitor] = {}

    def watch(self, now: Nanoseconds, queues: Iterable[SharedReaderQueue]) -> None:
        """Begin to count what happens in queues."""
        for queue in queues:
            monitor = self._monitors[queue.name] = Monitor(queue, now, self._outbox, self.count_events)
            deadline = monitor.next_deadline()
            if deadline is not None:
                self._outbox.agenda.wake(monitor, deadline)

    def rest(self, now: Nanoseconds, queue: str, count: int) -> None:
        """Let a queue of this full name hold samples that are not read: a restart that reads them counts them so."""
        self._monitors[queue].at_rest_count = count
        if count:
            self._outbox.events.append(SamplesRestored(now, queue, count))

    def unwatch(self, queues: Iterable[SharedReaderQueue]) -> None:
        """Forget queues that are gone."""
        for queue in queues:
            self._outbox.agenda.forget(self._monitors.pop(queue.name))

    def count_events(self) -> None:
        """Count what happened since the last call."""
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
        """Count the last events of a batch; those of the next one begin anew."""
        self.count_events()
        self._counted_events = 0

    def status(self, now: Nanoseconds, queue: str, *, with_consumers: bool = False) -> SharedReaderQueueStatus:
        """Return the status of a queue of this full name, and start its `change` again from zero [QS 5.4.4]."""
        self.count_events()
        monitor = self._monitors[queue]
        status = monitor.statistics.status(now, queue, monitor.counts())
        return msgspec.structs.replace(status, consumers=monitor.consumers()) if with_consumers else status

    def snapshot(self) -> bytes:
        """Return counters and windows of every queue, so that they outlive the process."""
        self.count_events()
        snapshots = {
            name: (each.statistics.snapshot(), each.queue.incarnation) for name, each in self._monitors.items()
        }
        return msgspec.msgpack.encode(snapshots)

    def restore(self, stored: bytes) -> None:
        """Continue from the result of `snapshot`; queues that are gone are ignored, even if others have their names
        now.

        Call it before the first turn. Where a queue's content does not match its counters, see
        `QueueStatistics.restore`.

        Raises:
            Damaged: the bytes are not such a snapshot; counters read so far stay.
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
