"""Dead samples that wait in their queue for room in the dead-letter queue [QS 2.12].

Decides: which states such a sample is in, and which queue's turn it is when there is room again. A dead letter is never
dropped for want of room: its sample stays where it is, held and counted, and fills its queue as any other. So does one
that is larger than the dead-letter queue accepts; nothing waits behind it, and it is tried again when the settings of
that queue change.
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
"""The states of a held sample that waits for room, with the reason that its dead letter will have."""


_QUEUE_FULL, _TOO_LARGE = BounceReason.QUEUE_FULL, BounceReason.TOO_LARGE


class UndeliverableSource(Protocol):
    """A queue whose samples die."""

    name: str
    label: str
    incarnation: Incarnation
    journaled: bool
    stream: OpenStream

    def go_on_at_once(self, now: Nanoseconds) -> None:
        """Try again in the next turn."""


class DeadLetterPlace(Protocol):
    """A queue that takes what others could not deliver."""

    name: str
    journaled: bool
    dead_letter_line: DeadLetterLine

    @property
    def stream(self) -> OpenStream:
        """Return where its records go."""

    def accept_dead_letter(
        self, now: Nanoseconds, source: UndeliverableSource, sample: Sample, reason: DeadLetterReason, /
    ) -> BounceReason | None:
        """Enqueue a sample; return why it stays in its queue: there is no room, another queue waits for that, or ever.

        None: it is enqueued.
        """


class DeadLetterLine:
    """The queues that wait for room in one dead-letter queue, in the order in which they began to wait.

    Only the first is called when there is room, and what others have waits behind it: no walk over a hundred queues for
    each dead letter that leaves, and no small sample that overtakes a large one for ever.
    """

    __slots__ = ("barred", "queues")

    def __init__(self) -> None:
        self.queues: dict[UndeliverableSource, None] = {}
        """Queues with waiting samples, in order; changed only here."""
        self.barred: dict[UndeliverableSource, None] = {}
        """Queues with samples that the dead-letter queue, as configured, does not accept, whatever room there is."""

    def is_turn_of(self, source: UndeliverableSource) -> bool:
        """Return whether no other queue was there before."""
        for first in self.queues:
            return first is source
        return True

    def enter(self, source: UndeliverableSource) -> None:
        """Append a queue to the line, once."""
        self.queues.setdefault(source)

    def leave(self, now: Nanoseconds, source: UndeliverableSource) -> None:
        """Wait no more; the next queue may find room where this one's sample was too large."""
        was_first = self.is_turn_of(source)
        self.queues.pop(source, None)
        if was_first:
            self.call(now)

    def give_way(self, now: Nanoseconds, source: UndeliverableSource) -> None:
        """Move a queue to the back of the line after its quantum, so that each gets its turn."""
        self.queues.pop(source, None)
        self.queues[source] = None
        self.call(now)

    def call_all(self, now: Nanoseconds) -> None:
        """Let each queue try again: with other settings, what was not accepted may be, too."""
        for source in self.barred:
            source.go_on_at_once(now)
        self.barred.clear()
        self.call(now)

    def call(self, now: Nanoseconds) -> None:
        """There may be room: it is the first one's turn."""
        for first in self.queues:
            first.go_on_at_once(now)
            return


class Undeliverables:
    """A queue's dead samples on their way to the dead letters.

    Args:
        place: where they go; None: nowhere, they are removed.
        outbox: the queue's.
    """

    __slots__ = ("_outbox", "are_moves_one_record", "barred", "place", "waiting")

    def __init__(self, place: DeadLetterPlace | None, outbox: Outbox) -> None:
        self.place = place
        self._outbox = outbox
        self.are_moves_one_record = False
        """Whether the dead letter's record is that of the removal too: both queues have one stream."""
        self.waiting: dict[int, Sample] = {}
        """Those that wait for room, by position, in the order of their deaths; changed only here."""
        self.barred: dict[int, Sample] = {}
        """Those that are not accepted, whatever room there is; changed only here."""

    def __len__(self) -> int:
        return len(self.waiting) + len(self.barred)

    def bury(self, now: Nanoseconds, queue: UndeliverableSource, sample: Sample, reason: DeadLetterReason) -> bool:
        """Move a sample that just died; false: there is no room, or others wait for it, and so does this one."""
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
        """Move a sample, or do nothing where there is no place to go; return why it stays, or None."""
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
        """Let a sample wait that stays for this reason."""
        assert self.place is not None, "where there is no place to go, nothing waits for room"
        if obstacle is _TOO_LARGE:
            self._bar(queue, sample)
        else:
            self.place.dead_letter_line.enter(queue)
            self.waiting[sample.position] = sample
        self._outbox.events.append(DeadLetterDeferred(now, queue.name, sample.identity, self.place.name, reason))

    def leave(self, now: Nanoseconds, queue: UndeliverableSource, sample: Sample, *, moves: bool) -> None:
        """Forget a sample that leaves its queue and may have waited here; `moves`: for the dead letters."""
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
        """Let nothing wait any more behind a sample that is not accepted, whatever room there is."""
        del self.waiting[sample.position]
        self._bar(queue, sample)
        if not self.waiting and self.place is not None:
            self.place.dead_letter_line.leave(now, queue)

    def unbar(self, queue: UndeliverableSource) -> None:
        """Let those wait again that were not accepted, if the dead-letter queue has other settings since."""
        if self.barred and self.place is not None and queue not in self.place.dead_letter_line.barred:
            self.place.dead_letter_line.enter(queue)
            self.waiting |= self.barred
            self.barred.clear()

    def forget(self, now: Nanoseconds, queue: UndeliverableSource) -> None:
        """Let the queue wait no more: it forgets what it holds."""
        if self.place is not None and len(self):
            self.place.dead_letter_line.barred.pop(queue, None)
            if self.waiting:
                self.place.dead_letter_line.leave(now, queue)

    def _bar(self, queue: UndeliverableSource, sample: Sample) -> None:
        assert self.place is not None
        self.barred[sample.position] = sample
        self.place.dead_letter_line.barred[queue] = None

    def give_way(self, now: Nanoseconds, queue: UndeliverableSource) -> None:
        """Its share is moved: another queue's turn."""
        if self.place is not None:
            self.place.dead_letter_line.give_way(now, queue)
