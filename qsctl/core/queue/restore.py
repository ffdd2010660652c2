"""The replay of records into a queue, and the capture of a queue as records [QS 2.14].

Decides: the effect of each record when it is replayed, the smallest set of records that describes a state, and how a
queue resumes from a replayed state. All ways from records to a working queue have the same steps: a `QueueReplay` into
an empty queue, which rebuilds exactly the state that wrote the records, including deliveries in progress; then
`complete_moves`; then `resume`. They are used at a start, by the CREATE of a queue that has files on disk, and when a
queue is rolled back to its store.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Final, assert_never

from qsctl.core.events import BounceReason, SamplesRestored
from qsctl.core.messages import SampleFlag
from qsctl.core.queue._persistence import enqueued_record
from qsctl.core.queue._redelivery import release
from qsctl.core.queue._run import SENT, SINGLE, WAITING, Run, SentRange
from qsctl.core.queue._undeliverable import UNDELIVERABLE
from qsctl.core.queue.consumer import Consumer
from qsctl.core.queue.dead_letter import CAUSES, dead_letter_identity
from qsctl.core.queue.sample import Cause, DeadLetterOrigin, Sample, SampleState
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.core.records import (
    Assigned,
    AssignedRun,
    ConfigurationKnown,
    DeadLetterReason,
    Enqueued,
    EnqueuedRun,
    EpochBegan,
    MembersChanged,
    MovedFrom,
    QueueRecord,
    Record,
    Remembered,
    RemovalCause,
    Removed,
    RemovedRun,
    ReplicaRejoined,
    Returned,
    RunRecord,
    SendsAhead,
    Undeliverable,
)
from qsctl.identity import NIL_GUID, NIL_INCARNATION, Guid, Incarnation, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds

_REDELIVERED = int(SampleFlag.REDELIVERED)
_POSITION: Final = attrgetter("position")
RUNS_KEPT: Final = 64
"""Number of runs without held samples that a replay keeps."""

NOTHING_ASSIGNED: Final[Mapping[int, Guid]] = MappingProxyType({})
"""Default of `resume`: no earlier process has assigned samples."""


class QueueReplay:
    """The replay of one queue's records into its held samples. Only a replay looks samples up by position.

    Args:
        queue: an empty queue, or one with the samples of an earlier replay.
        is_restart: whether its service is starting; False: it has been working.
    """

    __slots__ = ("_by_position", "_held", "_one_of", "_queue", "_runs", "dead_letters", "is_restart", "moved_from")

    def __init__(self, queue: SharedReaderQueue, *, is_restart: bool) -> None:
        self.is_restart = is_restart
        self._queue = queue
        self._held = held = queue.held
        self.dead_letters: list[DeadLetterOrigin] = []
        """The origins of all dead letters that entered this queue, in order, including those that have left it."""
        self.moved_from: list[MovedFrom] = []
        """The places in other queues from which commands moved samples here, including those that have left again."""
        known_guids: dict[Guid, Guid] = {NIL_GUID: NIL_GUID}
        self._one_of = known_guids.setdefault
        """Deduplicate equal GUID objects: each record has its own, and samples would keep all of them in memory."""
        self._by_position: dict[int, Sample] = {}
        """The samples by themselves."""
        self._runs: list[Run] = []
        """The runs, in queue order."""
        for entry in held.entries_behind(0):
            if isinstance(entry, Run):
                self._runs.append(entry)
            else:
                self._by_position[entry.position] = entry

    def play(self, record: QueueRecord | RunRecord) -> int:
        """Apply a record, those of a run by ranges where nothing distinguishes its samples.

        Returns:
            How many records had an effect: the others concern samples that were never enqueued, or were before.
        """
        if type(record) is Enqueued:
            return self._enqueue(record)
        if type(record) is Assigned:
            sample = self._sample_at(record.position)
            if sample is None:
                return False
            sample.dispatch()
            sample.holder = record.consumer_guid
            return True
        if type(record) is Removed:
            return self._remove(record.position) is not None
        if isinstance(record, EnqueuedRun):
            return record.count if self._enqueue_run(record) else sum(map(self._enqueue, record.singles()))
        if isinstance(record, AssignedRun | RemovedRun):
            return self._play_by_runs(record)
        return self._play_rare(record)

    def _play_by_runs(self, record: AssignedRun | RemovedRun) -> int:
        """Apply records about samples to those of each run together; return how many had an effect."""
        positions, at, effect_count = record.positions, 0, 0
        while at < len(positions):
            found, count, is_done = self._run_at(positions[at]), 1, False
            if found is not None:
                run, offset = found
                offsets = range(offset, run.count, positions.step)[: len(positions) - at]
                count = len(offsets)
                is_done = (
                    self._assign_range(run, offsets, record.consumers_of(at, at + count))
                    if isinstance(record, AssignedRun)
                    else self._remove_range(run, offsets)
                )
            effect_count += count if is_done else sum(map(self.play, record.singles()[at : at + count]))
            at += count
        return effect_count

    def _sample_at(self, position: int) -> Sample | None:
        """Return the sample at a position, which is singled out if it is in a run; None: it is not held."""
        sample = self._by_position.get(position)
        if sample is None and (found := self._run_at(position)) is not None:
            run, offset = found
            return run.single_out(offset) if run.marks[offset] <= SINGLE else None
        return sample

    def _run_at(self, position: int) -> tuple[Run, int] | None:
        """Return the run that has a position, and the offset of that in it."""
        if at := bisect_right(self._runs, position, key=_POSITION):
            run = self._runs[at - 1]
            if position < run.position + run.count:
                return run, position - run.position
        return None

    def _remove(self, position: int) -> Sample | None:
        """Remove the sample at a position, and return it; None: it is not held."""
        sample = self._sample_at(position)
        if sample is not None:
            self._by_position.pop(position, None)
            self._held.retire(sample)
        return sample

    def _enqueue_run(self, record: EnqueuedRun) -> bool:
        """Hold the samples of a record as a run; return False if they must be single ones."""
        context = self._queue.context
        are_on_disk = {len(each) > context.on_disk_over_bytes for each in record.payloads}
        if (
            len(are_on_disk) > 1
            or (self._runs and record.position < self._runs[-1].position + self._runs[-1].count)
            or not self._held.admits_run(record.identity, record.count)
        ):
            return False
        run = Run(record, is_on_disk=True in are_on_disk)
        if run.is_on_disk:
            context.outbox.spill_stored(run)
        run.writer_guid = self._one_of(run.writer_guid, run.writer_guid)
        if len(self._runs) > 2 * self._held.run_count + RUNS_KEPT:
            self._runs = [each for each in self._runs if each.held_count]
        self._runs.append(run)
        self._held.enter_run(run)
        return True

    def _assign_range(self, run: Run, offsets: range, guids: list[Guid]) -> bool:
        """Mark samples of a run as sent to these consumers; return False if not all of them are waiting."""
        if any(run.marks[offsets.start : offsets.stop]):
            return False
        # Stand-ins for the consumers of an earlier process.
        consumers = [Consumer(guid, NIL_GUID, -1) for guid in _once_around(guids)]
        SentRange(run, offsets.start, offsets.stop, consumers, 0).begin()
        return True

    def _remove_range(self, run: Run, offsets: range) -> bool:
        """Remove samples of a run; return False if they are neither all waiting nor all of one sending."""
        start, count = offsets.start, len(offsets)
        marks = {*run.marks[start : offsets.stop : offsets.step]}
        if marks == {SENT}:
            sending = run.sending_of(start)
            if offsets[-1] >= sending.stop:
                return False
            sending.leave(sending.consumers[0], count)  # how many each of the stand-ins has is never read
        elif marks != {WAITING}:
            return False
        self._held.retire_range(run, offsets, count)
        return True

    def _play_rare(self, record: QueueRecord) -> bool:
        match record:
            case Remembered():
                self._be(record.incarnation)
                self._held.remember(record.next_position, record.identities)
            case EpochBegan():
                self._begin_epoch(flags_all=record.flags_all)
            case ReplicaRejoined() | SendsAhead() | MembersChanged() | ConfigurationKnown():
                pass
            case Returned() | Undeliverable():
                sample = self._sample_at(record.position)
                if sample is None:
                    return False
                if isinstance(record, Undeliverable):
                    sample.move(Cause.EXPIRE if record.reason is DeadLetterReason.LIFESPAN else Cause.GIVE_UP)
                    return True
                if sample.state is SampleState.SENT:
                    release(sample)
                    sample.move(Cause.RESTORE)
                sample.attempts = record.attempts
                sample.redelivered = record.redelivered
                if record.past_holders:
                    sample.past_holders = record.past_holders
            case Enqueued() | Assigned() | Removed():
                raise AssertionError(f"{record!r} is played before")
            case _:
                assert_never(record)
        return True

    def complete_move(self, origin: DeadLetterOrigin) -> None:
        """Remove a sample that became a dead letter; in a shared stream the dead letter's record removes it too."""
        sample = self._held.find(origin.identity)
        if sample is not None and sample.position == origin.position and origin.incarnation == self._queue.incarnation:
            self._remove(sample.position)

    def leave_moved(self, place: MovedFrom) -> Sample | None:
        """Remove a sample that another queue holds since a move, and return it; None: it has been removed already."""
        if place.incarnation != self._queue.incarnation:
            return None
        return self._remove(place.position)

    def deliveries_in_progress(self) -> dict[int, Guid]:
        """Return the consumer of each sample that is being delivered, by the sample's position."""
        return {sample.position: sample.holder for sample in self._held if sample.state is SampleState.SENT}

    def _be(self, incarnation: Incarnation) -> None:
        """Set the incarnation of the records that follow; drop samples of another incarnation in the same store."""
        queue = self._queue
        if queue.is_replicated:
            return
        if NIL_INCARNATION != queue.incarnation != incarnation:
            self._held.clear()
            self._by_position.clear()
            self._runs.clear()
            self.dead_letters.clear()
            self.moved_from.clear()
        queue.be(incarnation)

    def _begin_epoch(self, *, flags_all: bool) -> None:
        for each in self._held:
            if each.state is SampleState.SENT:
                sample = self._held.current(each)
                release(sample)
                sample.move(Cause.RESTORE)
                sample.redelivered = True
            elif flags_all:
                self._held.current(each).redelivered = True

    def _enqueue(self, record: Enqueued) -> bool:
        dead_letter = None
        identity = record.identity
        flags = record.flags
        if record.dead_letter_reason is not None:
            dead_letter = DeadLetterOrigin(
                record.dead_letter_from,
                record.dead_letter_position,
                identity,
                record.dead_letter_reason,
                record.dead_letter_incarnation,
            )
            self.dead_letters.append(dead_letter)
            identity = dead_letter_identity(dead_letter)
        if record.moved_from is not None:
            self.moved_from.append(record.moved_from)
        flags &= ~_REDELIVERED
        one_of, writer_guid, source_guid = self._one_of, identity.writer_guid, record.source_guid
        if (writer := one_of(writer_guid, writer_guid)) is not writer_guid:
            identity = SampleIdentity(writer, identity.sequence_number)
        sample = Sample(
            record.position,
            identity,
            record.payload,
            len(record.payload),
            record.enqueued_at_ns,
            record.expires_at_ns,
            one_of(source_guid, source_guid),
            record.related_source_guid,
            record.related_identity,
            record.related_reader_guid,
            flags,
            dead_letter,
            redelivered=flags != record.flags,
        )
        sample.move(Cause.STORE)
        if not self._held.enter_stored(sample):
            return False
        self._by_position[sample.position] = sample
        return True


