"""A queue that is rolled back to any of its records follows another suffix as a fresh one does."""

from __future__ import annotations

import random

import pytest

from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    ConsumerJoined,
    ConsumerLeft,
    Inbound,
    Outbound,
    Write,
)
from qsctl.core.queue.sample import SampleState
from qsctl.core.queue.settings import (
    RedeliverySettings,
    ReplacementKind,
    ResourceLimitSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.records import Record
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import Guid, SampleIdentity, counted_incarnations
from tests.batches import records_of

QUEUE = "P/S/orders"
WRITER, READERS = Guid(b"w" * 16), [Guid(b"r" * 16), Guid(b"s" * 16)]


def fresh() -> ServiceEngine:
    orders = SharedReaderQueueSettings(
        "orders",
        "Order",
        lifespan_ns=400,
        redelivery=RedeliverySettings(2, 30),
        limits=ResourceLimitSettings(max_count=12, replacement=ReplacementKind.REJECT_WITHOUT_REPLACEMENT),
    )
    subscriber = SharedSubscriberSettings("S", (), (orders,))
    settings = ServiceSettings("svc", (DomainParticipantSettings("P", 0, (subscriber,)),))
    return ServiceEngine(settings, started_at=0, draw=counted_incarnations(), journal=Journal.EVERYTHING)


def of_queue(engine: ServiceEngine) -> list[Record]:
    return [record for record in records_of(engine.take_ready()) if getattr(record, "queue", "") == QUEUE]


def a_message(chance: random.Random) -> Inbound:
    identity, reader = SampleIdentity(WRITER, chance.randint(1, 40)), chance.choice(READERS)
    what = chance.random()
    if what < 0.45:
        return Write("P", "Order", identity, b"%d" % identity.sequence_number)
    if what < 0.55:
        return ConsumerJoined(QUEUE, reader, unacked_threshold=chance.randint(0, 3))
    if what < 0.6:
        return ConsumerLeft(QUEUE, reader, hands_back=chance.random() < 0.5)
    return Acknowledgment(QUEUE, reader, identity, chance.choice(list(AckResponse)))


def drive(engine: ServiceEngine, chance: random.Random, count: int, now: int) -> tuple[list[Record], int]:
    """The records of so many random messages, and the instant at their end."""
    records: list[Record] = []
    for _ in range(count):
        now += chance.randint(0, 9)
        engine.receive_all(now, [a_message(chance)])
        engine.advance(now)
        records += of_queue(engine)
    return records, now


def state(engine: ServiceEngine) -> object:
    queue = engine.hosted.by_name[QUEUE]
    return (
        queue.stream.last_index,
        queue.held.next_position,
        queue.held.retired(),
        [(s.position, s.identity, s.payload, s.expires_at_ns, s.state, s.attempts, s.redelivered) for s in queue.held],
        [(s.holder, s.past_holders, s.sent_at_ns) for s in queue.held],
        (queue.limits.count, queue.limits.in_memory_bytes),
        sorted(sample.position for group in queue.deliveries.groups.all() for sample in group.waiting()),
    )


def replayed(records: list[Record]) -> ServiceEngine:
    engine = fresh()
    engine.finish_restore(0)
    engine.take_ready()
    engine.rollback(QUEUE)
    for record in records:
        engine.replay(record)
    return engine


@pytest.mark.slow(beyond=2)
@pytest.mark.parametrize("seed", range(6))
def test_rolled_back_to_any_record_and_given_another_suffix_a_queue_is_as_fresh(seed: int) -> None:
    chance = random.Random(seed)
    engine = fresh()
    engine.finish_restore(0)
    engine.take_ready()
    history, now = drive(engine, chance, 120, 0)
    assert len(history) > 60
    was_sent = False
    for length in range(len(history) + 1):
        prefix = history[:length]
        other = replayed(prefix)
        other.finish_restore(now)
        suffix = of_queue(other)
        suffix += drive(other, chance, 12, now)[0]
        # The queue has lived through all of its history, with consumers and what they hold.
        lived = fresh()
        lived.finish_restore(0)
        again = random.Random(seed)
        assert drive(lived, again, 120, 0)[0] == history
        lived.receive(now, Write("P", "Order", SampleIdentity(WRITER, 99), b"open"))
        lived.rollback(QUEUE)
        assert of_queue(lived) == [], "what was not handed over is taken back"
        for record in (*prefix, *suffix):
            lived.replay(record)
        expected = replayed([*prefix, *suffix])
        assert state(lived) == state(expected)
        was_sent |= any(sample.state is SampleState.SENT for sample in expected.hosted.by_name[QUEUE].held)
        # It works on as the fresh one does.
        for each in (lived, expected):
            each.receive(now, ConsumerLeft(QUEUE, READERS[0]))
            each.receive(now, ConsumerLeft(QUEUE, READERS[1]))
            each.finish_restore(now + 100)
        assert state(lived) == state(expected)
        assert after(lived, seed, now + 100) == after(expected, seed, now + 100)
    assert was_sent


def after(engine: ServiceEngine, seed: int, now: int) -> list[Outbound]:
    """What a queue sends in a story of its own."""
    chance, sent = random.Random(-seed), list[Outbound]()
    for _ in range(20):
        now += chance.randint(0, 9)
        engine.receive_all(now, [a_message(chance)])
        engine.advance(now)
        sent += engine.take_ready().messages
    return sent


def test_answers_that_rest_on_what_was_rolled_back_do_not_leave() -> None:
    engine = fresh()
    engine.finish_restore(0)
    engine.take_ready()
    engine.receive(0, Write("P", "Order", SampleIdentity(WRITER, 1), b"x"))
    stored = of_queue(engine)
    engine.receive(1, Write("P", "Order", SampleIdentity(WRITER, 2), b"x"))
    engine.rollback(QUEUE)
    for record in stored:
        engine.replay(record)
    engine.finish_restore(1)
    assert engine.take_ready().messages == []
    engine.receive(2, Write("P", "Order", SampleIdentity(WRITER, 2), b"y"))
    ready = engine.take_ready()
    assert [(batch.first_index, len(batch.records)) for batch in ready.batches] == [(3, 1)]
    assert [each.rests_on for each in ready.messages] == [3]
