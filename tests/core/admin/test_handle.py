"""The nine commands of chapter 5: return codes, texts and bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from qsctl.core.admin._reading import message_status
from qsctl.core.admin.command import (
    CreateQueue,
    CreateSubscriber,
    DeleteQueue,
    DeleteSubscriber,
    FlushQueue,
    GetData,
    GetMessages,
    GetStatus,
    Shutdown,
    UpdateQueue,
)
from qsctl.core.admin.handle import LongAnswer, handle
from qsctl.core.admin.reply import MessageData, MessageStatus, QueueData, Reply, ReturnCode, ServiceData
from qsctl.core.hosted_service import HostedService
from qsctl.core.messages import ConsumerJoined, Write
from qsctl.core.queue.sample import SampleState
from qsctl.core.queue.settings import ResourceLimitSettings, SessionSettings, SharedReaderQueueSettings
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.core.statistics.status import CONSUMERS_MAX, ConsumerStatus, SharedReaderQueueStatus
from qsctl.identity import NIL_GUID, SampleIdentity, counted_incarnations, guid_from_hex
from qsctl.resource import ResourceIdentifier, ResourceKind, parse_resource

P = parse_resource("/domain_participant/P")
S = P.child(ResourceKind.SHARED_SUBSCRIBER, "S")
ORDERS = S.child(ResourceKind.SHARED_READER_QUEUE, "Orders")
DEAD = S.child(ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE, "Dead")
GUID = guid_from_hex("1")


def queue_settings(name: str = "Orders", **other: object) -> SharedReaderQueueSettings:
    return replace(SharedReaderQueueSettings(name, f"{name}Topic"), **other)  # type: ignore[arg-type]


def service(*, stops_on_command: bool = True) -> HostedService:
    participant = DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S"),))
    settings = ServiceSettings("here", (participant,))
    return HostedService(
        settings, 0, draw=counted_incarnations(), journals_everything=False, stops_on_command=stops_on_command
    )


def write(host: HostedService, queue: str, number: int, now: int = 7) -> None:
    host.by_name[queue].receive(now, Write("P", "", SampleIdentity(GUID, number), b"x" * number))


@pytest.fixture
def host() -> HostedService:
    """A service with three samples, of which a consumer holds the first."""
    made = service()
    made.create_queue(0, S, queue_settings())
    made.by_name["P/S/Orders"].join(0, ConsumerJoined("P/S/Orders", guid_from_hex("2"), unacked_threshold=0))
    for number in (1, 2, 3):
        write(made, "P/S/Orders", number)
    return made


def positions(host: HostedService) -> list[int]:
    return [sample.position for sample in host.samples(ORDERS)]


def answers(host: HostedService, command: object) -> Sequence[Reply]:
    """All replies, those of a long answer too."""
    begun = handle(host, 1, command)  # type: ignore[arg-type]
    if not isinstance(begun, LongAnswer):
        return begun
    replies: list[Reply] = []
    while not begun.is_over:
        replies += begun.go_on(1)
    return replies


def only(host: HostedService, command: object) -> Reply:
    replies = answers(host, command)
    assert len(replies) == 1
    return replies[0]


def test_creating_a_queue(host: HostedService) -> None:
    reply = only(host, CreateQueue(S, queue_settings("Bills")))
    assert (reply.retcode, reply.text) == (ReturnCode.OK, "queue P/S/Bills is created")
    assert S.child(ResourceKind.SHARED_READER_QUEUE, "Bills") in host.queues()


def test_the_same_queue_again_is_duplicated_and_another_configuration_already_exists(host: HostedService) -> None:
    again = only(host, CreateQueue(S, queue_settings()))
    assert again.retcode is ReturnCode.DUPLICATED
    assert again.text == "queue P/S/Orders exists already, with the same configuration"
    limits = ResourceLimitSettings(max_count=5)
    other = only(host, CreateQueue(S, queue_settings(limits=limits)))
    assert other.retcode is ReturnCode.ALREADY_EXISTS
    assert other.text == "queue P/S/Orders exists already, with a different configuration"
    assert host.queues()[ORDERS] == queue_settings()


def test_a_dead_letter_queue_of_the_same_name_is_in_the_way_too(host: HostedService) -> None:
    host.create_queue(0, S, queue_settings("Dead", is_dead_letter=True))
    assert only(host, CreateQueue(S, queue_settings("Dead"))).retcode is ReturnCode.ALREADY_EXISTS


def test_a_queue_s_session_must_be_one_of_its_subscriber(host: HostedService) -> None:
    host.create_subscriber(0, P, SharedSubscriberSettings("T", sessions=(SessionSettings("Fast"),)))
    resource = P.child(ResourceKind.SHARED_SUBSCRIBER, "T")
    refused = only(host, CreateQueue(resource, queue_settings("New", session="Nope")))
    assert (refused.retcode, refused.text) == (
        ReturnCode.ERROR,
        "shared subscriber P/T has no session 'Nope'. Its sessions: Fast",
    )
    assert only(host, CreateQueue(resource, queue_settings("New", session="Fast"))).retcode is ReturnCode.OK


def test_what_cannot_be_created_is_an_error_with_its_reason(host: HostedService) -> None:
    nowhere = only(host, CreateQueue(P.child(ResourceKind.SHARED_SUBSCRIBER, "T"), queue_settings("Bills")))
    assert (nowhere.retcode, nowhere.not_found) == (ReturnCode.ERROR, True)
    assert nowhere.text == "there is no shared subscriber P/T. There is P/S."
    wrong_kind = only(host, CreateQueue(P, queue_settings("Bills")))
    assert (wrong_kind.retcode, wrong_kind.not_found) == (ReturnCode.ERROR, False)
    assert "/domain_participant/P names no shared subscriber" in wrong_kind.text
    nameless = only(host, CreateQueue(S, queue_settings("")))
    assert "has no name" in nameless.text
    taken = only(host, CreateQueue(S, queue_settings("Bills", topic_name="OrdersTopic")))
    assert taken.retcode is ReturnCode.ERROR
    assert taken.text.startswith("P/S has a queue of topic 'OrdersTopic' already: 'Orders'.")


def test_deleting_a_queue(host: HostedService) -> None:
    assert only(host, DeleteQueue(ORDERS)) == Reply(ReturnCode.OK, "queue P/S/Orders is deleted")
    gone = only(host, DeleteQueue(ORDERS))
    assert (gone.retcode, gone.text, gone.not_found) == (
        ReturnCode.ERROR,
        "there is no shared reader queue P/S/Orders. There is none yet.",
        True,
    )


def test_queue_that_holds_samples_goes_only_where_that_is_meant(host: HostedService) -> None:
    for command in (DeleteQueue(ORDERS, only_if_empty=True), DeleteSubscriber(S, only_if_empty=True)):
        reply = only(host, command)
        assert (reply.retcode, reply.text) == (
            ReturnCode.ERROR,
            "queue P/S/Orders holds 3 samples. Consume, move or flush them first, or delete the queue with them.",
        )
    write(host, "P/S/Orders", 4)
    assert positions(host) == [1, 2, 3, 4], "it goes on accepting samples"
    assert only(host, FlushQueue(ORDERS)).retcode is ReturnCode.OK
    assert only(host, DeleteQueue(ORDERS, only_if_empty=True)).retcode is ReturnCode.OK


def test_what_is_to_be_changed_must_be_there(host: HostedService) -> None:
    changed = queue_settings(limits=ResourceLimitSettings(max_count=9))
    assert only(host, UpdateQueue(ORDERS, changed)) == Reply(ReturnCode.OK, "queue P/S/Orders is changed")
    assert only(host, UpdateQueue(ORDERS, changed)).text == "queue P/S/Orders has these settings already"
    gone = only(host, UpdateQueue(S.child(ResourceKind.SHARED_READER_QUEUE, "Bills"), changed))
    assert (gone.retcode, gone.not_found) == (ReturnCode.ERROR, True)
    renamed = only(host, UpdateQueue(ORDERS, queue_settings("Bills")))
    assert "keeps its name" in renamed.text


def test_a_misspelt_queue_is_answered_with_the_near_name(host: HostedService) -> None:
    reply = only(host, GetStatus(S.child(ResourceKind.SHARED_READER_QUEUE, "Order")))
    assert reply.text == "there is no shared reader queue P/S/Order. Did you mean P/S/Orders?"


@pytest.mark.parametrize("command", [DeleteQueue(S), FlushQueue(S), GetMessages(P), GetData(S), GetStatus(S)])
def test_a_resource_that_is_no_queue_is_refused(host: HostedService, command: object) -> None:
    reply = only(host, command)
    assert reply.retcode is ReturnCode.ERROR
    assert "names no queue" in reply.text


def test_flushing_everything_and_by_selector(host: HostedService) -> None:
    sent = only(host, FlushQueue(ORDERS.at(ResourceKind.MESSAGE), "@sample_queue_status = SENT_MESSAGE_STATUS"))
    assert sent == Reply(ReturnCode.OK, "1 sample removed from queue P/S/Orders")
    assert positions(host) == [2, 3]
    assert only(host, FlushQueue(ORDERS)).text == "2 samples removed from queue P/S/Orders"
    assert only(host, FlushQueue(ORDERS)).text == "0 samples removed from queue P/S/Orders"


def test_a_wrong_selector_is_answered_and_removes_nothing(host: HostedService) -> None:
    for command in (FlushQueue(ORDERS, "1 ="), GetMessages(ORDERS, "1 =")):
        reply = only(host, command)
        assert reply.retcode is ReturnCode.ERROR
        assert reply.text.startswith("selector, column 4: it ends too early. Expected a field")
    assert len(positions(host)) == 3


def test_getting_samples_answers_one_reply_each_in_queue_order(host: HostedService) -> None:
    replies = answers(host, GetMessages(ORDERS))
    bodies = [reply.body for reply in replies]
    assert all(reply.retcode is ReturnCode.OK for reply in replies)
    assert [body.position for body in bodies if isinstance(body, MessageData)] == [1, 2, 3]
    assert [body.status for body in bodies if isinstance(body, MessageData)] == [
        MessageStatus.SENT,
        MessageStatus.UNDELIVERED,
        MessageStatus.UNDELIVERED,
    ]
    first = bodies[0]
    assert isinstance(first, MessageData)
    assert (first.queue_name, first.payload, first.size_bytes, first.enqueued_at_ns) == ("P/S/Orders", b"x", 1, 7)


def test_selecting_one_identity_does_not_scan(host: HostedService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(HostedService, "samples")
    selector = (
        f"@original_sample_identity.writer_guid.value = &hex({1:032x}) AND "
        "(@original_sample_identity.sequence_number = (0,3) OR @original_sample_identity.sequence_number = (0,2) "
        "OR @original_sample_identity.sequence_number = (0,9))"
    )
    replies = answers(host, GetMessages(ORDERS, selector))
    assert [reply.body.position for reply in replies if isinstance(reply.body, MessageData)] == [2, 3]


def test_no_selected_sample_is_one_reply_without_a_body(host: HostedService) -> None:
    reply = only(host, GetMessages(ORDERS, "@sample_queue_status = DELIVERED_MESSAGE_STATUS"))
    assert reply == Reply(ReturnCode.OK, "no sample of queue P/S/Orders is selected")


def test_a_dead_letter_contains_its_origin(host: HostedService) -> None:
    host.create_queue(0, S, queue_settings("Dead", is_dead_letter=True))
    host.create_queue(0, S, queue_settings("Brief", dead_letter_queue="Dead", lifespan_ns=10))
    write(host, "P/S/Brief", 2)
    host.outbox.agenda.advance(17)
    body = only(host, GetMessages(DEAD)).body
    assert isinstance(body, MessageData)
    assert (body.dead_letter_from, body.dead_letter_reason) == ("BriefTopic@S", "LIFESPAN")
    assert body.identity == SampleIdentity(GUID, 2), "the identity of the undelivered sample, not the letter's own"
    pinned = "@original_sample_identity.writer_guid.value = &hex({}) AND @original_sample_identity.sequence_number = {}"
    assert only(host, GetMessages(DEAD, pinned.format(GUID.hex(), "(0,2)"))).body == body
    assert only(host, GetMessages(DEAD, pinned.format(GUID.hex(), "(0,3)"))).body is None


def test_the_status_of_one_queue_and_of_all(host: HostedService) -> None:
    one = only(host, GetStatus(ORDERS.at(ResourceKind.STATUS))).body
    assert isinstance(one, SharedReaderQueueStatus)
    assert one.current_message_count == 3
    host.create_queue(0, S, queue_settings("Bills"))
    assert len(answers(host, GetStatus(ResourceIdentifier((), ResourceKind.STATUS)))) == 2


def test_the_status_of_a_service_without_queues_is_one_reply_without_a_body() -> None:
    assert only(service(), GetStatus(ResourceIdentifier())) == Reply(ReturnCode.OK, "service here holds no queue")


def test_the_service_data_lists_queues_and_containers(host: HostedService) -> None:
    body = only(host, GetData(ResourceIdentifier((), ResourceKind.DATA))).body
    assert body == ServiceData((QueueData("P/S/Orders", "OrdersTopic", str(ORDERS)),), (str(P),), (str(S),))
    assert only(host, GetData(ORDERS)).body == QueueData("P/S/Orders", "OrdersTopic", str(ORDERS))


def test_creating_and_deleting_a_subscriber(host: HostedService) -> None:
    settings = SharedSubscriberSettings("T", queues=(queue_settings("Bills"),))
    assert only(host, CreateSubscriber(P, settings)).text == "shared subscriber P/T is created"
    assert only(host, CreateSubscriber(P, settings)).retcode is ReturnCode.DUPLICATED
    other = replace(settings, sessions=(SessionSettings("slow"),))
    assert only(host, CreateSubscriber(P, other)).retcode is ReturnCode.ALREADY_EXISTS
    resource = P.child(ResourceKind.SHARED_SUBSCRIBER, "T")
    assert only(host, DeleteSubscriber(resource)).text == "shared subscriber P/T is deleted"
    assert only(host, DeleteSubscriber(resource)).not_found
    assert [queue.name for queue in host.queues()] == ["Orders"]


def test_a_queue_created_since_does_not_make_a_subscriber_another_one(host: HostedService) -> None:
    assert only(host, CreateSubscriber(P, SharedSubscriberSettings("S"))).retcode is ReturnCode.DUPLICATED
    more = SharedSubscriberSettings("S", queues=(queue_settings("Bills"),))
    assert only(host, CreateSubscriber(P, more)).retcode is ReturnCode.ALREADY_EXISTS


def test_a_subscriber_needs_a_participant_that_exists_and_a_name(host: HostedService) -> None:
    elsewhere = only(host, CreateSubscriber(parse_resource("/domain_participant/X"), SharedSubscriberSettings("T")))
    assert (elsewhere.text, elsewhere.not_found) == ("there is no domain participant X. There is P.", True)
    assert "has no name" in only(host, CreateSubscriber(P, SharedSubscriberSettings(""))).text


def test_shutting_down_or_not_supporting_it(host: HostedService) -> None:
    daemon = service(stops_on_command=False)
    reply = only(daemon, Shutdown())
    assert (reply.retcode, daemon.shutting_down) == (ReturnCode.UNSUPPORTED, False)
    assert reply.text == "service here runs as a daemon. Stop it where it was started: SIGTERM."
    assert [only(each, GetData(ResourceIdentifier())).body.is_daemon for each in (daemon, host)] == [True, False]  # type: ignore[union-attr]
    assert only(host, Shutdown()) == Reply(ReturnCode.OK, "service here is shutting down")
    assert host.shutting_down


def test_statuses_by_state() -> None:
    assert message_status(SampleState.ASSIGNED) is MessageStatus.UNDELIVERED
    assert message_status(SampleState.SENT) is MessageStatus.SENT
    assert message_status(SampleState.DELIVERED) is MessageStatus.DELIVERED


def test_the_status_of_one_queue_names_its_consumers_the_busiest_first(host: HostedService) -> None:
    queue = host.by_name["P/S/Orders"]
    queue.join(8, ConsumerJoined("P/S/Orders", guid_from_hex("3"), unacked_threshold=9))
    queue.join(8, ConsumerJoined("P/S/Orders", guid_from_hex("2"), unacked_threshold=4, reception_enabled=False))
    reply = only(host, GetStatus(ORDERS))
    status = reply.body
    assert isinstance(status, SharedReaderQueueStatus)
    assert status.consumer_count == 2
    assert status.consumers == (
        ConsumerStatus(guid_from_hex("3"), NIL_GUID, 2, 9, True),
        ConsumerStatus(guid_from_hex("2"), NIL_GUID, 1, 4, False),
    )
    of_all = only(host, GetStatus(ResourceIdentifier()))
    assert isinstance(of_all.body, SharedReaderQueueStatus)
    assert (of_all.body.consumer_count, of_all.body.consumers) == (2, ())


def test_a_status_lists_a_bounded_number_of_consumers_and_counts_all(host: HostedService) -> None:
    for number in range(10, 10 + CONSUMERS_MAX):
        host.by_name["P/S/Orders"].join(8, ConsumerJoined("P/S/Orders", guid_from_hex(str(number))))
    reply = only(host, GetStatus(ORDERS))
    assert isinstance(reply.body, SharedReaderQueueStatus)
    assert (reply.body.consumer_count, len(reply.body.consumers)) == (CONSUMERS_MAX + 1, CONSUMERS_MAX)
