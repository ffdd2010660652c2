"""What queues promised their clients, checked against the clients' journals alone.

The rules, for each sample, which a producer wrote once (its client may have sent it several times):

- *lost*: it was accepted, and no consumer received it. A sample whose queue was deleted after it was written is not.
- *double*: two deliveries lack the flag *redelivered*. One that its consumer rejected is not counted: it was not
  processed, and the queue delivers the sample again without the flag.
- *refused*: it was answered 0, never 1, and was delivered.
- *not written*: a delivery has no producer, or a content that the producer did not write.
- *early*: it was received before it was written.
- *not asked*: an answer has no sample.
- *contradicted*: it was answered both 1 and 0.
- *deleted*: it was accepted before the deletion of its queue was asked for, and a consumer received it that was started
  after the deletion was answered.
- *elsewhere*: a consumer of another topic received it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tests.dds.nemesis.journals import (
    ACCEPTED,
    REFUSED,
    Answered,
    DeletionAnswered,
    DeletionAsked,
    Journal,
    Opened,
    Received,
    Rejected,
    Wrote,
)


@dataclass(frozen=True, order=True)
class Violation:
    """A broken promise about one sample."""

    kind: str
    writer: str
    number: int


@dataclass
class Sample:
    """All that the clients noted of a sample."""

    topic: str
    written_ns: int | None = None
    answers: list[Answered] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    rejected: list[Received] = field(default_factory=list)
    """Those of the deliveries that their consumers rejected."""

    @property
    def accepted_ns(self) -> int | None:
        """Return the instant of the first positive answer, or None."""
        return min((each.at_ns for each in self.answers if each.answer == ACCEPTED), default=None)


@dataclass(frozen=True)
class Delivery:
    """A delivery of a sample, and the consumer's topic and start."""

    received: Received
    topic: str
    opened_ns: int


@dataclass(frozen=True)
class Deletion:
    """A deletion of a queue; `answered_ns` is None where it was not carried out everywhere, or that is not known."""

    asked_ns: int
    answered_ns: int | None


def violations(journals: Iterable[Journal]) -> list[Violation]:
    """Return all broken promises."""
    found = list(journals)
    deletions = deletions_of(found)
    return sorted(
        Violation(kind, *name)
        for name, sample in samples_of(found).items()
        for kind in _broken(sample, deletions[sample.topic])
    )


def samples_of(journals: Iterable[Journal]) -> dict[tuple[str, int], Sample]:
    """Return all samples of the journals, by their writers and numbers."""
    found = list(journals)
    topics = {journal.name: journal.topic for journal in found}
    samples: dict[tuple[str, int], Sample] = {}

    def sample(writer: str, number: int) -> Sample:
        return samples.setdefault((writer, number), Sample(topics.get(writer, "")))

    for journal in found:
        opened_ns = 0
        latest: dict[tuple[str, int], Received] = {}
        for event in journal.events:
            if isinstance(event, Opened):
                opened_ns = event.at_ns
            elif isinstance(event, Wrote):
                sample(journal.name, event.number).written_ns = event.at_ns
            elif isinstance(event, Answered):
                sample(journal.name, event.number).answers.append(event)
            elif isinstance(event, Received):
                delivery = Delivery(event, journal.topic, opened_ns)
                sample(event.writer, event.number).deliveries.append(delivery)
                latest[event.writer, event.number] = event
            elif isinstance(event, Rejected):
                sample(event.writer, event.number).rejected.append(latest[event.writer, event.number])
    return samples


def deletions_of(journals: Iterable[Journal]) -> defaultdict[str, list[Deletion]]:
    """Return the deletions of the queues of each topic, in order."""
    deletions: defaultdict[str, list[Deletion]] = defaultdict(list)
    for event in (event for journal in journals for event in journal.events):
        if isinstance(event, DeletionAsked):
            deletions[event.topic].append(Deletion(event.at_ns, None))
        elif isinstance(event, DeletionAnswered):
            asked = deletions[event.topic].pop()
            deletions[event.topic].append(Deletion(asked.asked_ns, event.at_ns))
    return deletions


def _broken(sample: Sample, deletions: Sequence[Deletion]) -> Iterator[str]:
    """Yield the rules that a sample breaks."""
    answers = {each.answer for each in sample.answers}
    received = [each.received for each in sample.deliveries]
    if sample.written_ns is None:
        if answers:
            yield "not asked"
        if received:
            yield "not written"
        return
    if ACCEPTED in answers and not received and not any(_may_delete(each, sample.written_ns) for each in deletions):
        yield "lost"
    unflagged = [each for each in received if not each.is_redelivered]
    if len(unflagged) - sum(not each.is_redelivered for each in sample.rejected) > 1:
        yield "double"
    if answers == {REFUSED} and received:
        yield "refused"
    if {ACCEPTED, REFUSED} <= answers:
        yield "contradicted"
    if any(each.at_ns < sample.written_ns for each in received):
        yield "early"
    if any(each.topic != sample.topic for each in sample.deliveries):
        yield "elsewhere"
    if any(_outlives(sample, delivery, deletion) for delivery in sample.deliveries for deletion in deletions):
        yield "deleted"


def _may_delete(deletion: Deletion, written_ns: int) -> bool:
    """Return whether a deletion can have removed a sample that was written at an instant."""
    return deletion.answered_ns is None or deletion.answered_ns > written_ns


def _outlives(sample: Sample, delivery: Delivery, deletion: Deletion) -> bool:
    """Return whether a sample was delivered after the deletion of the queue that had accepted it."""
    accepted_ns = sample.accepted_ns
    return (
        accepted_ns is not None
        and deletion.answered_ns is not None
        and accepted_ns < deletion.asked_ns
        and deletion.answered_ns < delivery.opened_ns
    )
