"""A sample that a command moves inside one service is in exactly one queue, wherever the records end [QS 2.12, 5.4.3].

Each turn that moves samples is cut after every record that it wrote, and a service is restored from what is left.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from qsctl.core.admin.command import HeldSample, MoveSamples
from qsctl.core.admin.reply import SamplesChanged
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    CommandReply,
    CommandRequest,
    ConsumerJoined,
    ConsumerLeft,
    Delivery,
    Inbound,
    Outbound,
    Write,
)
from qsctl.core.queue.settings import (
    PersistenceKind,
    PersistenceSettings,
    RedeliverySettings,
    SharedReaderQueueSettings,
)
from qsctl.core.ready import Ready
from qsctl.core.records import MovedFrom, QueueRecord, Record, Remembered, RemovalCause, Removed
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.core.turn import Turn
from qsctl.identity import Guid, Incarnation, SampleIdentity, counted_incarnations
from qsctl.resource import parse_resource
from tests.campaigns import trials

S = "/domain_participant/P/shared_subscriber/S"
QUEUES = {
    "P/S/orders": parse_resource(f"{S}/shared_reader_queue/orders"),
    "P/S/bills": parse_resource(f"{S}/shared_reader_queue/bills"),
    "P/S/news": parse_resource(f"{S}/shared_reader_queue/news"),
    "P/S/dead": parse_resource(f"{S}/dead_letter_shared_reader_queue/dead"),
}
READER, WRITER, ASKER = Guid(b"r" * 16), Guid(b"w" * 16), Guid(b"a" * 16)
STORED = PersistenceSettings(PersistenceKind.PERSISTENT)
SEEDS = trials("QSCTL_TEST_MOVES", 20, 2_000)


def queue(name: str) -> SharedReaderQueueSettings:
    return SharedReaderQueueSettings(
        name,
        name.capitalize(),
        is_dead_letter=name == "dead",
        dead_letter_queue="" if name == "dead" else "dead",
        redelivery=RedeliverySettings(max_delivery_retries=0),
        persistence=PersistenceSettings() if name == "news" else STORED,
    )


def fresh(journal: Journal) -> ServiceEngine:
    queues = tuple(map(queue, ("orders", "bills", "news", "dead")))
    participant = DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S", queues=queues),))
    return ServiceEngine(
        ServiceSettings("svc", (participant,)), started_at=0, draw=counted_incarnations(), journal=journal
    )


def state(engine: ServiceEngine) -> dict[str, list[tuple[int, int, bytes | None, int, bool]]]:
    return {
        name: [
            (each.position, each.original_identity.sequence_number, each.payload, each.flags, each.redelivered)
            for each in found.held
        ]
        for name, found in engine.hosted.by_name.items()
    }


class Driven:
    """A service whose turns are written as a driver writes them, and each record of them in its order."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.engine = fresh(journal)
        self.engine.finish_restore(0)
        self.turn = Turn(self.engine)
        self.written: list[Record] = []
        self.moves: list[tuple[int, int, dict[str, list[tuple[int, int, bytes | None, int, bool]]]]] = []
        """Of each turn that moved samples: where its records begin and end, and the state after it."""
        self.now = 0
        self.do()

    def do(self, *messages: Inbound) -> list[Outbound]:
        self.now += 1
        self.turn.receive(messages)
        sent: list[Outbound] = []
        while not self.turn.is_idle or self.is_due():
            if self.is_due():
                self.turn.receive(())
            while self.turn.step(self.now):
                pass
            while (group := self.turn.to_write()) is not None:
                self.write(group.turns)
            sent += [message for released in self.turn.to_send() for message in released.messages]
        return sent

    def is_due(self) -> bool:
        deadline = self.turn.next_deadline()
        return deadline is not None and deadline <= self.now

    def write(self, turns: Sequence[Ready]) -> None:
        start = len(self.written)
        for ready in turns:
            batches = ready.batches
            if not ready.moves_samples:
                batches = sorted(batches, key=lambda batch: batch.stream != "P/S/dead")
            for batch in batches:
                self.written += batch.records
        if any(ready.moves_samples for ready in turns):
            assert len(turns) == 1, "a turn that moves samples is written alone"
            self.moves.append((start, len(self.written), state(self.engine)))
        for ready in turns:
            for batch in ready.batches:
                self.turn.durable(batch.stream, batch.last_index)

    def move(self, source: str, target: str, count: int) -> SamplesChanged:
        held = [*self.engine.hosted.by_name[source].held][:count]
        named = tuple(
            HeldSample(each.position, each.original_identity)
            if (origin := each.dead_letter) is None
            else HeldSample(each.position, origin.identity, origin.queue, origin.position, origin.incarnation)
            for each in held
        )
        command = MoveSamples(QUEUES[source], QUEUES[target], named)
        replies = self.do(CommandRequest(SampleIdentity(ASKER, self.now + 1), "svc", command))
        (reply,) = (each for each in replies if isinstance(each, CommandReply))
        assert isinstance(reply.reply.body, SamplesChanged), reply.reply.text
        return reply.reply.body

    def consume(self, name: str, response: AckResponse) -> None:
        sent = self.do(ConsumerJoined(name, READER, unacked_threshold=2))
        for each in sent:
            if isinstance(each, Delivery):
                self.do(Acknowledgment(each.queue, READER, each.identity, response))
        self.do(ConsumerLeft(name, READER, hands_back=True))


