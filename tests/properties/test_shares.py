"""A service that moves a few samples at a time comes to what one comes to that moves all at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from qsctl.core.admin.command import CreateQueue, DeleteQueue, FlushQueue
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.events import SampleEnqueued, SampleRemoved
from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    CommandReply,
    CommandRequest,
    ConsumerJoined,
    ConsumerLeft,
    Delivery,
    Inbound,
    Write,
)
from qsctl.core.queue.settings import (
    DistributionSettings,
    RedeliverySettings,
    ResourceLimitSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import Guid, SampleIdentity, counted_incarnations
from qsctl.instant import INFINITE_NS
from qsctl.resource import ResourceKind, parse_resource

QUEUE, DEAD = "P/S/orders", "P/S/dead"
ORDERS = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/orders")
CONSUMERS = [Guid(bytes([65 + n]) * 16) for n in range(3)]
WRITER, ASKER = Guid(b"w" * 16), Guid(b"a" * 16)
DURATIONS = st.sampled_from([3, 5, INFINITE_NS])


@dataclass
class Driven:
    """An engine with a driver's clock, and what it said so far."""

    engine: ServiceEngine
    sent: list[tuple[int, Guid, int]] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)
    turn_count: int = 0

    def turn(self, now: int) -> None:
        self.engine.advance(now)
        ready = self.engine.take_ready()
        messages = ready.messages
        self.turn_count += 1
        self.sent += [
            (m.identity.sequence_number, m.consumer_guid, m.attempt) for m in messages if isinstance(m, Delivery)
        ]
        self.replies += [m.reply.text for m in messages if isinstance(m, CommandReply)]
        for event in ready.events:
            if isinstance(event, SampleEnqueued):
                self.told[f"{event.queue} in"] += 1
            elif isinstance(event, SampleRemoved):
                self.told[f"{event.queue} {event.cause.name}"] += 1

    def rest(self, now: int) -> None:
        """Turn as long as something is due."""
        self.turn(now)
        for _ in range(1_000):
            deadline = self.engine.next_deadline()
            if deadline is None or deadline > now:
                return
            self.turn(now)
        raise AssertionError("the service never comes to rest")

    def queue(self) -> SharedReaderQueue | None:
        return self.engine.hosted.by_name.get(QUEUE)

    def state(self) -> object:
        """The queue, and which samples died: those that expire at once may do so in another order."""
        dead = sorted((s.identity, str(s.dead_letter.reason)) for s in self.engine.hosted.by_name[DEAD].held)
        queue = self.queue()
        if queue is None:
            return dead
        return (
            dead,
            [(s.identity, s.state, s.attempts, s.redelivered, s.holder, s.expires_at_ns) for s in queue.held],
            {guid: sorted(one.outstanding) for guid, one in queue.deliveries.consumers.items()},
            [sample.position for sample in queue.deliveries.groups.main.waiting()],
        )


def driven(timeout: int, threshold: int, retries: int, share_count: int) -> Driven:
    orders = SharedReaderQueueSettings(
        "orders",
        "Order",
        dead_letter_queue="dead",
        distribution=DistributionSettings(unacked_threshold=threshold),
        redelivery=RedeliverySettings(retries, timeout),
    )
    dead = SharedReaderQueueSettings("dead", "Dead", is_dead_letter=True)
    subscriber = SharedSubscriberSettings("S", (), (orders, dead))
    settings = ServiceSettings("svc", (DomainParticipantSettings("P", 0, (subscriber,)),))
    engine = ServiceEngine(settings, started_at=0, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY)
    engine.hosted.share_count = share_count
    engine.finish_restore(0)
    return Driven(engine)


Step = tuple[str, int, int, bool]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 9), DURATIONS, st.just(True)),
        st.tuples(st.sampled_from(["join", "leave"]), st.integers(0, 2), st.just(0), st.booleans()),
        st.tuples(st.just("settle"), st.integers(0, 30), st.just(0), st.booleans()),
        st.tuples(st.just("wait"), st.integers(1, 6), st.just(0), st.just(True)),
        st.tuples(st.sampled_from(["flush", "flush", "delete"]), st.just(0), st.just(0), st.just(True)),
    ),
    max_size=25,
)
SETTINGS = st.tuples(DURATIONS, st.sampled_from([-1, 0, 2]), st.integers(0, 2))


