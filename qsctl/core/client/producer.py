"""The producer's side of a topic: a window of samples that its queues have not answered yet [QS 2.4].

Decides: when a sample is complete, and which samples are sent again when a queue reappears. A sample waits for every
acknowledging queue that was matched when it was written. Wires, clocks and blocking are left to the callers.

Samples are sent and answered in runs of consecutive numbers. The window is a table of payloads. Traits of a sample, and
the queues that it waits for where they are not those of the other samples, are in tables beside it, which are mostly
empty: a run then costs a few calls, however long it is. A single sample is a run of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from qsctl.core.messages import Write
from qsctl.errors import UsageError
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds

RANGES_SHOWN: Final = 5
"""Maximum number of ranges of identities that a message lists."""

WINDOW_COUNT: Final = 1000
"""Default number of unacknowledged samples of a producer: the flow control between it and its queues."""

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


class Outcomes(NamedTuple):
    """The outcome that samples of one producer have in common, by their numbers."""

    numbers: Sequence[int]
    accepted: bool


class QueueAnswers(NamedTuple):
    """A queue's equal answers to samples of one producer, by their numbers, which are different ones."""

    queue: str
    numbers: Sequence[int]
    accepted: bool


class SampleTraits(msgspec.Struct, frozen=True, gc=False):
    """The members of a sample that its producer gives it besides identity and payload; see `Write`."""

    lifespan_ns: Nanoseconds = INFINITE_NS
    related_source_guid: Guid = NIL_GUID
    related_identity: SampleIdentity = NIL_IDENTITY
    flags: int = 0


PLAIN: Final = SampleTraits()
"""The traits of a sample that is written without any."""


class OutgoingRun(msgspec.Struct, frozen=True, gc=False):
    """Samples to send: of consecutive numbers, and with equal traits."""

    topic_name: str
    writer_guid: Guid
    source_guid: Guid
    traits: SampleTraits
    first_number: int
    payloads: list[bytes]

    def writes(self) -> list[Write]:
        """Return a message for each sample."""
        traits = self.traits
        return [
            Write(
                "",
                self.topic_name,
                SampleIdentity(self.writer_guid, number),
                payload,
                self.source_guid,
                traits.related_source_guid,
                traits.related_identity,
                NIL_GUID,
                traits.flags,
                traits.lifespan_ns,
            )
            for number, payload in enumerate(self.payloads, self.first_number)
        ]