def _once_around(guids: list[Guid]) -> list[Guid]:
    """Return the consumers of consecutive samples in turn, each once if possible."""
    count = guids.index(guids[0], 1) if guids.count(guids[0]) > 1 else len(guids)
    return guids[:count] if guids[count:] == guids[:-count] else guids


def without(records: Iterable[Record], refused: Container[int]) -> Iterator[Record]:
    """Return a queue's records without those of the samples at these positions."""
    return (record for record in records if getattr(record, "position", -1) not in refused)


def complete_moves(now: Nanoseconds, queue: SharedReaderQueue, dead_letters: Iterable[DeadLetterOrigin]) -> None:
    """Complete the moves to the dead-letter queue that a crash interrupted; call it before `resume`.

    The dead letter is stored first. After a crash the sample may therefore still be held, or may never have been stored
    in its own queue: then its producer got no answer and will write it again. A dead letter of an earlier queue of this
    name, since deleted, is of another incarnation and completes nothing.

    Args:
        now: the instant of the restart.
        queue: the queue that the samples came from.
        dead_letters: the origins of the dead letters in its dead-letter queue, of any queue.
    """
    held, stream = queue.held, queue.stream
    own = [
        each
        for each in dead_letters
        if each.incarnation == queue.incarnation and each.queue == queue.label and each.position
    ]
    for origin in sorted(own, key=_POSITION):
        sample = held.find(origin.identity)
        is_new = origin.position >= held.next_position
        if is_new and sample is None:
            sample = Sample(origin.position, origin.identity, b"", 0, now, INFINITE_NS)
            held.enter(sample)
            stream.record(enqueued_record(queue.name, sample, None))
        if sample is not None and sample.position == origin.position:
            stream.record(Removed(queue.name, origin.position, CAUSES[origin.reason]))
            held.retire(held.current(sample))
        elif is_new:
            held.go_beyond(origin.position)
            stream.record(_remembered(queue))


