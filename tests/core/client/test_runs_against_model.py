"""Producer and consumer, which work by runs and whole frames, against models that work sample by sample."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from qsctl.core.client.consumer import Arrivals, QueueReader
from qsctl.core.client.producer import PLAIN, Producer, QueueAnswers, SampleTraits
from qsctl.core.messages import AckResponse
from qsctl.errors import UsageError
from qsctl.identity import Guid, SampleIdentity
from tests.example_counts import examples

GUID = Guid(b"p" * 16)
WINDOW = 12
QUEUES = st.sampled_from(["T@A", "T@B", "T@C"])
TRAITS = st.sampled_from([PLAIN, PLAIN, SampleTraits(lifespan_ns=7), SampleTraits(flags=4)])
NUMBERS = st.integers(1, WINDOW)
KEYS = st.integers(1, 3)
RUNS = st.builds(lambda first, count: range(first, first + count), NUMBERS, st.integers(1, WINDOW))


@dataclass
class OpenSample:
    """A sample that some queue has not answered."""

    payload: bytes
    traits: SampleTraits
    waiting_for: set[str]
    rejected: bool = False


@dataclass
class PlainProducer:
    """The rules of the producer, one sample after the other."""

    next_number: int = 1
    queues: dict[str, bool] = field(default_factory=dict)
    open: dict[int, OpenSample] = field(default_factory=dict)
    outgoing: dict[int, tuple[bytes, SampleTraits]] = field(default_factory=dict)
    outcomes: list[tuple[int, bool]] = field(default_factory=list)

    def acknowledging(self) -> set[str]:
        return {queue for queue, acknowledges in self.queues.items() if acknowledges}

    def appear(self, queue: str, acknowledges: bool) -> None:
        was_alone = not self.queues
        self.queues[queue] = acknowledges
        before = self.outgoing
        self.outgoing = {number: each for number, each in before.items() if number not in self.open}
        for number, each in self.open.items():
            if was_alone and not each.waiting_for:
                each.waiting_for = self.acknowledging()
                self.outgoing[number] = each.payload, each.traits
            elif queue in each.waiting_for or number in before:
                self.outgoing[number] = each.payload, each.traits
        if not acknowledges:
            for number in [number for number, each in self.open.items() if not each.waiting_for]:
                del self.open[number]
                self.outcomes.append((number, True))

    def vanish(self, queue: str) -> None:
        self.queues.pop(queue, None)
        for number, each in list(self.open.items()):
            if queue in each.waiting_for and len(each.waiting_for) > 1:
                each.waiting_for.discard(queue)
                if each.rejected and not self.queues.keys() & each.waiting_for:
                    self.complete(number)

    def delete(self, queue: str) -> list[int]:
        self.queues.pop(queue, None)
        refused = [number for number, each in self.open.items() if queue in each.waiting_for]
        for number in refused:
            self.open[number].rejected = True
            self.open[number].waiting_for.discard(queue)
            if not self.open[number].waiting_for:
                self.complete(number)
        return refused

    def write(self, number: int | None, payload: bytes, traits: SampleTraits) -> int:
        number = self.next_number if number is None else number
        self.next_number = max(self.next_number, number + 1)
        if self.queues:
            self.outgoing[number] = payload, traits
            if not self.acknowledging():
                self.outcomes.append((number, True))
                return number
        self.open[number] = OpenSample(payload, traits, self.acknowledging())
        return number

    def answer(self, queue: str, number: int, accepted: bool) -> bool:
        each = self.open.get(number)
        if each is None:
            return False
        each.rejected |= not accepted
        if len(each.waiting_for) > 1:
            each.waiting_for.discard(queue)
        elif queue in each.waiting_for or not each.waiting_for:
            self.complete(number)
        return True

    def complete(self, number: int) -> None:
        each = self.open.pop(number)
        self.outgoing.pop(number, None)
        self.outcomes.append((number, not each.rejected))


class ProducerByRuns(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.producer = Producer("T", GUID, window_count=WINDOW)
        self.plain = PlainProducer()
        for queue in ("T@A", "T@B"):
            self.appear(queue, acknowledges=True)

    @rule(queue=QUEUES, acknowledges=st.sampled_from([True, True, True, False]))
    def appear(self, queue: str, acknowledges: bool) -> None:
        self.producer.queue_appeared(queue, acknowledges)
        self.plain.appear(queue, acknowledges)

    @rule(queue=QUEUES)
    def vanish(self, queue: str) -> None:
        self.producer.queue_vanished(queue)
        self.plain.vanish(queue)

    @rule(queue=QUEUES)
    def delete(self, queue: str) -> None:
        refused = self.producer.queue_deleted(queue)
        assert [each.sequence_number for each in refused] == self.plain.delete(queue)

    @rule(count=st.integers(1, 8), traits=TRAITS)
    def write(self, count: int, traits: SampleTraits) -> None:
        for at in range(min(count, WINDOW - len(self.plain.open))):
            payload = bytes([at])
            written = self.producer.write(payload, traits=traits)
            assert written == SampleIdentity(GUID, self.plain.write(None, payload, traits))

    @rule(number=NUMBERS, traits=TRAITS)
    def write_given(self, number: int, traits: SampleTraits) -> None:
        number += min(self.plain.open, default=1) - 1
        if number in self.plain.open or not self.producer.has_room:
            with pytest.raises(UsageError):
                self.producer.write(b"again", SampleIdentity(GUID, number), traits)
            return
        self.producer.write(b"again", SampleIdentity(GUID, number), traits)
        self.plain.write(number, b"again", traits)

    @rule(queue=QUEUES, numbers=RUNS | st.lists(NUMBERS, max_size=4, unique=True), accepted=st.booleans())
    def answer(self, queue: str, numbers: range | list[int], accepted: bool) -> None:
        """By their distance from the first open sample, so that most of them are open."""
        first = min(self.plain.open, default=1) - 1
        numbers = [first + each for each in numbers]
        before = len(self.plain.outcomes)
        found = self.producer.receive(QueueAnswers(queue, numbers, accepted))
        assert list(found) == [number for number in numbers if self.plain.answer(queue, number, accepted)]
        self.plain.outcomes[before:] = sorted(self.plain.outcomes[before:])

    @rule()
    def send(self) -> None:
        sent = [
            (write.identity.sequence_number, write.payload, write.lifespan_ns, write.flags)
            for write in self.producer.pop_writes()
        ]
        assert sent == [
            (number, payload, traits.lifespan_ns, traits.flags)
            for number, (payload, traits) in self.plain.outgoing.items()
        ]
        self.plain.outgoing.clear()

    @invariant()
    def agrees(self) -> None:
        found = [(number, each.accepted) for each in self.producer.pop_outcomes() for number in each.numbers]
        assert sorted(found) == sorted(self.plain.outcomes)
        self.plain.outcomes.clear()
        assert [each.sequence_number for each in self.producer.unacknowledged()] == list(self.plain.open)
        assert self.producer.unacknowledged_count == len(self.plain.open)
        assert set(self.producer.matched_queues) == self.plain.queues.keys()

    def teardown(self) -> None:
        """Once every queue was deleted nothing is kept of any sample."""
        for queue in ("T@A", "T@B", "T@C"):
            self.producer.queue_appeared(queue, True)
        for queue in ("T@A", "T@B", "T@C"):
            self.producer.queue_deleted(queue)
        self.producer.pop_runs()
        assert not self.producer.unacknowledged_count
        assert not self.producer._marks
        assert not self.producer._traits


class ReaderByFrames(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.reader: QueueReader[int, int] = QueueReader("T@S", GUID)
        self.sent_count = 0
        self.waiting: list[tuple[int, int]] = []
        self.program: Counter[int] = Counter()
        self.in_order: list[int] = []
        """The samples that the program has and did not answer, in the order in which each was first given to it."""
        self.answered_twins: Counter[int] = Counter()
        self.answers: list[tuple[int, AckResponse]] = []

    @rule(keys=st.lists(KEYS, max_size=3, unique=True))
    def arrive(self, keys: list[int]) -> None:
        samples = {}
        for key in keys:
            self.sent_count += 1
            samples[key] = self.sent_count
            self.waiting = [each for each in self.waiting if each[0] != key] + [(key, self.sent_count)]
        assert self.reader.receive(Arrivals(samples, 0))

    @rule(count=st.sampled_from([1, 2, 9]))
    def deliver(self, count: int) -> None:
        assert self.reader.deliver(count) == [sample for _, sample in self.waiting[:count]]
        for key, _ in self.waiting[:count]:
            self.program[key] += 1
            if key not in self.in_order:
                self.in_order.append(key)
        del self.waiting[:count]

    @rule(keys=st.lists(KEYS, min_size=1, max_size=3), response=st.sampled_from(AckResponse))
    def acknowledge(self, keys: list[int], response: AckResponse) -> None:
        for at, key in enumerate(keys):
            if not self.answer(key, response):
                with pytest.raises(UsageError, match=f"sample {key} of 'T@S' is not held"):
                    self.reader.acknowledge(keys[: at + 1], response)
                return
        self.reader.acknowledge(keys, response)

    def answer(self, key: int, response: AckResponse) -> bool:
        """One answer by the rules; return False where it is an error."""
        if self.program[key] or key in [each for each, _ in self.waiting]:
            self.waiting = [each for each in self.waiting if each[0] != key]
            if self.program[key] > 1:
                self.answered_twins[key] = self.program[key] - 1
            self.program[key] = 0
            self.in_order = [each for each in self.in_order if each != key]
            self.answers.append((key, response))
            return True
        if self.answered_twins[key]:
            self.answered_twins[key] -= 1
            return True
        return False

    @rule(response=st.sampled_from(AckResponse))
    def acknowledge_all(self, response: AckResponse) -> None:
        assert self.reader.acknowledge_all(response) == len(self.in_order)
        self.answers += [(key, response) for key in self.in_order]
        self.waiting = [each for each in self.waiting if each[0] not in self.in_order]
        self.in_order.clear()
        self.program.clear()

    @rule()
    def send(self) -> None:
        sent = [(key, each.response) for each in self.reader.pop_answers() for key in each.keys]
        assert sent == self.answers
        self.answers.clear()

    @invariant()
    def agrees(self) -> None:
        assert (self.reader.waiting_count, self.reader.touched_count) == (len(self.waiting), len(self.in_order))
        held = {key for key, _ in self.waiting} | set(self.in_order)
        assert all(self.reader.holds(key) == (key in held) for key in range(1, 4))


TestProducerByRuns = ProducerByRuns.TestCase
TestProducerByRuns.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
TestReaderByFrames = ReaderByFrames.TestCase
TestReaderByFrames.settings = settings(max_examples=examples(200), stateful_step_count=40, deadline=None)
