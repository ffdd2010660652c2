"""The engine against a plain model of one queue: lists, scans and nothing clever. Same inputs, same outputs.

Beside it, what must hold whatever the rules are: conservation, one holder at a time, order, thresholds, counters equal
to the events, records before messages, and replay of the records giving the state that wrote them.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.events import SampleRemoved
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
from qsctl.core.queue._undeliverable import UNDELIVERABLE
from qsctl.core.queue.sample import SampleState
from qsctl.core.queue.settings import (
    DistributionSettings,
    RedeliverySettings,
    ReplacementKind,
    ResourceLimitSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.records import Assigned, Enqueued, Record
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import NIL_GUID, Guid, SampleIdentity, counted_incarnations
from qsctl.instant import INFINITE_NS
from qsctl.resource import parse_resource
from tests.batches import records_of

QUEUE, DEAD = "P/S/orders", "P/S/dead"
LETTERS = parse_resource("/domain_participant/P/shared_subscriber/S/dead_letter_shared_reader_queue/dead")
ORDERS = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/orders")
RESPONSES = st.sampled_from(AckResponse)
CONSUMERS = [Guid(bytes([65 + n]) * 16) for n in range(4)]
WRITER = Guid(b"w" * 16)


def plain_queue() -> Any:
    """The model, from the file beside this one: tests are no package."""
    spec = spec_from_file_location("plain_queue", Path(__file__).with_name("plain_queue.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["plain_queue"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PlainQueue


PlainQueue = plain_queue()


def fingerprint(engine: ServiceEngine) -> Any:
    """All that a queue remembers."""
    return {
        name: (
            queue.held.next_position,
            queue.held.retired(),
            [
                (s.position, s.identity, s.payload, s.enqueued_at_ns, s.expires_at_ns, s.state, s.attempts)
                for s in queue.held
            ],
            [(s.redelivered, s.holder, s.past_holders, s.dead_letter) for s in queue.held],
        )
        for name, queue in engine.hosted.by_name.items()
    }


durations = st.sampled_from([3, 5, 7, INFINITE_NS])


class QueueMachine(RuleBasedStateMachine):
    numbers = Bundle("numbers")

    @initialize(
        retries=st.integers(0, 3),
        threshold=st.sampled_from([-1, 0, 1, 2]),
        timeout=durations,
        lifespan=durations,
        max_count=st.sampled_from([-1, 1, 2, 4]),
        policy=st.sampled_from(ReplacementKind),
        buries=st.sampled_from([True, True, False]),
        dead_max=st.sampled_from([1, 2, -1]),
        joined=st.integers(0, 3),
    )
    def begin(self, retries, threshold, timeout, lifespan, max_count, policy, buries, dead_max, joined):  # type: ignore[no-untyped-def]
        orders = SharedReaderQueueSettings(
            "orders",
            "Order",
            dead_letter_queue="dead" if buries else "",
            distribution=DistributionSettings(unacked_threshold=threshold, allow_consumer_feedback=True),
            lifespan_ns=lifespan,
            redelivery=RedeliverySettings(retries, timeout),
            limits=ResourceLimitSettings(max_count=max_count, replacement=policy),
        )
        dead = SharedReaderQueueSettings(
            "dead", "Dead", is_dead_letter=True, limits=ResourceLimitSettings(max_count=dead_max)
        )
        subscriber = SharedSubscriberSettings("S", (), (orders, dead))
        self.settings = ServiceSettings("svc", (DomainParticipantSettings("P", 0, (subscriber,)),))
        self.now = 0
        self.next_number = 1
        self.model = PlainQueue(orders, dead_max)
        self.records: list[Record] = []
        self.boundaries: dict[int, Any] = {}
        self.carried = {QUEUE: 0, DEAD: 0}
        self.told: Counter[tuple[str, str]] = Counter()
        self.stored: set[int] = set()
        self.last_first_sent = 0
        self.sent_before: set[int] = set()
        self.engine = self.fresh()
        self.engine.finish_restore(0)
        self.turn()
        for consumer in CONSUMERS[:joined]:
            self.join(consumer)

    def fresh(self) -> ServiceEngine:
        return ServiceEngine(
            self.settings, started_at=self.now, draw=counted_incarnations(), journal=Journal.EVERYTHING
        )

    def turn(self) -> None:
        """Compare one batch with what the model did, and hold it against the rules that need no model."""
        while (deadline := self.engine.next_deadline()) is not None and deadline <= self.now:
            self.engine.advance(self.now)
        ready = self.engine.take_ready()
        messages = ready.messages
        self.records += records_of(ready)
        self.boundaries[len(self.records)] = fingerprint(self.engine)
        sent = [
            (m.identity.sequence_number, m.consumer_guid, m.attempt, bool(m.flags & SampleFlag.REDELIVERED))
            for m in messages
            if isinstance(m, Delivery)
        ]
        answers = [
            (m.identity.sequence_number, int(m.response)) for m in messages if isinstance(m, WriteAcknowledgment)
        ]
        assert sent == self.model.sent
        assert answers == self.model.answers
        self.model.sent, self.model.answers = [], []
        assigned = {(r.position, r.consumer_guid, r.attempt) for r in records_of(ready) if isinstance(r, Assigned)}
        assert {(m.position, m.consumer_guid, m.attempt) for m in messages if isinstance(m, Delivery)} <= assigned
        for event in ready.events:
            key = str(event.__struct_config__.tag)
            self.told[event.queue, f"removed {event.cause.name}" if isinstance(event, SampleRemoved) else key] += 1
        self.stored |= {r.identity.sequence_number for r in records_of(ready) if isinstance(r, Enqueued)}
        assert {number for number, response in answers if response == 1} <= self.stored
        for message in messages:
            if isinstance(message, Delivery) and message.position not in self.sent_before:
                assert message.position > self.last_first_sent
                self.last_first_sent = message.position
                self.sent_before.add(message.position)
        for consumer in self.model.consumers:
            if consumer.threshold >= 0 and consumer.guid in {guid for _, guid, _, _ in sent}:
                held = self.engine.hosted.by_name[QUEUE].deliveries.consumers[consumer.guid].outstanding
                assert len(held) <= consumer.threshold + 1

    def receive(self, message: Any) -> None:
        self.engine.receive(self.now, message)

    @rule(target=numbers, count=st.integers(1, 4), lifespan=durations)
    def write(self, count: int, lifespan: int) -> Any:
        numbers = range(self.next_number, self.next_number + count)
        self.next_number += count
        for number in numbers:
            self.receive(Write("P", "Order", SampleIdentity(WRITER, number), b"x", lifespan_ns=lifespan))
            self.model.write(self.now, number, lifespan)
        self.turn()
        return multiple(*numbers)

    @rule(number=numbers)
    def write_again(self, number: int) -> None:
        self.receive(Write("P", "Order", SampleIdentity(WRITER, number), b"x"))
        self.model.write(self.now, number, INFINITE_NS)
        self.turn()

    @rule(consumer=st.sampled_from(CONSUMERS))
    def join(self, consumer: Guid) -> None:
        self.receive(ConsumerJoined(QUEUE, consumer))
        self.model.join(self.now, consumer)
        self.turn()

    @rule(consumer=st.sampled_from(CONSUMERS), hands_back=st.booleans())
    def leave(self, consumer: Guid, hands_back: bool) -> None:
        self.receive(ConsumerLeft(QUEUE, consumer, hands_back))
        self.model.leave(self.now, consumer, hands_back)
        self.turn()

    @rule(consumer=st.sampled_from(CONSUMERS), chance=st.randoms(use_true_random=False))
    def vanish_before_it_is_sent_everything(self, consumer: Guid, chance: Random) -> None:
        unsent = [each.number for each in self.model.held_by(consumer) if chance.random() < 0.5]
        held = self.engine.hosted.samples(ORDERS)
        positions = tuple(each.position for each in held if each.identity.sequence_number in unsent)
        self.receive(ConsumerLeft(QUEUE, consumer, unsent=positions))
        self.model.leave(self.now, consumer, False, unsent)
        self.turn()

    @rule(consumer=st.sampled_from(CONSUMERS), enabled=st.booleans(), threshold=st.integers(-1, 2))
    def report(self, consumer: Guid, enabled: bool, threshold: int) -> None:
        found = [one for one in self.model.consumers if one.guid == consumer]
        if found:
            found[0].enabled, found[0].threshold, found[0].reports = enabled, threshold, True
            self.model.dispatch(self.now)
            self.receive(ConsumerAvailability(QUEUE, consumer, enabled, threshold))
            self.turn()

    @rule(consumer=st.sampled_from(CONSUMERS), number=numbers, response=RESPONSES)
    def settle_anything(self, consumer: Guid, number: int, response: AckResponse) -> None:
        self.settle(consumer, number, response)

    @rule(data=st.data(), response=RESPONSES)
    def settle_what_is_held(self, data: st.DataObject, response: AckResponse) -> None:
        held = [sample for sample in self.model.samples if sample.holder is not None]
        if held:
            sample = data.draw(st.sampled_from(held))
            assert sample.holder is not None
            self.settle(sample.holder, sample.number, response)

    @rule(data=st.data(), response=RESPONSES)
    def settle_late(self, data: st.DataObject, response: AckResponse) -> None:
        failed = [sample for sample in self.model.samples if sample.past]
        if failed:
            sample = data.draw(st.sampled_from(failed))
            self.settle(data.draw(st.sampled_from(sample.past)), sample.number, response)

    def settle(self, consumer: Guid, number: int, response: AckResponse) -> None:
        self.receive(Acknowledgment(QUEUE, consumer, SampleIdentity(WRITER, number), response))
        self.model.settle(self.now, consumer, number, response)
        self.turn()

    @rule(duration=st.integers(1, 12))
    def wait(self, duration: int) -> None:
        until = self.now + duration
        while (deadline := self.engine.next_deadline()) is not None and deadline <= until:
            assert deadline == self.model.next_deadline()
            self.now = deadline
            self.engine.advance(self.now)
            self.model.advance(self.now)
            self.turn()
        self.now = until
        assert self.model.next_deadline() > until

    @rule(numbers=st.lists(numbers, max_size=3))
    def flush(self, numbers: list[int]) -> None:
        gone = [sample for sample in self.model.samples if sample.number in numbers]
        for sample in gone:
            self.model.end(sample, "flushed")
        self.model.dispatch(self.now)
        going = [each for each in self.engine.hosted.samples(ORDERS) if each.identity.sequence_number in numbers]
        assert self.engine.hosted.flush(self.now, ORDERS, going) == len(gone)
        self.turn()

    @rule(
        retries=st.integers(0, 3),
        threshold=st.sampled_from([-1, 0, 1, 2]),
        timeout=durations,
        lifespan=durations,
        max_count=st.sampled_from([-1, 1, 2, 4]),
        policy=st.sampled_from(ReplacementKind),
    )
    def change(self, retries, threshold, timeout, lifespan, max_count, policy):  # type: ignore[no-untyped-def]
        wanted = replace(
            self.model.given,
            distribution=replace(self.model.given.distribution, unacked_threshold=threshold),
            lifespan_ns=lifespan,
            redelivery=RedeliverySettings(retries, timeout),
            limits=ResourceLimitSettings(max_count=max_count, replacement=policy),
        )
        assert self.engine.hosted.change_queue(self.now, ORDERS, wanted) is (wanted != self.model.given)
        self.model.change(self.now, wanted)
        self.model.advance(self.now)  # a shorter time-out may be over
        self.turn()

    @rule(dead_max=st.sampled_from([1, 2, -1]))
    def change_the_dead(self, dead_max: int) -> None:
        former = self.engine.hosted.queue(LETTERS).settings
        wanted = replace(former, limits=ResourceLimitSettings(max_count=dead_max))
        self.engine.hosted.change_queue(self.now, LETTERS, wanted)
        self.model.dead_max = dead_max
        self.model.unearth(self.now, 0)
        self.turn()

    @rule(count=st.integers(1, 3))
    def unearth(self, count: int) -> None:
        """The oldest dead letters leave: what waited for room among them has it."""
        going = list(self.engine.hosted.samples(LETTERS))[:count]
        assert self.engine.hosted.flush(self.now, LETTERS, going) == len(going)
        self.model.unearth(self.now, len(going))
        self.turn()

    @rule(down=st.integers(0, 6), compacted=st.booleans())
    def restart(self, down: int, compacted: bool) -> None:
        """Lose everything but the records; a compacted store says the same in fewer."""
        before = fingerprint(self.engine)
        if compacted:
            self.records = list(self.engine.snapshot())
            self.boundaries = {len(self.records): before}
        self.forget_counts()
        self.now += down
        self.engine = self.fresh()
        for record in self.records:
            self.engine.replay(record)
        assert fingerprint(self.engine) == before
        self.engine.finish_restore(self.now)
        self.model.restart(self.now)
        self.turn()

    def forget_counts(self) -> None:
        """Counters begin again with the process; what is held was not received by the new one."""
        self.told.clear()
        self.carried = {QUEUE: len(self.model.samples), DEAD: len(self.engine.hosted.by_name[DEAD].held)}
        self.model.ends.clear()

    @invariant()
    def the_state_is_the_models(self) -> None:
        queue = self.engine.hosted.by_name[QUEUE]
        held = [(s.identity.sequence_number, s.holder, s.attempts, s.redelivered, s.expires_at_ns) for s in queue.held]
        assert held == [
            (s.number, s.holder or NIL_GUID, s.attempts, s.redelivered, s.expires) for s in self.model.samples
        ]
        assert len(queue.reader_cache) == len(self.model.outside)
        assert [list(s.past_holders) for s in queue.held] == [s.past for s in self.model.samples]
        waiting = [s.identity.sequence_number for s in queue.undeliverables.waiting.values()]
        assert waiting == [s.number for s in self.model.graves]
        letters = [(s.original_identity.sequence_number, s.redelivered) for s in self.engine.hosted.by_name[DEAD].held]
        assert letters == self.model.dead

    @invariant()
    def nobody_shares_a_sample(self) -> None:
        queue = self.engine.hosted.by_name[QUEUE]
        with_consumers = [
            sample.position for one in queue.deliveries.consumers.values() for sample in one.outstanding.values()
        ]
        sent = [sample.position for sample in queue.held if sample.state is SampleState.SENT]
        assert sorted(with_consumers) == sent

    @invariant()
    def no_sample_is_lost_or_made(self) -> None:
        told = self.told
        for name, queue in self.engine.hosted.by_name.items():
            removed = sum(count for (where, what), count in told.items() if where == name and "removed" in what)
            assert self.carried[name] + told[name, "enqueued"] == len(queue.held) + removed
            outcomes = sum(told[name, what] for what in ("enqueued", "bounced", "duplicate"))
            assert told[name, "received"] == outcomes + len(queue.reader_cache)
        ends = {"delivered": "DELIVERED", "expired": "EXPIRED", "failed": "FAILED_DELIVERY", "flushed": "FLUSHED"}
        for plain, cause in ends.items():
            assert told[QUEUE, f"removed {cause}"] == self.model.ends[plain]
        if self.model.given.dead_letter_queue:
            dead = told[QUEUE, "removed EXPIRED"] + told[QUEUE, "removed FAILED_DELIVERY"]
            assert told[QUEUE, "dead_lettered"] == told[DEAD, "received"] == dead

    @invariant()
    def the_counters_balance(self) -> None:
        """Also after a restart, and when a producer writes again what is held: see `AdditionalCounters`."""
        for name, queue in self.engine.hosted.by_name.items():
            statistics = self.engine.hosted.statistics._monitors[name].statistics
            counted = statistics.additional().held_count(statistics.counters())
            assert counted == len(queue.held) + len(queue.reader_cache)

    @invariant()
    def counters_are_a_fold_of_the_events(self) -> None:
        for name, monitor in self.engine.hosted.statistics._monitors.items():
            counters, told = monitor.statistics.counters(), self.told
            assert counters.received_message_count == told[name, "received"]
            assert counters.sent_message_count == told[name, "sent"]
            assert counters.bounced_message_count == told[name, "bounced"]
            assert counters.late_acknowledgment_message_count == told[name, "late"]
            assert counters.acknowledged_message_count == told[name, "removed DELIVERED"]
            assert counters.expired_message_count == told[name, "removed EXPIRED"]
            assert counters.failed_delivery_message_count == told[name, "removed FAILED_DELIVERY"]
            assert counters.queue_full_count == told[name, "queue_full"]

    def teardown(self) -> None:
        """Replay every prefix: whole turns give the state of that time, and none stops a restart."""
        if not hasattr(self, "engine"):
            return
        replayed = self.fresh()
        stride = 1 + len(self.records) // 8
        for count, record in enumerate(self.records, start=1):
            replayed.replay(record)
            if count in self.boundaries:
                assert fingerprint(replayed) == self.boundaries[count]
            if count % stride == 0:
                restarted = self.fresh()
                restarted.restore(self.now, self.records[:count])
                held = [sample for queue in restarted.hosted.by_name.values() for sample in queue.held]
                assert {sample.state for sample in held} <= {SampleState.ENQUEUED, *UNDELIVERABLE}
                both = {(s.dead_letter.queue, s.dead_letter.identity) for s in held if s.dead_letter is not None}
                assert not both & {("Order@S", s.identity) for s in held if s.dead_letter is None}
        note(f"{len(self.records)} records")


TestQueueAgainstModel = QueueMachine.TestCase
TestQueueAgainstModel.settings = settings(max_examples=max(40, settings().max_examples), stateful_step_count=50)
