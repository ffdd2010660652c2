"""The producer's side of a topic: a window of samples that its queues have not answered yet [QS 2.4].

Decides: when a sample is complete, and which samples are sent again when a queue reappears. A sample waits for every
acknowledging queue that was matched when it was written. Wires, clocks and blocking are left to the callers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

import msgspec

from qsctl.core.messages import AckResponse, Write, WriteAcknowledgment
from qsctl.errors import UsageError
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds

RANGES_SHOWN: Final = 5
"""Maximum number of ranges of identities that a message lists."""

WINDOW_COUNT: Final = 1000
"""Default number of unacknowledged samples of a producer: the flow control between it and its queues."""

# Reading a member of an enumeration by its name takes longer than the step it is read in.
_REJECTED: Final = AckResponse.REJECTED

SEQUENCE_NUMBER_END: Final = 2**63
"""First invalid sequence number: on the wire it is a signed and an unsigned half of 32 bits."""


def ranges_of(identities: Iterable[SampleIdentity]) -> str:
    """Return identities as text for people: `GUID:3`, or `GUID:3-7` for consecutive numbers."""
    runs: list[tuple[SampleIdentity, int]] = []
    for identity in sorted(identities):
        first, last = runs[-1] if runs else (identity, -1)
        if identity == SampleIdentity(first.writer_guid, last + 1):
            runs[-1] = (first, last + 1)
        else:
            runs.append((identity, identity.sequence_number))
    shown = [f"{first}" if first.sequence_number == last else f"{first}-{last}" for first, last in runs[:RANGES_SHOWN]]
    return ", ".join(shown) + (f" and {len(runs) - RANGES_SHOWN} more ranges" if len(runs) > RANGES_SHOWN else "")


class WriteOutcome(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a written sample: accepted by all queues that answered, or rejected by at least one."""

    identity: SampleIdentity
    accepted: bool


class _UnackedSample(msgspec.Struct, gc=False):
    """A written sample, the queues that have not answered it, and whether one has rejected it."""

    write: Write
    waiting_for: frozenset[str]
    rejected: bool = False


