"""One queue against the plain model of it, by frames of samples and ranges of answers: see `test_frames_against_model`.

A frame is one part of a turn: consecutive numbers of a writer, some of which came before. A range of answers is one
part too, for consecutive numbers from one that was sent, of which other consumers may have some. So hundreds of samples
wait, expire and leave in the middle of the queue, which steps of single samples hardly reach.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from msgspec import structs

from qsctl.core import records as records_module
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    ConsumerAvailability,
    ConsumerJoined,
    ConsumerLeft,
    Delivery,
    Inbound,
    Outbound,
    RunAcknowledgment,
    SampleFlag,
    StatusPublication,
    WriteAcknowledgment,
    WriteRun,
    one_by_one,
)
from qsctl.core.queue import _held as held_module
from qsctl.core.queue.settings import (
    DistributionSettings,
    RedeliverySettings,
    ReplacementKind,
    ResourceLimitSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.ready import Ready
from qsctl.core.records import Assigned, Enqueued, Record
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import NIL_GUID, Guid, SampleIdentity, counted_incarnations
from qsctl.instant import INFINITE_NS
from qsctl.resource import parse_resource
from qsctl.service.stores._queue_codec import QUEUE_CODEC
from qsctl.storage.codec import fill
from tests.properties.observed_service import Observed, assert_equal_rows
from tests.properties.plain_queue import PlainQueue, PlainSample

FRAME_SAMPLES_MAX: Final = 64
FRAME_COUNTS: Final = (1, 2, 5, 20, FRAME_SAMPLES_MAX)
QUEUE, DEAD = "P/S/orders", "P/S/dead"
ORDERS = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/orders")
LETTERS = parse_resource("/domain_participant/P/shared_subscriber/S/dead_letter_shared_reader_queue/dead")
CONSUMERS = [Guid(bytes([65 + n]) * 16) for n in range(4)]
WRITER = Guid(b"w" * 16)
DEAD_COUNTS_MAX: Final = (1, 30, -1)
TWIN_STEPS: Final = 6
"""The state of the twin is compared after each sixth step."""
STEPS = {
    "write": 28,
    "answer": 43,
    "wait": 10,
    "join": 5,
    "leave": 4,
    "report": 4,
    "flush": 3,
    "unearth": 3,
    "record": 1,
    "change": 2,
    "restart": 2,
}


@dataclass
class Schedule:
    """One schedule: the service, and the model of its queue."""

    seed: int
    now: int = 0
    next_number: int = 1
    steps: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        chance = self.chance = Random(self.seed)
        orders = self.drawn(
            SharedReaderQueueSettings("orders", "Order", dead_letter_queue=chance.choice(("", "", "dead")))
        )
        dead_max = chance.choice(DEAD_COUNTS_MAX)
        dead = SharedReaderQueueSettings(
            "dead", "Dead", is_dead_letter=True, limits=ResourceLimitSettings(max_count=dead_max)
        )
        subscriber = SharedSubscriberSettings("S", (), (orders, dead))
        settings = ServiceSettings("svc", (DomainParticipantSettings("P", 0, (subscriber,)),))
        self.settings = settings
        self.journal = chance.choice(list(Journal))
        self.engine, self.twin = self.fresh(), self.fresh()
        self.records: list[Record] = []
        self.in_runs = chance.random() < 0.5
        self.reports_each_step = chance.random() < 0.5
        for engine in (self.engine, self.twin):
            engine.hosted.reports_each_step = self.reports_each_step
            engine.finish_restore(0)
        self.last_indexes: dict[str, int] = {}
        self.store(self.engine.take_ready())
        self.twin.take_ready()
        self.observed = Observed(self.engine), Observed(self.twin)
        if self.reports_each_step:
            self.begin_recording()
        self.model = PlainQueue(orders, dead_max)
        self.model.remembered_max = held_module.RETIRED_IDENTITIES_MAX = chance.choice((100, 8_192))  # type: ignore[misc]
        for consumer in CONSUMERS[: chance.randrange(4)]:
            self.join(consumer)
            self.compare()

    def drawn(self, settings: SharedReaderQueueSettings) -> SharedReaderQueueSettings:
        """Return a queue's settings with others in place of those that can be changed while it works."""
        chance = self.chance
        return replace(
            settings,
            distribution=DistributionSettings(
                unacked_threshold=chance.choice((-1, -1, 0, 2, 10, 70)), allow_consumer_feedback=True
            ),
            lifespan_ns=chance.choice((6, 60, 300, INFINITE_NS)),
            redelivery=RedeliverySettings(chance.randint(0, 3), chance.choice((3, 7, INFINITE_NS, INFINITE_NS))),
            limits=ResourceLimitSettings(
                max_count=chance.choice((-1, -1, 4, 40, 100)), replacement=chance.choice(list(ReplacementKind))
            ),
        )

    def fresh(self) -> ServiceEngine:
        return ServiceEngine(self.settings, started_at=0, draw=counted_incarnations(), journal=self.journal)

    def receive(self, message: Inbound) -> None:
        """Give a message to both services, to the second one sample by sample."""
        self.engine.receive(self.now, message)
        is_run = isinstance(message, WriteRun | RunAcknowledgment)
        self.twin.receive_all(self.now, message.singles() if is_run else (message,))

    def step(self) -> None:
        """Do something in both, and compare them."""
        (name,) = self.chance.choices(tuple(STEPS), tuple(STEPS.values()))
        self.steps.append(name)
        getattr(self, f"do_{name}")()
        self.compare()

    def compare(self) -> None:
        """Compare what was sent, what was answered, and what is held."""
        for engine in (self.engine, self.twin):
            while (deadline := engine.next_deadline()) is not None and deadline <= self.now:
                engine.advance(self.now)
        ready = self.engine.take_ready()
        self.store(ready)
        model, messages = self.model, list(one_by_one(ready.messages))
        twin = self.twin.take_ready()
        twins = twin.messages
        assert len(messages) == len(twins)
        self.observe(ready, twin)
        if len(self.steps) % TWIN_STEPS == 0:
            assert {_without_rest(each) for each in messages} == {_without_rest(each) for each in twins}
            assert fingerprint(self.engine) == fingerprint(self.twin)
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
        # The order of messages to different consumers has no effect.
        assert sorted(sent, key=_consumer_of) == sorted(model.sent, key=_consumer_of)
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

    def observe(self, ready: Ready, twin: Ready) -> None:
        """Compare all that is counted: the statistics, and where each step is an event metrics and a recording."""
        if self.reports_each_step:
            for observed, each in zip(self.observed, (ready, twin), strict=True):
                observed.note(self.now, each)
        if len(self.steps) % TWIN_STEPS == 0:
            for resource in (ORDERS, LETTERS):
                one, other = (each.hosted.status(self.now, resource) for each in (self.engine, self.twin))
                assert one == other
            assert self.observed[0].figures() == self.observed[1].figures()

    def store(self, ready: Ready) -> None:
        """Keep the records as a store does; a message rests on the first record of its step, or a later one."""
        rests_on: dict[tuple[str, int | SampleIdentity], int] = {}
        for stream, first_index, records, _ in ready.batches:
            encoded = QUEUE_CODEC.encode(records)
            stored = [record for body in encoded.bodies for record in QUEUE_CODEC.decode(body)]
            carriers = [record for record in stored if isinstance(record, Enqueued)]
            for record, payload in zip(carriers, encoded.data, strict=True):
                fill(record, "payload", payload)
            self.records += stored
            assert first_index == self.last_indexes.get(stream, 0) + 1
            self.last_indexes[stream] = first_index + len(stored) - 1
            for index, record in enumerate(records_module.one_by_one(records), first_index):
                if isinstance(record, Enqueued):
                    rests_on.setdefault((stream, record.identity), index)
                elif isinstance(record, Assigned):
                    rests_on.setdefault((stream, record.position), index)
        for batch in ready.batches:
            assert batch.last_index == self.last_indexes[batch.stream]
        for each in one_by_one(ready.messages):
            if isinstance(each, Delivery):
                least = rests_on.get((each.queue, each.position), 0)
            elif isinstance(each, WriteAcknowledgment):
                least = rests_on.get((each.queue, each.identity), 0)
            else:
                continue
            assert least <= each.rests_on <= self.last_indexes.get(each.queue, 0)

    def replay(self) -> None:
        """Replay the records into a third service: it holds the same samples in the same states."""
        if self.journal is not Journal.EVERYTHING:
            return
        again = self.fresh()
        again.replay_all(self.records)
        for name, queue in self.engine.hosted.by_name.items():
            replayed = again.hosted.by_name[name]
            assert [structs.replace(each, sent_at_ns=0) for each in queue.held] == list(replayed.held)
            assert queue.held.retired() == replayed.held.retired()

    def join(self, consumer: Guid) -> None:
        self.receive(ConsumerJoined(QUEUE, consumer))
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
        frame = WriteRun("P", "Order", identities[0], (b"x",) * count, lifespan_ns=lifespan_ns)
        for message in (frame,) if self.in_runs else frame.singles():
            self.receive(message)
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
        step = chance.choice((1, 1, 2, 3)) if self.in_runs else 1
        count = chance.choice((1, 1, 3, 10, FRAME_SAMPLES_MAX))
        numbers = range(first, first + step * count, step)
        if self.in_runs and response is AckResponse.ACCEPTED and chance.random() < 0.8:
            self.receive(RunAcknowledgment(QUEUE, consumer, SampleIdentity(WRITER, first), count, step))
        else:
            for number in numbers:
                self.receive(Acknowledgment(QUEUE, consumer, SampleIdentity(WRITER, number), response))
        for number in numbers:
            self.model.settle(self.now, consumer, number, response)

    def do_wait(self) -> None:
        until = self.now + self.chance.randrange(1, 8)
        while (deadline := self.engine.next_deadline()) is not None and deadline <= until:
            assert deadline == self.model.next_deadline()
            assert deadline == self.twin.next_deadline()
            self.now = deadline
            self.engine.advance(self.now)
            self.twin.advance(self.now)
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
        self.receive(ConsumerLeft(QUEUE, consumer, hands_back, tuple(each.position for each in held)))
        self.model.leave(self.now, consumer, hands_back, [each.number for each in held])

    def do_report(self) -> None:
        consumer, is_enabled = self.chance.choice(CONSUMERS), self.chance.random() < 0.7
        threshold = self.chance.choice((-1, 0, 2, 15))
        found = next((each for each in self.model.consumers if each.guid == consumer), None)
        if found is not None:
            self.receive(ConsumerAvailability(QUEUE, consumer, is_enabled, threshold))
            found.enabled, found.threshold, found.reports = is_enabled, threshold, True
            self.model.dispatch(self.now)

    def do_flush(self) -> None:
        """A command removes samples from anywhere in the queue."""
        held = list(zip(*(each.hosted.samples(ORDERS) for each in (self.engine, self.twin)), strict=True))
        pairs = [each for each in held if self.chance.random() < 0.1]
        going = [each for each, _ in pairs]
        assert self.engine.hosted.flush(self.now, ORDERS, going) == len(going)
        assert self.twin.hosted.flush(self.now, ORDERS, [each for _, each in pairs]) == len(going)
        for sample in going:
            found = self.model.find(sample.identity.sequence_number)
            assert found is not None
            self.model.end(found, "flushed")
        self.model.dispatch(self.now)

    def do_change(self) -> None:
        """The settings of the queue, or of its dead letters, change while samples are held."""
        chance, model = self.chance, self.model
        if chance.random() < 0.2:
            model.dead_max = chance.choice(DEAD_COUNTS_MAX)
            for engine in (self.engine, self.twin):
                former = engine.hosted.queue(LETTERS).settings
                engine.hosted.change_queue(
                    self.now, LETTERS, replace(former, limits=ResourceLimitSettings(max_count=model.dead_max))
                )
            model.unearth(self.now, 0)
        else:
            wanted = self.drawn(model.given)
            for engine in (self.engine, self.twin):
                engine.hosted.change_queue(self.now, ORDERS, wanted)
            model.change(self.now, wanted)
            model.advance(self.now)  # a shorter time-out may be over

    def do_record(self) -> None:
        """A recording begins, or ends."""
        self.reports_each_step = not self.reports_each_step
        for engine in (self.engine, self.twin):
            engine.hosted.reports_each_step = self.reports_each_step
        if self.reports_each_step:
            self.begin_recording()
        else:
            self.end_recording()

    def begin_recording(self) -> None:
        """Begin to record both services, some of the samples at each third seed."""
        self.observed = Observed(self.engine), Observed(self.twin)
        for observed in self.observed:
            observed.begin(self.now, 1.0 if self.seed % 3 else 0.4)

    def end_recording(self) -> None:
        """End the recordings of both services, and compare their rows."""
        one, other = (each.end() for each in self.observed)
        assert_equal_rows(one, other)

    def do_restart(self) -> None:
        """Replay the records, or fewer that describe the same state, into both services: into one of them singly."""
        if self.journal is not Journal.EVERYTHING:
            return
        self.end_recording()
        if self.chance.random() < 0.3:
            self.records = list(self.engine.snapshot())
        before = [list(queue.held) for queue in self.engine.hosted.by_name.values()]
        self.engine, self.twin = self.fresh(), self.fresh()
        self.engine.replay_all(self.records)
        for record in self.records:
            self.twin.replay(record)
        assert fingerprint(self.engine) == fingerprint(self.twin)
        assert [list(queue.held) for queue in self.engine.hosted.by_name.values()] == [
            [structs.replace(each, sent_at_ns=0) for each in held] for held in before
        ]
        self.now += self.chance.randrange(8)
        for engine in (self.engine, self.twin):
            engine.hosted.reports_each_step = self.reports_each_step
            engine.finish_restore(self.now)
        streams = [each.stream for each in self.engine.hosted.by_name.values()]
        self.last_indexes = {
            each.name: each.base_index for each in (*streams, self.engine.hosted.outbox.service_stream)
        }
        self.observed = Observed(self.engine), Observed(self.twin)
        if self.reports_each_step:
            self.begin_recording()
        self.model.restart(self.now)

    def do_unearth(self) -> None:
        """The oldest dead letters leave: what waited for room among them has it."""
        count = self.chance.choice((1, 3, FRAME_SAMPLES_MAX))
        for engine in (self.twin, self.engine):
            going = list(engine.hosted.samples(LETTERS))[:count]
            assert engine.hosted.flush(self.now, LETTERS, going) == len(going)
        self.model.unearth(self.now, len(going))


