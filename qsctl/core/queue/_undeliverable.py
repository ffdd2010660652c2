"""Undeliverable samples that wait in their queue for room in the dead-letter queue [QS 2.12].

Decides: which states such a sample is in, and which queue is next when there is room again. No sample is dropped
because the dead-letter queue is full: it remains in its own queue, held and counted, and fills it like any other. So
does a sample that is larger than the dead-letter queue accepts: it does not block the others, and is tried again when
the settings of that queue change.
"""

from __future__ import annotations

from typing import Final, Protocol

from qsctl.core.events import BounceReason, DeadLetterDeferred, SampleDeadLettered
from qsctl.core.queue._redelivery import release
from qsctl.core.queue.dead_letter import dead_letter_identity, origin_of
from qsctl.core.queue.outbox import OpenStream, Outbox
from qsctl.core.queue.sample import Sample, SampleState
from qsctl.core.records import DeadLetterReason, Returned, Undeliverable
from qsctl.identity import NIL_GUID, Incarnation
from qsctl.instant import Nanoseconds

UNDELIVERABLE: Final[dict[SampleState, DeadLetterReason]] = {
    SampleState.EXPIRED: DeadLetterReason.LIFESPAN,
    SampleState.FAILED_DELIVERY: DeadLetterReason.MAX_RETRIES,
}
"""The states of a held sample that waits for room, with the reason in its future dead letter."""


_QUEUE_FULL, _TOO_LARGE = BounceReason.QUEUE_FULL, BounceReason.TOO_LARGE


class UndeliverableSource(Protocol):
    """A queue whose undeliverable samples become dead letters."""

    name: str
    label: str
    incarnation: Incarnation
    journaled: bool
    stream: OpenStream

    def go_on_at_once(self, now: Nanoseconds) -> None:
        """Schedule another attempt to move waiting samples in the next turn."""


class DeadLetterPlace(Protocol):
    """A dead-letter queue, as the queues that move samples to it see it."""

    name: str
    journaled: bool
    dead_letter_line: DeadLetterLine

    @property
    def stream(self) -> OpenStream:
        """Return the stream of its records."""

    def accept_dead_letter(
        self, now: Nanoseconds, source: UndeliverableSource, sample: Sample, reason: DeadLetterReason, /
    ) -> BounceReason | None:
        """Enqueue a sample of another queue; return the reason of a refusal, or None.

        Reasons: it is full, another queue has been waiting for room before, or the sample is too large for any room.
        """


class DeadLetterLine:
    """The queues that wait for room in one dead-letter queue, in the order in which they began to wait.

    When there is room, only the first queue is called, and the others wait behind it: this avoids a walk over a hundred
    queues for each dead letter that leaves, and small samples that overtake a large one for ever.
    """

    __slots__ = ("barred", "queues")

    def __init__(self) -> None:
        self.queues: dict[UndeliverableSource, None] = {}
        """Queues with waiting samples, in order; changed only here."""
        self.barred: dict[UndeliverableSource, None] = {}
        """Queues with samples that the dead-letter queue, as configured, refuses however much room it has."""

    def is_turn_of(self, source: UndeliverableSource) -> bool:
        """Return whether no other queue has been waiting before this one."""
        for first in self.queues:
            return first is source
        return True

    def enter(self, source: UndeliverableSource) -> None:
        """Append a queue to the line unless it is in it."""
        self.queues.setdefault(source)

    def leave(self, now: Nanoseconds, source: UndeliverableSource) -> None:
        """Remove a queue from the line; the next queue may find room for a smaller sample."""
        was_first = self.is_turn_of(source)
        self.queues.pop(source, None)
        if was_first:
            self.call(now)

    def move_to_back(self, now: Nanoseconds, source: UndeliverableSource) -> None:
        """Move a queue to the back of the line after its quantum, so that the others get their turn."""
        self.queues.pop(source, None)
        self.queues[source] = None
        self.call(now)

    def call_all(self, now: Nanoseconds) -> None:
        """Let queues with refused samples try again, and the first of the line, after the settings have changed."""
        for source in self.barred:
            source.go_on_at_once(now)
        self.barred.clear()
        self.call(now)

    def call(self, now: Nanoseconds) -> None:
        """Let the first queue of the line try again, since there may be room."""
        for first in self.queues:
            first.go_on_at_once(now)
            return


