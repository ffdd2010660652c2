"""The seam of the service engine: what a driver may rely on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from qsctl.core.admin.command import GetMessages
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.events import SampleRemoved
from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    CommandReply,
    CommandRequest,
    ConsumerJoined,
    Delivery,
    Inbound,
    StatusPublication,
    Write,
    WriteAcknowledgment,
)
from qsctl.core.payloads import fill_payloads, records_with_payloads
from qsctl.core.queue.settings import (
    MonitoringSettings,
    PersistenceKind,
    PersistenceSettings,
    RedeliverySettings,
    SharedReaderQueueSettings,
)
from qsctl.core.ready import Ready
from qsctl.core.records import Enqueued, QueueCreated, Record, Remembered, RemovalCause, ServiceStarted
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.errors import Damaged, NotFound, Refused
from qsctl.identity import NIL_GUID, Guid, Incarnation, SampleIdentity, counted_incarnations
from qsctl.resource import parse_resource
from tests.batches import records_of

PARTICIPANT = parse_resource("/domain_participant/P")
SUBSCRIBER = parse_resource("/domain_participant/P/shared_subscriber/S")
ORDERS = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/orders")
WRITER, READER = Guid(b"w" * 16), Guid(b"r" * 16)
PERSISTENT = PersistenceSettings(PersistenceKind.PERSISTENT)


def queue(name: str = "orders", **given: Any) -> SharedReaderQueueSettings:
    return SharedReaderQueueSettings(**{"name": name, "topic_name": name.capitalize(), **given})


def service(*queues: SharedReaderQueueSettings) -> ServiceSettings:
    return ServiceSettings("svc", (DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S", (), queues),)),))


def engine(*queues: SharedReaderQueueSettings, journal: Journal = Journal.PERSISTENT_ONLY) -> ServiceEngine:
    made = ServiceEngine(service(*(queues or (queue(),))), started_at=0, draw=counted_incarnations(), journal=journal)
    made.finish_restore(0)
    made.take_ready()
    return made


def write(number: int, topic: str = "Orders", payload: bytes = b"x") -> Write:
    return Write("P", topic, SampleIdentity(WRITER, number), payload)


def acknowledge(number: int) -> Acknowledgment:
    return Acknowledgment("P/S/orders", READER, SampleIdentity(WRITER, number))


def test_what_is_hosted_is_listed() -> None:
    host = engine().hosted
    assert host.application_name == "svc"
    assert list(host.participants()) == [PARTICIPANT]
    assert list(host.subscribers()) == [SUBSCRIBER]
    assert list(host.queues()) == [ORDERS]


def test_time_does_not_advance_where_a_clock_runs_backwards() -> None:
    one = engine(queue(redelivery=RedeliverySettings(1, 10)))
    one.receive(100, ConsumerJoined("P/S/orders", READER))
    one.receive(50, write(1))
    assert one.next_deadline() == 110
    one.advance(20)
    assert [event.at_ns for event in one.take_ready().events] == [100, 100, 100]


def test_an_engine_without_deadlines_needs_no_timer() -> None:
    one = engine()
    one.receive(0, ConsumerJoined("P/S/orders", READER))
    one.receive(0, write(1))
    assert one.next_deadline() is None


def test_a_batch_is_handed_over_once() -> None:
    one = engine()
    one.receive(0, write(1))
    first = one.take_ready()
    assert [type(message) for message in first.messages] == [WriteAcknowledgment]
    assert one.take_ready() == Ready([], [], [])
    one.receive(0, write(2))
    assert len(first.messages) == 1


def test_a_sample_past_its_lifespan_has_expired_even_when_its_rejection_comes_first() -> None:
    one = engine(queue(lifespan_ns=10))
    one.receive(0, ConsumerJoined("P/S/orders", READER))
    one.receive(0, write(1))
    one.receive(10, replace_response(acknowledge(1)))
    removed = [event for event in one.take_ready().events if isinstance(event, SampleRemoved)]
    assert [event.cause for event in removed] == [RemovalCause.EXPIRED]


def test_thousands_of_queues_share_one_timer() -> None:
    count = 2_000
    settings = [queue(f"q{n}", topic_name=f"T{n}", lifespan_ns=1_000 + n) for n in range(count)]
    one = engine(*settings)
    for n in range(count):
        one.receive(0, write(n + 1, f"T{n}"))
    assert one.next_deadline() == 1_000
    one.advance(1_000 + count // 2 - 1)
    held = sum(1 for resource in one.hosted.queues() for _ in one.hosted.samples(resource))
    assert held == count // 2
    assert one.next_deadline() == 1_000 + count // 2


def test_a_deleted_queue_has_no_deadline() -> None:
    one = engine(queue(lifespan_ns=10, monitoring=MonitoringSettings(True, 3)))
    one.receive(0, write(1))
    assert one.next_deadline() == 3
    one.hosted.delete_queue(1, ORDERS)
    assert one.next_deadline() is None
    one.advance(100)
    assert not any(isinstance(message, StatusPublication) for message in one.take_ready().messages)


def test_the_first_batch_of_a_new_service_records_its_configuration() -> None:
    one = ServiceEngine(service(queue()), started_at=0, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY)
    one.restore(0, [])
    assert records_of(one.take_ready()) == [ServiceStarted(one.hosted.settings(), Incarnation(1))]


def test_a_stored_configuration_takes_the_place_of_the_given_one() -> None:
    one = ServiceEngine(service(queue()), started_at=0, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY)
    one.restore(0, [ServiceStarted(service(queue("other"))), QueueCreated("P", "S", queue("late"))])
    assert [settings.name for settings in one.hosted.queues().values()] == ["other", "late"]
    assert records_of(one.take_ready()) == []


def test_the_configuration_as_it_is_now_replays_to_itself() -> None:
    one = engine(queue(), queue("dead", is_dead_letter=True), queue("work", reply_type="Answer"))
    one.hosted.create_queue(0, SUBSCRIBER, queue("late", dead_letter_queue="dead"))
    one.hosted.create_subscriber(0, PARTICIPANT, SharedSubscriberSettings("T", (), (queue("q"),)))
    one.hosted.delete_queue(0, ORDERS)
    again = ServiceEngine(service(), started_at=0, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY)
    again.restore(0, one.snapshot())
    assert again.hosted.settings() == one.hosted.settings()
    assert list(again.hosted.queues()) == list(one.hosted.queues())
    names = [resource.name for resource in one.hosted.queues()]
    assert names == ["dead", "work", "workReply", "late", "q"]


def test_records_survive_the_store_and_give_the_same_state() -> None:
    one = engine(queue(persistence=PERSISTENT, redelivery=RedeliverySettings(3)))
    one.receive(0, ConsumerJoined("P/S/orders", READER))
    for number in range(1, 6):
        one.receive(number, write(number))
    one.receive(6, acknowledge(2))
    one.receive(6, replace_response(acknowledge(3)))
    packed = msgspec.msgpack.encode(records_of(one.take_ready()))
    again = engine(queue(persistence=PERSISTENT, redelivery=RedeliverySettings(3)))
    for record in msgspec.msgpack.decode(packed, type=list[Record]):
        again.replay(record)
    assert list(again.snapshot_queue("P/S/orders")) == list(one.snapshot_queue("P/S/orders"))


def test_restored_samples_share_the_guids_of_their_writers() -> None:
    one = engine(queue(persistence=PERSISTENT))
    for number in range(1, 6):
        one.receive(number, write(number))
    packed = msgspec.msgpack.encode(records_of(one.take_ready()))
    again = engine(queue(persistence=PERSISTENT))
    again.restore(0, msgspec.msgpack.decode(packed, type=list[Record]))
    samples = list(again.hosted.samples(ORDERS))
    assert len(samples) == 5
    assert len({id(sample.identity.writer_guid) for sample in samples}) == 1
    assert len({id(sample.source_guid) for sample in samples}) == 1


def replace_response(given: Acknowledgment) -> Acknowledgment:
    return msgspec.structs.replace(given, response=AckResponse.REJECTED)


def test_records_of_a_queue_that_is_gone_are_passed_over() -> None:
    one = engine()
    one.restore(0, [Enqueued("P/S/gone", 1, SampleIdentity(WRITER, 1), 0, 9)])
    assert one.ignored_record_count == 1


def test_everything_is_journaled_for_a_service_that_lives_between_commands() -> None:
    one = engine(journal=Journal.EVERYTHING)
    one.receive(0, write(1))
    assert [type(record) for record in records_of(one.take_ready())] == [Remembered, Enqueued]


def test_statistics_outlive_the_process() -> None:
    one = engine(journal=Journal.EVERYTHING)
    one.receive(0, write(1))
    again = engine(journal=Journal.EVERYTHING)
    again.restore(1, list(one.snapshot()))
    again.hosted.statistics.restore(one.hosted.statistics.snapshot())
    status = again.hosted.status(5, ORDERS)
    assert (status.total.received_message_count, status.additional.restored_message_count) == (1, 0)
    assert status.additional.held_count(status.total) == status.current_message_count == 1
    with pytest.raises(Damaged, match="cannot be read"):
        again.hosted.statistics.restore(b"\xc1")


@pytest.mark.parametrize("since", ["written", "removed"])
def test_statistics_that_a_kill_left_behind_the_store_are_counted_anew(since: str) -> None:
    one = engine(journal=Journal.EVERYTHING)
    one.receive_all(0, [write(1), write(2)])
    stored = one.hosted.statistics.snapshot()
    if since == "written":
        one.receive(1, write(3))
    else:
        one.hosted.flush(1, ORDERS, list(one.hosted.samples(ORDERS))[:1])
    again = engine(journal=Journal.EVERYTHING)
    again.restore(2, list(one.snapshot()))
    again.hosted.statistics.restore(stored)
    status = again.hosted.status(3, ORDERS)
    held = 3 if since == "written" else 1
    assert status.current_message_count == status.additional.held_count(status.total) == held
    assert status.additional.restored_message_count == held
    assert status.total.received_message_count == status.change.received_message_count == 0


def test_the_status_counts_what_was_not_handed_over_yet() -> None:
    one = engine()
    one.receive(0, write(1))
    status = one.hosted.status(0, ORDERS)
    assert (status.total.received_message_count, status.current_message_count) == (1, 1)
    one.take_ready()
    assert one.hosted.status(0, ORDERS).total.received_message_count == 1
    assert one.hosted.status(0, ORDERS).change.received_message_count == 0


def test_payloads_on_disk_are_put_back_into_a_batch() -> None:
    settings = queue(persistence=PersistenceSettings(PersistenceKind.PERSISTENT, in_memory_state=False))
    one = engine(settings)
    one.receive(0, write(1, payload=b"first"))
    one.take_ready()
    (sample,) = one.hosted.samples(ORDERS)
    assert (sample.payload, sample.size_bytes) == (None, 5)
    one.receive(1, ConsumerJoined("P/S/orders", READER))
    one.receive(1, CommandRequest(SampleIdentity(WRITER, 99), "svc", GetMessages(ORDERS)))
    filled = one.take_ready()
    fill_payloads(filled, read_first)
    delivery, reply = filled.messages
    assert isinstance(delivery, Delivery)
    assert isinstance(reply, CommandReply)
    assert delivery.payload == reply.reply.body.payload == b"first"  # type: ignore[union-attr]
    (_, enqueued, _) = records_with_payloads(one.snapshot_queue("P/S/orders"), read_first)
    assert isinstance(enqueued, Enqueued)
    assert (enqueued.payload, enqueued.payload_from) == (b"first", None)


def read_first(queue_name: str, positions: Sequence[int]) -> list[bytes]:
    return [{("P/S/orders", 1): b"first"}[queue_name, each] for each in positions]


@pytest.mark.parametrize(
    ("queues", "message"),
    [
        ((queue(), queue()), "has a queue 'orders' already"),
        ((queue(), queue("again", topic_name="Orders")), "has a queue of topic 'Orders' already: 'orders'"),
        (
            (queue(), queue("dead", topic_name="Orders", is_dead_letter=True)),
            "has a queue of topic 'Orders' already: 'dead'",
        ),
        ((queue(dead_letter_queue="dead"),), "'dead' is not a dead-letter queue of P/S"),
        ((queue(), queue("dead", dead_letter_queue="orders")), "'orders' is not a dead-letter queue"),
        ((queue("a", is_dead_letter=True), queue("b", is_dead_letter=True)), "has a dead-letter queue already: 'a'"),
        ((queue(dead_letter_queue="orders", is_dead_letter=True),), "is a dead-letter queue, which cannot have"),
        ((queue("work", reply_type="R"), queue("workReply", topic_name="Other")), "has a queue 'workReply' already"),
    ],
)
def test_an_impossible_configuration_names_the_obstacle(queues: Any, message: str) -> None:
    with pytest.raises(Refused, match=message):
        ServiceEngine(service(*queues), started_at=0, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY)
    one = engine()
    before = one.hosted.settings()
    with pytest.raises(Refused, match=message.replace("P/S", "P/T")):
        one.hosted.create_subscriber(0, PARTICIPANT, SharedSubscriberSettings("T", (), queues))
    assert one.hosted.settings() == before
    assert records_of(one.take_ready()) == []


def test_what_is_not_there_is_not_found() -> None:
    one = engine()
    with pytest.raises(NotFound, match="no queue"):
        one.hosted.status(0, replace(ORDERS, names=(*ORDERS.names[:2], (ORDERS.names[2][0], "none"))))
    with pytest.raises(NotFound, match="no queue"):
        one.hosted.queue(parse_resource(str(ORDERS).replace("/shared_reader", "/dead_letter_shared_reader")))
    with pytest.raises(NotFound, match="no shared subscriber"):
        one.hosted.create_queue(0, parse_resource("/domain_participant/P/shared_subscriber/X"), queue("new"))
    with pytest.raises(NotFound, match="no domain participant"):
        one.hosted.create_subscriber(0, parse_resource("/domain_participant/X"), SharedSubscriberSettings("T"))


def test_a_dead_letter_queue_in_use_is_not_deleted() -> None:
    one = engine(queue(dead_letter_queue="dead"), queue("dead", is_dead_letter=True))
    dead = parse_resource("/domain_participant/P/shared_subscriber/S/dead_letter_shared_reader_queue/dead")
    with pytest.raises(Refused, match="holds the dead letters of orders"):
        one.hosted.delete_queue(0, dead)
    one.hosted.delete_queue(0, ORDERS)
    one.hosted.delete_queue(0, dead)
    assert one.hosted.queues() == {}


def test_a_consumer_that_only_guesses_changes_nothing() -> None:
    one = engine()
    strays: list[Inbound] = [
        acknowledge(1),
        ConsumerJoined("P/S/none", READER),
        ConsumerJoined("P/S/orders", NIL_GUID),
        write(1, "None"),
    ]
    for stray in strays:
        one.receive(0, stray)
    assert one.refused_message_count == 4
    assert one.take_ready() == Ready([], [], [])


@pytest.mark.parametrize("response", list(AckResponse))
def test_an_acknowledgment_of_an_unheld_sample_changes_nothing(response: AckResponse) -> None:
    one = engine()
    one.receive(0, write(1))
    one.take_ready()
    one.receive(0, Acknowledgment("P/S/orders", NIL_GUID, write(1).identity, response))
    assert one.refused_message_count == 1
    assert one.take_ready() == Ready([], [], [])
    assert len(list(one.hosted.queue(ORDERS).held)) == 1


def test_a_batch_is_marked_where_it_changes_the_service() -> None:
    one = engine()
    assert one.take_ready().service_records == []
    one.hosted.create_queue(0, SUBSCRIBER, SharedReaderQueueSettings("more", "More"))
    one.receive(0, write(1))
    changing = one.take_ready()
    assert [type(record) for record in changing.service_records] == [QueueCreated]
    one.receive(0, write(2))
    assert one.take_ready().service_records == []


def test_a_batch_is_marked_where_a_payload_may_be_on_disk_only() -> None:
    """The first spilled payload is still in the batch that stores it."""
    one = engine(queue(persistence=PersistenceSettings(PersistenceKind.PERSISTENT, in_memory_state=False)))
    one.receive(0, write(1))
    assert one.take_ready().may_lack_payloads is False
    one.receive(0, ConsumerJoined("P/S/orders", READER))
    late = one.take_ready()
    assert [message.payload for message in late.messages if isinstance(message, Delivery)] == [None]
    assert late.may_lack_payloads is True


def test_sample_without_an_answer_waits_while_nothing_can_be_stored() -> None:
    """A producer that hears no acknowledgment would not know that its sample was refused."""
    made = engine()
    made.refuse_samples(1, ["P/S/orders"], refuses=True)
    for number, waits in enumerate((False, True), 1):
        made.receive(2, Write("P", "Orders", SampleIdentity(WRITER, number), b"x", waits_when_full=waits))
    answers = [(each.identity.sequence_number, each.response) for each in made.take_ready().messages]
    assert answers == [(1, AckResponse.REJECTED)]
    made.refuse_samples(3, ["P/S/orders"], refuses=False)
    made.advance(4)
    answers = [(each.identity.sequence_number, each.response) for each in made.take_ready().messages]
    assert answers == [(2, AckResponse.ACCEPTED)]