def leave_moved(
    now: Nanoseconds, source: SharedReaderQueue, places: Iterable[MovedFrom], replay: QueueReplay | None
) -> list[MovedFrom]:
    """Remove samples that commands moved to other queues and that a crash left here too; call it before `resume`.

    Moves from an earlier queue of this name, since deleted, are of another incarnation and have no effect.

    Args:
        now: the instant of the restart.
        source: the queue from which the samples were moved.
        places: their places, in any order.
        replay: the replay into that queue that is in progress; None: the queue is working.

    Returns:
        The places from which a sample was removed.
    """
    if replay is not None:
        left = [place for place in places if replay.leave_moved(place) is not None]
        for place in left:
            source.stream.record(Removed(source.name, place.position, RemovalCause.FLUSHED))
        return left
    by_position = {place.position: place for place in places if place.incarnation == source.incarnation}
    if not by_position or source.is_following:
        return []
    going = [each for each in source.held if each.position in by_position and source.is_waiting(each)]
    for sample in going:
        source.removal.end_moved(now, sample)
    return [by_position[each.position] for each in going]


def resume(
    now: Nanoseconds,
    queue: SharedReaderQueue,
    *,
    is_restart: bool,
    assigned: Mapping[int, Guid] = NOTHING_ASSIGNED,
) -> None:
    """Start a queue from a replayed state [QS 2.14.2.1].

    A delivery that was in progress is void, and its outcome is unknown. A sample that has expired meanwhile, or has
    spent its attempts, is dead-lettered or removed. A sample of `assigned`, which maps positions to consumers, is sent
    to that consumer again before any other sample, if the consumer has joined and is eligible [QS 7.1.1.3].
    """
    context, held = queue.context, queue.held
    entries = held.entries_behind(0)
    if entries and is_restart:
        context.outbox.events.append(SamplesRestored(now, queue.name, len(held)))
    if queue.limits.limited:
        queue.limits.restore(map(context.in_memory_bytes, held.sizes_bytes()))
    # Most samples are Enqueued without a deadline or an attempt: no decision about them is needed.
    groups = queue.deliveries.groups
    is_one_by_one = groups.routes or bool(assigned)
    on_disk_over_bytes = context.on_disk_over_bytes
    for entry in entries:
        if isinstance(entry, Run):
            _resume_run(now, queue, entry, assigned)
        elif (
            entry.state is not SampleState.ENQUEUED
            or entry.expires_at_ns < INFINITE_NS
            or entry.attempts
            or entry.size_bytes > on_disk_over_bytes
            or is_one_by_one
        ):
            _resume_sample(now, queue, entry, assigned.get(entry.position))
        else:
            groups.main.append(entry)


