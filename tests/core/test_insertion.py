"""Samples that commands insert, flag and remove: what `move`, `requeue` and `import` rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from qsctl.core.admin.command import Command, FlagSamples, GetMessages, HeldSample, InsertSamples, RemoveSamples
from qsctl.core.admin.reply import MessageData, ReturnCode, SamplesChanged
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.events import DuplicateDropped, SampleBounced
from qsctl.core.inserted_sample import InsertedSample
from qsctl.core.messages import (
    FLAGS_MASK,
    Acknowledgment,
    AckResponse,
    CommandReply,
    CommandRequest,
    ConsumerJoined,
    ConsumerLeft,
    Delivery,
    Inbound,
    SampleFlag,
    Write,
    bridges_of,
    flags_over_bridge,
)
from qsctl.core.queue._held import RETIRED_IDENTITIES_MAX, Held
from qsctl.core.queue.sample import Sample
from qsctl.core.queue.settings import RedeliverySettings, ResourceLimitSettings, SharedReaderQueueSettings
from qsctl.core.records import Record
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import Guid, SampleIdentity, counted_incarnations, guid_from_hex
from qsctl.resource import ResourceIdentifier, parse_resource

S = "/domain_participant/P/shared_subscriber/S"
ORDERS = parse_resource(f"{S}/shared_reader_queue/orders/message")
SMALL = parse_resource(f"{S}/shared_reader_queue/small/message")
NARROW = parse_resource(f"{S}/shared_reader_queue/narrow/message")
DEAD = parse_resource(f"{S}/dead_letter_shared_reader_queue/dead/message")
WRITER, CONSUMER, ASKER = guid_from_hex("1"), guid_from_hex("2"), guid_from_hex("3")
FLAGGED = int(SampleFlag.REDELIVERED | SampleFlag.INSERTED)


def settings(retries: int = 0) -> ServiceSettings:
    queues = (
        SharedReaderQueueSettings(
            "orders", "Order", dead_letter_queue="dead", redelivery=RedeliverySettings(retries, 10**12)
        ),
        SharedReaderQueueSettings("small", "Small", limits=ResourceLimitSettings(max_count=2)),
        SharedReaderQueueSettings("narrow", "Narrow", limits=ResourceLimitSettings(max_in_memory_bytes=1_000)),
        SharedReaderQueueSettings("dead", "Dead", is_dead_letter=True),
    )
    participant = DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S", (), queues),))
    return ServiceSettings("svc", (participant,))


@dataclass
class Driven:
    """An engine, its records, and what it said."""

    engine: ServiceEngine
    records: list[Record] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    events: list[object] = field(default_factory=list)
    now: int = 1

    def do(self, *messages: Inbound) -> list[CommandReply]:
        self.now += 1
        self.engine.receive_all(self.now, messages)
        replies: list[CommandReply] = []
        while True:
            self.engine.advance(self.now)
            ready = self.engine.take_ready()
            for batch in ready.batches:
                self.records += batch.records
            self.deliveries += [each for each in ready.messages if isinstance(each, Delivery)]
            replies += [each for each in ready.messages if isinstance(each, CommandReply)]
            self.events += ready.events
            if not self.engine.answers.is_answering:
                return replies

    def command(self, command: Command) -> list[CommandReply]:
        return self.do(CommandRequest(SampleIdentity(ASKER, self.now), "svc", command))

    def changed(self, command: Command) -> SamplesChanged:
        (reply,) = self.command(command)
        assert reply.reply.retcode is ReturnCode.OK, reply.reply.text
        assert isinstance(reply.reply.body, SamplesChanged)
        return reply.reply.body

    def held(self, queue: ResourceIdentifier, after_position: int = 0) -> list[MessageData]:
        bodies = (each.reply.body for each in self.command(GetMessages(queue, "", 0, after_position)))
        return [body for body in bodies if isinstance(body, MessageData)]

    def requeue(self) -> None:
        """Dead letters back, as the client does it."""
        dead = self.held(DEAD)
        assert not self.changed(InsertSamples(ORDERS, tuple(inserted(each.identity) for each in dead))).refused
        held = tuple(
            HeldSample(
                each.position,
                each.identity,
                each.dead_letter_from,
                each.dead_letter_position,
                each.dead_letter_incarnation,
            )
            for each in dead
        )
        assert not self.changed(RemoveSamples(DEAD, held)).refused

    def restarted(self) -> Driven:
        engine = ServiceEngine(settings(), started_at=self.now, draw=counted_incarnations(), journal=Journal.EVERYTHING)
        engine.restore(self.now, self.records)
        again = Driven(engine, list(self.records), now=self.now)
        again.do()
        return again

    def write(self, *numbers: int) -> None:
        self.do(*(Write("P", "Order", identity(number), b"x") for number in numbers))

    def consume(self, response: AckResponse) -> list[Delivery]:
        """Receive what there is, one after the other, answered each the same way."""
        begins_at = len(self.deliveries)
        self.do(ConsumerJoined("P/S/orders", CONSUMER))
        answered = begins_at
        while answered < len(self.deliveries):
            each = self.deliveries[answered]
            self.do(Acknowledgment(each.queue, CONSUMER, each.identity, response))
            answered += 1
        self.do(ConsumerLeft("P/S/orders", CONSUMER, hands_back=True))
        return self.deliveries[begins_at:]


def identity(number: int, writer: Guid = WRITER) -> SampleIdentity:
    return SampleIdentity(writer, number)


def inserted(of: SampleIdentity, **parts: object) -> InsertedSample:
    return InsertedSample(of, b"x", **parts)  # type: ignore[arg-type]


def numbers(found: Sequence[MessageData]) -> list[int]:
    return [each.identity.sequence_number for each in found]


@pytest.fixture
def service() -> Driven:
    engine = ServiceEngine(settings(), started_at=0, draw=counted_incarnations(), journal=Journal.EVERYTHING)
    engine.finish_restore(0)
    return Driven(engine)


def test_inserted_sample_keeps_what_it_is_and_is_delivered_flagged(service: Driven) -> None:
    sample = InsertedSample(
        identity(7),
        b"content",
        guid_from_hex("a"),
        guid_from_hex("b"),
        identity(3),
        guid_from_hex("c"),
        int(SampleFlag.REPLICATE | SampleFlag.LAST_SHARED_READER_QUEUE),
    )
    assert service.changed(InsertSamples(ORDERS, (sample,))) == SamplesChanged(1)
    (held,) = service.held(ORDERS)
    expected = (identity(7), b"content", guid_from_hex("a"), guid_from_hex("b"), identity(3), guid_from_hex("c"))
    assert (
        held.identity,
        held.payload,
        held.source_guid,
        held.related_source_guid,
        held.related_identity,
        held.related_reader_guid,
    ) == expected
    (delivery,) = service.consume(AckResponse.ACCEPTED)
    assert delivery.flags == FLAGGED | SampleFlag.REPLICATE, "the mark of the last sample is the service's own"
    assert delivery.attempt == 1


def test_held_sample_is_a_duplicate_and_a_retired_one_enters_again(service: Driven) -> None:
    service.write(1, 2)
    service.do(ConsumerJoined("P/S/orders", CONSUMER, unacked_threshold=0))
    service.do(Acknowledgment("P/S/orders", CONSUMER, identity(1)))
    body = service.changed(InsertSamples(ORDERS, (inserted(identity(1)), inserted(identity(2)))))
    assert (body.done_count, body.duplicate_count, body.refused) == (2, 1, ())
    assert numbers(service.held(ORDERS)) == [2, 1]
    service.write(1)
    assert isinstance(service.events[-1], DuplicateDropped), "its producer's copy is still a duplicate"


@pytest.mark.parametrize("is_compacted", [False, True])
def test_sample_that_entered_again_is_there_after_a_restart(service: Driven, is_compacted: bool) -> None:
    service.write(1, 2)
    service.consume(AckResponse.ACCEPTED)
    assert service.changed(InsertSamples(ORDERS, (inserted(identity(1)),))).done_count == 1
    if is_compacted:
        service.records = list(service.engine.snapshot())
    again = service.restarted()
    (held,) = again.held(ORDERS)
    assert (held.identity, held.redelivered) == (identity(1), True)
    again.write(1, 2)
    assert numbers(again.held(ORDERS)) == [1], "the other is still known as retired"
    assert again.changed(RemoveSamples(ORDERS, (HeldSample(held.position, held.identity),))).done_count == 1
    again.write(1)
    assert not again.held(ORDERS)


def test_sample_that_entered_again_outlives_the_window_of_retired_identities() -> None:
    held = Held()

    def pass_through(number: int) -> Sample:
        sample = Sample(held.next_position, identity(number), b"", 0, 0, 10**30)
        held.enter(sample)
        return sample

    held.retire(pass_through(1))
    held.forget(identity(1))
    again = pass_through(1)
    for number in range(2, RETIRED_IDENTITIES_MAX + 10):
        held.retire(pass_through(number))
    assert held.known[identity(1)] is again
    assert list(held) == [again]
    assert len(held) == 1


def test_requeued_sample_dies_a_second_time(service: Driven) -> None:
    """Its first dead letter left: a second one with its identity is no duplicate, for nothing else holds the sample."""
    service.write(1)
    for death in range(3):
        assert len(service.consume(AckResponse.REJECTED)) == 1
        assert numbers(service.held(DEAD)) == [1], f"after death {death + 1}"
        service.requeue()
        assert not service.held(DEAD)
        service = service.restarted()
        assert numbers(service.held(ORDERS)) == [1]


def test_sample_that_lies_in_both_and_dies_again_has_two_dead_letters(service: Driven) -> None:
    """What is at another position is another delivery: one letter too many, and never one too few."""
    service.write(1)
    service.consume(AckResponse.REJECTED)
    dead = service.held(DEAD)
    service.changed(InsertSamples(ORDERS, tuple(inserted(each.identity) for each in dead)))
    service.do()  # killed before the removal: it lies in both
    service.consume(AckResponse.REJECTED)
    first, second = service.held(DEAD)
    assert first.identity == second.identity
    assert second.redelivered
    assert not service.held(ORDERS)


def test_a_full_queue_refuses_and_lists_the_refused_samples(service: Driven) -> None:
    body = service.changed(InsertSamples(SMALL, tuple(inserted(identity(at)) for at in range(1, 5))))
    assert (body.done_count, body.refused, body.reason) == (2, (2, 3), "the queue is full")
    assert isinstance(service.events[-1], SampleBounced)
    assert numbers(service.held(SMALL)) == [1, 2]


def test_no_small_sample_overtakes_one_that_the_queue_has_no_room_for(service: Driven) -> None:
    sizes = (100, 500, 1)
    samples = tuple(InsertedSample(identity(at), bytes(size)) for at, size in enumerate(sizes, 1))
    body = service.changed(InsertSamples(NARROW, samples))
    assert (body.done_count, body.refused) == (1, (1, 2))
    assert numbers(service.held(NARROW)) == [1]


def test_a_command_counts_bridges_in_the_flags_and_a_producer_cannot(service: Driven) -> None:
    over_three = flags_over_bridge(flags_over_bridge(flags_over_bridge(0)))
    service.changed(InsertSamples(ORDERS, (inserted(identity(1), flags=over_three),)))
    service.do(Write("P", "Order", identity(2), b"x", flags=over_three))
    assert [bridges_of(each.flags) for each in service.restarted().held(ORDERS)] == [3, 0]


def test_count_of_bridges_ends_at_its_largest_and_leaves_the_other_flags() -> None:
    flags = FLAGGED
    for bridge in range(1, 20):
        flags = flags_over_bridge(flags)
        assert bridges_of(flags) == min(bridge, 15)
        assert flags & 0xFFF == FLAGGED
        assert flags <= FLAGS_MASK


def test_sample_whose_end_has_come_is_refused_and_one_that_has_an_end_expires_then(service: Driven) -> None:
    service.now = 100
    over, later = inserted(identity(1), expires_at_ns=50), inserted(identity(2), expires_at_ns=500)
    body = service.changed(InsertSamples(ORDERS, (over, later)))
    assert (body.refused, body.reason) == ((0,), "its lifespan is over")
    assert [each.expires_at_ns for each in service.held(ORDERS)] == [500]
    service.now = 500
    service.do()
    assert numbers(service.held(DEAD)) == [2]


def test_dead_letter_queue_takes_only_dead_letters(service: Driven) -> None:
    letter = inserted(identity(2), dead_letter_from="Order@S", dead_letter_reason="LIFESPAN")
    body = service.changed(InsertSamples(DEAD, (inserted(identity(1)), letter)))
    assert body.refused == (0,)
    assert body.reason.startswith("a dead-letter queue accepts only dead letters")
    (held,) = service.restarted().held(DEAD)
    assert (held.dead_letter_from, held.dead_letter_reason) == ("Order@S", "LIFESPAN")


def test_flagged_sample_stays_flagged_and_one_with_a_consumer_is_not_flagged(service: Driven) -> None:
    service.write(1, 2)
    service.do(ConsumerJoined("P/S/orders", CONSUMER, unacked_threshold=0))
    held = tuple(HeldSample(each.position, each.identity) for each in service.held(ORDERS))
    body = service.changed(FlagSamples(ORDERS, (*held, HeldSample(9, identity(9)))))
    assert (body.done_count, body.refused) == (1, (0, 2))
    assert [each.redelivered for each in service.held(ORDERS)] == [False, True]
    assert [each.redelivered for each in service.restarted().held(ORDERS)] == [True, True]
    service.do(Acknowledgment("P/S/orders", CONSUMER, identity(1)))
    assert [bool(each.flags & SampleFlag.REDELIVERED) for each in service.deliveries] == [False, True]


def test_only_the_sample_of_this_position_is_removed(service: Driven) -> None:
    service.write(1, 2, 3)
    wrong, right = HeldSample(1, identity(2)), HeldSample(3, identity(3))
    body = service.changed(RemoveSamples(ORDERS, (wrong, right, HeldSample(7, identity(7)))))
    assert (body.done_count, body.refused) == (1, (0, 2))
    assert numbers(service.held(ORDERS)) == [1, 2]


def test_samples_are_read_behind_a_position(service: Driven) -> None:
    service.write(1, 2, 3, 4)
    assert numbers(service.held(ORDERS, 2)) == [3, 4]
    assert service.held(ORDERS, 4) == []


def test_too_many_samples_in_one_command_are_refused(service: Driven) -> None:
    (reply,) = service.command(RemoveSamples(ORDERS, tuple(HeldSample(1, identity(1)) for _ in range(2001))))
    assert reply.reply.retcode is ReturnCode.ERROR
    assert "names 2001 samples" in reply.reply.text


def test_reply_rests_on_the_records_of_its_queue(service: Driven) -> None:
    (reply,) = service.command(InsertSamples(ORDERS, (inserted(identity(1)),)))
    assert (reply.queue, reply.rests_on) == ("P/S/orders", 2)
