"""A replay of stored records as runs has the effect of a replay one by one."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, islice
from random import Random

import pytest
from msgspec import structs

from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.queue._run import Run
from qsctl.core.queue.joining import joined
from qsctl.core.queue.settings import (
    PersistenceKind,
    PersistenceSettings,
    RedeliverySettings,
    SharedReaderQueueSettings,
)
from qsctl.core.records import (
    Assigned,
    DeadLetterReason,
    Enqueued,
    Record,
    RemovalCause,
    Removed,
    Returned,
    Undeliverable,
    one_by_one,
)
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import Guid, SampleIdentity, counted_incarnations
from qsctl.instant import INFINITE_NS
from tests.campaigns import trials

QUEUE = "P/S/orders"
WRITER, OTHER = Guid(b"w" * 16), Guid(b"v" * 16)
CONSUMERS = [Guid(bytes([65 + n]) * 16) for n in range(3)]
SEEDS = trials("QSCTL_TEST_RESTORED_RUNS", 150, 20_000)
SENT_AGAIN = 40
"""Instant of the restart: samples of some frames have expired by then."""


STORED = SharedReaderQueueSettings("orders", "Order", persistence=PersistenceSettings(PersistenceKind.PERSISTENT))


def engine(*queues: SharedReaderQueueSettings) -> ServiceEngine:
    subscriber = SharedSubscriberSettings("S", (), queues or (STORED,))
    settings = ServiceSettings("svc", (DomainParticipantSettings("P", 0, (subscriber,)),))
    return ServiceEngine(settings, started_at=0, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY)


class History:
    """Records of one queue: frames that enter, and what happens to ranges of their samples."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.records: list[Record] = []
        self.waiting: list[int] = []
        self.sent: list[int] = []
        self.attempts: dict[int, int] = {}
        self.next_position = 1

    def enqueue(self) -> None:
        """Add a frame, some of whose samples differ from the others or have an identity that came before."""
        chance = self.chance
        count, at_ns = chance.choice((1, 5, 8, 20, 64)), chance.randrange(3)
        usual = Enqueued(
            QUEUE, 0, SampleIdentity(WRITER, 0), at_ns, chance.choice((INFINITE_NS, SENT_AGAIN, 90)), payload=b"x"
        )
        usual = structs.replace(usual, flags=chance.choice((0, 0, 0, 1, 8)))
        gap = chance.choice((0, 0, 0, 100))
        for position in range(self.next_position, self.next_position + count):
            record = structs.replace(usual, position=position, identity=SampleIdentity(WRITER, position + gap))
            if chance.random() < 0.02:
                record = structs.replace(
                    record,
                    **chance.choice(
                        (
                            {"flags": 1},
                            {"flags": 8},
                            {"related_reader_guid": OTHER},
                            {"identity": SampleIdentity(OTHER, position)},
                            {"payload": b"y" * 300},
                            {"identity": SampleIdentity(WRITER, max(1, position - 3))},
                            {"enqueued_at_ns": at_ns + 1},
                        )
                    ),
                )
            self.records.append(record)
            self.waiting.append(position)
        self.next_position += count

    def assign(self) -> None:
        """Send the next samples to consumers in turn, or out of turn; the store may have lost that some have left."""
        chance = self.chance
        positions = self.waiting[: chance.choice((1, 7, 16, 40))]
        if positions and positions == sorted(positions) and chance.random() < 0.3:
            positions = [each for each in range(positions[0], positions[-1] + 1) if each not in self.sent]
        consumers = chance.choice((CONSUMERS[:1], CONSUMERS[:2], CONSUMERS, chance.choices(CONSUMERS, k=7)))
        for position, guid in zip(positions, islice(cycle(consumers), len(positions)), strict=True):
            self.records.append(Assigned(QUEUE, position, guid, self.attempts.get(position, 0) + 1))
        self.sent += [each for each in positions if each in self.waiting]
        self.waiting = [each for each in self.waiting if each not in positions]

    def remove(self) -> None:
        """Remove samples at a constant step, mostly of those that were sent."""
        chance = self.chance
        among = self.sent if chance.random() < 0.9 else self.waiting
        start = chance.randrange(len(among) + 1) if chance.random() < 0.5 else 0
        going = among[start :: chance.choice((1, 1, 2, 3))][: chance.choice((1, 9, 30))]
        cause = chance.choice((RemovalCause.DELIVERED, RemovalCause.DELIVERED, RemovalCause.FLUSHED))
        self.records += [Removed(QUEUE, position, cause) for position in going]
        among[:] = [each for each in among if each not in going]

    def give_back(self) -> None:
        """Return a sample that was sent."""
        if self.sent:
            position = self.sent.pop(self.chance.randrange(len(self.sent)))
            self.attempts[position] = self.attempts.get(position, 0) + 1
            self.records.append(Returned(QUEUE, position, self.attempts[position], redelivered=True))
            self.waiting.insert(0, position)


