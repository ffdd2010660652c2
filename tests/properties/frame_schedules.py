"""One queue against the plain model of it, by frames of samples and ranges of answers: see `test_frames_against_model`.

A frame is one part of a turn: consecutive numbers of a writer, some of which came before. A range of answers is one
part too, for consecutive numbers from one that was sent, of which other consumers may have some. So hundreds of samples
wait, expire and leave in the middle of the queue, which steps of single samples hardly reach.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final

from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    ConsumerAvailability,
    ConsumerJoined,
    ConsumerLeft,
    Delivery,
    SampleFlag,
    Write,
    WriteAcknowledgment,
)
from qsctl.core.queue.settings import (
    DistributionSettings,
    RedeliverySettings,
    ReplacementKind,
    ResourceLimitSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import NIL_GUID, Guid, SampleIdentity, counted_incarnations
from qsctl.instant import INFINITE_NS
from qsctl.resource import parse_resource
from tests.properties.plain_queue import PlainQueue, PlainSample

FRAME_SAMPLES_MAX: Final = 64
FRAME_COUNTS: Final = (1, 2, 5, 20, FRAME_SAMPLES_MAX)
QUEUE, DEAD = "P/S/orders", "P/S/dead"
ORDERS = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/orders")
LETTERS = parse_resource("/domain_participant/P/shared_subscriber/S/dead_letter_shared_reader_queue/dead")
CONSUMERS = [Guid(bytes([65 + n]) * 16) for n in range(4)]
WRITER = Guid(b"w" * 16)
STEPS = {"write": 28, "answer": 43, "wait": 10, "join": 5, "leave": 4, "report": 4, "flush": 3, "unearth": 3}


@dataclass
class Schedule:
    """One schedule: the service, and the model of its queue."""

    seed: int
    now: int = 0
    next_number: int = 1
    steps: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        chance = self.chance = Random(self.seed)
        orders = SharedReaderQueueSettings(
            "orders",
            "Order",
            dead_letter_queue=chance.choice(("", "", "dead")),
            distribution=DistributionSettings(
                unacked_threshold=chance.choice((-1, -1, 0, 2, 10, 70)), allow_consumer_feedback=True
            ),
            lifespan_ns=chance.choice((6, 60, 300, INFINITE_NS)),
            redelivery=RedeliverySettings(chance.randint(0, 3), chance.choice((3, 7, INFINITE_NS, INFINITE_NS))),
            limits=ResourceLimitSettings(
                max_count=chance.choice((-1, -1, 4, 40, 100)), replacement=chance.choice(list(ReplacementKind))
            ),
        )
        dead_max = chance.choice((1, 30, -1))
        dead = SharedReaderQueueSettings(
            "dead", "Dead", is_dead_letter=True, limits=ResourceLimitSettings(max_count=dead_max)
        )
        subscriber = SharedSubscriberSettings("S", (), (orders, dead))
        settings = ServiceSettings("svc", (DomainParticipantSettings("P", 0, (subscriber,)),))
        self.engine = ServiceEngine(settings, started_at=0, draw=counted_incarnations(), journal=Journal.EVERYTHING)
        self.engine.finish_restore(0)
        self.engine.take_ready()
        self.model = PlainQueue(orders, dead_max)
        for consumer in CONSUMERS[: chance.randrange(4)]:
            self.join(consumer)
            self.compare()

    def step(self) -> None:
        """Do something in both, and compare them."""
        (name,) = self.chance.choices(tuple(STEPS), tuple(STEPS.values()))
        self.steps.append(name)
        getattr(self, f"do_{name}")()
        self.compare()

    def compare(self) -> None:
        """Compare what was sent, what was answered, and what is held."""
        while (deadline := self.engine.next_deadline()) is not None and deadline <= self.now:
            self.engine.advance(self.now)
        model, messages = self.model, self.engine.take_ready().messages
        sent = [
            (each.identity.sequence_number, each.consumer_guid, each.attempt, bool(each.flags & SampleFlag.REDELIVERED))
            for each in messages
            if isinstance(each, Delivery)
        ]
        answers = [
            (each.identity.sequence_number, int(each.response))
            for each in messages
            if isinstance(each, WriteAcknowledgment)
        ]
        assert sent == model.sent
        assert answers == model.answers
        model.sent, model.answers = [], []
        queue, letters = self.engine.hosted.by_name[QUEUE], self.engine.hosted.by_name[DEAD]
        assert [
            (each.identity.sequence_number, each.holder, each.attempts, each.redelivered, each.past_holders)
            for each in queue.held
        ] == [
            (each.number, each.holder or NIL_GUID, each.attempts, each.redelivered, tuple(each.past))
            for each in model.samples
        ]
        assert len(queue.reader_cache) == len(model.outside)
        assert queue.undeliverable_count() == len(model.graves)
        assert [(each.original_identity.sequence_number, each.redelivered) for each in letters.held] == model.dead
        waiting_count = sum(each.holder is None and not each.dead for each in model.samples)
        assert queue.deliveries.groups.main.waiting_count == waiting_count

    def join(self, consumer: Guid) -> None:
        self.engine.receive(self.now, ConsumerJoined(QUEUE, consumer))
        self.model.join(self.now, consumer)

    # What can happen.

    def do_write(self) -> None:
        """Write a frame; some of its samples may have been written before."""
        chance = self.chance
        first, count = self.next_number, chance.choice(FRAME_COUNTS)
        if chance.random() < 0.12:
            first = max(1, first - chance.randrange(1, FRAME_SAMPLES_MAX + 6))
        self.next_number = max(self.next_number, first + count)
        lifespan_ns = chance.choice((4, 40, INFINITE_NS, INFINITE_NS, INFINITE_NS, INFINITE_NS))
        identities = [SampleIdentity(WRITER, number) for number in range(first, first + count)]
        self.engine.receive_all(
            self.now, [Write("P", "Order", each, b"x", lifespan_ns=lifespan_ns) for each in identities]
        )
        for each in identities:
            self.model.write(self.now, each.sequence_number, lifespan_ns)

    def do_answer(self) -> None:
        """Answer consecutive numbers, of one that has been sent, of its latest holder, or of others."""
        chance = self.chance
        sent = [each for each in self.model.samples if each.holder is not None or each.past]
        consumer, first = chance.choice(CONSUMERS), max(1, self.next_number - chance.randrange(1, 90))
        if sent and chance.random() < 0.9:
            sample = chance.choice(sent) if chance.random() < 0.5 else sent[0]
            consumer, first = _holder_of(sample, chance), sample.number
        (response,) = chance.choices((AckResponse.ACCEPTED, AckResponse.REJECTED, AckResponse.RETURNED), (6, 3, 1))
        numbers = range(first, first + chance.choice((1, 1, 3, 10, FRAME_SAMPLES_MAX)))
        self.engine.receive_all(
            self.now, [Acknowledgment(QUEUE, consumer, SampleIdentity(WRITER, each), response) for each in numbers]
        )
        for number in numbers:
            self.model.settle(self.now, consumer, number, response)

    def do_wait(self) -> None:
        until = self.now + self.chance.randrange(1, 8)
        while (deadline := self.engine.next_deadline()) is not None and deadline <= until:
            assert deadline == self.model.next_deadline()
            self.now = deadline
            self.engine.advance(self.now)
            self.model.advance(self.now)
            self.compare()
        self.now = until
        assert self.model.next_deadline() > until

    def do_join(self) -> None:
        self.join(self.chance.choice(CONSUMERS))

    def do_leave(self) -> None:
        """Let a consumer leave in good order, or vanish before all that was sent to it has left."""
        consumer, hands_back = self.chance.choice(CONSUMERS), self.chance.random() < 0.5
        held = [each for each in self.model.held_by(consumer) if not hands_back and self.chance.random() < 0.3]
        self.engine.receive(self.now, ConsumerLeft(QUEUE, consumer, hands_back, tuple(each.position for each in held)))
        self.model.leave(self.now, consumer, hands_back, [each.number for each in held])

    def do_report(self) -> None:
        consumer, is_enabled = self.chance.choice(CONSUMERS), self.chance.random() < 0.7
        threshold = self.chance.choice((-1, 0, 2, 15))
        found = next((each for each in self.model.consumers if each.guid == consumer), None)
        if found is not None:
            self.engine.receive(self.now, ConsumerAvailability(QUEUE, consumer, is_enabled, threshold))
            found.enabled, found.threshold, found.reports = is_enabled, threshold, True
            self.model.dispatch(self.now)

    def do_flush(self) -> None:
        """A command removes samples from anywhere in the queue."""
        held = self.engine.hosted.samples(ORDERS)
        going = [each for each in held if self.chance.random() < 0.1]
        assert self.engine.hosted.flush(self.now, ORDERS, going) == len(going)
        for sample in going:
            found = self.model.find(sample.identity.sequence_number)
            assert found is not None
            self.model.end(found, "flushed")
        self.model.dispatch(self.now)

    def do_unearth(self) -> None:
        """The oldest dead letters leave: what waited for room among them has it."""
        going = list(self.engine.hosted.samples(LETTERS))[: self.chance.choice((1, 3, FRAME_SAMPLES_MAX))]
        assert self.engine.hosted.flush(self.now, LETTERS, going) == len(going)
        self.model.unearth(self.now, len(going))


def _holder_of(sample: PlainSample, chance: Random) -> Guid:
    """Return who has a sample, or had it."""
    if sample.holder is not None and (not sample.past or chance.random() < 0.9):
        return sample.holder
    return chance.choice(sample.past)


def run_schedules(first: int, count: int, step_count: int = 60) -> None:
    """Run schedules of consecutive seeds.

    Raises:
        AssertionError: the service and the model differ, or a step fails; names the seed and the steps.
    """
    for seed in range(first, first + count):
        schedule = Schedule(seed)
        try:
            for _ in range(step_count):
                schedule.step()
        except (AssertionError, LookupError) as error:
            raise AssertionError(f"seed {seed}, step {len(schedule.steps)}: {' '.join(schedule.steps)}") from error
