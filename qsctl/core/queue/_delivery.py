"""The delivery of samples to consumers, and the effect of their answers [QS 2.5, 2.9 and 2.10, Table 2.1].

Decides: the changes, records, messages and events of each step of a delivery: offered, sent, failed, handed back,
acknowledged in time or late. `consumer` decides which consumer is next, `_delivery_groups` the order of samples,
`_redelivery` when an answer is overdue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from qsctl.core.events import LateAcknowledgment, ReturnReason, SampleReturned, SampleSent
from qsctl.core.messages import (
    QUESTION_NUMBER_MIN,
    Acknowledgment,
    AckResponse,
    Delivery,
    RunAcknowledgment,
    RunDelivery,
    SampleFlag,
)
from qsctl.core.queue._context import QueueContext
from qsctl.core.queue._delivery_groups import DeliveryGroup, DeliveryGroups
from qsctl.core.queue._reader_cache import ReaderCache
from qsctl.core.queue._redelivery import Redelivery, note_failure, release
from qsctl.core.queue._run import RETIRED, SENT, SINGLE, Run, SentRange
from qsctl.core.queue.consumer import Consumer
from qsctl.core.queue.sample import Cause, Sample
from qsctl.core.records import Assigned, AssignedRun, RemovalCause, Returned
from qsctl.identity import NIL_GUID, Guid, SampleIdentity, identity_behind
from qsctl.instant import INFINITE_NS, Nanoseconds, later

LetIn: TypeAlias = Callable[[Nanoseconds], None]
"""Admit samples from the reader cache while there is room: `Entry.let_in`."""
End: TypeAlias = Callable[[Nanoseconds, Sample, Cause, RemovalCause], None]
"""Remove a sample from the queue for good: `Removal.end`."""
EndRange: TypeAlias = Callable[[Nanoseconds, Run, range, int, Nanoseconds], None]
"""Remove acknowledged samples of a run for good: `Removal.end_range`."""

_REDELIVERED: Final = int(SampleFlag.REDELIVERED)
_END: Final = int(SampleFlag.END_OF_QUEUE)
_LAST: Final = int(SampleFlag.LAST_SHARED_READER_QUEUE)
# Reading a member of an enumeration by its name takes longer than all else in a step.
_ACCEPTED, _RETURNED = AckResponse.ACCEPTED, AckResponse.RETURNED
_ACKNOWLEDGE = Cause.ACKNOWLEDGE
_DELIVERED: Final = RemovalCause.DELIVERED


class Deliveries:
    """The samples that wait for consumers, and those that consumers hold. Call `connect` before the first step.

    Args:
        context: the queue.
        consumers: the joined consumers, by GUID; changed by `ConsumerMembership`.
        reader_cache: the samples outside the full queue; they are admitted as others leave.
        routes: whether the queue is the reply queue of another one [QS 2.11].
    """

    __slots__ = (
        "_context",
        "_deferred",
        "_end",
        "_end_range",
        "_held",
        "_journaled",
        "_let_in",
        "_marks_last",
        "_name",
        "_outbox",
        "_questions",
        "_reader_cache",
        "_stream",
        "_times_out",
        "consumers",
        "groups",
        "redelivery",
    )

    def __init__(
        self, context: QueueContext, consumers: dict[Guid, Consumer], reader_cache: ReaderCache, *, routes: bool
    ) -> None:
        self._context = context
        self._name = context.name
        self._outbox = context.outbox
        self._stream = context.stream
        self._journaled = context.journaled
        self._held = context.held
        self._reader_cache = reader_cache
        self._marks_last = context.settings.distribution.mark_last_undelivered_sample
        self._times_out = context.settings.redelivery.response_timeout_ns < INFINITE_NS
        self._deferred: dict[DeliveryGroup, None] = {}
        """The delivery groups with samples that could be sent but exceed this turn's quantum."""
        self._questions: dict[Guid, SampleIdentity] = {}
        """The latest unanswered question of each consumer: whether there are more samples for it."""
        self.consumers = consumers
        self.groups = DeliveryGroups()
        self.groups.routes = routes
        self.redelivery = Redelivery(context.settings.redelivery)

    def connect(self, let_in: LetIn, end: End, end_range: EndRange) -> None:
        """Set the functions by which samples enter the queue and leave it."""
        self._let_in = let_in
        self._end = end
        self._end_range = end_range

    def change(self) -> None:
        """Apply the queue's changed settings to later deliveries and to those in progress, see `Redelivery.change`."""
        settings, redelivery = self._context.settings, self.redelivery
        if not self._times_out:
            for consumer in self.consumers.values():
                redelivery.single_out(tuple(consumer.sendings))
        self._marks_last = settings.distribution.mark_last_undelivered_sample
        self._times_out = settings.redelivery.response_timeout_ns < INFINITE_NS
        held = (sample for consumer in self.consumers.values() for sample in consumer.outstanding.values())
        redelivery.change(settings.redelivery, held)
        if (deadline := redelivery.next_deadline()) < INFINITE_NS:
            self._outbox.agenda.wake(self._context.sleeper, deadline)

    def offer(self, now: Nanoseconds, sample: Sample) -> None:
        """Send a sample that was just enqueued, or let it wait behind others of its delivery group."""
        groups = self.groups
        group = groups.of_sample(sample) if groups.routes else groups.main
        if group.waiting_count or sample.expires_at_ns <= now:
            group.append(sample)
            self._dispatch(now, group)
        elif (consumer := group.ring.choose()) is not None:
            self._send(now, sample, consumer, group)
        else:
            group.append(sample)

    def offer_run(self, now: Nanoseconds, run: Run) -> None:
        """Send the samples of a run that was just enqueued, or let them wait behind others; see `offer`."""
        groups = self.groups
        group = groups.of_sample(run) if groups.routes else groups.main
        if not group.waiting_count and run.expires_at_ns > now:
            while run.cursor < run.count:
                consumers, count = group.ring.turn(run.count - run.cursor)
                if not count:
                    break
                # Each was the last one that waited when it was enqueued.
                flags = run.flags | _LAST if self._marks_last else run.flags
                start, run.cursor = run.cursor, run.cursor + count
                self._send_run(now, run, start, run.cursor, group, consumers, flags, flags)
            if run.cursor < run.count:
                group.append_run(run, run.count - run.cursor)
            return
        group.append_run(run, run.count)
        self._dispatch(now, group)

    def acknowledge_run(self, now: Nanoseconds, acknowledgment: RunAcknowledgment) -> None:
        """Process a consumer's acceptance of several samples; the effect is that of `acknowledge` for each."""
        guid, identity = acknowledgment.consumer_guid, acknowledgment.identity
        left_count, step = acknowledgment.count, acknowledgment.step
        freed: dict[DeliveryGroup, None] = {}
        while left_count > 0:
            run = self._held.run_of(identity)
            count = 0 if run is None else self._accept_range(now, run, guid, identity, left_count, step)
            if run is None or not count:
                self._serve_freed(now, freed)
                self.acknowledge(now, Acknowledgment(self._name, guid, identity))
                count = 1
            else:
                freed[self._group_of(run)] = None
            left_count -= count
            if left_count:
                identity = identity_behind(identity, count * step)
        # Where samples wait, no other consumer has room: they go to this one whether it is served now or after each of
        # its deliveries, and served now they leave in few deliveries.
        self._serve_freed(now, freed)

    def _accept_range(
        self, now: Nanoseconds, run: Run, guid: Guid, identity: SampleIdentity, count: int, step: int
    ) -> int:
        """Process the acceptance of samples that a run has sent to one consumer; return their number.

        0: the first of them is not such a sample. The caller must serve the group next.
        """
        if self._is_single():
            return 0
        offset = identity.sequence_number - run.first_number
        if run.marks[offset] != SENT:
            return 0
        sending = run.sending_of(offset)
        consumer = sending.consumer_of(offset)
        if consumer.guid != guid or (step != len(sending.consumers) and count > 1):
            return 0
        offsets = range(offset, min(sending.stop, offset + step * count), step)
        marks = run.marks[offset : offsets.stop : step]
        count = len(marks) - len(marks.lstrip(b"\x01"))
        self._accept(now, run, sending, consumer, offsets[:count], count)
        return count

    def _is_single(self) -> bool:
        """Return whether the steps of a run are those of single samples, since another may enter for each."""
        return bool(self._reader_cache.arrivals)

    def _accept(
        self, now: Nanoseconds, run: Run, sending: SentRange, consumer: Consumer, offsets: range, count: int
    ) -> None:
        sending.leave(consumer, count)
        if consumer.unacked_threshold >= 0:
            self._group_of(run).ring.review(consumer)
        if self._times_out and not sending.left_count:
            self.redelivery.end_sending(sending)
        self._end_range(now, run, offsets, count, sending.sent_at_ns)

    def _group_of(self, sample: Sample | Run) -> DeliveryGroup:
        groups = self.groups
        return groups.of_sample(sample) if groups.routes else groups.main

    def _serve_freed(self, now: Nanoseconds, freed: dict[DeliveryGroup, None]) -> None:
        """Serve delivery groups of which a consumer has room again, and forget them."""
        for group in freed:
            if group.waiting_count or group is not self.groups.main:
                self.serve(now, group)
        freed.clear()

    def _acknowledge_in_run(self, now: Nanoseconds, acknowledgment: Acknowledgment, run: Run) -> Sample | None:
        """Process an answer to a sample of a run; return the sample if it is one by itself from now on."""
        identity, guid = acknowledgment.identity, acknowledgment.consumer_guid
        offset = identity.sequence_number - run.first_number
        mark = run.marks[offset]
        if mark == SENT:
            sending = run.sending_of(offset)
            consumer = sending.consumer_of(offset)
            if consumer.guid != guid:
                self._context.refused_count += 1
            elif acknowledgment.response != _ACCEPTED or self._is_single():
                return run.single_out(offset)
            else:
                self._accept(now, run, sending, consumer, range(offset, offset + 1), 1)
                self._serve_freed(now, {self._group_of(run): None})
        elif mark == SINGLE:
            return run.samples[offset]
        elif mark == RETIRED:
            self._outbox.events.append(LateAcknowledgment(now, self._name, identity, guid, retired=False))
        else:
            self._context.refused_count += 1
        return None

    def acknowledge(self, now: Nanoseconds, acknowledgment: Acknowledgment) -> None:
        """Process a consumer's answer to one sample that it was sent [QS 2.5, Table 2.1].

        A positive acknowledgment retires the sample. A rejection is a failed delivery: the sample is sent to another
        consumer, or is given up after `max_delivery_retries`. An answer after the end of the delivery (timed out,
        rejected) is late, and counted as such: a late positive one still retires a sample that no other consumer has
        acknowledged; a late rejection has no effect. A returned sample waits again, flagged as redelivered, without
        counting an attempt.

        An acknowledgment may also be a question, see `QUESTION_NUMBER_MIN`.

        Refuses:
            A sample that this consumer was never sent, or that was never held.
        """
        identity, guid = acknowledgment.identity, acknowledgment.consumer_guid
        accepted = acknowledgment.response == _ACCEPTED
        sample = self._held.known.get(identity)
        if sample is None:
            run = self._held.run_of(identity)
            if run is None:
                self._acknowledge_nothing(now, identity, guid)
                return
            sample = self._acknowledge_in_run(now, acknowledgment, run)
            if sample is None:
                return
        groups = self.groups
        group = groups.of_sample(sample) if groups.routes else groups.main
        if sample.holder == guid and guid != NIL_GUID:  # the nil GUID is the holder of waiting samples
            if accepted:
                self._end(now, sample, _ACKNOWLEDGE, _DELIVERED)
            elif acknowledgment.response == _RETURNED:
                sample.redelivered = True
                self.hand_back(now, sample, ReturnReason.CONSUMER_LEFT)
            else:
                self.fail(now, sample, ReturnReason.REJECTED)
        elif guid in sample.past_holders:
            self._outbox.events.append(LateAcknowledgment(now, self._name, identity, guid, retired=accepted))
            if accepted:
                self._end(now, sample, _ACKNOWLEDGE, _DELIVERED)
        else:
            self._context.refused_count += 1
            return
        if group.waiting_count or group is not groups.main or self._reader_cache.arrivals:
            self.serve(now, group)

    def _acknowledge_nothing(self, now: Nanoseconds, identity: SampleIdentity, guid: Guid) -> None:
        """Process an answer to a sample that is not held, or a question."""
        if identity.writer_guid == NIL_GUID and identity.sequence_number >= QUESTION_NUMBER_MIN:
            self._questions[guid] = identity
            self._answer_questions(now)
        elif identity in self._held.known:
            self._outbox.events.append(LateAcknowledgment(now, self._name, identity, guid, retired=False))
        else:
            self._context.refused_count += 1

    def fail(self, now: Nanoseconds, sample: Sample, reason: ReturnReason) -> None:
        """End a failed delivery: the sample expires, returns to the front of the queue, or is given up."""
        self._outbox.events.append(SampleReturned(now, self._name, sample.identity, sample.holder, reason))
        self.take_back(sample)
        note_failure(sample, reason)
        if sample.expires_at_ns <= now:
            self._end(now, sample, Cause.EXPIRE, RemovalCause.EXPIRED)
        elif self.redelivery.are_attempts_spent(sample):
            self._end(now, sample, Cause.GIVE_UP, RemovalCause.FAILED_DELIVERY)
        else:
            sample.move(Cause.RETRY)
            self._put_back(sample)

    def hand_back(self, now: Nanoseconds, sample: Sample, reason: ReturnReason) -> None:
        """End a delivery without counting it as an attempt: the sample waits again."""
        self._outbox.events.append(SampleReturned(now, self._name, sample.identity, sample.holder, reason))
        self.take_back(sample)
        release(sample)
        sample.move(Cause.HAND_BACK)
        self._put_back(sample)

    def take_back(self, sample: Sample) -> None:
        """Remove a sample from its holder's outstanding samples, and stop its response time-out."""
        consumer = self.consumers.get(sample.holder)
        if consumer is not None:  # else it left, and this is one of the samples that it held
            del consumer.outstanding[sample.position]
            if consumer.unacked_threshold >= 0:
                self.groups.of_consumer(consumer).ring.review(consumer)
        if self._times_out:
            self.redelivery.end(sample)

    def send_again(self, now: Nanoseconds, sample: Sample, guid: Guid) -> bool:
        """Send a sample that is in no group to the consumer that a former master chose; return False if impossible."""
        consumer = self.consumers.get(guid)
        group = self.groups.of_sample(sample)
        if consumer is None or self.groups.of_consumer(consumer) is not group or not group.ring.is_eligible(consumer):
            return False
        self._send(now, sample, consumer, group)
        return True

    def serve(self, now: Nanoseconds, *groups: DeliveryGroup) -> None:
        """Send what these groups can send, then admit samples from the reader cache and answer questions."""
        for group in groups:
            self._dispatch(now, group)
            if group.address != NIL_GUID:
                self.groups.forget_empty(group)
        if self._reader_cache.arrivals:
            self._let_in(now)
        if self._questions:
            self._answer_questions(now)

    def _answer_questions(self, now: Nanoseconds) -> None:
        """Answer the consumers that asked whether there is more for them, once no sending is left for the next turn.

        A suspended queue answers at once: it sends nothing.
        """
        context = self._context
        if context.goes_on_at_ns <= now and not context.is_suspended:
            return
        questions, self._questions = self._questions, {}
        for guid, identity in questions.items():
            if guid not in self.consumers:
                context.refused_count += 1
                continue
            rests_on = self._stream.last_index if self._journaled else 0
            self._outbox.messages.append(Delivery(self._name, guid, 0, identity, b"", flags=_END, rests_on=rests_on))

    def groups_of(self, samples: Iterable[Sample]) -> dict[DeliveryGroup, None]:
        """Return the delivery groups of these samples, each once."""
        return dict.fromkeys(map(self.groups.of_sample, samples))

    def take_deferred(self) -> dict[DeliveryGroup, None]:
        """Return the delivery groups with deferred samples, and clear the list of them."""
        deferred, self._deferred = self._deferred, {}
        return deferred

    def defer_all(self) -> None:
        """Defer the sending of every delivery group to the next turn."""
        self._deferred.update(dict.fromkeys(self.groups.all()))

    def _dispatch(self, now: Nanoseconds, group: DeliveryGroup) -> None:
        """Send a group's samples in queue order, each to the next consumer, up to the quantum of one turn."""
        if (self._deferred and group in self._deferred) or self._context.is_suspended:
            return
        left_count = self._outbox.share_count
        while group.waiting_count:
            if not left_count:
                self._deferred[group] = None
                self._context.go_on_at_once(now)
                return
            if group.run_count and (run := group.first_run()) is not None and run.expires_at_ns > now:
                consumers, count = group.ring.turn(min(left_count, run.waiting_stop() - run.cursor))
                if not count:
                    return
                left_count -= count
                start = run.cursor
                group.move_on(run, count)
                last_flags = run.flags | _LAST if self._marks_last and not group.waiting_count else run.flags
                self._send_run(now, run, start, start + count, group, consumers, run.flags, last_flags)
                continue
            left_count -= 1
            sample = group.first()
            if sample.expires_at_ns <= now:
                self._end(now, sample, Cause.EXPIRE, RemovalCause.EXPIRED)
                continue
            consumer = group.ring.choose(self._last_holder(sample, group) if sample.past_holders else None)
            if consumer is None:
                return
            group.pop(sample)
            self._send(now, sample, consumer, group)

    def _send(self, now: Nanoseconds, sample: Sample, consumer: Consumer, group: DeliveryGroup) -> None:
        name, stream, outbox = self._name, self._stream, self._outbox
        guid = consumer.guid
        attempt, position, rests_on = sample.attempts + 1, sample.position, 0
        sample.dispatch()
        if self._journaled:
            records = stream.records or stream.begin()
            records.append(Assigned(name, position, guid, attempt))
            rests_on = stream.base_index + len(records)
        sample.holder = guid
        sample.sent_at_ns = now
        consumer.outstanding[position] = sample
        if consumer.unacked_threshold >= 0:
            group.ring.review(consumer)
        if self._times_out:
            self.redelivery.start(sample)
            sleeper, due_at_ns = self._context.sleeper, later(now, self.redelivery.response_timeout_ns)
            if due_at_ns < sleeper.wakes_at_ns:
                outbox.agenda.wake(sleeper, due_at_ns)
        flags = sample.flags
        if sample.redelivered:
            flags |= _REDELIVERED
        if self._marks_last and not group.waiting_count:
            flags |= _LAST
        dead_letter = sample.dead_letter
        delivery = (
            Delivery(
                name,
                guid,
                position,
                sample.identity,
                sample.payload,
                sample.source_guid,
                sample.related_source_guid,
                sample.related_identity,
                sample.related_reader_guid,
                flags,
                attempt,
                rests_on,
            )
            if dead_letter is None
            else Delivery(
                name,
                guid,
                position,
                sample.identity,
                sample.payload,
                sample.source_guid,
                sample.related_source_guid,
                sample.related_identity,
                sample.related_reader_guid,
                flags,
                attempt,
                rests_on,
                dead_letter.queue,
                dead_letter.reason,
                dead_letter.identity,
            )
        )
        outbox.messages.append(delivery)
        if outbox.reports_each_step or sample.enqueued_at_ns != now or attempt > 1 or sample.redelivered:
            outbox.events.append(
                SampleSent(now, name, sample.identity, guid, attempt, sample.enqueued_at_ns, sample.redelivered)
            )
        else:
            passed = self._context.passed
            (passed if passed.at_ns == now else self._context.count_at(now)).sent_count += 1

    def _send_run(
        self,
        now: Nanoseconds,
        run: Run,
        start: int,
        stop: int,
        group: DeliveryGroup,
        consumers: list[Consumer],
        flags: int,
        last_flags: int,
    ) -> None:
        """Send consecutive waiting samples of a run to consumers in turn.

        Args:
            now: the instant.
            run: the run.
            start: offset of the first sample.
            stop: offset behind the last sample.
            group: the delivery group.
            consumers: the consumers, at most as many as samples.
            flags: the flags of each delivery but the last one.
            last_flags: the flags of the last delivery.
        """
        name, outbox, count, ring_size = self._name, self._outbox, stop - start, len(consumers)
        sending = SentRange(run, start, stop, consumers, now)
        sending.begin()
        last = consumers[count % ring_size - 1]
        group.ring.serve(last)
        if self._times_out:
            self.redelivery.start_sending(sending)
            sleeper, due_at_ns = self._context.sleeper, later(now, self.redelivery.response_timeout_ns)
            if due_at_ns < sleeper.wakes_at_ns:
                outbox.agenda.wake(sleeper, due_at_ns)
        position, rests_on = run.position, 0
        if self._journaled:
            guids = tuple([each.guid for each in consumers])
            self._stream.record_run(AssignedRun(name, position + start, count, guids))
            rests_on = self._stream.last_index
        writer_guid, number = run.writer_guid, run.first_number
        for at, consumer in enumerate(consumers, start):
            identity, own_count = SampleIdentity(writer_guid, number + at), len(range(at, stop, ring_size))
            if consumer.unacked_threshold >= 0:
                group.ring.review(consumer)
            outbox.messages.append(
                RunDelivery(
                    name,
                    consumer.guid,
                    position + at,
                    identity,
                    run.payloads[at:stop:ring_size],
                    run.source_guid,
                    run.related_source_guid,
                    run.related_identity,
                    run.related_reader_guid,
                    flags,
                    last_flags if consumer is last else flags,
                    ring_size,
                    rests_on,
                )
            )
            outbox.events.append(
                SampleSent(now, name, identity, consumer.guid, 1, run.enqueued_at_ns, count=own_count, step=ring_size)
            )

    def _put_back(self, sample: Sample) -> None:
        if self._journaled:
            self._stream.record(Returned(self._name, sample.position, sample.attempts, sample.redelivered))
        self.groups.of_sample(sample).put_back(sample)

    def _last_holder(self, sample: Sample, group: DeliveryGroup) -> Consumer | None:
        former = self.consumers.get(sample.past_holders[-1])
        return former if former is not None and self.groups.of_consumer(former) is group else None
