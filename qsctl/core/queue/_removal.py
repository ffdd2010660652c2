"""The removal of samples from a queue [QS 2.9, 2.12 and 5.4.3].

Decides: the steps for a sample that was delivered, expired, failed or was flushed: first dead-lettering, if it applies
and there is room; then the record, the event, and the queue's own state.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from qsctl.core.events import BounceReason, SampleRemoved
from qsctl.core.queue._context import QueueContext
from qsctl.core.queue._delivery import Deliveries
from qsctl.core.queue._lifespan import Lifespans
from qsctl.core.queue._limits import Limits
from qsctl.core.queue._run import Run
from qsctl.core.queue._undeliverable import UNDELIVERABLE, DeadLetterLine, Undeliverables
from qsctl.core.queue.dead_letter import CAUSES, REASONS
from qsctl.core.queue.sample import Cause, Sample, SampleState
from qsctl.core.records import RemovalCause, Removed, RemovedRun
from qsctl.identity import NIL_GUID, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds

_DEAD_LETTER: Final = Cause.DEAD_LETTER
_ENQUEUED: Final = SampleState.ENQUEUED
_DELIVERED: Final = RemovalCause.DELIVERED


class Removal:
    """The removal of samples from one queue.

    Args:
        context: the queue.
        deliveries: the waiting samples, and those that consumers hold.
        limits: the bounds on its length and size.
        lifespans: the held samples that will expire.
        undeliverables: its samples that wait for room in the dead-letter queue.
        line: if this is a dead-letter queue, the queues that wait for room in it.
    """

    __slots__ = (
        "_context",
        "_deliveries",
        "_has_dead_letters",
        "_held",
        "_is_limited",
        "_journaled",
        "_lifespans",
        "_limits",
        "_line",
        "_name",
        "_outbox",
        "_stream",
        "_take_back",
        "_undeliverables",
    )

    def __init__(
        self,
        context: QueueContext,
        deliveries: Deliveries,
        limits: Limits,
        lifespans: Lifespans,
        undeliverables: Undeliverables,
        line: DeadLetterLine,
    ) -> None:
        self._context = context
        self._name = context.name
        self._outbox = context.outbox
        self._stream = context.stream
        self._journaled = context.journaled
        self._held = context.held
        self._deliveries = deliveries
        self._limits = limits
        self._is_limited = limits.limited
        self._lifespans = lifespans
        self._undeliverables = undeliverables
        self._has_dead_letters = undeliverables.place is not None
        self._take_back = deliveries.take_back
        self._line = line

    def change(self) -> None:
        """Apply the queue's changed limits."""
        self._is_limited = self._limits.limited

    def end(self, now: Nanoseconds, sample: Sample, cause: Cause, removal: RemovalCause) -> None:
        """Remove a sample; if the dead-letter queue has no room, it remains until `retry_dead_letters` moves it."""
        sent_at_ns = sample.sent_at_ns
        if sample.state is _ENQUEUED:
            sample.move(cause)
            self._deliveries.groups.of_sample(sample).drop()
        else:
            if sample.holder != NIL_GUID:
                self._take_back(sample)
            elif len(self._undeliverables):
                self._undeliverables.leave(now, self._context, sample, moves=cause is _DEAD_LETTER)
            sample.move(cause)
        if (
            self._has_dead_letters
            and (reason := REASONS.get(removal)) is not None
            and cause is not _DEAD_LETTER
            and not self._undeliverables.bury(now, self._context, sample, reason)
        ):
            return
        if self._journaled and (
            removal is _DELIVERED or not (self._undeliverables.are_moves_one_record and removal in REASONS)
        ):
            stream = self._stream
            (stream.records or stream.begin()).append(Removed(self._name, sample.position, removal))
        if self._outbox.reports_each_step or removal is not _DELIVERED:
            self._outbox.events.append(
                SampleRemoved(
                    now, self._name, sample.identity, removal, sample.size_bytes, sample.enqueued_at_ns, sent_at_ns
                )
            )
        else:
            passed = self._context.passed
            (passed if passed.at_ns == now else self._context.count_at(now)).delivered_count += 1
        self._held.retire(sample)
        if self._is_limited:
            self._limits.shrink(now, self._context.in_memory_bytes(sample.size_bytes))
            if self._line.queues and not self._context.is_shut:
                self._line.call(now)
        if sample.expires_at_ns < INFINITE_NS:
            self._lifespans.leave()

    def end_range(self, now: Nanoseconds, run: Run, offsets: range, count: int, sent_at_ns: Nanoseconds) -> None:
        """Remove acknowledged samples of a run, which were sent at one instant."""
        if self._journaled:
            position = run.position + offsets.start
            self._stream.record_run(RemovedRun(self._name, position, count, offsets.step, _DELIVERED))
        size_bytes = run.size_bytes_of(offsets)
        identity = SampleIdentity(run.writer_guid, run.first_number + offsets.start)
        self._outbox.events.append(
            SampleRemoved(
                now,
                self._name,
                identity,
                _DELIVERED,
                size_bytes,
                run.enqueued_at_ns,
                sent_at_ns,
                count,
                offsets.step,
            )
        )
        self._held.retire_range(run, offsets, count)
        if self._is_limited:
            total_bytes = size_bytes * count if isinstance(size_bytes, int) else sum(size_bytes)
            if run.is_on_disk:
                total_bytes = 0
            self._limits.shrink(now, total_bytes, count)
        if run.expires_at_ns < INFINITE_NS:
            self._lifespans.leave(count)

    def flush(self, now: Nanoseconds, samples: Iterable[Sample]) -> int:
        """Remove those of these samples that are still held [QS 5.4.3]; return their number."""
        held = self._held
        going = [held.current(sample) for sample in samples if held.is_held(sample)]
        groups = self._deliveries.groups_of(going)
        for sample in going:
            self.end(now, sample, Cause.FLUSH, RemovalCause.FLUSHED)
        self._deliveries.serve(now, *groups)
        return len(going)

    def end_moved(self, now: Nanoseconds, sample: Sample) -> None:
        """Remove a sample that another queue of the service has enqueued; waiting samples are not sent here."""
        self.end(now, self._held.current(sample), Cause.FLUSH, RemovalCause.FLUSHED)

    def retry_dead_letters(self, now: Nanoseconds, count_max: int) -> None:
        """Move waiting undeliverable samples to the dead-letter queue, in order of their failure, while it has room.

        A sample that is too large for the dead-letter queue is skipped.
        """
        undeliverables = self._undeliverables
        undeliverables.unbar(self._context)
        waiting = undeliverables.waiting
        for sample in list(islice(waiting.values(), min(count_max, len(waiting)))):
            reason = UNDELIVERABLE[sample.state]
            obstacle = undeliverables.move(now, self._context, sample, reason)
            if obstacle is BounceReason.TOO_LARGE:
                undeliverables.bar(now, self._context, sample)
                continue
            if obstacle is not None:
                return
            self.end(now, sample, _DEAD_LETTER, CAUSES[reason])
        if waiting:
            undeliverables.move_to_back(now, self._context)