class Producer:
    """One writer of one topic. By default its samples carry the writer's GUID as source GUID [QS 2.11.1].

    Samples written while no queue is matched wait in the window and are sent when the first queue appears. A queue that
    vanishes and reappears is sent its unanswered samples again; it drops duplicates by identity.
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
        self._open: dict[int, _UnackedSample] = {}
        self._outgoing: dict[int, Write] = {}
        self._outcomes: deque[WriteOutcome] = deque()

    @property
    def matched_queues(self) -> tuple[str, ...]:
        """Return the matched queues of the topic, as `<topic>@<subscriber>`."""
        return tuple(self._queues)

    @property
    def unacknowledged_count(self) -> int:
        """Return the number of samples that some queue has not answered yet."""
        return len(self._open)

    @property
    def has_room(self) -> bool:
        """Return whether the window has room for another `write`."""
        return len(self._open) < self.window_count

    def queue_appeared(self, queue: str, acknowledges: bool) -> None:
        """Add a matched queue of the topic; `acknowledges` is its `app_ack_sample_to_producer` [QS Table 3.15]."""
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
            self._complete_unawaited()

    def queue_vanished(self, queue: str) -> None:
        """Remove a queue that is no longer matched; samples that another queue is to answer stop waiting for it."""
        self._queues.pop(queue, None)
        self._renew_acknowledging()
        for number, each in list(self._open.items()):
            if queue in each.waiting_for and len(each.waiting_for) > 1:
                each.waiting_for -= {queue}
                if not self._queues.keys() & each.waiting_for and each.rejected:
                    self._complete(number, each)

    def queue_deleted(self, queue: str) -> list[SampleIdentity]:
        """Treat the samples that a deleted queue has not answered as rejected by it, and return their identities."""
        self._queues.pop(queue, None)
        self._renew_acknowledging()
        refused = [(number, each) for number, each in self._open.items() if queue in each.waiting_for]
        for number, each in refused:
            each.rejected = True
            each.waiting_for -= {queue}
            if not each.waiting_for:
                self._complete(number, each)
        return [each.write.identity for _, each in refused]

    def write(
        self,
        payload: bytes,
        *,
        identity: SampleIdentity | None = None,
        lifespan_ns: Nanoseconds = INFINITE_NS,
        related_source_guid: Guid = NIL_GUID,
        related_identity: SampleIdentity = NIL_IDENTITY,
        flags: int = 0,
    ) -> SampleIdentity:
        """Add a sample to the window and return its identity.

        By default the sample gets this writer's next sequence number. A given identity must have this writer's GUID and
        a number of 1 or more that no unacknowledged sample has; later default numbers follow the highest one given. A
        queue that holds or recently held a sample of this identity accepts it and drops it.

        Raises:
            UsageError: the window is full, which `has_room` shows beforehand; or the given identity is not allowed.
        """
        if len(self._open) >= self.window_count:
            raise UsageError(
                f"{len(self._open)} samples of {self.topic_name!r} wait for an acknowledgment",
                remedy="Wait for acknowledgments before writing more.",
            )
        if identity is None:
            number = self._next_number
            self._next_number = number + 1
            identity = SampleIdentity(self.writer_guid, number)
        else:
            self._require_own(identity)
            number = identity.sequence_number
            self._next_number = max(self._next_number, number + 1)
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
            flags,
            lifespan_ns,
        )
        if self._queues:
            self._outgoing[number] = write
            if not self._acknowledging:
                self._outcomes.append(WriteOutcome(identity, True))
                return identity
        self._open[number] = _UnackedSample(write, self._acknowledging)
        return identity

    def receive(self, answer: WriteAcknowledgment) -> bool:
        """Process a queue's answer; return False if the sample is another writer's or was acknowledged before."""
        number = answer.identity.sequence_number
        each = self._open.get(number)
        if each is None or answer.identity.writer_guid != self.writer_guid:
            return False
        if answer.response == _REJECTED:
            each.rejected = True
        if len(each.waiting_for) > 1:
            each.waiting_for -= {answer.queue}
        elif answer.queue in each.waiting_for or not each.waiting_for:
            self._complete(number, each)
        return True

    def unacknowledged(self) -> list[SampleIdentity]:
        """Return the identities of the samples that are not acknowledged, in the order of writing."""
        return [each.write.identity for each in self._open.values()]

    def pop_writes(self) -> list[Write]:
        """Return the samples to send now, in order, and forget them."""
        outgoing = list(self._outgoing.values())
        self._outgoing = {}
        return outgoing

    def pop_outcomes(self) -> list[WriteOutcome]:
        """Return the outcomes of samples completed since the last call, in the order of the answers."""
        outcomes = list(self._outcomes)
        self._outcomes.clear()
        return outcomes

    def _require_own(self, identity: SampleIdentity) -> None:
        if identity.writer_guid != self.writer_guid:
            raise UsageError(
                f"identity {identity} has the GUID of another writer",
                remedy=f"This one's is {self.writer_guid.hex()}; open the producer with the writer_guid that you need.",
            )
        if not 1 <= identity.sequence_number < SEQUENCE_NUMBER_END:
            raise UsageError(
                f"{identity.sequence_number} is not a sequence number", remedy="Give 1 or more, of at most 63 bits."
            )
        if identity.sequence_number in self._open:
            raise UsageError(
                f"sample {identity} is written and not acknowledged", remedy="Wait for its acknowledgment."
            )

    def _complete(self, number: int, each: _UnackedSample) -> None:
        del self._open[number]
        # An answer that comes while the sample is about to be sent again makes that needless.
        if self._outgoing:
            self._outgoing.pop(number, None)
        self._outcomes.append(WriteOutcome(each.write.identity, not each.rejected))

    def _complete_unawaited(self) -> None:
        for number, each in list(self._open.items()):
            if not each.waiting_for:
                del self._open[number]
                self._outcomes.append(WriteOutcome(each.write.identity, True))

    def _renew_acknowledging(self) -> None:
        self._acknowledging = frozenset(queue for queue, acknowledges in self._queues.items() if acknowledges)