class Story:
    """Turns steps into messages: what a step means depends on what went before."""

    def __init__(self) -> None:
        self.now = 0
        self.written = 0
        self.asked = 0

    def messages(self, step: Step, one: Driven) -> list[Inbound]:
        what, number, detail, yes = step
        if what == "write":
            first, self.written = self.written + 1, self.written + number
            identities = [SampleIdentity(WRITER, each) for each in range(first, self.written + 1)]
            return [Write("P", "Order", each, b"x", lifespan_ns=detail) for each in identities]
        if what == "join":
            return [ConsumerJoined(QUEUE, CONSUMERS[number])]
        if what == "leave":
            return [ConsumerLeft(QUEUE, CONSUMERS[number], yes)]
        if what == "wait":
            self.now += number
            return []
        if what == "settle":
            if not one.sent:
                return []
            sequence_number, guid, _ = one.sent[number % len(one.sent)]
            return [Acknowledgment(QUEUE, guid, SampleIdentity(WRITER, sequence_number), AckResponse(int(yes)))]
        self.asked += 1
        command = FlushQueue(ORDERS) if what == "flush" else DeleteQueue(ORDERS)
        return [CommandRequest(SampleIdentity(ASKER, self.asked), "svc", command)]


@given(st.sampled_from([-1, 0, 2]), st.integers(0, 2), STEPS, st.integers(1, 4))
def test_at_rest_both_are_the_same(threshold: int, retries: int, steps: list[Step], share_count: int) -> None:
    """Where windows are bounded, nothing times out or expires: who held the first of many that do is sent another
    before the last is taken back, and whose turn it is then differs."""
    whole, shared = (driven(INFINITE_NS, threshold, retries, count) for count in (INFINITE_NS, share_count))
    story = Story()
    for step in steps:
        if step[0] == "write" and threshold >= 0:
            step = ("write", step[1], INFINITE_NS, True)
        messages = story.messages(step, whole)
        for one in (whole, shared):
            one.engine.receive_all(story.now, messages)
            one.rest(story.now)
        assert shared.state() == whole.state()
        assert shared.sent == whole.sent
        assert shared.replies == whole.replies
        assert shared.told == whole.told


@given(SETTINGS, STEPS, st.integers(1, 4))
def test_what_comes_between_the_shares_loses_and_doubles_nothing(
    given_settings: tuple[int, int, int], steps: list[Step], share_count: int
) -> None:
    one, story = driven(*given_settings, share_count), Story()
    for step in steps:
        before = len(one.sent)
        one.engine.receive_all(story.now, story.messages(step, one))
        one.turn(story.now)
        commanded = step[0] in ("flush", "delete")
        assert len(one.sent) - before <= 3 * share_count + 9 + commanded, "one turn moved more than its share"
        held_by = [
            position
            for queue in one.engine.hosted.by_name.values()
            for c in queue.deliveries.consumers.values()
            for position in c.outstanding
        ]
        assert len(held_by) == len(set(held_by)), "two consumers hold one sample"
    one.rest(story.now)
    told = one.told
    for name, queue in one.engine.hosted.by_name.items():
        removed = sum(count for key, count in told.items() if key.startswith(f"{name} ") and not key.endswith(" in"))
        assert told[f"{name} in"] == len(queue.held) + removed
    if (queue := one.queue()) is not None:
        group = queue.deliveries.groups.main
        assert not group.waiting_count or group.ring.choose() is None, "somebody could be served"
        assert not queue._membership._departures
    else:
        assert told[f"{QUEUE} in"] == sum(count for key, count in told.items() if key.startswith(QUEUE)) // 2


def test_a_consumer_that_comes_to_many_gets_a_share_a_turn() -> None:
    one = driven(INFINITE_NS, -1, 0, 10)
    one.engine.receive_all(0, [Write("P", "Order", SampleIdentity(WRITER, each), b"x") for each in range(1, 96)])
    one.engine.receive(0, ConsumerJoined(QUEUE, CONSUMERS[0]))
    sent = []
    while one.engine.next_deadline() == 0 or not sent:
        one.turn(0)
        sent.append(len(one.sent))
    assert sent == [20, 30, 40, 50, 60, 70, 80, 90, 95], "ten when it comes, ten each turn"


def test_a_flush_of_many_sends_none_of_them_and_takes_what_consumers_hold_last() -> None:
    one = driven(INFINITE_NS, 0, 0, 10)
    one.engine.receive_all(0, [Write("P", "Order", SampleIdentity(WRITER, each), b"x") for each in range(1, 51)])
    one.engine.receive(0, ConsumerJoined(QUEUE, CONSUMERS[0]))
    one.rest(0)
    one.engine.receive(0, CommandRequest(SampleIdentity(ASKER, 1), "svc", FlushQueue(ORDERS)))
    one.turn(0)
    assert one.replies == []
    one.engine.receive(0, Write("P", "Order", SampleIdentity(WRITER, 51), b"x"))
    one.rest(0)
    assert one.replies == ["50 samples removed from queue P/S/orders"]
    assert [number for number, _, _ in one.sent] == [1, 51], "the one that came later is not flushed"