def fingerprint(engine: ServiceEngine) -> object:
    """Return all that the queues remember and count."""
    return [
        (
            queue.held.next_position,
            queue.held.retired(),
            len(queue.held),
            list(queue.held),
            queue.refused_count,
            (queue.limits.count, queue.limits.in_memory_bytes) if queue.limits.limited else None,
            engine.hosted.statistics.status(0, queue.name, with_consumers=True).total,
            [(each.guid, each.outstanding_count) for each in queue.deliveries.consumers.values()],
            queue.next_deadline(),
        )
        for queue in engine.hosted.by_name.values()
    ]


def _without_rest(message: Outbound) -> Outbound:
    """Return a message without the record that it rests on."""
    return structs.replace(message, rests_on=0) if not isinstance(message, StatusPublication) else message


def _consumer_of(sent: tuple[int, Guid, int, bool]) -> Guid:
    return sent[1]


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
    former = held_module.RETIRED_IDENTITIES_MAX
    try:
        for seed in range(first, first + count):
            _run_schedule(seed, step_count)
    finally:
        held_module.RETIRED_IDENTITIES_MAX = former  # type: ignore[misc]


def _run_schedule(seed: int, step_count: int) -> None:
    schedule = Schedule(seed)
    try:
        for _ in range(step_count):
            schedule.step()
        schedule.end_recording()
        schedule.replay()
    except (AssertionError, LookupError) as error:
        raise AssertionError(f"seed {seed}, step {len(schedule.steps)}: {' '.join(schedule.steps)}") from error
