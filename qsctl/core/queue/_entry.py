"""The entry of samples into a queue [QS 2.4, 2.9, 2.12 and 2.15.4].

Decides: whether an arriving sample is a duplicate, is refused, waits outside in the reader cache, or is enqueued. There
are five kinds of entry: a producer's write, a sample that waited outside, a dead letter, one that a command inserts,
and one that a command moves here from another queue. Each asks `_refusal_of`, or `Limits.refusal_of` if only the limits
count, and each ends in `_hold`. A sample replayed from a store or a master's log entered before; `QueueReplay` restores
it. `_limits` decides whether a sample fits, `_reader_cache` the order of those outside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import structs

from qsctl.core.events import BounceReason, DuplicateDropped, SampleBounced, SampleEnqueued, SampleReceived
from qsctl.core.inserted_sample import InsertedSample
from qsctl.core.messages import BRIDGES_MASK, AckResponse, RunAccepted, SampleFlag, Write, WriteAcknowledgment, WriteRun
from qsctl.core.queue._context import QueueContext
from qsctl.core.queue._lifespan import Lifespans, QueueLifespan
from qsctl.core.queue._limits import Limits
from qsctl.core.queue._persistence import enqueued_record
from qsctl.core.queue._reader_cache import ReaderCache
from qsctl.core.queue._run import Run
from qsctl.core.queue._undeliverable import DeadLetterLine, UndeliverableSource
from qsctl.core.queue.dead_letter import CAUSES, letter, origin_of
from qsctl.core.queue.insertion import Insertion, moved_sample, refused_insertion, sample_of
from qsctl.core.queue.sample import Cause, Sample, SampleState
from qsctl.core.queue.settings import ReplacementKind
from qsctl.core.records import DeadLetterReason, Enqueued, MovedFrom, Removed
from qsctl.identity import NIL_GUID, Guid, identity_behind
from qsctl.instant import INFINITE_NS, Nanoseconds

Offer: TypeAlias = Callable[[Nanoseconds, Sample], None]
"""Send a sample that was just enqueued, or let it wait for a consumer."""
OfferRun: TypeAlias = Callable[[Nanoseconds, Run], None]
"""Send the samples of a run that was just enqueued, or let them wait for consumers."""

# Reading a member of an enumeration by its name takes longer than all else in a step.
_ACCEPTED: Final = AckResponse.ACCEPTED
_EXPIRED, _NOT_STORED = BounceReason.EXPIRED, BounceReason.NOT_STORED
_QUEUE_FULL, _TOO_LARGE = BounceReason.QUEUE_FULL, BounceReason.TOO_LARGE
_STORE: Final = Cause.STORE
_PRODUCER_FLAGS: Final = ~int(
    BRIDGES_MASK
    | SampleFlag.REDELIVERED
    | SampleFlag.LAST_SHARED_READER_QUEUE
    | SampleFlag.INSERTED
    | SampleFlag.END_OF_QUEUE
)


class Entry:
    """The entry of one queue.

    Args:
        context: the queue.
        limits: the bounds on its length and size.
        lifespans: the held samples that will expire.
        reader_cache: the samples that wait outside.
        offer: called with each sample that was enqueued.
        offer_run: called with each run that was enqueued.
    """

    __slots__ = (
        "_acknowledges",
        "_context",
        "_enter",
        "_held",
        "_is_limited",
        "_journaled",
        "_known",
        "_lifespan",
        "_lifespans",
        "_limits",
        "_name",
        "_offer",
        "_offer_run",
        "_outbox",
        "_reader_cache",
        "_runs",
        "_stream",
    )

    def __init__(
        self,
        context: QueueContext,
        limits: Limits,
        lifespans: Lifespans,
        reader_cache: ReaderCache,
        offer: Offer,
        offer_run: OfferRun,
    ) -> None:
        self._context = context
        self._acknowledges = context.acknowledges
        self._name = context.name
        self._outbox = context.outbox
        self._stream = context.stream
        self._journaled = context.journaled
        self._held = context.held
        self._known = context.held.known
        self._runs = context.held.runs
        self._enter = context.held.enter
        self._limits = limits
        self._lifespans = lifespans
        self._reader_cache = reader_cache
        self._offer = offer
        self._offer_run = offer_run
        self.change()

    def change(self) -> None:
        """Apply the queue's changed settings; its lifespan applies to samples enqueued from now on."""
        context = self._context
        self._is_limited = context.is_limited = self._limits.limited
        context.find_bound()
        self._lifespan = QueueLifespan(context.settings.lifespan_ns)

    def receive(self, now: Nanoseconds, write: Write) -> None:
        """Enqueue a producer's sample, refuse it, or let it wait outside [QS 2.4 and 2.15.4].

        An enqueued sample is acknowledged with 1, a refused one with 0; a waiting one is not acknowledged until it is
        enqueued. A sample whose identity is held or was recently retired is acknowledged with 1 and dropped.
        """
        identity, context, size_bytes = write.identity, self._context, len(write.payload)
        reason: BounceReason | None = None
        if (
            identity not in self._known
            and not (self._runs and self._held.knows(identity))
            and (
                (size_bytes <= context.freely_accepted_size_bytes and write.lifespan_ns > 0)
                or (reason := self._refusal_of(now, size_bytes, now + write.lifespan_ns, write.waits_when_full)) is None
            )
        ):
            if self._outbox.reports_each_step:
                # Not by `_arrival`, nor the record below by `enqueued_record`: each call is 2 % of what a sample costs.
                self._outbox.events.append(
                    SampleReceived(now, self._name, identity, size_bytes, write.lifespan_ns, write.related_source_guid)
                )
            self._enqueue(now, write, now)
            if self._reader_cache.arrivals:
                self.let_in(now)
            return
        self._outbox.events.append(self._arrival(now, write))
        if reason is None:
            self._outbox.events.append(DuplicateDropped(now, self._name, identity))
            context.answer(identity, _ACCEPTED)
        elif reason is _QUEUE_FULL or (reason is _NOT_STORED and write.waits_when_full):
            self._find_no_room(now, write)
        else:
            context.bounce(now, identity, reason)

    def receive_run(self, now: Nanoseconds, writes: WriteRun) -> None:
        """Enqueue samples of one producer, as runs where no rule distinguishes them; see `receive`."""
        start, end = 0, len(writes.payloads)
        while start < end:
            if count := self._run_length(now, writes, start):
                self._enqueue_run(now, writes if count == end else writes.part(start, start + count))
                start += count
            else:
                self.receive(now, *writes.part(start, start + 1).singles())
                start += 1

    def _run_length(self, now: Nanoseconds, writes: WriteRun, start: int) -> int:
        """Return the number of samples from an offset on that enter as one run; 0: a rule may reject the first."""
        context = self._context
        if (
            context.accepts_nothing
            or writes.lifespan_ns <= 0
            or self._reader_cache.arrivals
            # Of samples that have expired, each makes room as the first of the frame is offered.
            or (self._is_limited and (self._limits.is_full() or self._lifespans.next_deadline() <= now))
        ):
            return 0
        sizes_bytes = list(map(len, writes.payloads[start:] if start else writes.payloads))
        # All samples of a run are in memory, or none.
        low, high = -1, min(context.size_bytes_max, context.on_disk_over_bytes)
        if sizes_bytes[0] > context.on_disk_over_bytes:
            low, high = context.on_disk_over_bytes, context.size_bytes_max
        if max(sizes_bytes) > high or min(sizes_bytes) <= low:
            del sizes_bytes[next(at for at, each in enumerate(sizes_bytes) if not low < each <= high) :]
        count = len(sizes_bytes)
        if self._is_limited:
            count = self._limits.fitting_count(list(map(context.in_memory_bytes, sizes_bytes)))
        first = identity_behind(writes.identity, start) if start else writes.identity
        return self._held.new_count(first, count)

    def _enqueue_run(self, now: Nanoseconds, writes: WriteRun) -> None:
        """Enqueue samples as a run."""
        context, outbox, held, first = self._context, self._outbox, self._held, writes.identity
        payloads, lifespan_ns, count = writes.payloads, writes.lifespan_ns, len(writes.payloads)
        expires_at_ns = (
            self._lifespan.expiry(now, lifespan_ns, now)
            if lifespan_ns < INFINITE_NS or self._lifespan.is_finite
            else INFINITE_NS
        )
        flags = writes.flags & _PRODUCER_FLAGS
        enqueued = writes.enqueued(self._name, held.next_position, now, expires_at_ns, flags)
        run = Run(enqueued, is_on_disk=len(payloads[0]) > context.on_disk_over_bytes)
        held.enter_run(run)
        stream = self._stream
        if self._journaled:
            stream.record_run(enqueued)
            if run.is_on_disk:
                outbox.spilling.append(run)
        size_bytes = run.size_bytes
        outbox.events += (
            SampleReceived(now, self._name, first, size_bytes, lifespan_ns, writes.related_source_guid, count=count),
            SampleEnqueued(now, self._name, first, size_bytes, now, count),
        )
        if self._is_limited:
            self._limits.grow(now, 0 if run.is_on_disk else sum(map(len, payloads)), count)
        if expires_at_ns < INFINITE_NS:
            self._lifespans.enter(run, count)
            if expires_at_ns < context.sleeper.wakes_at_ns:
                outbox.agenda.wake(context.sleeper, expires_at_ns)
        if self._acknowledges:
            outbox.messages.append(RunAccepted(self._name, first, count, stream.base_index + len(stream.records)))
        self._offer_run(now, run)

    def refuse(self, now: Nanoseconds, write: Write, reason: BounceReason) -> None:
        """Refuse a sample for a reason outside the queue [QS 2.4]."""
        self._outbox.events.append(self._arrival(now, write))
        self._context.bounce(now, write.identity, reason)

    def let_in(self, now: Nanoseconds) -> None:
        """Enqueue samples from the reader cache, in the order of arrival, while there is room."""
        if self._context.refuses:
            return
        while (arrival := self._reader_cache.first()) is not None:
            write, received_at_ns, expires_at_ns = arrival
            reason = _EXPIRED if expires_at_ns <= now else self._obstacle_to(len(write.payload))
            if reason is _QUEUE_FULL:
                self._limits.find_full(now)
                return
            self._reader_cache.leave(write.identity)
            if reason is None:
                self._enqueue(now, write, received_at_ns, was_outside=True)
            else:
                self._context.bounce(now, write.identity, reason)

    def expire_outside(self, now: Nanoseconds) -> None:
        """Refuse the samples in the reader cache whose lifespan is over."""
        for identity in self._reader_cache.overdue(now):
            self._reader_cache.leave(identity)
            self._context.bounce(now, identity, BounceReason.EXPIRED)

    def lose_producer(self, now: Nanoseconds, writer_guid: Guid) -> None:
        """Drop a vanished producer's samples from the reader cache; enqueued ones remain [QS 2.15.4]."""
        for identity in self._reader_cache.of_writer(writer_guid):
            self._reader_cache.leave(identity)
            self._outbox.events.append(SampleBounced(now, self._name, identity, BounceReason.PRODUCER_GONE))
        if self._reader_cache.arrivals:
            # Another one is first now: a smaller one may fit where that producer's did not.
            self.let_in(now)

    def shut(self, now: Nanoseconds) -> None:
        """Refuse all samples in the reader cache: the queue will be deleted [QS 5.4.2]."""
        while (arrival := self._reader_cache.first()) is not None:
            self._reader_cache.leave(arrival.write.identity)
            self._context.bounce(now, arrival.write.identity, BounceReason.QUEUE_FULL)

    def accept_dead_letter(
        self,
        now: Nanoseconds,
        source: UndeliverableSource,
        sample: Sample,
        reason: DeadLetterReason,
        line: DeadLetterLine,
    ) -> BounceReason | None:
        """Enqueue a sample that another queue could not deliver [QS 2.12]; return the reason of a refusal, or None.

        Our reading: no dead letter waits in the reader cache, whatever the replacement policy; the sample stays in its
        own queue. A dead letter that is held already counts as accepted. A dead letter is not a new sample for the
        service, because it leaves another queue: neither a lack of disk space nor the bound on memory refuses it.
        """
        events, context = self._outbox.events, self._context
        if context.is_suspended:
            return _NOT_STORED
        expires_at_ns = self._lifespan.expiry(now, INFINITE_NS, now)
        dead = letter(now, sample, self._held.next_position, origin_of(source, sample, reason), expires_at_ns)
        if self._held.knows(dead.identity):
            events.append(SampleReceived(now, self._name, dead.identity, sample.size_bytes, is_dead_letter=True))
            events.append(DuplicateDropped(now, self._name, dead.identity))
            if source.stream is self._stream:
                # Elsewhere the source records the removal; in one stream the dead letter does, which is not new here.
                self._stream.record(Removed(source.name, sample.position, CAUSES[reason]))
            return None
        obstacle = self._obstacle_to(sample.size_bytes)
        if obstacle is _TOO_LARGE:
            return obstacle
        if context.is_shut or not line.is_turn_of(source):
            return _QUEUE_FULL
        if obstacle is not None:
            self._limits.find_full(now)
            return obstacle
        events.append(SampleReceived(now, self._name, dead.identity, sample.size_bytes, is_dead_letter=True))
        payload_from = (source.name, sample.position) if sample.payload is None else None
        record = enqueued_record(self._name, dead, payload_from) if self._journaled else None
        self._hold(now, dead, now, record, True)
        self._offer(now, dead)
        return None

    def insert(self, now: Nanoseconds, inserted: InsertedSample) -> Insertion:
        """Enqueue a sample that a command carries; return the outcome."""
        context, held = self._context, self._held
        sample = sample_of(
            now, inserted, held.next_position, self._lifespan, is_dead_letter=context.settings.is_dead_letter
        )
        if sample is None:
            return Insertion.NO_DEAD_LETTER
        became = self._judge(now, sample)
        if became is Insertion.ENQUEUED:
            self._hold(now, sample, now, enqueued_record(self._name, sample, None) if self._journaled else None, True)
            self._offer(now, sample)
        return became

    def receive_moved(
        self, now: Nanoseconds, sample: Sample, source: MovedFrom, payload: bytes | None, *, begins_anew: bool
    ) -> tuple[Insertion, Sample | None]:
        """Enqueue a sample that a command moves here; it is not offered to consumers yet.

        Args:
            now: the instant.
            sample: the sample in the other queue, which removes it once it is enqueued here.
            source: its place in that queue.
            payload: its payload if it is in memory or was sent along; None: it is on disk only.
            begins_anew: whether its lifespan begins now.

        Returns:
            The outcome, and the sample as it is held here; None: it was not enqueued.
        """
        context = self._context
        moved = moved_sample(
            now,
            sample,
            self._held.next_position,
            self._lifespan,
            is_dead_letter=context.settings.is_dead_letter,
            begins_anew=begins_anew,
            payload=payload,
        )
        if moved is None:
            return Insertion.NO_DEAD_LETTER, None
        if payload is None and not (self._journaled and moved.size_bytes > context.on_disk_over_bytes):
            return Insertion.NO_PAYLOAD, None
        became = self._judge(now, moved)
        if became is not Insertion.ENQUEUED:
            return became, None
        payload_from = (source.queue, source.position) if payload is None else None
        record = enqueued_record(self._name, moved, payload_from, source) if self._journaled else None
        self._hold(now, moved, now, record, True)
        return became, moved

    def hold_again(self, now: Nanoseconds, sample: Sample) -> None:
        """Enqueue again, behind the others, a sample that left for another queue which could not store it.

        This queue stores nothing on disk itself, and had room for the sample.
        """
        again = structs.replace(
            sample, position=self._held.next_position, state=SampleState.ARRIVED, holder=NIL_GUID, enqueued_at_ns=now
        )
        self._outbox.events.append(_received(now, self._name, again))
        self._held.make_way(again.identity)
        self._hold(now, again, now, None, True)
        self._offer(now, again)

    def _judge(self, now: Nanoseconds, sample: Sample) -> Insertion:
        """Return the outcome for a sample that a command brings; after ENQUEUED the caller must hold it."""
        identity, size_bytes, held = sample.identity, sample.size_bytes, self._held
        self._outbox.events.append(_received(now, self._name, sample))
        if (same := held.find(identity)) is not None:
            self._outbox.events.append(DuplicateDropped(now, self._name, identity))
            # A former queue of this name may have held another sample of this identity; on disk only its size is known.
            is_same = same.size_bytes == size_bytes and (
                sample.payload is None or same.payload in (None, sample.payload)
            )
            return Insertion.HELD_ALREADY if is_same else Insertion.HELD_ANOTHER
        reason = self._refusal_of(now, size_bytes, sample.expires_at_ns, waits=False)
        if reason is not None:
            if reason is _QUEUE_FULL:
                self._limits.find_full(now)
            self._outbox.events.append(SampleBounced(now, self._name, identity, reason))
            return refused_insertion(reason, holds_back=self._outbox.holds_back)
        held.make_way(identity)
        return Insertion.ENQUEUED

    def _refusal_of(
        self, now: Nanoseconds, size_bytes: int, expires_at_ns: Nanoseconds, waits: bool
    ) -> BounceReason | None:
        """Return why the queue does not enqueue a new sample; None: it does.

        Up to the context's `freely_accepted_size_bytes` the result is None without a call.

        Args:
            now: the instant.
            size_bytes: size of its payload.
            expires_at_ns: end of its own lifespan.
            waits: whether its producer waits for room instead of being notified of a refusal.
        """
        context = self._context
        if expires_at_ns <= now:
            return _EXPIRED
        if size_bytes > context.size_bytes_max:
            return _TOO_LARGE
        if context.accepts_nothing:
            if context.refuses or (self._outbox.holds_back and not waits):
                return _NOT_STORED
            if context.is_shut:
                return _QUEUE_FULL
        if self._reader_cache.arrivals:
            return _QUEUE_FULL
        # The same as `_obstacle_to`, without the call.
        return self._limits.refusal_of(size_bytes, size_bytes if size_bytes <= context.on_disk_over_bytes else 0)

    def bar(self, write: Write) -> BounceReason | None:
        """Return why no replica of this queue could enqueue a sample; None: it is not known to be impossible.

        Unlike `receive` it changes nothing and ignores the samples that the queue holds.
        """
        if len(write.payload) > self._context.size_bytes_max:
            return _TOO_LARGE
        if self._outbox.holds_back and not write.waits_when_full and not self._held.knows(write.identity):
            return _NOT_STORED
        return None

    def may_bar(self, writes: WriteRun) -> bool:
        """Return whether no replica of this queue could enqueue one of these samples, see `bar`."""
        return self._outbox.holds_back or max(map(len, writes.payloads)) > self._context.size_bytes_max

    def _obstacle_to(self, size_bytes: int) -> BounceReason | None:
        """Return which of the limits a sample of this size exceeds now; None: none."""
        return self._limits.refusal_of(size_bytes, self._context.in_memory_bytes(size_bytes))

    def _arrival(self, now: Nanoseconds, write: Write) -> SampleReceived:
        return SampleReceived(
            now, self._name, write.identity, len(write.payload), write.lifespan_ns, write.related_source_guid
        )

    def _enqueue(
        self, now: Nanoseconds, write: Write, received_at_ns: Nanoseconds, *, was_outside: bool = False
    ) -> None:
        identity, payload, lifespan_ns = write.identity, write.payload, write.lifespan_ns
        expires_at_ns = (
            self._lifespan.expiry(received_at_ns, lifespan_ns, now)
            if lifespan_ns < INFINITE_NS or self._lifespan.is_finite
            else INFINITE_NS
        )
        sample = Sample(
            self._held.next_position,
            identity,
            payload,
            len(payload),
            now,
            expires_at_ns,
            write.source_guid,
            write.related_source_guid,
            write.related_identity,
            write.related_reader_guid,
            write.flags & _PRODUCER_FLAGS,
        )
        record = (
            Enqueued(
                self._name,
                sample.position,
                identity,
                now,
                expires_at_ns,
                write.source_guid,
                write.related_source_guid,
                write.related_identity,
                write.related_reader_guid,
                sample.flags,
                "",
                None,
                0,
                payload,
            )
            if self._journaled
            else None
        )
        self._hold(now, sample, received_at_ns, record, was_outside)
        if self._acknowledges:
            stream = self._stream
            rests_on = stream.base_index + len(stream.records)
            self._outbox.messages.append(WriteAcknowledgment(self._name, identity, _ACCEPTED, rests_on))
        self._offer(now, sample)

    def _hold(
        self,
        now: Nanoseconds,
        sample: Sample,
        received_at_ns: Nanoseconds,
        record: Enqueued | None,
        was_received_apart: bool,
    ) -> None:
        """Enqueue a sample: record, report and count it. The caller must `_offer` it next.

        Args:
            now: the instant.
            sample: the sample, at the next position.
            received_at_ns: instant of its arrival.
            record: the record to store; None: the queue is not recorded.
            was_received_apart: whether its `SampleReceived` is among the events even if usual steps are only counted.
        """
        outbox, size_bytes = self._outbox, sample.size_bytes
        sample.move(_STORE)
        self._enter(sample)
        if record is not None:
            stream = self._stream
            (stream.records or stream.begin()).append(record)
            if size_bytes > self._context.on_disk_over_bytes:
                outbox.spilling.append(sample)
        if was_received_apart or outbox.reports_each_step:
            outbox.events.append(SampleEnqueued(now, self._name, sample.identity, size_bytes, received_at_ns))
        else:
            passed = self._context.passed
            (passed if passed.at_ns == now else self._context.count_at(now)).enqueued_count += 1
        if self._is_limited:
            self._limits.grow(now, self._context.in_memory_bytes(size_bytes))
        if sample.expires_at_ns < INFINITE_NS:
            self._lifespans.enter(sample)
            sleeper = self._context.sleeper
            if sample.expires_at_ns < sleeper.wakes_at_ns:
                outbox.agenda.wake(sleeper, sample.expires_at_ns)

    def _find_no_room(self, now: Nanoseconds, write: Write) -> None:
        if not self._context.refuses:
            self._limits.find_full(now)
        rejects = self._context.settings.limits.replacement is ReplacementKind.REJECT_WITHOUT_REPLACEMENT
        if rejects and not write.waits_when_full:
            self._context.bounce(now, write.identity, BounceReason.QUEUE_FULL)
        elif self._reader_cache.knows(write.identity):
            self._outbox.events.append(DuplicateDropped(now, self._name, write.identity))
        elif self._reader_cache.is_full() and not write.waits_when_full:
            # No answer at all: the producer goes on holding the sample, and writes it again.
            self._outbox.events.append(SampleBounced(now, self._name, write.identity, BounceReason.QUEUE_FULL))
        else:
            self._outbox.agenda.wake(self._context.sleeper, self._reader_cache.enter(write, now))


def _received(now: Nanoseconds, queue: str, sample: Sample) -> SampleReceived:
    """Return the event of a sample that a command brings to a queue."""
    return SampleReceived(
        now,
        queue,
        sample.identity,
        sample.size_bytes,
        address=sample.related_source_guid,
        is_dead_letter=sample.dead_letter is not None,
    )