def history(seed: int, journal: Journal) -> Driven:
    chance = random.Random(seed)
    driven = Driven(journal)
    number = 0
    for _ in range(12):
        match chance.choice(["write", "write", "consume", "move", "move", "move"]):
            case "write":
                topic = chance.choice(["Orders", "Bills", "News"])
                for _ in range(chance.randint(1, 3)):
                    number += 1
                    driven.do(Write("P", topic, SampleIdentity(WRITER, number), b"%d" % number))
            case "consume":
                name = chance.choice(["P/S/orders", "P/S/bills", "P/S/news"])
                driven.consume(name, chance.choice([AckResponse.REJECTED, AckResponse.ACCEPTED]))
            case _:
                source = chance.choice(list(QUEUES))
                target = chance.choice([name for name in QUEUES if name != source])
                held_count = len(driven.engine.hosted.by_name[source].held)
                count = chance.randint(1, 4)
                changed = driven.move(source, target, count)
                if target != "P/S/dead":
                    assert changed.done_count == min(count, held_count)
    return driven


def numbers(found: dict[str, list[tuple[int, int, bytes | None, int, bool]]]) -> Counter[int]:
    return Counter(number for rows in found.values() for _, number, *_ in rows)


def cuts_of(driven: Driven) -> Iterator[tuple[int, bool, Counter[int]]]:
    """Yield where each turn that moves samples may be cut, whether that is its end, and what is held by then."""
    for start, end, after in driven.moves:
        for cut in range(start, end + 1):
            yield cut, cut == end, numbers(after)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(SEEDS))
def test_each_sample_is_in_one_queue_wherever_the_records_of_a_move_end(seed: int) -> None:
    check_cuts(history(seed, Journal.EVERYTHING))


