"""Every way into a queue, under every limit: whatever is held was let in by one door, which held the limits.

Ways: a producer's write, a sample that waited outside, a dead letter, what a command brings or moves, a store, and the
log of a replication group. A limit that is added to a queue or to its service belongs into `broken`, not into a test of
its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qsctl.core.admin.command import UpdateQueue
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.high_availability._follower import Follower
from qsctl.core.high_availability._log import ReplicatedLog
from qsctl.core.inserted_sample import InsertedSample
from qsctl.core.messages import Acknowledgment, AckResponse, CommandRequest, ConsumerJoined, Write
from qsctl.core.queue._held import Held
from qsctl.core.queue._limits import SAMPLE_METADATA_BYTES
from qsctl.core.queue.sample import Sample
from qsctl.core.queue.settings import (
    RedeliverySettings,
    ReplacementKind,
    ReplicationSettings,
    ResourceLimitSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.core.records import EpochBegan, QueueRecord, Record
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import Guid, SampleIdentity, counted_incarnations
from qsctl.resource import parse_resource

S = "/domain_participant/P/shared_subscriber/S"
ORDERS, DEAD = f"{S}/shared_reader_queue/orders", f"{S}/dead_letter_shared_reader_queue/dead"
WRITER, CONSUMER, ASKER = (Guid(bytes([n]) * 16) for n in range(1, 4))

limits = st.builds(
    ResourceLimitSettings,
    max_count=st.sampled_from([-1, 1, 3]),
    max_in_memory_bytes=st.sampled_from([-1, 900, 1500]),
    max_sample_bytes=st.sampled_from([-1, 10, 50]),
    replacement=st.sampled_from(ReplacementKind),
)
sizes = st.sampled_from([0, 10, 11, 50, 51, 300])
steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["write", "write", "write and wait", "insert", "insert dead letter"]), sizes),
        st.tuples(st.sampled_from(["write", "reject", "accept"]), st.integers(0, 5)),
        st.tuples(
            st.sampled_from(
                ["hold back", "go on", "go on", "refuse", "store again", "store again", "restart", "shut", "requeue"]
            ),
            st.just(0),
        ),
        st.tuples(st.sampled_from(["change", "change dead letters"]), limits),
    ),
    min_size=5,
    max_size=40,
)


class Service:
    """An engine, its records, and what went through the door."""

    def __init__(self, orders: ResourceLimitSettings, dead: ResourceLimitSettings, payload_max: int) -> None:
        self.orders = SharedReaderQueueSettings(
            "orders", "Order", dead_letter_queue="dead", redelivery=RedeliverySettings(), limits=orders
        )
        self.dead = SharedReaderQueueSettings("dead", "Dead", is_dead_letter=True, limits=dead)
        self.payload_max = payload_max
        self.records: list[Record] = []
        self.number = 0
        self.draw = counted_incarnations()
        self.begin()
        self.turn()

    def begin(self) -> None:
        subscriber = SharedSubscriberSettings("S", (), (self.orders, self.dead))
        self.engine = ServiceEngine(
            ServiceSettings("svc", (DomainParticipantSettings("P", 0, (subscriber,)),)), started_at=0, draw=self.draw,
            journal=Journal.EVERYTHING, payload_size_bytes_max=self.payload_max,
        )  # fmt: skip
        self.engine.restore(0, self.records)
        self.engine.receive(0, ConsumerJoined("P/S/orders", CONSUMER))

    def turn(self) -> None:
        while (deadline := self.engine.next_deadline()) is not None and deadline <= 0:
            self.engine.advance(0)
        for batch in self.engine.take_ready().batches:
            self.records += batch.records

    def queues(self) -> list[SharedReaderQueue]:
        return list(self.engine.hosted.by_name.values())

    def do(self, step: str, value: object) -> None:
        self.number += 1
        engine, identity = self.engine, SampleIdentity(WRITER, self.number)
        match step, value:
            case ("write" | "write and wait", int(size)):
                engine.receive(0, Write("P", "Order", identity, bytes(size), waits_when_full="wait" in step))
            case ("insert" | "insert dead letter", int(size)):
                inserted = InsertedSample(
                    identity, bytes(size), dead_letter_from="Order@S", dead_letter_reason="LIFESPAN"
                )
                engine.hosted.by_name["P/S/dead" if "dead" in step else "P/S/orders"].insert(0, inserted)
            case ("reject" | "accept", int(at)):
                held = [sample for sample in engine.hosted.by_name["P/S/orders"].held if sample.holder == CONSUMER]
                if held:
                    response = AckResponse.REJECTED if step == "reject" else AckResponse.ACCEPTED
                    identity = held[at % len(held)].identity
                    engine.receive(0, Acknowledgment("P/S/orders", CONSUMER, identity, response))
            case ("hold back" | "go on", _):
                engine.holds_back = step == "hold back"
            case ("refuse" | "store again", _):
                engine.refuse_samples(0, [queue.name for queue in self.queues()], refuses=step == "refuse")
            case ("requeue", _):
                self.requeue()
            case ("shut", _):
                engine.hosted.shut(0, parse_resource(ORDERS))
            case ("restart", _):
                self.begin()
            case ("change", ResourceLimitSettings() as changed):
                self.orders = replace(self.orders, limits=changed)
                self.update(ORDERS, self.orders)
            case ("change dead letters", ResourceLimitSettings() as changed):
                self.dead = replace(self.dead, limits=changed)
                self.update(DEAD, self.dead)
        self.turn()

    def requeue(self) -> None:
        """Move what is dead back, as far as it may go."""
        engine, dead, orders = self.engine, parse_resource(DEAD), parse_resource(ORDERS)
        if not engine.hosted.is_shut(orders):
            engine.hosted.move(0, dead, orders, [*engine.hosted.queue(dead).held], (), begins_anew=True)

    def update(self, resource: str, wanted: SharedReaderQueueSettings) -> None:
        command = UpdateQueue(parse_resource(resource), wanted)
        self.engine.receive(0, CommandRequest(SampleIdentity(ASKER, self.number), "svc", command))


def broken(service: Service, queue: SharedReaderQueue, step: str, before: set[int]) -> Iterator[str]:
    """Every limit that a queue broke in this step, with what it held before it."""
    held = list(queue.held)
    new = [sample for sample in held if sample.position not in before]
    given = queue.settings.limits
    if new and 0 <= given.max_count < len(held):
        yield "max_count"
    used = sum(sample.size_bytes + SAMPLE_METADATA_BYTES for sample in held)
    if new and len(held) > 1 and 0 <= given.max_in_memory_bytes < used:
        yield "max_in_memory_bytes"
    if any(0 <= given.max_sample_bytes < sample.size_bytes for sample in new):
        yield "max_sample_bytes"
    from_outside = [sample for sample in new if sample.dead_letter is None or step == "insert dead letter"]
    if any(0 <= service.payload_max < sample.size_bytes for sample in from_outside):
        yield "the transport's bound"
    if from_outside and (queue.context.refuses or queue.is_shut):
        yield "suspended, or being deleted"
    if len({sample.identity for sample in held}) < len(held):
        yield "identity"
    if [sample.position for sample in held] != sorted({sample.position for sample in held}):
        yield "position"


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> list[Sample]:
    """What went through the door."""
    through: list[Sample] = []
    enter = Held.enter

    def noted(self: Held, sample: Sample) -> bool:
        is_held = enter(self, sample)
        if is_held:
            through.append(sample)
        return is_held

    monkeypatch.setattr(Held, "enter", noted)
    return through


@given(orders=limits, dead=limits, payload_max=st.sampled_from([-1, 50]), done=steps)
@settings(deadline=None, max_examples=max(100, settings().max_examples))
def check_every_way(entered: list[Sample], orders: ResourceLimitSettings, dead: ResourceLimitSettings,
                    payload_max: int, done: list[tuple[str, object]]) -> None:  # fmt: skip
    entered.clear()
    service = Service(orders, dead, payload_max)
    for step, value in done:
        before = {queue.name: {sample.position for sample in queue.held} for queue in service.queues()}
        held_back = service.engine.holds_back
        came = len(entered)
        service.do(step, value)
        for queue in service.queues():
            if step != "restart":
                assert list(broken(service, queue, step, before[queue.name])) == []
            assert {id(sample) for sample in queue.held} <= {id(sample) for sample in entered}
        if held_back and step in ("write", "insert", "requeue"):
            assert all(sample.dead_letter is not None for sample in entered[came:])
    follow(service)


def follow(service: Service) -> None:
    """Let a replica follow what the service recorded: it holds the same, let in by the same door."""
    replicated = ReplicationSettings(enabled=True)
    follower = ServiceEngine(
        ServiceSettings("svc", (DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S", (), (
            replace(service.orders, replication=replicated), replace(service.dead, replication=replicated),
        )),)),)),
        started_at=0, draw=counted_incarnations(), journal=Journal.REPLICATED,
    )  # fmt: skip
    queues = sorted(follower.hosted.by_name.values(), key=lambda queue: not queue.settings.is_dead_letter)
    log = ReplicatedLog()
    log.append([EpochBegan("P/S/dead", 1, "a", flags_all=False)])
    log.append([each for each in service.records if isinstance(each, QueueRecord)])
    followed = Follower("P/S/dead", queues)
    followed.follow(log, log.last_index)
    for queue in queues:
        held = service.engine.hosted.by_name[queue.name].held
        assert {sample.identity: sample.size_bytes for sample in queue.held} == {
            sample.identity: sample.size_bytes for sample in held
        }


def test_every_way_in_holds_every_limit(entered: list[Sample]) -> None:
    check_every_way(entered)