class _Mark(msgspec.Struct, frozen=True, gc=False):
    """The queues that have not answered a sample, and whether one has rejected it."""

    waiting_for: frozenset[str] = frozenset()
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
        self._open: dict[int, bytes] = {}
        """Payloads of the samples that some queue has not answered, in the order of writing."""
        self._usual = _Mark()
        """The mark of the samples without one in `_marks`: they wait for the queues that acknowledge now."""
        self._marks: dict[int, _Mark] = {}
        self._outgoing: dict[int, bytes] = {}
        self._traits: dict[int, SampleTraits] = {}
        """Traits of the samples in the window, or to send, that have any."""
        self._outcomes: list[Outcomes] = []

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
        self._renew_usual()
        outgoing = {number: payload for number, payload in self._outgoing.items() if number not in self._open}
        for number, payload in self._open.items():
            mark = self._marks.get(number, self._usual)
            if was_alone and not mark.waiting_for:
                self._set_mark((number,), _Mark(self._usual.waiting_for, mark.rejected))
                outgoing[number] = payload
            elif queue in mark.waiting_for or number in self._outgoing:
                outgoing[number] = payload
        self._outgoing = outgoing
        if not acknowledges:
            self._complete_unawaited()

    def queue_vanished(self, queue: str) -> None:
        """Remove a queue that is no longer matched; samples that another queue is to answer stop waiting for it."""
        self._queues.pop(queue, None)
        self._renew_usual()
        for mark, numbers in self._by_mark(list(self._open)).items():
            left = mark.waiting_for - {queue}
            if left and left != mark.waiting_for:
                self._set_mark(numbers, _Mark(left, mark.rejected))
                if mark.rejected and not self._queues.keys() & left:
                    self._complete(numbers, accepted=False)

    def queue_deleted(self, queue: str) -> list[SampleIdentity]:
        """Treat the samples that a deleted queue has not answered as rejected by it, and return their identities."""
        self._queues.pop(queue, None)
        self._renew_usual()
        refused = [number for number in self._open if queue in self._marks.get(number, self._usual).waiting_for]
        for mark, numbers in self._by_mark(refused).items():
            left = mark.waiting_for - {queue}
            if left:
                self._set_mark(numbers, _Mark(left, rejected=True))
            else:
                self._complete(numbers, accepted=False)
        return [SampleIdentity(self.writer_guid, number) for number in refused]

    def write(
        self, payload: bytes, identity: SampleIdentity | None = None, traits: SampleTraits = PLAIN
    ) -> SampleIdentity:
        """Add a sample to the window and return its identity.

        By default the sample gets this writer's next sequence number. A given identity must have this writer's GUID and
        a number of 1 or more that no unacknowledged sample has; later default numbers follow the highest one given. A
        queue that holds or recently held a sample of this identity accepts it and drops it.

        Raises:
            UsageError: the window is full, which `has_room` shows beforehand; the given identity is not allowed; or no
                number follows the highest one.
        """
        if len(self._open) >= self.window_count:
            raise UsageError(
                f"{len(self._open)} samples of {self.topic_name!r} wait for an acknowledgment",
                remedy="Wait for acknowledgments before writing more.",
            )
        if identity is None:
            number = self._next_number
            if number >= SEQUENCE_NUMBER_END:
                raise UsageError(
                    f"writer {self.writer_guid.hex()} has no sequence number behind {number - 1}",
                    remedy="Give each sample an identity, or open another producer without `writer_guid`.",
                )
            self._next_number = number + 1
            identity = SampleIdentity(self.writer_guid, number)
        else:
            self._require_own(identity)
            number = identity.sequence_number
            self._next_number = max(self._next_number, number + 1)
            self._traits.pop(number, None)
        if traits is not PLAIN:
            self._traits[number] = traits
        if self._queues:
            self._outgoing[number] = payload
            if not self._usual.waiting_for:
                self._outcomes.append(Outcomes((number,), True))
                return identity
        self._open[number] = payload
        return identity

    def receive(self, answers: QueueAnswers) -> Sequence[int]:
        """Process a queue's answers; return the numbers of those samples that were not acknowledged before."""
        queue, numbers, accepted = answers
        found: Sequence[int] = [number for number in numbers if number in self._open]
        if len(found) == len(numbers):
            found = numbers
        for mark, group in self._by_mark(found).items():
            rejected = mark.rejected or not accepted
            if len(mark.waiting_for) > 1:
                self._set_mark(group, _Mark(mark.waiting_for - {queue}, rejected))
            elif queue in mark.waiting_for or not mark.waiting_for:
                self._complete(group, accepted=not rejected)
            else:
                self._set_mark(group, _Mark(mark.waiting_for, rejected))
        return found

    def unacknowledged(self) -> list[SampleIdentity]:
        """Return the identities of the samples that are not acknowledged, in the order of writing."""
        return [SampleIdentity(self.writer_guid, number) for number in self._open]

    def pop_runs(self) -> list[OutgoingRun]:
        """Return the samples to send now, in order, and forget them."""
        outgoing, self._outgoing = self._outgoing, {}
        if not outgoing:
            return []
        numbers = list(outgoing)
        if not self._traits and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            return [self._run(numbers[0], list(outgoing.values()), PLAIN)]
        runs: list[OutgoingRun] = []
        for number, payload in outgoing.items():
            traits = self._traits.get(number, PLAIN)
            if number not in self._open:
                self._traits.pop(number, None)
            last = runs[-1] if runs else None
            if last is None or number != last.first_number + len(last.payloads) or traits != last.traits:
                runs.append(self._run(number, [payload], traits))
            else:
                last.payloads.append(payload)
        return runs

    def pop_writes(self) -> list[Write]:
        """Return the samples to send now, in order, as a message each, and forget them."""
        return [write for run in self.pop_runs() for write in run.writes()]

    def pop_outcomes(self) -> list[Outcomes]:
        """Return the outcomes of samples completed since the last call, in the order of the answers."""
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def _run(self, first_number: int, payloads: list[bytes], traits: SampleTraits) -> OutgoingRun:
        return OutgoingRun(self.topic_name, self.writer_guid, self.source_guid, traits, first_number, payloads)

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

    def _by_mark(self, numbers: Sequence[int]) -> Mapping[_Mark, Sequence[int]]:
        """Return samples of the window in groups that wait for the same queues."""
        if not self._marks:
            return {self._usual: numbers} if numbers else {}
        groups: dict[_Mark, list[int]] = {}
        for number in numbers:
            groups.setdefault(self._marks.get(number, self._usual), []).append(number)
        return groups

    def _set_mark(self, numbers: Sequence[int], mark: _Mark) -> None:
        if mark != self._usual:
            self._marks.update(dict.fromkeys(numbers, mark))
            return
        for number in numbers:
            self._marks.pop(number, None)

    def _complete(self, numbers: Sequence[int], *, accepted: bool) -> None:
        for number in numbers:
            del self._open[number]
        # An answer that comes while the sample is about to be sent again makes that needless.
        tables: tuple[dict[int, Any], ...] = (self._outgoing, self._marks, self._traits)
        for table in filter(None, tables):
            for number in numbers:
                table.pop(number, None)
        self._outcomes.append(Outcomes(numbers, accepted))

    def _complete_unawaited(self) -> None:
        """Complete the samples that wait for no queue; they remain to be sent."""
        numbers = [number for number in self._open if not self._marks.get(number, self._usual).waiting_for]
        for number in numbers:
            del self._open[number]
            self._marks.pop(number, None)
        if numbers:
            self._outcomes.append(Outcomes(numbers, True))

    def _renew_usual(self) -> None:
        """Let the samples of the window keep the mark that was usual until now."""
        acknowledging = frozenset(queue for queue, acknowledges in self._queues.items() if acknowledges)
        if acknowledging != self._usual.waiting_for:
            self._marks = dict.fromkeys(self._open, self._usual) | self._marks
            self._usual = _Mark(acknowledging)