def _resume_sample(now: Nanoseconds, queue: SharedReaderQueue, sample: Sample, assigned: Guid | None) -> None:
    context = queue.context
    if sample.expires_at_ns < INFINITE_NS:
        queue.lifespans.enter(sample)
        context.outbox.agenda.wake(queue, sample.expires_at_ns)
    if sample.size_bytes > context.on_disk_over_bytes:
        context.outbox.spilling.append(sample)
    if sample.state in UNDELIVERABLE:
        _resume_undeliverable(now, queue, sample)
        return
    if _is_sent_again(now, queue, sample, assigned):
        return
    queue.deliveries.groups.of_sample(sample).append(sample)
    _end_if_over(now, queue, sample)


def _resume_run(now: Nanoseconds, queue: SharedReaderQueue, run: Run, assigned: Mapping[int, Guid]) -> None:
    """Let the samples of a run wait, and single out those about which a decision is needed."""
    if run.expires_at_ns < INFINITE_NS:
        queue.lifespans.enter(run, run.held_count)
        queue.context.outbox.agenda.wake(queue, run.expires_at_ns)
    if run.is_on_disk:
        queue.context.outbox.spilling.append(run)
    held = run.held_offsets(0, run.count)
    unusual = held if run.expires_at_ns <= now else [offset for offset in held if run.marks[offset] != WAITING]
    samples = list(map(run.single_out, unusual))
    left = [
        sample
        for sample in samples
        if sample.state in UNDELIVERABLE or not _is_sent_again(now, queue, sample, assigned.get(sample.position))
    ]
    run.pass_over_left()
    undeliverable_count = sum(sample.state in UNDELIVERABLE for sample in samples)
    if waiting_count := len(held) - len(samples) + len(left) - undeliverable_count:
        queue.deliveries.groups.of_sample(run).append_run(run, waiting_count)
    for sample in left:  # by position, as single ones: those that wait for room among the dead letters keep this order
        if sample.state in UNDELIVERABLE:
            _resume_undeliverable(now, queue, sample)
        else:
            _end_if_over(now, queue, sample)