def histories(seed: int) -> list[Record]:
    history = History(seed)
    for _ in range(25):
        history.chance.choice((history.enqueue, history.assign, history.remove, history.remove, history.give_back))()
    return history.records


def position_of(record: Record) -> int:
    return getattr(record, "position", 0)


@pytest.mark.campaign
def test_a_replay_by_runs_has_the_effect_of_one_by_single_records() -> None:
    runs_count = 0
    for seed in range(SEEDS):
        records = histories(seed)
        by_runs, singly = engine(), engine()
        by_runs.replay_all(records)
        for record in records:
            singly.replay(record)
        runs_count += sum(isinstance(each, Run) for each in by_runs.hosted.by_name[QUEUE].held.entries_behind(0))
        assert state(by_runs) == state(singly), seed
        for one in (by_runs, singly):
            one.finish_restore(SENT_AGAIN)
            one.advance(SENT_AGAIN)
        assert state(by_runs) == state(singly), seed
        readies = [one.take_ready() for one in (by_runs, singly)]
        # Of each sample in order; those of different samples are independent.
        written = [[sorted(one_by_one(batch.records), key=position_of) for batch in ready.batches] for ready in readies]
        assert sorted(written[0], key=repr) == sorted(written[1], key=repr), seed
        for one in (by_runs, singly):
            one.advance(90)
        assert state(by_runs) == state(singly), seed
    assert runs_count > SEEDS


def test_samples_removed_together_that_were_sent_apart_leave_each_delivery() -> None:
    first = Enqueued(QUEUE, 1, SampleIdentity(WRITER, 1), 1, INFINITE_NS, payload=b"x")
    records: list[Record] = [
        structs.replace(first, position=at, identity=SampleIdentity(WRITER, at)) for at in range(1, 21)
    ]
    records += [Assigned(QUEUE, at, CONSUMERS[0], 1) for at in range(1, 11)]
    records.append(Removed(QUEUE, 1, RemovalCause.DELIVERED))
    records += [Assigned(QUEUE, at, CONSUMERS[1], 1) for at in range(11, 21)]
    records += [Removed(QUEUE, at, RemovalCause.DELIVERED) for at in range(6, 15)]
    one = engine()
    one.replay_all(records)
    held = one.hosted.by_name[QUEUE].held
    assert isinstance(held.entries_behind(0)[0], Run)
    assert [(each.position, each.holder) for each in held] == [
        *((at, CONSUMERS[0]) for at in range(2, 6)),
        *((at, CONSUMERS[1]) for at in range(15, 21)),
    ]


@pytest.mark.parametrize("is_run", [True, False], ids=["run", "single"])
def test_samples_that_a_restart_gives_up_become_dead_letters_in_the_order_of_the_queue(is_run: bool) -> None:
    """Found by a schedule: of a run, those that had been given up before the restart came before the others."""
    retries = RedeliverySettings(max_delivery_retries=0)
    orders = replace(STORED, dead_letter_queue="dead", redelivery=retries)
    dead = replace(STORED, name="dead", topic_name="Dead", is_dead_letter=True)
    one = engine(orders, dead)
    first = Enqueued(QUEUE, 1, SampleIdentity(WRITER, 1), 1, INFINITE_NS, payload=b"x")
    records: list[Record] = [
        structs.replace(first, position=at, identity=SampleIdentity(WRITER, at)) for at in range(1, 21)
    ]
    for at in (2, 4, 6, 8):
        records.append(Returned(QUEUE, at, 1, redelivered=True))
        if at in (4, 8):
            records.append(Undeliverable(QUEUE, at, DeadLetterReason.MAX_RETRIES))
    if is_run:
        one.replay_all(records)
    else:
        for record in records:
            one.replay(record)
    assert isinstance(one.hosted.by_name[QUEUE].held.entries_behind(0)[0], Run) is is_run
    one.finish_restore(SENT_AGAIN)
    letters = one.hosted.by_name["P/S/dead"].held
    assert [each.original_identity.sequence_number for each in letters] == [2, 4, 6, 8]


def state(one: ServiceEngine) -> object:
    """Return what the queue holds, remembers and waits for."""
    queue = one.hosted.by_name[QUEUE]
    return (
        list(queue.held),
        queue.held.retired(),
        queue.held.next_position,
        len(queue.held),
        queue.stream.last_index,
        one.ignored_record_count,
        queue.deliveries.groups.main.waiting_count,
        queue.next_deadline(),
    )


def test_joined_records_are_the_same_one_by_one() -> None:
    """Assignments to samples of a run follow it; nothing else changes places."""
    for seed in range(50):
        records = histories(seed)
        found = list(one_by_one(joined(records)))
        assert sorted(found, key=repr) == sorted(records, key=repr)
        for kind in (Enqueued, Assigned, Removed, Returned):
            assert [each for each in found if type(each) is kind] == [each for each in records if type(each) is kind]
