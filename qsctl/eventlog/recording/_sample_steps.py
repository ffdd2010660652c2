"""The fold of samples' events into rows of `messages`, `arrivals` and `deliveries`, and into a queue's counters.

Decides: which row an event completes, and the row's fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import structs

from qsctl.core.events import (
    BounceReason,
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
    SamplesRestored,
    SizeBytes,
    numbers_of,
    one_by_one,
)
from qsctl.core.records import RemovalCause
from qsctl.eventlog.outcomes import Outcome
from qsctl.eventlog.queue_counts import NEVER, work_units
from qsctl.eventlog.recording._recording_rows import RecordingRows
from qsctl.eventlog.recording.queue_state import (
    LATE_ROWS_MAX,
    ArrivedSample,
    HeldState,
    QueueState,
    Sending,
    address_text,
    offsets_of,
)
from qsctl.eventlog.recording.rows import Row
from qsctl.eventlog.recording.sampling import Sampling
from qsctl.eventlog.recording.schema import ArrivalAnswer, DeliveryAnswer, Origin
from qsctl.eventlog.recording.story import RecordedHeldSample
from qsctl.identity import NIL_GUID, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds

_OUTCOME_OF: Final = {
    cause: (outcome, outcome.value)
    for cause, outcome in {
        RemovalCause.DELIVERED: Outcome.DELIVERED,
        RemovalCause.EXPIRED: Outcome.EXPIRED,
        RemovalCause.FAILED_DELIVERY: Outcome.DEAD,
        RemovalCause.FLUSHED: Outcome.DISCARDED,
    }.items()
}
# Reading a member of an enumeration by its name takes longer than the rest of a row.
_DELIVERED, _DISCARDED, _HELD = Outcome.DELIVERED, Outcome.DISCARDED, Outcome.HELD
_ENQUEUED, _BOUNCED, _DUPLICATE = (
    ArrivalAnswer.ENQUEUED.value,
    ArrivalAnswer.BOUNCED.value,
    ArrivalAnswer.DUPLICATE.value,
)
_NONE, _ACKNOWLEDGED = DeliveryAnswer.NONE.value, DeliveryAnswer.ACKNOWLEDGED.value
_TIMED_OUT, _REJECTED = DeliveryAnswer.TIMED_OUT.value, DeliveryAnswer.REJECTED.value
_FROM_PRODUCER: Final = Origin.PRODUCER.value


class SampleSteps:
    """The fold of the queues' events, in their order.

    Args:
        recorded: receives the rows.
        queue_of: returns the state of a queue by its full name, creating one if it has none.
        started_at_ns: the instant 0 of the recording.
        sampling: selects the samples that have rows.
    """

    def __init__(
        self,
        recorded: RecordingRows,
        queue_of: Callable[[str], QueueState],
        started_at_ns: Nanoseconds,
        sampling: Sampling,
    ) -> None:
        self._recorded = recorded
        self._queue_of = queue_of
        self._t0 = started_at_ns
        self._sampling = sampling
        self._rows = recorded.rows
        self._steps: dict[type, Callable[[QueueState, Any, Nanoseconds], None]] = {
            SampleReceived: self._received,
            SampleEnqueued: self._enqueued,
            SampleSent: self._sent,
            SampleRemoved: self._removed,
            SampleBounced: self._bounced,
            DuplicateDropped: self._dropped,
            SampleReturned: self._returned,
            LateAcknowledgment: self._late,
            SamplesRestored: self._restored,
            SampleDeadLettered: self._raises("dead-lettered"),
            DeadLetterDeferred: self._deferred,
            HighWatermarkPassed: self._raises("high-watermark"),
            LowWatermarkPassed: self._raises("low-watermark"),
            QueueFilled: self._raises("queue-full"),
        }

    def note(self, events: Sequence[Event]) -> None:
        """Fold events in order; consecutive events mostly concern the same queue, which makes that case fast."""
        recorded, steps, t0 = self._recorded, self._steps, self._t0
        name = ""
        for event in events:
            if event.queue != name:
                name = event.queue
                queue = self._queue_of(name)
            recorded.step += 1
            recorded.now_ns = at_ns = event.at_ns - t0
            steps[type(event)](queue, event, at_ns)

    def hold(self, queue: QueueState, sample: RecordedHeldSample) -> None:
        """Register a sample that existed at the beginning."""
        recorded, identity = self._recorded, sample.identity
        recorded.step += 1
        at_ns = sample.at_ns - self._t0
        producer = recorded.producer(identity.writer_guid, at_ns)
        is_logged = recorded.keeps_rows and self._sampling.chooses(identity)
        lifespan_ns = None if sample.expires_at_ns >= INFINITE_NS else sample.expires_at_ns - sample.at_ns
        origin = (Origin.OUTSIDE if sample.is_outside else Origin.HELD).value
        arrived = ArrivedSample(
            recorded.step, at_ns, producer, sample.size_bytes, lifespan_ns, sample.address, origin, is_logged
        )
        if sample.is_outside:
            queue.arrived[identity] = arrived
            return
        held = HeldState(at_ns, sample.size_bytes, producer, is_logged)
        queue.held.put(identity, held)
        queue.held_before += at_ns < 0
        queue.counts.grow(sample.size_bytes)
        if is_logged:
            self._arrival(queue, identity, arrived, _ENQUEUED, at_ns, None, sample.attempts, sample.redelivered)
        if sample.attempts or sample.consumer_guid != NIL_GUID:
            held.attempts = 1  # statistics begin here: of the deliveries before, one is kept at most
        if sample.consumer_guid != NIL_GUID:
            held.sent_ns = sample.sent_at_ns - self._t0
            held.sending = Sending(
                recorded.step,
                sample.attempts + 1,
                sample.redelivered,
                recorded.peer(sample.consumer_guid),
                held.sent_ns,
            )

    def resume(self, at_ns: Nanoseconds, queue: QueueState) -> None:
        """Register that another process continues the service: deliveries end, and samples in the reader cache are
        lost.
        """
        for identity in queue.held.identities():
            held = queue.held.get(identity)
            if held is not None and held.sending is not None:
                self._end_delivery(queue, identity, held, DeliveryAnswer.CONSUMER_LEFT.value, at_ns)
        for identity in list(queue.arrived):
            self._refused(queue, identity, BounceReason.PRODUCER_GONE, at_ns)

    def end(self, queue: QueueState) -> None:
        """End the recording of a queue: samples in it become held, those outside waiting, open deliveries end."""
        if not self._recorded.keeps_rows:
            return
        for identity, arrived in queue.arrived.items():
            if arrived.is_logged:
                self._message(queue, arrived.producer, _one(arrived.size_bytes), arrived.at_ns, Outcome.WAITING, None)
                self._arrival(queue, identity, arrived, ArrivalAnswer.NONE.value, None, None)
        for identity in queue.held.identities():
            held = queue.held.get(identity)
            if held is not None and held.is_logged:
                self._message(queue, held.producer, _one(held.size_bytes), held.enqueued_ns, _HELD, 0, held.attempts)
                if held.sending is not None:
                    row = self._delivery(queue, identity, held, held.sending, _NONE, None, None)
                    self._rows["deliveries"].parts.append(row)
        self._rows["deliveries"].parts += queue.late.values()
        queue.late.clear()

    # One method a kind of event.

    def _received(self, queue: QueueState, event: SampleReceived, at_ns: Nanoseconds) -> None:
        identity = event.identity
        arrived = ArrivedSample(
            self._recorded.step,
            at_ns,
            self._recorded.producer(identity.writer_guid, at_ns),
            event.size_bytes,
            None if event.lifespan_ns >= INFINITE_NS else event.lifespan_ns,
            event.address,
            Origin.DEAD_LETTER.value if event.is_dead_letter else _FROM_PRODUCER,
            self._recorded.keeps_rows and self._sampling.chooses(identity),
        )
        if event.count > 1:
            queue.arriving = arrived
            self._recorded.step += event.count - 1
        elif queue.arrived.setdefault(identity, arrived) is not arrived:
            queue.repeated = arrived

    def _enqueued(self, queue: QueueState, event: SampleEnqueued, at_ns: Nanoseconds) -> None:
        identity, arriving = event.identity, queue.arriving
        if arriving is not None:
            queue.arriving = None
            self._enqueued_together(queue, event, arriving, at_ns)
            return
        arrived = queue.arrived.pop(identity, None)
        if arrived is None:  # before the recording
            return
        size_bytes = event.size_bytes
        assert isinstance(size_bytes, int)
        queue.held.put(identity, HeldState(at_ns, size_bytes, arrived.producer, arrived.is_logged))
        queue.counts.grow(size_bytes)
        if arrived.is_logged:
            self._arrival(queue, identity, arrived, _ENQUEUED, at_ns, None)

    def _enqueued_together(
        self, queue: QueueState, event: SampleEnqueued, arrived: ArrivedSample, at_ns: Nanoseconds
    ) -> None:
        """Register the entry of a range of samples."""
        recorded, count, guid = self._recorded, event.count, event.identity.writer_guid
        step, numbers, size_bytes = recorded.step, numbers_of(event), event.size_bytes
        recorded.step += count - 1
        held = HeldState(at_ns, size_bytes, arrived.producer, True, first_number=numbers.start, count=count)
        chosen = self._sampling.choose(guid, numbers) if recorded.keeps_rows else ()
        if len(chosen) < count:
            queue.held.put_all(guid, numbers, structs.replace(held, is_logged=False))
        queue.held.put_all(guid, chosen, held)
        queue.counts.grow_by(_sum(_work_units(size_bytes), count))
        if chosen:
            offsets = held.offsets_of(chosen)
            self._rows["arrivals"].add(
                len(chosen),
                (
                    _beyond(arrived.step, offsets), at_ns, queue.name, arrived.producer, chosen, arrived.origin,
                    _at(size_bytes, offsets), arrived.lifespan_ns, address_text(arrived.address), 0, False, _ENQUEUED,
                    at_ns, _beyond(step, offsets), None,
                ),
            )  # fmt: skip

    def _sent(self, queue: QueueState, event: SampleSent, at_ns: Nanoseconds) -> None:
        if event.count > 1:
            self._sent_together(queue, event, at_ns)
            return
        held = queue.held.get(event.identity) or self._revealed(queue, event.identity, event.enqueued_at_ns)
        held.sent_ns = at_ns
        held.attempts += 1
        if held.attempts > 1:
            queue.counts.redelivered += 1
        consumer = self._recorded.peer(event.consumer_guid)
        held.sending = Sending(self._recorded.step, event.attempt, event.redelivered, consumer, at_ns)

    def _sent_together(self, queue: QueueState, event: SampleSent, at_ns: Nanoseconds) -> None:
        """Register the first sending of a range of samples to a consumer."""
        recorded, numbers, guid = self._recorded, numbers_of(event), event.identity.writer_guid
        groups = queue.held.groups(guid, numbers)
        if any(held is None or held.count == 1 or held.attempts for held, _ in groups):
            self._each(self._sent, queue, event, at_ns)
            return
        sending = Sending(recorded.step, event.attempt, event.redelivered, recorded.peer(event.consumer_guid), at_ns)
        recorded.step += event.count - 1
        for held, those in groups:
            assert held is not None
            sent = structs.replace(
                held,
                size_bytes=_at(held.size_bytes, held.offsets_of(numbers)),
                attempts=1,
                sent_ns=at_ns,
                sending=sending,
                first_number=numbers.start,
                stride=numbers.step,
                count=event.count,
            )
            queue.held.put_all(guid, those, sent)

    def _each(
        self,
        step: Callable[[QueueState, Any, Nanoseconds], None],
        queue: QueueState,
        event: SampleSent | SampleRemoved,
        at_ns: Nanoseconds,
    ) -> None:
        """Register a step of a range of samples one by one, where they differ."""
        for place, single in enumerate(one_by_one((event,))):
            self._recorded.step += place > 0
            step(queue, single, at_ns)

    def _removed_together(self, queue: QueueState, event: SampleRemoved, at_ns: Nanoseconds) -> None:
        """Register the acknowledgment of a range of samples."""
        recorded, numbers, guid = self._recorded, numbers_of(event), event.identity.writer_guid
        groups = queue.held.groups(guid, numbers)
        if any(held is None or held.count == 1 or held.sending is None for held, _ in groups):
            self._each(self._removed, queue, event, at_ns)
            return
        step = recorded.step
        recorded.step += event.count - 1
        for held, those in groups:
            assert held is not None
            assert held.sending is not None
            sending, offsets, count = held.sending, held.offsets_of(those), len(those)
            size_bytes = _at(held.size_bytes, offsets)
            units = _work_units(size_bytes)
            queue.leave_all(guid, those, held, _sum(units, count))
            wait_ns, acknowledge_ns = sending.sent_ns - held.enqueued_ns, at_ns - held.enqueued_ns
            queue.counts.count(held.enqueued_ns, _sum(size_bytes, count), wait_ns, _DELIVERED, acknowledge_ns, count)
            if not held.is_logged:
                continue
            answered = _beyond(step, offsets_of(those, numbers.start, numbers.step))
            self._rows["deliveries"].add(
                count,
                (
                    _beyond(sending.step, offsets), queue.name, held.producer, those, sending.attempt,
                    sending.redelivered, sending.consumer, sending.sent_ns, _ACKNOWLEDGED, at_ns, answered, None, None,
                    False,
                ),
            )  # fmt: skip
            self._rows["messages"].add(
                count,
                (
                    0, queue.shown, held.producer, size_bytes, units, held.enqueued_ns, 0, wait_ns, wait_ns,
                    acknowledge_ns, _DELIVERED.value, False, held.attempts,
                ),
            )  # fmt: skip

    def _removed(self, queue: QueueState, event: SampleRemoved, at_ns: Nanoseconds) -> None:
        if event.count > 1:
            self._removed_together(queue, event, at_ns)
            return
        identity, size_bytes = event.identity, event.size_bytes
        assert isinstance(size_bytes, int)
        held = queue.held.get(identity) or self._revealed(queue, identity, event.enqueued_at_ns)
        outcome, outcome_text = _OUTCOME_OF[event.cause]
        if (sending := held.sending) is not None:
            is_answer = outcome is _DELIVERED and not held.retired_late
            if is_answer and held.is_logged:
                self._rows["deliveries"].parts.append(
                    self._delivery(queue, identity, held, sending, _ACKNOWLEDGED, at_ns, self._recorded.step)
                )
            elif not is_answer:
                self._end_delivery(queue, identity, held, _NONE, at_ns)
        queue.leave(identity, held, size_bytes)
        enqueued_ns, sent_ns = held.enqueued_ns, held.sent_ns
        is_delivery = outcome is _DELIVERED and sent_ns is not None
        wait_ns = (sent_ns if is_delivery and sent_ns is not None else at_ns) - enqueued_ns
        acknowledge_ns = at_ns - enqueued_ns if is_delivery else None
        queue.counts.count(
            enqueued_ns, size_bytes, wait_ns, outcome, NEVER if acknowledge_ns is None else acknowledge_ns
        )
        if held.is_logged:
            self._rows["messages"].parts.append(
                (
                    0, queue.shown, held.producer, size_bytes, work_units(size_bytes), enqueued_ns, 0, wait_ns,
                    wait_ns if is_delivery else None, acknowledge_ns, outcome_text, False, held.attempts,
                )
            )  # fmt: skip

    def _bounced(self, queue: QueueState, event: SampleBounced, at_ns: Nanoseconds) -> None:
        self._refused(queue, event.identity, event.reason, at_ns)

    def _refused(self, queue: QueueState, identity: SampleIdentity, reason: BounceReason, at_ns: Nanoseconds) -> None:
        arrived = queue.answer(identity)
        if arrived is None:
            self._taken_back(queue, identity, at_ns)
            return
        size_bytes = _one(arrived.size_bytes)
        queue.counts.count(at_ns, size_bytes, 0, _DISCARDED)
        if arrived.is_logged:
            self._message(queue, arrived.producer, size_bytes, at_ns, _DISCARDED, 0, wait_ns=0)
            self._arrival(queue, identity, arrived, _BOUNCED, at_ns, reason.value)

    def _taken_back(self, queue: QueueState, identity: SampleIdentity, at_ns: Nanoseconds) -> None:
        """Register that an enqueued sample counts as refused, because its store failed."""
        held = queue.held.get(identity)
        if held is None:
            return
        if held.sending is not None:
            self._end_delivery(queue, identity, held, _NONE, at_ns)
        size_bytes = _one(held.size_bytes)
        queue.leave(identity, held, size_bytes)
        wait_ns = at_ns - held.enqueued_ns
        queue.counts.count(held.enqueued_ns, size_bytes, wait_ns, _DISCARDED)
        if held.is_logged:
            self._message(queue, held.producer, size_bytes, held.enqueued_ns, _DISCARDED, 0, held.attempts, wait_ns)

    def _dropped(self, queue: QueueState, event: DuplicateDropped, at_ns: Nanoseconds) -> None:
        arrived = queue.answer(event.identity)
        if arrived is not None and arrived.is_logged:
            self._arrival(queue, event.identity, arrived, _DUPLICATE, at_ns, None)

    def _returned(self, queue: QueueState, event: SampleReturned, at_ns: Nanoseconds) -> None:
        queue.counts.returned += 1
        held = queue.held.get(event.identity)
        if held is None or held.sending is None:
            return
        match event.reason:
            case ReturnReason.TIMED_OUT:
                answer = _TIMED_OUT
            case ReturnReason.REJECTED:
                answer = _REJECTED
            case ReturnReason.NOT_SENT:
                answer = DeliveryAnswer.HANDED_BACK.value
            case ReturnReason.CONSUMER_LEFT:
                # One that is still there, or left in good order, gave it back: no attempt is counted.
                vanished = not queue.left.get(event.consumer_guid, True)
                answer = (DeliveryAnswer.CONSUMER_LEFT if vanished else DeliveryAnswer.HANDED_BACK).value
        self._end_delivery(queue, event.identity, held, answer, at_ns)

    def _late(self, queue: QueueState, event: LateAcknowledgment, at_ns: Nanoseconds) -> None:
        recorded = self._recorded
        recorded.add_event(queue, "late-acknowledgment", at_ns)
        row = queue.late.pop((recorded.peer(event.consumer_guid), event.identity), None)
        if row is not None:
            self._rows["deliveries"].parts.append((*row[:-3], at_ns, recorded.step, event.retired))
        if event.retired and (held := queue.held.get(event.identity)) is not None:
            held.retired_late = True

    def _deferred(self, queue: QueueState, event: DeadLetterDeferred, at_ns: Nanoseconds) -> None:
        """End the delivery of a dead sample that stays in the queue: a later acknowledgment of it is late."""
        self._recorded.add_event(queue, "dead-letter-deferred", at_ns)
        held = queue.held.get(event.identity)
        if held is not None:
            self._end_delivery(queue, event.identity, held, _NONE, at_ns)

    def _restored(self, queue: QueueState, event: SamplesRestored, at_ns: Nanoseconds) -> None:
        self._recorded.add_event(queue, "restored", at_ns, event.count, event.count)
        if not queue.held:  # else a process that resumes the recording found what is known
            queue.unseen += event.count

    def _raises(self, name: str) -> Callable[[QueueState, Event, Nanoseconds], None]:
        def note(queue: QueueState, _event: Event, at_ns: Nanoseconds) -> None:
            self._recorded.add_event(queue, name, at_ns)

        return note

    def _revealed(self, queue: QueueState, identity: SampleIdentity, enqueued_at_ns: Nanoseconds) -> HeldState:
        enqueued_ns = enqueued_at_ns - self._t0
        producer = self._recorded.producer(identity.writer_guid, enqueued_ns)
        is_logged = self._recorded.keeps_rows and self._sampling.chooses(identity)
        return queue.reveal(identity, enqueued_ns, producer, is_logged)

    # Rows.

    def _end_delivery(
        self, queue: QueueState, identity: SampleIdentity, held: HeldState, answer: str, at_ns: Nanoseconds
    ) -> None:
        sending, held.sending = held.sending, None
        if sending is None or not held.is_logged:
            return
        row = self._delivery(queue, identity, held, sending, answer, at_ns, self._recorded.step)
        if answer in (_TIMED_OUT, _NONE):
            earlier = queue.late.pop((sending.consumer, identity), None)
            if earlier is not None:
                self._rows["deliveries"].parts.append(earlier)  # an answer would be to the delivery that ends now
            queue.late[sending.consumer, identity] = row
            if len(queue.late) > LATE_ROWS_MAX:
                self._rows["deliveries"].parts.append(queue.late.popitem(last=False)[1])
        else:
            self._rows["deliveries"].parts.append(row)

    def _delivery(
        self,
        queue: QueueState,
        identity: SampleIdentity,
        held: HeldState,
        sending: Sending,
        answer: str,
        answered_ns: Nanoseconds | None,
        answered_step: int | None,
    ) -> Row:
        return (
            sending.step, queue.name, held.producer, identity.sequence_number, sending.attempt, sending.redelivered,
            sending.consumer, sending.sent_ns, answer, answered_ns, answered_step, None, None, False,
        )  # fmt: skip

    def _arrival(
        self,
        queue: QueueState,
        identity: SampleIdentity,
        arrived: ArrivedSample,
        answer: str,
        answered_ns: Nanoseconds | None,
        reason: str | None,
        attempts: int = 0,
        redelivered: bool = False,
    ) -> None:
        self._rows["arrivals"].parts.append(
            (
                arrived.step, arrived.at_ns, queue.name, arrived.producer, identity.sequence_number, arrived.origin,
                arrived.size_bytes, arrived.lifespan_ns, address_text(arrived.address), attempts, redelivered, answer,
                answered_ns, None if answered_ns is None else self._recorded.step, reason,
            )
        )  # fmt: skip

    def _message(
        self,
        queue: QueueState,
        producer: int,
        size_bytes: int,
        enqueued_ns: Nanoseconds,
        outcome: Outcome,
        enter_ns: int | None,
        attempts: int = 0,
        wait_ns: int | None = None,
    ) -> None:
        self._rows["messages"].parts.append(
            (
                0, queue.shown, producer, size_bytes, work_units(size_bytes), enqueued_ns, enter_ns, wait_ns, None,
                None, outcome.value, False, attempts,
            )
        )  # fmt: skip


def _beyond(first: int, offsets: Sequence[int]) -> Sequence[int]:
    """Return the numbers at these offsets from the first."""
    if isinstance(offsets, range):
        return range(first + offsets.start, first + offsets.stop, offsets.step)
    return [first + offset for offset in offsets]


def _at(size_bytes: SizeBytes, offsets: Sequence[int]) -> SizeBytes:
    """Return the sizes of the samples at these offsets."""
    return size_bytes if isinstance(size_bytes, int) else tuple([size_bytes[offset] for offset in offsets])


def _one(size_bytes: SizeBytes) -> int:
    """Return the size of a sample by itself."""
    assert isinstance(size_bytes, int)
    return size_bytes


def _work_units(size_bytes: SizeBytes) -> SizeBytes:
    """Return the work units of samples of these sizes."""
    return work_units(size_bytes) if isinstance(size_bytes, int) else tuple(map(work_units, size_bytes))


def _sum(values: SizeBytes, count: int) -> int:
    """Return the sum of a value of each sample, or of one of all."""
    return values * count if isinstance(values, int) else sum(values)