def test_a_queue_being_deleted_accepts_no_more_and_cannot_be_created_yet() -> None:
    one = driven(INFINITE_NS, -1, 0, 10)
    one.engine.receive_all(0, [Write("P", "Order", SampleIdentity(WRITER, each), b"x") for each in range(1, 51)])
    created = CreateQueue(ORDERS.parent, one.engine.hosted.queues()[ORDERS])
    for number, command in enumerate((DeleteQueue(ORDERS), created), 1):
        one.engine.receive(0, CommandRequest(SampleIdentity(ASKER, number), "svc", command))
    one.engine.receive(0, Write("P", "Order", SampleIdentity(WRITER, 51), b"x"))
    one.rest(0)
    one.engine.receive(0, CommandRequest(SampleIdentity(ASKER, 3), "svc", created))
    one.rest(0)
    assert one.replies == [
        "queue P/S/orders is being deleted. Create it when it is gone.",
        "queue P/S/orders is deleted",
        "queue P/S/orders is created",
    ]
    assert one.engine.refused_message_count == 1


def test_a_dead_letter_queue_being_deleted_cannot_be_referenced() -> None:
    one = driven(INFINITE_NS, -1, 0, 10)
    orders = one.engine.hosted.queues()[ORDERS]
    one.engine.receive_all(
        0, [Write("P", "Order", SampleIdentity(WRITER, n), b"x", lifespan_ns=1) for n in range(1, 51)]
    )
    one.rest(1)
    dead = ORDERS.parent.child(ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE, "dead")
    for number, command in enumerate((DeleteQueue(ORDERS), DeleteQueue(dead), CreateQueue(ORDERS.parent, orders)), 1):
        one.engine.receive(1, CommandRequest(SampleIdentity(ASKER, number), "svc", command))
    one.rest(1)
    assert one.replies == [
        "queue P/S/orders is deleted",
        "'dead' is being deleted. Name another, or none.",
        "queue P/S/dead is deleted",
    ]


def test_queues_that_wait_for_room_among_the_dead_letters_move_their_shares_in_turn() -> None:
    """Also while the first of them has more to move: what it does not move in its turn waits behind the others."""
    names = ("orders", "bills")
    dead_letters = SharedReaderQueueSettings(
        "dead", "Dead", is_dead_letter=True, limits=ResourceLimitSettings(max_count=8)
    )
    queues = [SharedReaderQueueSettings(name, name, dead_letter_queue="dead") for name in names]
    subscriber = SharedSubscriberSettings("S", (), (*queues, dead_letters))
    settings = ServiceSettings("svc", (DomainParticipantSettings("P", 0, (subscriber,)),))
    engine = ServiceEngine(settings, started_at=0, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY)
    engine.hosted.share_count = 2
    engine.finish_restore(0)
    one = Driven(engine)
    for name, count in zip(names, (20, 10), strict=True):
        writes = [SampleIdentity(Guid(name[:1].encode() * 16), each) for each in range(1, count + 1)]
        engine.receive_all(0, [Write("P", name, each, b"x", lifespan_ns=1) for each in writes])
    one.rest(1)
    dead = engine.hosted.by_name[DEAD]
    assert len(dead.held) == 8
    place = ORDERS.parent.child(ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE, "dead")
    engine.receive(1, CommandRequest(SampleIdentity(ASKER, 1), "svc", FlushQueue(place)))
    one.rest(1)
    turns = [sample.dead_letter.queue for sample in dead.held]
    assert turns == ["orders@S", "orders@S", "bills@S", "bills@S"] * 2


def test_a_queue_that_begins_to_route_with_much_to_send_sends_it_once() -> None:
    one = driven(INFINITE_NS, -1, 0, 10)
    one.engine.receive_all(0, [Write("P", "Order", SampleIdentity(WRITER, each), b"x") for each in range(1, 51)])
    one.engine.receive(0, ConsumerJoined(QUEUE, CONSUMERS[0]))
    one.engine.receive(0, ConsumerJoined(QUEUE, CONSUMERS[1], source_guid=CONSUMERS[1]))
    one.rest(0)
    one.engine.receive(0, Write("P", "Order", SampleIdentity(WRITER, 51), b"x"))
    one.rest(0)
    assert [number for number, guid, _ in one.sent if guid == CONSUMERS[0]] == list(range(1, 52))
    assert len(one.sent) == 51