def _is_sent_again(now: Nanoseconds, queue: SharedReaderQueue, sample: Sample, assigned: Guid | None) -> bool:
    """End the delivery of a sample that was in progress, if any; return whether it is sent to this consumer again."""
    _end_delivery(queue, sample)
    return (
        assigned is not None and not _is_over(now, queue, sample) and queue.deliveries.send_again(now, sample, assigned)
    )


def _end_delivery(queue: SharedReaderQueue, sample: Sample) -> None:
    """End the delivery of a sample that was in progress, if any."""
    if sample.state is not SampleState.ENQUEUED:
        release(sample)
        sample.move(Cause.RESTORE)
        sample.redelivered = True
        if queue.journaled:
            queue.stream.record(Returned(queue.name, sample.position, sample.attempts, redelivered=True))


def _is_over(now: Nanoseconds, queue: SharedReaderQueue, sample: Sample) -> bool:
    """Return whether a sample has expired, or has spent its attempts."""
    return sample.expires_at_ns <= now or queue.deliveries.redelivery.are_attempts_spent(sample)


def _end_if_over(now: Nanoseconds, queue: SharedReaderQueue, sample: Sample) -> None:
    """Dead-letter or remove a waiting sample that has expired, or has spent its attempts."""
    if sample.expires_at_ns <= now:
        queue.removal.end(now, sample, Cause.EXPIRE, RemovalCause.EXPIRED)
    elif queue.deliveries.redelivery.are_attempts_spent(sample):
        queue.removal.end(now, sample, Cause.GIVE_UP, RemovalCause.FAILED_DELIVERY)


