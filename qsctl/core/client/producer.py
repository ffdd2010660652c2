"""The producer's side of a topic: a window of samples that its queues have not answered yet (manual, section 2.4).

Decides: when a sample is settled, and which samples go out again when a queue comes back. A sample waits for every
acknowledging queue that was there when it was written. Leaves to others: wires, clocks and blocking.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec

from qsctl.core.messages import AckResponse, Write, WriteAcknowledgment
from qsctl.errors import UsageError
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds

WINDOW_COUNT: Final = 1000
"""Samples written and not settled: the flow control between a producer and its queues."""


class Settled(msgspec.Struct, frozen=True, gc=False):
    """The end of a sample's way into its queues: accepted by all that answered, or rejected by one at least."""

    identity: SampleIdentity
    accepted: bool


class _Open(msgspec.Struct, gc=False):
    """A sample that is not settled: who still has to answer, and whether one has refused."""

    write: Write
    waiting_for: frozenset[str]
    rejected: bool = False


class Producer:
    """One writer of one topic. Without a source GUID of its own its samples carry the writer's (section 2.11.1).

    Samples written while no queue is there wait in the window and go out when the first appears. A queue that
    vanishes and comes back is sent again what it has not answered: it drops duplicates by identity.
    """

    def __init__(
        self, topic_name: str, writer_guid: Guid, *, window_count: int = WINDOW_COUNT, source_guid: Guid = NIL_GUID
    ) -> None:
        if window_count < 1:
            raise UsageError(f"a window of {window_count} samples holds nothing", remedy="Give 1 or more.")
        self.topic_name = topic_name
        self.writer_guid = writer_guid
        self.window_count = window_count
        self.source_guid = source_guid if source_guid != NIL_GUID else writer_guid
        self._next_number = 1
        self._queues: dict[str, bool] = {}
        self._acknowledging: frozenset[str] = frozenset()
        self._open: dict[int, _Open] = {}
        self._outgoing: dict[int, Write] = {}
        self._settled: deque[Settled] = deque()

    @property
    def matched_queues(self) -> tuple[str, ...]:
        """The queues of the topic that are there, as `<topic>@<subscriber>`."""
        return tuple(self._queues)

    @property
    def unacknowledged_count(self) -> int:
        """Samples that are not settled."""
        return len(self._open)

    @property
    def has_room(self) -> bool:
        """Whether `write` may be called."""
        return len(self._open) < self.window_count

    def queue_appeared(self, queue: str, acknowledges: bool) -> None:
        """A queue of the topic is there; `acknowledges` is its `app_ack_sample_to_producer` (Table 3.15)."""
        was_alone = not self._queues
        self._queues[queue] = acknowledges
        self._renew_acknowledging()
        outgoing = {number: write for number, write in self._outgoing.items() if number not in self._open}
        for number, each in self._open.items():
            if was_alone and not each.waiting_for:
                each.waiting_for = self._acknowledging
                outgoing[number] = each.write
            elif queue in each.waiting_for or number in self._outgoing:
                outgoing[number] = each.write
        self._outgoing = outgoing
        if not acknowledges:
            self._settle_unanswered()

    def queue_vanished(self, queue: str) -> None:
        """A queue is gone. A sample waits on only where no other queue answers for it."""
        self._queues.pop(queue, None)
        self._renew_acknowledging()
        for number, each in list(self._open.items()):
            if queue in each.waiting_for and len(each.waiting_for) > 1:
                each.waiting_for -= {queue}
                if not self._queues.keys() & each.waiting_for and each.rejected:
                    self._settle(number, each)

    def write(
        self,
        payload: bytes,
        *,
        lifespan_ns: Nanoseconds = INFINITE_NS,
        related_source_guid: Guid = NIL_GUID,
        related_identity: SampleIdentity = NIL_IDENTITY,
    ) -> SampleIdentity:
        """Put a sample into the window.

        Raises:
            UsageError: the window is full; look at `has_room` first.
        """
        if len(self._open) >= self.window_count:
            raise UsageError(
                f"{len(self._open)} samples of {self.topic_name!r} wait for an acknowledgment",
                remedy="Wait for acknowledgments before writing more.",
            )
        number = self._next_number
        self._next_number = number + 1
        identity = SampleIdentity(self.writer_guid, number)
        # By position: names cost a third of a microsecond.
        write = Write(
            "",
            self.topic_name,
            identity,
            payload,
            self.source_guid,
            related_source_guid,
            related_identity,
            NIL_GUID,
            0,
            lifespan_ns,
        )
        if self._queues:
            self._outgoing[number] = write
            if not self._acknowledging:
                self._settled.append(Settled(identity, True))
                return identity
        self._open[number] = _Open(write, self._acknowledging)
        return identity

    def receive(self, answer: WriteAcknowledgment) -> None:
        """Take a queue's answer. One for a sample of somebody else, or settled before, changes nothing."""
        number = answer.identity.sequence_number
        each = self._open.get(number)
        if each is None or answer.identity.writer_guid != self.writer_guid:
            return
        if answer.response == AckResponse.REJECTED:
            each.rejected = True
        if len(each.waiting_for) > 1:
            each.waiting_for -= {answer.queue}
        elif answer.queue in each.waiting_for or not each.waiting_for:
            self._settle(number, each)

    def take_writes(self) -> list[Write]:
        """The samples to send now, in order."""
        outgoing = list(self._outgoing.values())
        self._outgoing = {}
        return outgoing

    def take_settled(self) -> list[Settled]:
        """The samples settled since the last call, in the order of their answers."""
        settled = list(self._settled)
        self._settled.clear()
        return settled

    def _settle(self, number: int, each: _Open) -> None:
        del self._open[number]
        # An answer that comes while the sample is about to be sent again makes that needless.
        if self._outgoing:
            self._outgoing.pop(number, None)
        self._settled.append(Settled(each.write.identity, not each.rejected))

    def _settle_unanswered(self) -> None:
        for number, each in list(self._open.items()):
            if not each.waiting_for:
                del self._open[number]
                self._settled.append(Settled(each.write.identity, True))

    def _renew_acknowledging(self) -> None:
        self._acknowledging = frozenset(queue for queue, acknowledges in self._queues.items() if acknowledges)