class Undeliverables:
    """The undeliverable samples of one queue on their way to the dead-letter queue.

    Args:
        place: the dead-letter queue; None: there is none, and undeliverable samples are removed.
        outbox: the queue's.
    """

    __slots__ = ("_outbox", "are_moves_one_record", "barred", "place", "waiting")

    def __init__(self, place: DeadLetterPlace | None, outbox: Outbox) -> None:
        self.place = place
        self._outbox = outbox
        self.are_moves_one_record = False
        """Whether the dead letter's record also records the removal, because both queues share one stream."""
        self.waiting: dict[int, Sample] = {}
        """Samples that wait for room, by position, in the order of their failure; changed only here."""
        self.barred: dict[int, Sample] = {}
        """Samples that the dead-letter queue refuses however much room it has; changed only here."""

    def __len__(self) -> int:
        return len(self.waiting) + len(self.barred)

    def bury(self, now: Nanoseconds, queue: UndeliverableSource, sample: Sample, reason: DeadLetterReason) -> bool:
        """Move a sample that has just become undeliverable; return False if it must wait, for room or behind others."""
        if sample.holder != NIL_GUID:
            # It expired with a consumer, which may have processed it.
            release(sample)
            sample.redelivered = True
        obstacle = _QUEUE_FULL if self.waiting else self.move(now, queue, sample, reason)
        if obstacle is None:
            return True
        if queue.journaled:
            queue.stream.record(Returned(queue.name, sample.position, sample.attempts, sample.redelivered))
            queue.stream.record(Undeliverable(queue.name, sample.position, reason))
        self.defer(now, queue, sample, reason, obstacle)
        return False

    def move(
        self, now: Nanoseconds, queue: UndeliverableSource, sample: Sample, reason: DeadLetterReason
    ) -> BounceReason | None:
        """Move a sample to the dead-letter queue, if there is one; return the reason of a refusal, or None."""
        place = self.place
        if place is None:
            return None
        if (obstacle := place.accept_dead_letter(now, queue, sample, reason)) is not None:
            return obstacle
        dead_letter = dead_letter_identity(origin_of(queue, sample, reason))
        self._outbox.events.append(
            SampleDeadLettered(now, queue.name, sample.identity, place.name, reason, dead_letter)
        )
        return None

    def defer(
        self,
        now: Nanoseconds,
        queue: UndeliverableSource,
        sample: Sample,
        reason: DeadLetterReason,
        obstacle: BounceReason,
    ) -> None:
        """Let a sample wait in its queue after the dead-letter queue has refused it for this reason."""
        assert self.place is not None, "where there is no place to go, nothing waits for room"
        if obstacle is _TOO_LARGE:
            self._bar(queue, sample)
        else:
            self.place.dead_letter_line.enter(queue)
            self.waiting[sample.position] = sample
        self._outbox.events.append(DeadLetterDeferred(now, queue.name, sample.identity, self.place.name, reason))

    def leave(self, now: Nanoseconds, queue: UndeliverableSource, sample: Sample, *, moves: bool) -> None:
        """Forget a sample that leaves its queue and may be waiting here; `moves`: it becomes a dead letter."""
        waiting = self.waiting
        if self.barred.pop(sample.position, None) is not None:
            if not self.barred and self.place is not None:
                self.place.dead_letter_line.barred.pop(queue, None)
            return
        was_first = sample is next(iter(waiting.values()), None)
        if waiting.pop(sample.position, None) is None or self.place is None:
            return
        if not waiting:
            self.place.dead_letter_line.leave(now, queue)
        elif was_first and not moves:
            # The one behind it may be smaller.
            queue.go_on_at_once(now)

    def bar(self, now: Nanoseconds, queue: UndeliverableSource, sample: Sample) -> None:
        """Take a sample that is too large for the dead-letter queue out of the line, so that it blocks no other."""
        del self.waiting[sample.position]
        self._bar(queue, sample)
        if not self.waiting and self.place is not None:
            self.place.dead_letter_line.leave(now, queue)

    def unbar(self, queue: UndeliverableSource) -> None:
        """Let refused samples wait again if the settings of the dead-letter queue have changed since."""
        if self.barred and self.place is not None and queue not in self.place.dead_letter_line.barred:
            self.place.dead_letter_line.enter(queue)
            self.waiting |= self.barred
            self.barred.clear()

    def forget(self, now: Nanoseconds, queue: UndeliverableSource) -> None:
        """Remove the queue from the line, because it forgets all samples that it holds."""
        if self.place is not None and len(self):
            self.place.dead_letter_line.barred.pop(queue, None)
            if self.waiting:
                self.place.dead_letter_line.leave(now, queue)

    def _bar(self, queue: UndeliverableSource, sample: Sample) -> None:
        assert self.place is not None
        self.barred[sample.position] = sample
        self.place.dead_letter_line.barred[queue] = None

    def move_to_back(self, now: Nanoseconds, queue: UndeliverableSource) -> None:
        """Move the queue to the back of the line after its quantum."""
        if self.place is not None:
            self.place.dead_letter_line.move_to_back(now, queue)
