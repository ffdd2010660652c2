"""From records to a queue and back (manual, section 2.14).

Decides: what each record does when it is replayed, and which records say the same in fewest words. Replaying rebuilds
exactly the state that wrote the records, deliveries under way included; what a restart makes of that state
(section 2.14.2.1) is `SampleLifecycle.resume`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import assert_never

from qsctl.core.messages import SampleFlag
from qsctl.core.queue.dead_letter import dead_letter_identity
from qsctl.core.queue.held import Held
from qsctl.core.queue.lifecycle import SampleLifecycle
from qsctl.core.queue.persistence import enqueued_record
from qsctl.core.queue.redelivery import release
from qsctl.core.queue.sample import Cause, DeadLetterOrigin, Sample, SampleState
from qsctl.core.queue.undeliverable import UNDELIVERABLE
from qsctl.core.records import (
    Assigned,
    DeadLetterReason,
    Enqueued,
    QueueRecord,
    Remembered,
    Removed,
    Returned,
    Undeliverable,
)
from qsctl.identity import NIL_GUID, Guid, SampleIdentity

_REDELIVERED = int(SampleFlag.REDELIVERED)


class Replay:
    """The records of one queue, played into what it holds. Positions are looked up only here, never afterwards."""

    __slots__ = ("_by_position", "_held", "_known_guids", "dead_letters")

    def __init__(self, held: Held) -> None:
        self._held = held
        self.dead_letters: list[DeadLetterOrigin] = []
        """Which samples of other queues came here as dead letters, in order, also where they left again."""
        self._known_guids: dict[Guid, Guid] = {NIL_GUID: NIL_GUID}
        """One object a GUID: every record brings its own, and samples would keep a million of them."""
        self._by_position: dict[int, Sample] = {sample.position: sample for sample in held}

    def play(self, record: QueueRecord) -> bool:
        """Do again what was recorded; false when it concerns a sample that these records never enqueued, or twice."""
        match record:
            case Enqueued():
                return self._enqueue(record)
            case Remembered():
                self._held.remember(record.next_position, record.identities)
            case Assigned() | Returned() | Undeliverable() | Removed():
                sample = self._by_position.get(record.position)
                if sample is None:
                    return False
                if isinstance(record, Assigned):
                    sample.move(Cause.ASSIGN)
                    sample.move(Cause.SEND)
                    sample.holder = record.consumer_guid
                elif isinstance(record, Returned):
                    if sample.state is SampleState.SENT:
                        release(sample)
                        sample.move(Cause.RESTORE)
                    sample.attempts = record.attempts
                    sample.redelivered = record.redelivered
                    if record.past_holders:
                        sample.past_holders = record.past_holders
                elif isinstance(record, Undeliverable):
                    sample.move(Cause.EXPIRE if record.reason is DeadLetterReason.LIFESPAN else Cause.GIVE_UP)
                else:
                    del self._by_position[record.position]
                    self._held.retire(sample)
            case _:
                assert_never(record)
        return True

    def _enqueue(self, record: Enqueued) -> bool:
        dead_letter = None
        identity = record.identity
        flags = record.flags
        if record.dead_letter_reason is not None:
            source, reason = record.dead_letter_from, record.dead_letter_reason
            dead_letter = DeadLetterOrigin(source, record.dead_letter_position, identity, reason)
            self.dead_letters.append(dead_letter)
            identity = dead_letter_identity(source, identity)
            flags &= ~_REDELIVERED
        if identity in self._held.known:
            return False
        writer_guid = identity.writer_guid
        one_of = self._known_guids.setdefault
        sample = Sample(
            record.position,
            SampleIdentity(one_of(writer_guid, writer_guid), identity.sequence_number),
            record.payload,
            len(record.payload),
            record.enqueued_at_ns,
            record.expires_at_ns,
            one_of(record.source_guid, record.source_guid),
            record.related_source_guid,
            record.related_identity,
            record.related_reader_guid,
            flags,
            dead_letter,
            redelivered=flags != record.flags,
        )
        sample.move(Cause.STORE)
        self._held.enter(sample)
        self._by_position[sample.position] = sample
        return True


def snapshot(queue: SampleLifecycle) -> Iterator[QueueRecord]:
    """The fewest records that replay to the state of a queue, for a store that is compacted.

    A payload that is on disk only is named by `payload_from`: the old store still has it.
    """
    yield _remembered(queue)
    for sample in queue.held:
        yield from _records_of(queue.name, sample)


class Capture:
    """The same while the queue goes on: a share at a time, in the order of positions.

    Whoever replays it must be given, behind each share, what is recorded of the samples up to `taken_to` from then on;
    nothing of the others. With the last share, which says what is remembered, it is the state of that moment.
    """

    def __init__(self, queue: SampleLifecycle) -> None:
        self._queue = queue
        self._left = deque(queue.held)
        self.taken_to = -1
        """The highest position that was taken, or passed over for being gone."""
        self.is_over = False
        """Whether the last share was taken."""
        self._round = 0

    def take(self, count: int) -> list[QueueRecord]:
        """The records of about so many samples."""
        held, name, left = self._queue.held, self._queue.name, self._left
        if len(left) <= count << self._round:
            # What came since is held, too. Each round takes larger shares than the one before, or a queue that is
            # filled faster than this takes would never be through.
            left += held.newer_than(left[-1].position if left else self.taken_to)
            self._round += 1
        count <<= self._round
        is_last = len(left) <= count
        records: list[QueueRecord] = []
        for _ in range(len(left) if is_last else count):
            sample = left.popleft()
            self.taken_to = sample.position
            if held.known.get(sample.identity) is sample:
                records += _records_of(name, sample)
        if is_last:
            records.append(_remembered(self._queue))
            self.is_over = True
        return records


def _remembered(queue: SampleLifecycle) -> Remembered:
    return Remembered(queue.name, queue.held.next_position, queue.held.retired())


def _records_of(queue: str, sample: Sample) -> Iterator[QueueRecord]:
    """One held sample as it is now."""
    yield enqueued_record(queue, sample, (queue, sample.position) if sample.payload is None else None)
    if sample.attempts or sample.redelivered or sample.past_holders:
        yield Returned(queue, sample.position, sample.attempts, sample.redelivered, sample.past_holders)
    if sample.state in UNDELIVERABLE:
        yield Undeliverable(queue, sample.position, UNDELIVERABLE[sample.state])
    if sample.holder != NIL_GUID:
        yield Assigned(queue, sample.position, sample.holder, sample.attempts + 1)
