"""The shared reader queue: one sample, one consumer at a time (manual, sections 2.4 to 2.15).

Decides: what a sample, an acknowledgment, a consumer that comes or goes, a command or the time means to a queue. Its
parts decide the rest: `lifecycle` the steps of a sample, `held` duplicates, `limits` room, `dispatch` order, `consumer`
whose turn, `redelivery` and `lifespan` time, `dead_letter` the dead, `waiting` who stands outside. No clock is read:
`now` never runs backwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from qsctl.core.events import (
    BounceReason,
    DuplicateDropped,
    LateAcknowledgment,
    ReturnReason,
    SampleBounced,
    SampleReceived,
    SamplesRestored,
)
from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    ConsumerAvailability,
    ConsumerJoined,
    ConsumerLeft,
    SampleFlag,
    Write,
)
from qsctl.core.queue.consumer import Consumer
from qsctl.core.queue.dead_letter import CAUSES
from qsctl.core.queue.departure import Departure
from qsctl.core.queue.dispatch import Lanes
from qsctl.core.queue.held import Held
from qsctl.core.queue.lifecycle import SampleLifecycle
from qsctl.core.queue.lifespan import Lifespans
from qsctl.core.queue.limits import Limits
from qsctl.core.queue.persistence import enqueued_record
from qsctl.core.queue.redelivery import Redelivery, release
from qsctl.core.queue.sample import Cause, DeadLetterOrigin, Sample, SampleState
from qsctl.core.queue.settings import ReplacementKind
from qsctl.core.queue.undeliverable import UNDELIVERABLE, Undeliverables
from qsctl.core.records import RemovalCause, Removed, Returned
from qsctl.identity import NIL_GUID, Guid
from qsctl.instant import INFINITE_NS, Nanoseconds

_REDELIVERED = int(SampleFlag.REDELIVERED)
_LAST = int(SampleFlag.LAST_SHARED_READER_QUEUE)
_PRODUCER_FLAGS = ~(_REDELIVERED | _LAST)
_ENQUEUED = SampleState.ENQUEUED
_ACCEPTED = AckResponse.ACCEPTED
_POSITION: Final = attrgetter("position")
_RETURNED = AckResponse.RETURNED
_ACKNOWLEDGE, _DELIVERED = Cause.ACKNOWLEDGE, RemovalCause.DELIVERED

EARLY_REPORTS_MAX: Final = 1_024
"""Availability reports kept for consumers that have not been seen to join."""


class SharedReaderQueue(SampleLifecycle):
    """One queue of a service.

    Every public method leaves the queue at rest: whatever could be sent is sent, whoever could be let in is in. Where
    that is more than the outbox's share, the rest is due at once: `next_deadline` says so.
    """

    __slots__ = ()

    def receive(self, now: Nanoseconds, write: Write) -> None:
        """Take a producer's sample, or refuse it, or let it wait (sections 2.4 and 2.15.4).

        A sample that is held is acknowledged with 1, one that is refused with 0; one that waits is not acknowledged
        until it is held. An identity that is held or was lately retired is acknowledged with 1 and dropped.
        """
        identity = write.identity
        size_bytes = len(write.payload)
        if self._outbox.tells_usual:
            self._outbox.events.append(SampleReceived(now, self.name, identity, size_bytes))
        else:
            if self.passed_at_ns != now:
                self._begin_passing(now)
            self._passed.received_count += 1
        if identity in self.held.known:
            self._outbox.events.append(DuplicateDropped(now, self.name, identity))
            self._answer(identity, _ACCEPTED)
        elif write.lifespan_ns <= 0:
            self._bounce(now, identity, BounceReason.EXPIRED)
        elif self.refuses:
            self._bounce(now, identity, BounceReason.NOT_STORED)
        elif self._is_limited and (
            self.waiting_room.arrivals or not self.limits.has_room(self._in_memory_bytes(size_bytes))
        ):
            self._find_no_room(now, write)
        else:
            self._enqueue(now, write, now)
            if self.waiting_room.arrivals:
                self._let_in(now)

    def refuse(self, now: Nanoseconds, write: Write, reason: BounceReason) -> None:
        """Refuse a sample for a reason that is not the queue's, such as its size (section 2.4)."""
        self._outbox.events.append(SampleReceived(now, self.name, write.identity, len(write.payload)))
        self._bounce(now, write.identity, reason)

    def acknowledge(self, now: Nanoseconds, acknowledgment: Acknowledgment) -> None:
        """Settle one sample that a consumer was sent (section 2.5, Table 2.1).

        A positive acknowledgment retires the sample. A negative one is a failed delivery: the sample goes to another
        consumer, or is given up once `max_delivery_retries` is spent. After its delivery is over (timed out, rejected)
        a consumer is late: a late positive one still retires a sample that nobody else has settled, a late negative one
        changes nothing; both are counted. One that is returned waits again as redelivered, no attempt counted.

        Refuses:
            A sample that this consumer was never sent, or that was never held.
        """
        identity, guid = acknowledgment.identity, acknowledgment.consumer_guid
        accepted = acknowledgment.response == _ACCEPTED
        sample = self.held.known.get(identity)
        if sample is None:
            if identity in self.held.known:
                self._outbox.events.append(LateAcknowledgment(now, self.name, identity, guid, retired=False))
            else:
                self.refused_count += 1
            return
        lanes = self.lanes
        lane = lanes.of_sample(sample) if lanes.routes else lanes.main
        if sample.holder == guid and guid != NIL_GUID:  # the nil GUID holds what waits
            if accepted:
                self._end(now, sample, _ACKNOWLEDGE, _DELIVERED)
            elif acknowledgment.response == _RETURNED:
                sample.redelivered = True
                self._hand_back(now, sample, ReturnReason.CONSUMER_LEFT)
            else:
                self._fail(now, sample, ReturnReason.REJECTED)
        elif guid in sample.past_holders:
            self._outbox.events.append(LateAcknowledgment(now, self.name, identity, guid, retired=accepted))
            if accepted:
                self._end(now, sample, _ACKNOWLEDGE, _DELIVERED)
        else:
            self.refused_count += 1
            return
        if lane.waiting_count or lane is not lanes.main or self.waiting_room.arrivals:
            self._settle(now, lane)

    def join(self, now: Nanoseconds, joined: ConsumerJoined) -> None:
        """Seat a consumer behind the others; a second time changes its window at the most.

        A requester's reader, one with a source GUID, makes the queue route by address (section 2.11.3).

        Refuses:
            The nil GUID, which names nobody.
        """
        if joined.consumer_guid == NIL_GUID:
            self.refused_count += 1
            return
        known = self.consumers.get(joined.consumer_guid)
        if known is not None:
            if known.source_guid == joined.source_guid:
                self._open_window(known, joined)
                self._settle(now, self.lanes.of_consumer(known))
                return
            self.leave(now, ConsumerLeft(self.name, joined.consumer_guid))
        if joined.consumer_guid in self._leaving:
            # What is sent to it from now on is not what it held before.
            self._settle(now, *self._take_leave(now, joined.consumer_guid, INFINITE_NS))
        consumer = Consumer(joined.consumer_guid, joined.source_guid, self.settings.distribution.unacked_threshold)
        self.consumers[consumer.guid] = consumer
        if joined.source_guid != NIL_GUID:
            self._settle(now, *self.lanes.start_routing())
        lane = self.lanes.of_consumer(consumer)
        lane.ring.add(consumer)
        self._open_window(consumer, joined)
        early = self._availability.pop(consumer.guid, None)
        if early is not None:
            self._apply(consumer, early)
        self._settle(now, lane)

    def _open_window(self, consumer: Consumer, joined: ConsumerJoined) -> None:
        """Heed what a reader says of its own window; the smaller threshold holds, -1 being none."""
        if joined.unacked_threshold is not None:
            bound = self.settings.distribution.unacked_threshold
            own = joined.unacked_threshold
            consumer.unacked_threshold = max(own, bound) if min(own, bound) < 0 else min(own, bound)
        if joined.reception_enabled is not None:
            consumer.reception_enabled = joined.reception_enabled
        self.lanes.of_consumer(consumer).ring.review(consumer)

    def leave(self, now: Nanoseconds, left: ConsumerLeft) -> None:
        """Let a consumer go.

        What a vanished one holds is a failed delivery each, for nobody knows what it did with it: so a sample that
        kills its consumers ends among the dead letters. What is handed back waits again, no attempt counted.
        """
        consumer_guid = left.consumer_guid
        self._availability.pop(consumer_guid, None)
        consumer = self.consumers.get(consumer_guid)
        if consumer is None:
            return
        lane = self.lanes.of_consumer(consumer)
        lane.ring.remove(consumer)
        del self.consumers[consumer_guid]
        self._leaving[consumer_guid] = Departure(consumer, left.hands_back)
        lanes = self._take_leave(now, consumer_guid, self._outbox.share_count)
        self._settle(now, *(lanes | {lane: None}))

    def report_availability(self, now: Nanoseconds, availability: ConsumerAvailability) -> None:
        """Heed what a consumer says of itself (section 2.10.2). It may say so before it is seen to have joined.

        Refuses:
            Any report where ALLOW_CONSUMER_FEEDBACK is off: the queue does not listen.
        """
        if not self.settings.distribution.allow_consumer_feedback:
            self.refused_count += 1
            return
        consumer = self.consumers.get(availability.consumer_guid)
        if consumer is not None:
            self._apply(consumer, availability)
            self._settle(now, self.lanes.of_consumer(consumer))
        elif len(self._availability) < EARLY_REPORTS_MAX or availability.consumer_guid in self._availability:
            self._availability[availability.consumer_guid] = availability
        else:
            self.refused_count += 1

    def lose_producer(self, now: Nanoseconds, writer_guid: Guid) -> None:
        """A producer vanished: what it has waiting outside goes with it; what is held stays (section 2.15.4)."""
        for identity in self.waiting_room.of_writer(writer_guid):
            self.waiting_room.leave(identity)
            self._outbox.events.append(SampleBounced(now, self.name, identity, BounceReason.PRODUCER_GONE))
        if self.waiting_room.arrivals:
            # Another one is first now: a smaller one may fit where that producer's did not.
            self._let_in(now)

    def flush(self, now: Nanoseconds, samples: Iterable[Sample]) -> int:
        """Remove those of these samples that are still held (section 5.4.3); returns how many."""
        known = self.held.known
        going = [sample for sample in samples if known.get(sample.identity) is sample]
        lanes = self._lanes_of(going)
        for sample in going:
            self._end(now, sample, Cause.FLUSH, RemovalCause.FLUSHED)
        self._settle(now, *lanes)
        return len(going)

    def shut(self, now: Nanoseconds) -> None:
        """The queue will be deleted: refuse who waits outside (section 5.4.2). Nobody may write to it from now on."""
        self.is_shut = True
        while (arrival := self.waiting_room.first()) is not None:
            self.waiting_room.leave(arrival.write.identity)
            self._bounce(now, arrival.write.identity, BounceReason.QUEUE_FULL)

    def close(self, now: Nanoseconds) -> None:
        """The queue is deleted: shut it, flush what is held."""
        self.shut(now)
        self.flush(now, list(self.held))

    def sent_count(self) -> int:
        """How many samples are with a consumer."""
        return sum(len(consumer.outstanding) for consumer in self.consumers.values())

    def undeliverable_count(self) -> int:
        """How many dead samples wait for room in the dead-letter queue."""
        return len(self._undeliverable.waiting)

    def resume(self, now: Nanoseconds, *, is_restart: bool = True) -> None:
        """Take up what was restored where the service left it (section 2.14.2.1).

        A delivery that was under way is void, and nobody knows what became of it. What expired meanwhile, or has spent
        its attempts, goes to the dead letters or is removed.
        """
        samples = list(self.held)
        if samples and is_restart:
            self._outbox.events.append(SamplesRestored(now, self.name, len(samples)))
        if self._is_limited:
            self.limits.restore(self._in_memory_bytes(sample.size_bytes) for sample in samples)
        for sample in samples:
            self._resume(now, sample)

    def _resume(self, now: Nanoseconds, sample: Sample) -> None:
        if sample.expires_at_ns < INFINITE_NS:
            self.lifespans.enter(sample)
            self._outbox.agenda.wake(self, sample.expires_at_ns)
        if sample.size_bytes > self._on_disk_over_bytes:
            self._outbox.spilling.append(sample)
        if sample.state in UNDELIVERABLE:
            self._resume_undeliverable(now, sample)
            return
        if sample.state is not _ENQUEUED:
            release(sample)
            sample.move(Cause.RESTORE)
            sample.redelivered = True
            if self.journaled:
                self.stream.record(Returned(self.name, sample.position, sample.attempts, redelivered=True))
        self.lanes.of_sample(sample).append(sample)
        if sample.expires_at_ns <= now:
            self._end(now, sample, Cause.EXPIRE, RemovalCause.EXPIRED)
        elif self._redelivery.are_attempts_spent(sample):
            self._end(now, sample, Cause.GIVE_UP, RemovalCause.FAILED_DELIVERY)

    def _resume_undeliverable(self, now: Nanoseconds, sample: Sample) -> None:
        """A dead sample that waited for room among the dead letters; there may be room now, or no such place."""
        reason = UNDELIVERABLE[sample.state]
        if not self._undeliverable.waiting and self._undeliverable.move(now, self, sample, reason):
            self._end(now, sample, Cause.DEAD_LETTER, CAUSES[reason])
        else:
            self._undeliverable.defer(now, self, sample, reason)

    def complete_moves(self, now: Nanoseconds, dead_letters: Iterable[DeadLetterOrigin]) -> None:
        """Complete the moves to the dead letters that a crash cut in two, before `resume`.

        The dead letter is stored first, so that it may be there while the sample is still held, or its queue's store
        lacks it from the beginning: then its producer has no answer, and will write it again.

        Args:
            now: the instant of the restart.
            dead_letters: the samples that became dead letters in the dead-letter queue, of whatever queue.
        """
        held = self.held
        for origin in sorted(
            (each for each in dead_letters if each.queue == self.label and each.position), key=_POSITION
        ):
            sample = held.known.get(origin.identity)
            if sample is None and origin.position >= held.next_position and origin.identity not in held.known:
                sample = Sample(origin.position, origin.identity, b"", 0, now, INFINITE_NS)
                held.enter(sample)
                self.stream.record(enqueued_record(self.name, sample, None))
            if sample is not None and sample.position == origin.position:
                self.stream.record(Removed(self.name, origin.position, CAUSES[origin.reason]))
                held.retire(sample)

    def suspend(self) -> None:
        """Do nothing more by itself, and enqueue nothing: no record can be stored. Acknowledgments still count."""
        self.refuses = self.is_suspended = True

    def start_over(self, now: Nanoseconds) -> None:
        """Forget every sample, for what the store holds is to be replayed. Consumers keep their seats."""
        next_position, routes = self.held.next_position, self.lanes.routes
        self.held, self.lanes, self.lifespans = Held(), Lanes(), Lifespans()
        self.held.next_position, self.lanes.routes = next_position, routes
        self.limits = Limits(self.name, self.settings, self._outbox)
        self._redelivery = Redelivery(self.settings.redelivery)
        self._put_off, self._leaving = {}, {}
        self._goes_on_at_ns = INFINITE_NS
        if self._undeliverable.waiting and self._dead_letters is not None:
            self._dead_letters.dead_letter_line.leave(now, self)
        self._undeliverable = Undeliverables(self._dead_letters, self._outbox)
        for consumer in self.consumers.values():
            consumer.outstanding.clear()
            self.lanes.of_consumer(consumer).ring.add(consumer)

    def go_on(self, now: Nanoseconds) -> None:
        """Records can be stored again: send what waits, let in who stands outside; in shares, as ever."""
        self.refuses = self.is_suspended = False
        self._put_off.update(dict.fromkeys(self.lanes.all()))
        self.go_on_at_once(now)
        self.dead_letter_line.call(now)

    def _find_no_room(self, now: Nanoseconds, write: Write) -> None:
        self.limits.find_full(now)
        if self.settings.limits.replacement is ReplacementKind.REJECT_WITHOUT_REPLACEMENT:
            self._bounce(now, write.identity, BounceReason.QUEUE_FULL)
        elif self.waiting_room.knows(write.identity):
            self._outbox.events.append(DuplicateDropped(now, self.name, write.identity))
        elif self.waiting_room.is_full():
            # No answer at all: the producer goes on holding the sample, and writes it again.
            self._outbox.events.append(SampleBounced(now, self.name, write.identity, BounceReason.QUEUE_FULL))
        else:
            self._outbox.agenda.wake(self, self.waiting_room.enter(write, now))
