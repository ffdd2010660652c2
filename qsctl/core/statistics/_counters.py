"""The statistics of one queue: every counter and variable of its status, folded from events [QS 6.2].

Decides: the events that each counter counts. `count` may run four times a sample, so it only adds to plain integers;
means and windows are computed when the status is read. `next_deadline` is the time of the next periodic publication;
the engine publishes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add
from typing import Any, Final

import msgspec

from qsctl.core.events import (
    DeadLetterDeferred,
    DuplicateDropped,
    Event,
    HighWatermarkPassed,
    LateAcknowledgment,
    LowWatermarkPassed,
    QueueFilled,
    ReturnReason,
    SampleBounced,
    SampleDeadLettered,
    SampleEnqueued,
    SampleReceived,
    SampleRemoved,
    SampleReturned,
    SampleSent,
    SamplesPassed,
    SamplesRestored,
)
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.records import RemovalCause
from qsctl.core.statistics._stored import StoredStatistics, StoredVariables, decode_statistics
from qsctl.core.statistics._variable import Summary, WindowedVariable
from qsctl.core.statistics.status import AdditionalCounters, Counters, CurrentCounts, SharedReaderQueueStatus
from qsctl.instant import INFINITE_NS, Nanoseconds, later

_DELIVERED: Final = RemovalCause.DELIVERED
_TOTALS: Final = tuple(
    f"_{name.removesuffix('_count').removesuffix('_message')}" for name in Counters.__struct_fields__
)
"""The attributes with the counters of a status, in its order."""


class QueueStatistics:
    """The counters and statistic variables of one queue, since its creation.

    `change` is counted since the status was last read by a command [QS 5.4.4]; a publication does not reset it
    [QS 2.15.3]. The variables, as qsctl interprets them: latency is the time from enqueuing a sample to sending it for
    the first time; a sample is dequeued when it leaves the queue for good, whatever the cause, so that enqueue
    throughput less dequeue throughput is the growth of the queue.
    """

    __slots__ = (
        *_TOTALS,
        "_created_at_ns",
        "_dequeue_throughput",
        "_dequeued_in_period",
        "_duplicate",
        "_enqueue_throughput",
        "_enqueued_in_period",
        "_flushed",
        "_last_read",
        "_latency",
        "_period_began_at_ns",
        "_period_ends_at_ns",
        "_publication_at_ns",
        "_publication_period_ns",
        "_publishes",
        "_restored",
        "_sampling_period_ns",
        "_sending_latency",
        "_sending_throughput",
        "_sent_in_period",
        "_settings",
    )

    def __init__(self, settings: SharedReaderQueueSettings, created_at_ns: Nanoseconds) -> None:
        self._settings = settings
        self._publishes = settings.monitoring.enabled
        self._publication_period_ns = max(1, settings.monitoring.status_publication_period_ns)
        self._publication_at_ns = later(created_at_ns, self._publication_period_ns)
        self._sampling_period_ns = max(1, settings.statistics.sampling_period_ns)
        self._received = self._sent = self._acknowledged = self._failed_delivery = self._late_acknowledgment = 0
        self._bounced = self._redelivered = self._expired = self._timeout = 0
        self._high_watermark = self._low_watermark = self._queue_full = self._restored = self._duplicate = 0
        self._flushed = 0
        self._last_read = Counters()
        self._start_windows(created_at_ns)

    def count(self, event: Event) -> None:
        """Count one event of this queue. Constant time, but for the first event of a sampling period."""
        if event.at_ns >= self._period_ends_at_ns:
            self._close_period(event.at_ns)
        _COUNT[type(event)](self, event)

    def count_all(self, events: Sequence[Event]) -> None:
        """Count events of this queue, in order; the four kinds of an ordinary delivery are counted inline."""
        received = enqueued = sent = sent_at_once = dequeued = acknowledged = 0
        latency = self._latency
        may_close = events[-1].at_ns >= self._period_ends_at_ns  # time does not run backwards
        for event in events:
            if may_close and event.at_ns >= self._period_ends_at_ns:
                latency.add_zeros(sent_at_once)
                sent_at_once = 0
                self._enqueued_in_period += enqueued
                self._sent_in_period += sent
                self._dequeued_in_period += dequeued
                self._sent += sent
                enqueued = sent = dequeued = 0
                self._close_period(event.at_ns)
                latency = self._latency
            kind = type(event)
            if kind is SampleReceived:
                received += event.count  # type: ignore[union-attr]
            elif kind is SampleEnqueued:
                enqueued += event.count  # type: ignore[union-attr]
            elif kind is SampleSent and event.attempt == 1 and not event.redelivered:  # type: ignore[union-attr]
                count = event.count  # type: ignore[union-attr]
                sent += count
                if waited_ns := event.at_ns - event.enqueued_at_ns:  # type: ignore[union-attr]
                    latency.add(waited_ns, count)
                else:
                    sent_at_once += count
            elif kind is SampleRemoved and event.cause is _DELIVERED:  # type: ignore[union-attr]
                count = event.count  # type: ignore[union-attr]
                dequeued += count
                acknowledged += count
            else:
                _COUNT[kind](self, event)
        latency.add_zeros(sent_at_once)
        self._received += received
        self._enqueued_in_period += enqueued
        self._sent += sent
        self._sent_in_period += sent
        self._dequeued_in_period += dequeued
        self._acknowledged += acknowledged

    def status(self, now: Nanoseconds, queue_name: str, current: CurrentCounts) -> SharedReaderQueueStatus:
        """Return the status for a command, and restart its `change` from zero [QS 5.4.4]."""
        status = self.publication(now, queue_name, current)
        self._last_read = status.total
        return status

    def publication(self, now: Nanoseconds, queue_name: str, current: CurrentCounts) -> SharedReaderQueueStatus:
        """Return the status for a periodic publication, which leaves `change` as it is [QS 6]."""
        if now >= self._period_ends_at_ns:
            self._close_period(now)
        total = self.counters()
        since = self._period_began_at_ns
        return SharedReaderQueueStatus(
            queue_name=queue_name,
            total=total,
            change=total.since(self._last_read),
            current_message_count=current.message_count,
            current_acknowledged_message_count=current.acknowledged_message_count,
            current_unacknowledged_message_count=current.unacknowledged_message_count,
            current_sent_message_count=current.sent_message_count,
            sending_latency=self._sending_latency.latencies(now, self._latency),
            enqueue_throughput=self._enqueue_throughput.rates(now, self._enqueued_in_period, since),
            dequeue_throughput=self._dequeue_throughput.rates(now, self._dequeued_in_period, since),
            sending_throughput=self._sending_throughput.rates(now, self._sent_in_period, since),
            additional=self.additional(),
            current_waiting_message_count=current.waiting_message_count,
            current_undeliverable_message_count=current.undeliverable_message_count,
            consumer_count=current.consumer_count,
        )

    def counters(self) -> Counters:
        """Return the totals of the counters of [QS 6.2], since the queue was created."""
        return Counters(*(getattr(self, name) for name in _TOTALS))

    def _in_period(self) -> tuple[int, int, int]:
        return self._enqueued_in_period, self._dequeued_in_period, self._sent_in_period

    def additional(self) -> AdditionalCounters:
        """Return the counters of qsctl that [QS 6.2] does not define."""
        return AdditionalCounters(self._restored, self._duplicate, self._flushed)

    def next_deadline(self) -> Nanoseconds | None:
        """Return when the status is next due for publication; None while monitoring is off."""
        return self._publication_at_ns if self._publishes and self._publication_at_ns < INFINITE_NS else None

    def advance(self, now: Nanoseconds) -> bool:
        """Return whether a publication is due at `now`, and schedule the next one; missed publications are skipped."""
        if not self._publishes or now < self._publication_at_ns:
            return False
        missed = (now - self._publication_at_ns) // self._publication_period_ns
        self._publication_at_ns = later(self._publication_at_ns, (missed + 1) * self._publication_period_ns)
        return True

    def snapshot(self) -> bytes:
        """Return all counters and windows as JSON for `restore`, so that they outlive the process."""
        return msgspec.json.encode(
            StoredStatistics(
                self._created_at_ns,
                self._sampling_period_ns,
                self._period_began_at_ns,
                self.counters(),
                self._last_read,
                StoredVariables(
                    self._sending_latency.states(),
                    self._enqueue_throughput.states(),
                    self._dequeue_throughput.states(),
                    self._sending_throughput.states(),
                    self._latency.values(),
                    self._in_period(),
                ),
                self.additional(),
            )
        )

    def restore(self, snapshot: bytes) -> None:
        """Add the counters of a snapshot and resume its windows; until now only the events of the restart are counted.

        A snapshot whose number of held samples differs from the number that the restart restored is older than the
        store, as after a kill, and its counters would never balance. It is ignored: the restored samples are counted
        as restored, and the other counters start from zero. Windows with another sampling period than the configured
        one start empty; the counters are kept.

        Raises:
            Damaged: the bytes are not a snapshot; nothing was changed.
        """
        stored = decode_statistics(snapshot, self._settings.name)
        if stored.additional.held_count(stored.total) != self._restored:
            return
        for name, count in zip(_TOTALS, msgspec.structs.astuple(stored.total), strict=True):
            setattr(self, name, getattr(self, name) + count)
        self._restored, duplicate, flushed = msgspec.structs.astuple(stored.additional)
        self._duplicate, self._flushed = self._duplicate + duplicate, self._flushed + flushed
        in_period = self._in_period()
        self._last_read = stored.last_read
        self._start_windows(stored.created_at_ns)
        if stored.sampling_period_ns != self._sampling_period_ns:
            return
        self._period_began_at_ns = stored.period_began_at_ns
        self._period_ends_at_ns = later(stored.period_began_at_ns, self._sampling_period_ns)
        self._sending_latency.restore(stored.variables.sending_latency)
        self._enqueue_throughput.restore(stored.variables.enqueue_throughput)
        self._dequeue_throughput.restore(stored.variables.dequeue_throughput)
        self._sending_throughput.restore(stored.variables.sending_throughput)
        self._latency = Summary(*stored.variables.open_latency)
        self._enqueued_in_period, self._dequeued_in_period, self._sent_in_period = map(
            add, stored.variables.open_counts, in_period
        )

    def _start_windows(self, created_at_ns: Nanoseconds) -> None:
        def variable() -> WindowedVariable:
            return WindowedVariable(
                self._settings.statistics.historical,
                self._sampling_period_ns,
                self._publication_period_ns,
                created_at_ns,
            )

        self._created_at_ns = created_at_ns
        self._period_began_at_ns = created_at_ns
        self._period_ends_at_ns = later(created_at_ns, self._sampling_period_ns)
        self._sending_latency, self._enqueue_throughput = variable(), variable()
        self._dequeue_throughput, self._sending_throughput = variable(), variable()
        self._latency = Summary()
        self._enqueued_in_period = self._dequeued_in_period = self._sent_in_period = 0

    def _close_period(self, now: Nanoseconds) -> None:
        """Close the open sampling period and open the one that contains `now`; empty ones in between are not stored."""
        began = self._period_began_at_ns
        if self._latency.count:
            self._sending_latency.close_period(began, self._latency)
            self._latency = Summary()
        for variable, count in (
            (self._enqueue_throughput, self._enqueued_in_period),
            (self._dequeue_throughput, self._dequeued_in_period),
            (self._sending_throughput, self._sent_in_period),
        ):
            if count:
                variable.close_period(began, Summary(1, count, count * count, count, count))
        self._enqueued_in_period = self._dequeued_in_period = self._sent_in_period = 0
        passed = (now - began) // self._sampling_period_ns
        self._period_began_at_ns = began + passed * self._sampling_period_ns
        self._period_ends_at_ns = later(self._period_began_at_ns, self._sampling_period_ns)

    # Frequent kinds of event, and those that change more than one counter, have methods of their own.

    def _count_received(self, event: SampleReceived) -> None:
        self._received += event.count

    def _count_enqueued(self, event: SampleEnqueued) -> None:
        self._enqueued_in_period += event.count

    def _count_sent(self, event: SampleSent) -> None:
        self._sent += event.count
        self._sent_in_period += event.count
        if event.attempt > 1 or event.redelivered:
            self._redelivered += event.count
        else:
            self._latency.add(event.at_ns - event.enqueued_at_ns, event.count)

    def _count_returned(self, event: SampleReturned) -> None:
        if event.reason is ReturnReason.TIMED_OUT:
            self._timeout += 1

    def _count_removed(self, event: SampleRemoved) -> None:
        cause, count = event.cause, event.count
        self._dequeued_in_period += count
        if cause is RemovalCause.DELIVERED:
            self._acknowledged += count
        elif cause is RemovalCause.EXPIRED:
            self._expired += count
        elif cause is RemovalCause.FAILED_DELIVERY:
            self._failed_delivery += count
        else:
            self._flushed += count

    def _count_passed(self, event: SamplesPassed) -> None:
        self._received += event.enqueued_count
        self._enqueued_in_period += event.enqueued_count
        self._sent += event.sent_count
        self._sent_in_period += event.sent_count
        self._latency.add_zeros(event.sent_count)
        self._dequeued_in_period += event.delivered_count
        self._acknowledged += event.delivered_count

    def _count_restored(self, event: SamplesRestored) -> None:
        self._restored += event.count

    def _count_nothing(self, _event: SampleDeadLettered | DeadLetterDeferred) -> None:
        """Count nothing: a dead letter is counted by its removal, which follows; a deferred one is still held."""


def _counts_in(name: str) -> Callable[[QueueStatistics, Event], None]:
    def count(statistics: QueueStatistics, _event: Event) -> None:
        setattr(statistics, name, getattr(statistics, name) + 1)

    return count


# A test holds that every kind of `Event` has its entry.
_COUNT: Final[dict[type, Callable[[QueueStatistics, Any], None]]] = {
    SampleReceived: QueueStatistics._count_received,
    SampleEnqueued: QueueStatistics._count_enqueued,
    SampleBounced: _counts_in("_bounced"),
    DuplicateDropped: _counts_in("_duplicate"),
    SampleSent: QueueStatistics._count_sent,
    SampleReturned: QueueStatistics._count_returned,
    SampleRemoved: QueueStatistics._count_removed,
    SampleDeadLettered: QueueStatistics._count_nothing,
    DeadLetterDeferred: QueueStatistics._count_nothing,
    SamplesRestored: QueueStatistics._count_restored,
    LateAcknowledgment: _counts_in("_late_acknowledgment"),
    SamplesPassed: QueueStatistics._count_passed,
    HighWatermarkPassed: _counts_in("_high_watermark"),
    LowWatermarkPassed: _counts_in("_low_watermark"),
    QueueFilled: _counts_in("_queue_full"),
}
