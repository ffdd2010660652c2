"""The steps of one sample through its queue (manual, section 2.9): held, sent, failed, ended.

Decides: what each step changes, records, sends and tells, and what follows from it: who is sent to next, who is let in.
What makes a step happen is `shared_reader_queue`'s; whose turn, how long and how many is decided by the parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from qsctl.core.events import (
    BounceReason,
    DuplicateDropped,
    ReturnReason,
    SampleEnqueued,
    SampleReceived,
    SampleRemoved,
    SampleReturned,
    SampleSent,
)
from qsctl.core.messages import (
    AckResponse,
    ConsumerAvailability,
    Delivery,
    SampleFlag,
    Write,
    WriteAcknowledgment,
)
from qsctl.core.queue.consumer import Consumer
from qsctl.core.queue.dead_letter import CAUSES, REASONS, letter
from qsctl.core.queue.dispatch import Lane
from qsctl.core.queue.persistence import enqueued_record
from qsctl.core.queue.redelivery import note_failure, release
from qsctl.core.queue.sample import Cause, Sample, SampleState
from qsctl.core.queue.state import QueueState
from qsctl.core.queue.undeliverable import UNDELIVERABLE, Source
from qsctl.core.records import Assigned, DeadLetterReason, RemovalCause, Removed, Returned
from qsctl.identity import NIL_GUID, Guid
from qsctl.instant import INFINITE_NS, Nanoseconds, later

_REDELIVERED = int(SampleFlag.REDELIVERED)
_LAST = int(SampleFlag.LAST_SHARED_READER_QUEUE)
# Reading a member of an enumeration by its name takes longer than all else in a step.
_ACCEPTED = AckResponse.ACCEPTED
_STORE, _ASSIGN, _SEND, _DEAD_LETTER = Cause.STORE, Cause.ASSIGN, Cause.SEND, Cause.DEAD_LETTER
_PRODUCER_FLAGS = ~(_REDELIVERED | _LAST)
_ENQUEUED = SampleState.ENQUEUED
_DELIVERED = RemovalCause.DELIVERED


class SampleLifecycle(QueueState):
    """The steps of a sample through a queue. `SharedReaderQueue` calls them."""

    __slots__ = ()

    def advance(self, now: Nanoseconds) -> None:
        """Do what is due: expire first, then time out, then dispatch, so that retries leave in queue order.

        Of each, a share of the outbox's size at most; what is left is due at once.
        """
        if self.is_suspended:
            return
        share_count = self._outbox.share_count
        put_off, self._put_off = self._put_off, {}
        self._goes_on_at_ns = INFINITE_NS
        expired = self.lifespans.overdue(now, share_count)
        lanes = self._lanes_of(expired)
        for sample in expired:
            self._end(now, sample, Cause.EXPIRE, RemovalCause.EXPIRED)
        unanswered = self._redelivery.overdue(now, share_count)
        lanes.update(self._lanes_of(unanswered))
        for sample in unanswered:
            self._fail(now, sample, ReturnReason.TIMED_OUT)
        for guid in tuple(self._leaving):
            lanes.update(self._take_leave(now, guid, share_count))
        lanes.update(put_off)
        for identity in self.waiting_room.overdue(now):
            self.waiting_room.leave(identity)
            self._bounce(now, identity, BounceReason.EXPIRED)
        if self._undeliverable.waiting:
            self._retry_dead_letters(now, share_count)
        self._settle(now, *lanes)

    def take_dead_letter(self, now: Nanoseconds, source: Source, sample: Sample, reason: DeadLetterReason) -> bool:
        """Take a sample that another queue could not deliver (section 2.12); whether it found room.

        Our reading: nothing waits outside a dead-letter queue, whatever its replacement policy; the sample stays in its
        own queue. A dead letter that is there already counts as taken.
        """
        events = self._outbox.events
        if self.is_suspended:
            return False
        dead = letter(
            now, sample, self.held.next_position, source.label, reason, self._lifespan.expiry(now, INFINITE_NS, now)
        )
        if dead.identity in self.held.known:
            events.append(SampleReceived(now, self.name, dead.identity, sample.size_bytes))
            events.append(DuplicateDropped(now, self.name, dead.identity))
            return True
        if self.is_shut or not self.dead_letter_line.is_turn_of(source):
            return False
        if not self.limits.has_room(self._in_memory_bytes(sample.size_bytes)):
            self.limits.find_full(now)
            return False
        events.append(SampleReceived(now, self.name, dead.identity, sample.size_bytes))
        payload_from = (source.name, sample.position) if sample.payload is None else None
        self._hold(now, dead, now, payload_from)
        self._offer(now, dead)
        return True

    def _enqueue(self, now: Nanoseconds, write: Write, received_at_ns: Nanoseconds) -> None:
        lifespan_ns = write.lifespan_ns
        sample = Sample(
            self.held.next_position,
            write.identity,
            write.payload,
            len(write.payload),
            now,
            self._lifespan.expiry(received_at_ns, lifespan_ns, now)
            if lifespan_ns < INFINITE_NS or self._lifespan.is_finite
            else INFINITE_NS,
            write.source_guid,
            write.related_source_guid,
            write.related_identity,
            write.related_reader_guid,
            write.flags & _PRODUCER_FLAGS,
        )
        self._hold(now, sample, received_at_ns)
        if self._acknowledges:
            name, stream = self.name, self.stream
            index = stream.base_index + len(stream.records)
            self._outbox.messages.append((name, index, WriteAcknowledgment(name, write.identity, _ACCEPTED)))
        self._offer(now, sample)

    def _hold(
        self, now: Nanoseconds, sample: Sample, received_at_ns: Nanoseconds, payload_from: tuple[str, int] | None = None
    ) -> None:
        """Enqueue: record, tell and count; `_offer` it next."""
        outbox, size_bytes = self._outbox, sample.size_bytes
        sample.move(_STORE)
        self.held.enter(sample)
        if self.journaled:
            (self.stream.records or self.stream.begin()).append(enqueued_record(self.name, sample, payload_from))
            if size_bytes > self._on_disk_over_bytes:
                outbox.spilling.append(sample)
        if outbox.tells_usual:
            outbox.events.append(SampleEnqueued(now, self.name, sample.identity, size_bytes, received_at_ns))
        else:
            if self.passed_at_ns != now:
                self._begin_passing(now)
            self._passed.enqueued_count += 1
        if self._is_limited:
            self.limits.grow(now, self._in_memory_bytes(size_bytes))
        if sample.expires_at_ns < INFINITE_NS:
            self.lifespans.enter(sample)
            outbox.agenda.wake(self, sample.expires_at_ns)

    def _offer(self, now: Nanoseconds, sample: Sample) -> None:
        """Let a sample that was just enqueued wait in its lane; where nobody does, send it at once."""
        lanes = self.lanes
        lane = lanes.of_sample(sample) if lanes.routes else lanes.main
        if lane.waiting_count or sample.expires_at_ns <= now:
            lane.append(sample)
            self._dispatch(now, lane)
        elif (consumer := lane.ring.choose()) is not None:
            self._send(now, sample, consumer, lane)
        else:
            lane.append(sample)

    def _send(self, now: Nanoseconds, sample: Sample, consumer: Consumer, lane: Lane) -> None:
        guid = consumer.guid
        attempt = sample.attempts + 1
        sample.move(_ASSIGN)
        name, stream = self.name, self.stream
        if self.journaled:
            (stream.records or stream.begin()).append(Assigned(name, sample.position, guid, attempt))
        sample.move(_SEND)
        sample.holder = guid
        sample.sent_at_ns = now
        consumer.outstanding[sample.position] = sample
        if consumer.unacked_threshold >= 0:
            lane.ring.review(consumer)
        if self._times_out:
            self._redelivery.start(sample)
            self._outbox.agenda.wake(self, later(now, self._redelivery.response_timeout_ns))
        flags = sample.flags
        if sample.redelivered:
            flags |= _REDELIVERED
        if self._marks_last and not lane.waiting_count:
            flags |= _LAST
        dead_letter = sample.dead_letter
        delivery = (
            Delivery(
                name,
                guid,
                sample.position,
                sample.identity,
                sample.payload,
                sample.source_guid,
                sample.related_source_guid,
                sample.related_identity,
                sample.related_reader_guid,
                flags,
                attempt,
            )
            if dead_letter is None
            else Delivery(
                name,
                guid,
                sample.position,
                sample.identity,
                sample.payload,
                sample.source_guid,
                sample.related_source_guid,
                sample.related_identity,
                sample.related_reader_guid,
                flags,
                attempt,
                dead_letter.queue,
                dead_letter.reason,
                dead_letter.identity,
            )
        )
        self._outbox.messages.append((name, stream.base_index + len(stream.records), delivery))
        if self._outbox.tells_usual or sample.enqueued_at_ns != now or attempt > 1 or sample.redelivered:
            self._outbox.events.append(
                SampleSent(now, self.name, sample.identity, guid, attempt, sample.enqueued_at_ns, sample.redelivered)
            )
        else:
            if self.passed_at_ns != now:
                self._begin_passing(now)
            self._passed.sent_count += 1

    def _fail(self, now: Nanoseconds, sample: Sample, reason: ReturnReason) -> None:
        """A delivery failed: the sample expires, goes back to the front of the queue, or is given up."""
        self._outbox.events.append(SampleReturned(now, self.name, sample.identity, sample.holder, reason))
        self._take_back(sample)
        note_failure(sample, reason)
        if sample.expires_at_ns <= now:
            self._end(now, sample, Cause.EXPIRE, RemovalCause.EXPIRED)
        elif self._redelivery.are_attempts_spent(sample):
            self._end(now, sample, Cause.GIVE_UP, RemovalCause.FAILED_DELIVERY)
        else:
            sample.move(Cause.RETRY)
            self._put_back(sample)

    def _hand_back(self, now: Nanoseconds, sample: Sample, reason: ReturnReason) -> None:
        """A delivery came to nothing and was no attempt: the sample waits again."""
        self._outbox.events.append(SampleReturned(now, self.name, sample.identity, sample.holder, reason))
        self._take_back(sample)
        release(sample)
        sample.move(Cause.HAND_BACK)
        self._put_back(sample)

    def _put_back(self, sample: Sample) -> None:
        if self.journaled:
            self.stream.record(Returned(self.name, sample.position, sample.attempts, sample.redelivered))
        self.lanes.of_sample(sample).put_back(sample)

    def _end(self, now: Nanoseconds, sample: Sample, cause: Cause, removal: RemovalCause) -> None:
        """A sample leaves for good: to the dead letters first, if it died and there is a place for it.

        Where that place has no room the sample stays, to be moved by `_retry_dead_letters`.
        """
        sent_at_ns = sample.sent_at_ns
        if sample.state is _ENQUEUED:
            sample.move(cause)
            self.lanes.of_sample(sample).drop()
        else:
            if sample.holder != NIL_GUID:
                self._take_back(sample)
            elif self._undeliverable.waiting:
                self._undeliverable.leave(now, self, sample, moves=cause is _DEAD_LETTER)
            sample.move(cause)
        if (
            self._dead_letters is not None
            and (reason := REASONS.get(removal)) is not None
            and cause is not _DEAD_LETTER
            and not self._undeliverable.bury(now, self, sample, reason)
        ):
            return
        if self.journaled:
            (self.stream.records or self.stream.begin()).append(Removed(self.name, sample.position, removal))
        if self._outbox.tells_usual or removal is not _DELIVERED:
            self._outbox.events.append(
                SampleRemoved(
                    now, self.name, sample.identity, removal, sample.size_bytes, sample.enqueued_at_ns, sent_at_ns
                )
            )
        else:
            if self.passed_at_ns != now:
                self._begin_passing(now)
            self._passed.delivered_count += 1
        self.held.retire(sample)
        if self._is_limited:
            self.limits.shrink(now, self._in_memory_bytes(sample.size_bytes))
            if self.dead_letter_line.queues and not self.is_shut:
                self.dead_letter_line.call(now)
        if sample.expires_at_ns < INFINITE_NS:
            self.lifespans.leave()

    def _retry_dead_letters(self, now: Nanoseconds, count_max: int) -> None:
        """Move what waits for room among the dead letters, in the order of their deaths, as far as there is room."""
        undeliverable = self._undeliverable
        waiting = undeliverable.waiting
        for sample in list(islice(waiting.values(), min(count_max, len(waiting)))):
            reason = UNDELIVERABLE[sample.state]
            if not undeliverable.move(now, self, sample, reason):
                return
            self._end(now, sample, _DEAD_LETTER, CAUSES[reason])
        if waiting:
            undeliverable.give_way(now, self)

    # What follows from a step.

    def _settle(self, now: Nanoseconds, *lanes: Lane) -> None:
        for lane in lanes:
            self._dispatch(now, lane)
            if lane.address != NIL_GUID:
                self.lanes.forget_empty(lane)
        if self.waiting_room.arrivals:
            self._let_in(now)

    def _dispatch(self, now: Nanoseconds, lane: Lane) -> None:
        """Send what can be sent, in queue order, each to the consumer whose turn it is; a share at a time."""
        if (self._put_off and lane in self._put_off) or self.is_suspended:
            return
        left_count = self._outbox.share_count
        while lane.waiting_count:
            if not left_count:
                self._put_off[lane] = None
                self.go_on_at_once(now)
                return
            left_count -= 1
            sample = lane.first()
            if sample.expires_at_ns <= now:
                self._end(now, sample, Cause.EXPIRE, RemovalCause.EXPIRED)
                continue
            consumer = lane.ring.choose(self._last_holder(sample, lane) if sample.past_holders else None)
            if consumer is None:
                return
            lane.take(sample)
            self._send(now, sample, consumer, lane)

    def _let_in(self, now: Nanoseconds) -> None:
        """Hold those who wait outside, in the order in which they came, while there is room."""
        if self.refuses:
            return
        while (arrival := self.waiting_room.first()) is not None:
            write, received_at_ns, expires_at_ns = arrival
            if expires_at_ns <= now:
                self.waiting_room.leave(write.identity)
                self._bounce(now, write.identity, BounceReason.EXPIRED)
            elif self.limits.has_room(self._in_memory_bytes(len(write.payload))):
                self.waiting_room.leave(write.identity)
                self._enqueue(now, write, received_at_ns)
            else:
                self.limits.find_full(now)
                return

    def _take_leave(self, now: Nanoseconds, guid: Guid, count_max: int) -> dict[Lane, None]:
        """Take back so much of what a consumer held that left; returns the lanes it waits in now."""
        departure = self._leaving[guid]
        step = self._hand_back if departure.hands_back else self._fail
        lanes: dict[Lane, None] = {}
        for sample in departure.take(count_max):
            lanes[self.lanes.of_sample(sample)] = None
            step(now, sample, ReturnReason.CONSUMER_LEFT)
        if departure.is_over:
            del self._leaving[guid]
        else:
            self.go_on_at_once(now)
        return lanes

    def go_on_at_once(self, now: Nanoseconds) -> None:
        """There is more to do than one turn allows."""
        self._goes_on_at_ns = now
        self._outbox.agenda.wake(self, now)

    def _take_back(self, sample: Sample) -> None:
        consumer = self.consumers.get(sample.holder)
        if consumer is not None:  # else it left, and this is the rest of what it held
            del consumer.outstanding[sample.position]
            if consumer.unacked_threshold >= 0:
                self.lanes.of_consumer(consumer).ring.review(consumer)
        if self._times_out:
            self._redelivery.end(sample)

    def _apply(self, consumer: Consumer, availability: ConsumerAvailability) -> None:
        consumer.reception_enabled = availability.reception_enabled
        consumer.unacked_threshold = availability.unacked_threshold
        self.lanes.of_consumer(consumer).ring.review(consumer)

    def _last_holder(self, sample: Sample, lane: Lane) -> Consumer | None:
        former = self.consumers.get(sample.past_holders[-1])
        return former if former is not None and self.lanes.of_consumer(former) is lane else None

    def _lanes_of(self, samples: Iterable[Sample]) -> dict[Lane, None]:
        return dict.fromkeys(map(self.lanes.of_sample, samples))
