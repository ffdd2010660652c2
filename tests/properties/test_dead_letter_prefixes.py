"""A move to the dead letters is two records in two stores: every pair of what a crash may leave of them [QS 2.12].

The dead letters' store is written first. Whatever prefix of each is left, a restart finds each sample once: held by its
queue, dead, or gone as it went; and its producer, which writes again what was not acknowledged, makes no second one.
"""

from __future__ import annotations

import random

import pytest

from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import Acknowledgment, AckResponse, ConsumerJoined, Write, WriteAcknowledgment
from qsctl.core.queue.settings import (
    PersistenceKind,
    PersistenceSettings,
    RedeliverySettings,
    ResourceLimitSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.records import Enqueued, Record, Removed
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import Guid, SampleIdentity, counted_incarnations
from qsctl.resource import parse_resource
from tests.batches import records_of

ORDERS, BILLS, DEAD = "P/S/orders", "P/S/bills", "P/S/dead"
LETTERS = parse_resource("/domain_participant/P/shared_subscriber/S/dead_letter_shared_reader_queue/dead")
READER, WRITER = Guid(b"r" * 16), Guid(b"w" * 16)
PERSISTENT = PersistenceSettings(PersistenceKind.PERSISTENT)


def queue(name: str, topic: str, dead_max: int) -> SharedReaderQueueSettings:
    return SharedReaderQueueSettings(
        name,
        topic,
        is_dead_letter=name == "dead",
        dead_letter_queue="" if name == "dead" else "dead",
        redelivery=RedeliverySettings(max_delivery_retries=1),
        persistence=PERSISTENT,
        lifespan_ns=30,
        limits=ResourceLimitSettings(max_count=dead_max if name == "dead" else -1),
    )


def fresh(dead_max: int) -> ServiceEngine:
    queues = (queue("orders", "Order", dead_max), queue("bills", "Bill", dead_max), queue("dead", "Dead", dead_max))
    participant = DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S", queues=queues),))
    return ServiceEngine(
        ServiceSettings("svc", (participant,)),
        started_at=0,
        draw=counted_incarnations(),
        journal=Journal.PERSISTENT_ONLY,
    )


def history(seed: int, dead_max: int) -> tuple[list[list[Record]], list[set[tuple[str, int]]]]:
    """Turns as a seed draws them: the records of each, and what was acknowledged to the producer by its end."""
    chance = random.Random(seed)
    engine = fresh(dead_max)
    engine.finish_restore(0)
    batches, told = [], []
    known: set[tuple[str, int]] = set()
    for now in range(14):
        engine.receive(now, ConsumerJoined(chance.choice([ORDERS, BILLS]), READER, unacked_threshold=3))
        for _ in range(chance.randint(0, 3)):
            number = chance.randint(1, 9)
            engine.receive(now, Write("P", chance.choice(["Order", "Bill"]), SampleIdentity(WRITER, number), b"x"))
        for name in (ORDERS, BILLS):
            for sample in list(engine.hosted.by_name[name].held):
                response = chance.choice([None, AckResponse.REJECTED, AckResponse.REJECTED, AckResponse.ACCEPTED])
                if response is not None:
                    engine.receive(now, Acknowledgment(name, READER, sample.identity, response))
        if chance.random() < 0.3:
            engine.hosted.flush(now, LETTERS, list(engine.hosted.samples(LETTERS))[:1])
        engine.advance(now)
        ready = engine.take_ready()
        batches.append([record for record in records_of(ready) if hasattr(record, "queue")])
        known |= {
            (each.queue, each.identity.sequence_number)
            for each in ready.messages
            if isinstance(each, WriteAcknowledgment)
        }
        told.append(set(known))
    return batches, told


def outcomes(records: list[Record], name: str) -> dict[int, str]:
    """What became of each sample number of a queue, by the records alone: held, or why it was removed."""
    numbers: dict[int, int] = {}
    became: dict[int, str] = {}
    for record in records:
        if isinstance(record, Enqueued) and record.queue == name:
            numbers[record.position] = record.identity.sequence_number
            became[record.identity.sequence_number] = "held"
        elif isinstance(record, Removed) and record.queue == name:
            became[numbers[record.position]] = record.cause.name
    return became


@pytest.mark.slow(beyond=3)
@pytest.mark.parametrize("dead_max", [-1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_every_pair_of_prefixes_of_a_batch_is_restored_to_one_sample_each(seed: int, dead_max: int) -> None:
    batches, told = history(seed, dead_max)
    pair_count = 0
    for at, batch in enumerate(batches):
        before = [record for earlier in batches[:at] for record in earlier]
        dead = [record for record in batch if record.queue == DEAD]  # type: ignore[union-attr]
        others = [record for record in batch if record.queue != DEAD]  # type: ignore[union-attr]
        # First the dead letters' store, whole, then those of the others: a prefix of either.
        cuts = [(count, 0) for count in range(len(dead))] + [(len(dead), count) for count in range(len(others) + 1)]
        for dead_count, other_count in cuts:
            pair_count += 1
            left = [*before, *dead[:dead_count], *others[:other_count]]
            acknowledged = told[at - 1] if at else set()
            check(left, acknowledged, at, dead_max, f"seed {seed}, turn {at}: {dead_count} and {other_count}")
    assert pair_count > 30


def check(left: list[Record], acknowledged: set[tuple[str, int]], now: int, dead_max: int, where: str) -> None:
    engine = fresh(dead_max)
    engine.restore(now, left)
    stored = [*left, *(record for record in records_of(engine.take_ready()) if hasattr(record, "queue"))]
    once = state(engine)
    # The producer writes again all that it may have written, acknowledged or not.
    for name, topic in ((ORDERS, "Order"), (BILLS, "Bill")):
        for number in range(1, 10):
            engine.receive(now, Write("P", topic, SampleIdentity(WRITER, number), b"x"))
        ended = {number: how for number, how in outcomes(left, name).items() if how != "held"}
        for number in range(1, 10):
            held = any(each.identity.sequence_number == number for each in engine.hosted.by_name[name].held)
            letters = [
                each
                for each in engine.hosted.by_name[DEAD].held
                if each.dead_letter is not None
                and (each.dead_letter.queue, each.original_identity.sequence_number) == (label(name), number)
            ]
            assert len(letters) + held <= 1, f"{where}: {name} {number} is held and dead"
            if (name, number) in acknowledged and number not in ended:
                assert held or letters or died(left, name, number), f"{where}: {name} {number} is lost"
    # What a restart stored says the same once more.
    again = fresh(dead_max)
    again.restore(now, stored)
    assert state(again) == once, where


def label(name: str) -> str:
    return {ORDERS: "Order@S", BILLS: "Bill@S"}[name]


def died(left: list[Record], name: str, number: int) -> bool:
    """Whether a dead letter of this sample was ever stored; it may have been flushed since."""
    return any(
        isinstance(record, Enqueued)
        and record.dead_letter_from == label(name)
        and record.identity.sequence_number == number
        for record in left
    )


def state(engine: ServiceEngine) -> dict[str, list[tuple[SampleIdentity, str, int, bool]]]:
    return {
        name: [(each.identity, each.state.name, each.attempts, each.redelivered) for each in held.held]
        for name, held in engine.hosted.by_name.items()
    }