def _resume_undeliverable(now: Nanoseconds, queue: SharedReaderQueue, sample: Sample) -> None:
    """Move an undeliverable sample to the dead-letter queue; without a queue remove it; without room let it wait."""
    reason, undeliverables = UNDELIVERABLE[sample.state], queue.undeliverables
    waits = bool(undeliverables.waiting)
    obstacle = BounceReason.QUEUE_FULL if waits else undeliverables.move(now, queue.context, sample, reason)
    if obstacle is None:
        queue.removal.end(now, sample, Cause.DEAD_LETTER, CAUSES[reason])
    else:
        undeliverables.defer(now, queue.context, sample, reason, obstacle)


def snapshot(queue: SharedReaderQueue) -> Iterator[QueueRecord]:
    """Return the smallest set of records that replays to the state of a queue, for a store that is compacted.

    A payload that is on disk only is referenced by `payload_from`: the old store still has it.
    """
    yield _remembered(queue)
    for sample in queue.held:
        yield from _records_of(queue.name, sample)


class Capture:
    """A capture of a queue as records while the queue works, in several parts in the order of positions.

    A replay must receive, behind each part, the later records of the samples up to `taken_to`, and none of the others.
    The last part also contains the remembered identities; with it the capture is the state of that moment.
    """

    def __init__(self, queue: SharedReaderQueue) -> None:
        self._queue = queue
        self._left: deque[Sample | Run] = deque()
        self._left_count = self._offset = 0
        """Number of positions that are not captured yet, and the offset of the first one in the first entry."""
        self._add_behind(0)
        self.taken_to = -1
        """The highest position that was captured, or skipped because its sample has left."""
        self.is_over = False
        """Whether the last part was returned."""
        self._round = 0

    def take(self, count: int) -> list[QueueRecord]:
        """Return the records of the next samples: `count`, or more in later rounds."""
        left = self._left
        if self._left_count <= count << self._round:
            # Samples enqueued since are included. Each round captures larger parts than the one before; otherwise
            # the capture of a queue that is filled faster would never end.
            self._add_behind(_last_position(left[-1]) if left else self.taken_to)
            self._round += 1
        count <<= self._round
        is_last = self._left_count <= count
        records: list[QueueRecord] = []
        end = 0 if is_last else self._left_count - count
        while self._left_count > end:
            self._take_from(left[0], self._left_count - end, records)
        if is_last:
            records.append(_remembered(self._queue))
            self.is_over = True
        return records

    def _add_behind(self, position: int) -> None:
        """Add the held samples behind a position to those that are captured."""
        entries = self._queue.held.entries_behind(position)
        self._left += entries
        self._left_count += sum([1 if isinstance(each, Sample) else each.count for each in entries])

    def _take_from(self, entry: Sample | Run, count: int, records: list[QueueRecord]) -> None:
        """Add the records of up to `count` positions of the first entry."""
        held, name = self._queue.held, self._queue.name
        if isinstance(entry, Sample):
            stop = size = 1
            if held.known.get(entry.identity) is entry:
                records += _records_of(name, entry)
        else:
            size, stop = entry.count, min(entry.count, self._offset + count)
            for offset in entry.held_offsets(self._offset, stop) if held.holds_run(entry) else ():
                records += _records_of(name, entry.view(offset))
        self.taken_to = entry.position + stop - 1
        self._left_count -= stop - self._offset
        self._offset = stop
        if stop == size:
            self._left.popleft()
            self._offset = 0


def _last_position(entry: Sample | Run) -> int:
    return entry.position + (1 if isinstance(entry, Sample) else entry.count) - 1


def _remembered(queue: SharedReaderQueue) -> Remembered:
    return Remembered(queue.name, queue.held.next_position, queue.held.retired(), queue.incarnation)


def _records_of(queue: str, sample: Sample) -> Iterator[QueueRecord]:
    """Yield the records of one held sample in its present state."""
    yield enqueued_record(queue, sample, (queue, sample.position) if sample.payload is None else None)
    if sample.attempts or sample.redelivered or sample.past_holders:
        yield Returned(queue, sample.position, sample.attempts, sample.redelivered, sample.past_holders)
    if sample.state in UNDELIVERABLE:
        yield Undeliverable(queue, sample.position, UNDELIVERABLE[sample.state])
    if sample.holder != NIL_GUID:
        yield Assigned(queue, sample.position, sample.holder, sample.attempts + 1)