def check_cuts(driven: Driven) -> None:
    for cut, is_end, expected in cuts_of(driven):
        engine = fresh(Journal.EVERYTHING)
        left = driven.written[:cut]
        engine.restore(driven.now, left)
        found = state(engine)
        assert numbers(found) == expected, f"{cut} of {len(driven.written)} records"
        assert not any(row[-1] for rows in found.values() for row in rows), "none is a possible duplicate"
        again = fresh(Journal.EVERYTHING)
        added = [record for batch in engine.take_ready().batches for record in batch.records]
        assert is_end <= (not any(isinstance(each, QueueRecord) for each in added)), "a whole move needs no completion"
        again.restore(driven.now, [*left, *added])
        assert state(again) == found


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(SEEDS // 2))
def test_moves_to_and_from_volatile_queues_end_with_the_service_or_outlive_it_whole(seed: int) -> None:
    """A volatile queue of a running service has no records: what leaves it is stored, what comes to it is not."""
    driven = history(1_000 + seed, Journal.PERSISTENT_ONLY)
    for start, end, after in driven.moves:
        volatile = {number for _, number, *_ in after["P/S/news"]}
        for cut in range(start, end + 1):
            engine = fresh(Journal.PERSISTENT_ONLY)
            engine.restore(driven.now, driven.written[:cut])
            found = numbers(state(engine))
            assert max(found.values(), default=1) == 1
            if cut == end:
                assert set(found) == set(numbers(after)) - volatile


def test_a_queue_that_was_created_again_keeps_its_samples_when_moves_from_the_former_are_replayed() -> None:
    driven = Driven(Journal.EVERYTHING)
    driven.do(Write("P", "Orders", SampleIdentity(WRITER, 1), b"1"))
    assert driven.move("P/S/orders", "P/S/bills", 1).done_count == 1
    former = MovedFrom("P/S/orders", 1, driven.engine.hosted.by_name["P/S/orders"].incarnation)
    assert Removed(former.queue, former.position, RemovalCause.FLUSHED) in driven.written
    engine = fresh(Journal.EVERYTHING)
    orders = [each for each in driven.written if getattr(each, "queue", "") == "P/S/orders"]
    others = [each for each in driven.written if getattr(each, "queue", "") != "P/S/orders"]
    again = [
        Remembered("P/S/orders", 1, (), Incarnation(former.incarnation + 100)),
        *(each for each in orders[1:] if not isinstance(each, Removed)),
    ]
    engine.restore(driven.now, [*others, *again])
    assert numbers(state(engine)) == Counter({1: 2}), "it is another queue's sample of that identity"


def test_a_move_that_a_restart_completed_stays_complete_where_the_disk_refuses_that() -> None:
    driven = Driven(Journal.EVERYTHING)
    driven.do(*(Write("P", "Orders", SampleIdentity(WRITER, number), b"1") for number in (1, 2)))
    assert driven.move("P/S/orders", "P/S/bills", 1).done_count == 1
    ((start, end, after),) = driven.moves
    left = driven.written[: end - 1]  # all but the removal from the source
    assert start < end - 1
    engine = fresh(Journal.EVERYTHING)
    engine.restore(driven.now, left)
    of_source = [each for each in left if getattr(each, "queue", "") == "P/S/orders"]
    for _ in range(2):
        engine.suspend_queue(driven.now, "P/S/orders", of_source, {})
        assert numbers(state(engine)) == numbers(after)
    engine.continue_queue(driven.now, "P/S/orders")
    assert [row[1] for row in state(engine)["P/S/orders"]] == [2]


def test_consumers_are_sent_nothing_that_moves_before_that_is_durable() -> None:
    driven = Driven(Journal.PERSISTENT_ONLY)
    driven.do(Write("P", "Orders", SampleIdentity(WRITER, 1), b"1"))
    driven.do(ConsumerJoined("P/S/news", READER))
    command = MoveSamples(
        QUEUES["P/S/orders"], QUEUES["P/S/news"], (HeldSample(1, SampleIdentity(WRITER, 1)),)
    )  # a volatile queue: its deliveries rest on no record of its own
    driven.turn.receive((CommandRequest(SampleIdentity(ASKER, 1), "svc", command),))
    while driven.turn.step(driven.now):
        pass
    group = driven.turn.to_write()
    assert group is not None
    assert not group.changes_queues
    assert [each for released in driven.turn.to_send() for each in released.messages] == []
    driven.write(group.turns)
    sent = driven.do()
    assert [type(each) for each in sent] == [CommandReply, Delivery]


def test_a_move_goes_apart_from_what_is_received_with_it() -> None:
    driven = Driven(Journal.EVERYTHING)
    driven.do(*(Write("P", "Orders", SampleIdentity(WRITER, number), b"x") for number in (1, 2)))

    def moving(source: str, target: str, number: int) -> CommandRequest:
        held = (HeldSample(1, SampleIdentity(WRITER, number)),)
        return CommandRequest(SampleIdentity(ASKER, number), "svc", MoveSamples(QUEUES[source], QUEUES[target], held))

    sent = driven.do(
        Write("P", "Orders", SampleIdentity(WRITER, 3), b"x"),
        moving("P/S/orders", "P/S/bills", 1),
        moving("P/S/bills", "P/S/orders", 1),
        Write("P", "Bills", SampleIdentity(WRITER, 4), b"x"),
    )
    assert len(driven.moves) == 2
    check_cuts(driven)
    assert [each.reply.body.done_count for each in sent if isinstance(each, CommandReply)] == [1, 1]  # type: ignore[union-attr]
    assert [row[1] for row in state(driven.engine)["P/S/orders"]] == [2, 3, 1]


def test_a_command_moves_nothing_that_a_consumer_has_or_that_is_another_sample() -> None:
    driven = Driven(Journal.EVERYTHING)
    driven.do(*(Write("P", "Orders", SampleIdentity(WRITER, number), b"x") for number in (1, 2)))
    driven.do(ConsumerJoined("P/S/orders", READER, unacked_threshold=0))
    orders = driven.engine.hosted.by_name["P/S/orders"]
    held = (
        HeldSample(1, SampleIdentity(WRITER, 1)),  # a consumer has it
        HeldSample(3, SampleIdentity(WRITER, 2)),  # the position of another
        HeldSample(2, SampleIdentity(WRITER, 2)),
    )

    def sent(**given: object) -> CommandReply:
        command = MoveSamples(QUEUES["P/S/orders"], QUEUES["P/S/bills"], held, **given)  # type: ignore[arg-type]
        (reply,) = driven.do(CommandRequest(SampleIdentity(ASKER, 1), "svc", command))
        assert isinstance(reply, CommandReply)
        return reply

    assert "was deleted and created again" in sent(incarnation=orders.incarnation + 1).reply.text
    assert "with 1 payloads" in sent(payloads=(b"x",)).reply.text
    assert sent(incarnation=orders.incarnation).reply.body == SamplesChanged(1, absent=(0, 1))
    assert [row[1] for row in state(driven.engine)["P/S/bills"]] == [2]
