"""The nine commands of chapter 5: return codes, texts and bodies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

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
)
from qsctl.core.admin.handle import LongAnswer, handle
from qsctl.core.admin.host import AdminHost
from qsctl.core.admin.reading import message_status
from qsctl.core.admin.reply import MessageData, MessageStatus, QueueData, Reply, ReturnCode, ServiceData
from qsctl.core.queue.sample import DeadLetterOrigin, Sample, SampleState
from qsctl.core.queue.settings import ResourceLimitSettings, SessionSettings, SharedReaderQueueSettings
from qsctl.core.records import DeadLetterReason
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.core.statistics.counters import QueueStatistics
from qsctl.core.statistics.status import CurrentCounts, SharedReaderQueueStatus
from qsctl.errors import Refused
from qsctl.identity import SampleIdentity, guid_from_hex
from qsctl.resource import ResourceIdentifier, ResourceKind, parse_resource

P = parse_resource("/domain_participant/P")
S = P.child(ResourceKind.SHARED_SUBSCRIBER, "S")
ORDERS = S.child(ResourceKind.SHARED_READER_QUEUE, "Orders")
DEAD = S.child(ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE, "Dead")
GUID = guid_from_hex("1")


class PlainHost:
    """An engine's administration made of dictionaries."""

    application_name = "here"
    share_count = 100

    def __init__(self) -> None:
        self.held: dict[ResourceIdentifier, list[Sample]] = {}
        self.queue_settings: dict[ResourceIdentifier, SharedReaderQueueSettings] = {}
        self.subscriber_settings = {S: SharedSubscriberSettings("S")}
        self.stopping = False
        self.is_library = False
        self.lookups = self.scans = 0

    def settings(self) -> ServiceSettings:
        return ServiceSettings(self.application_name, tuple(self.participants().values()))

    def participants(self) -> Mapping[ResourceIdentifier, DomainParticipantSettings]:
        return {P: DomainParticipantSettings("P", 0)}

    def subscribers(self) -> Mapping[ResourceIdentifier, SharedSubscriberSettings]:
        return {
            resource: replace(
                settings, queues=tuple(each for at, each in self.queue_settings.items() if at.parent == resource)
            )
            for resource, settings in self.subscriber_settings.items()
        }

    def queues(self) -> Mapping[ResourceIdentifier, SharedReaderQueueSettings]:
        return dict(self.queue_settings)

    def create_queue(self, now: int, subscriber: ResourceIdentifier, settings: SharedReaderQueueSettings) -> None:
        if any(each.topic_name == settings.topic_name for each in self.queue_settings.values()):
            raise Refused(f"topic {settings.topic_name!r} is taken")
        kind = (
            ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE
            if settings.is_dead_letter
            else ResourceKind.SHARED_READER_QUEUE
        )
        queue = subscriber.child(kind, settings.name)
        self.queue_settings[queue] = settings
        self.held[queue] = []

    def deleted_with(self, queue: ResourceIdentifier) -> list[ResourceIdentifier]:
        return [queue]

    def shut(self, now: int, queue: ResourceIdentifier) -> None:
        assert queue in self.queue_settings

    def is_shut(self, queue: ResourceIdentifier) -> bool:
        return False

    def delete_queue(self, now: int, queue: ResourceIdentifier) -> None:
        del self.queue_settings[queue]
        del self.held[queue]

    def create_subscriber(self, now: int, participant: ResourceIdentifier, settings: SharedSubscriberSettings) -> None:
        resource = participant.child(ResourceKind.SHARED_SUBSCRIBER, settings.name)
        self.subscriber_settings[resource] = replace(settings, queues=())
        for queue in settings.queues:
            self.create_queue(now, resource, queue)

    def delete_subscriber(self, now: int, subscriber: ResourceIdentifier) -> None:
        del self.subscriber_settings[subscriber]
        for queue in [each for each in self.queue_settings if each.parent == subscriber]:
            self.delete_queue(now, queue)

    def samples(self, queue: ResourceIdentifier) -> Iterator[Sample]:
        self.scans += 1
        return iter(self.held[queue])

    def sample(self, queue: ResourceIdentifier, identity: SampleIdentity) -> Sample | None:
        self.lookups += 1
        return next((sample for sample in self.held[queue] if sample.identity == identity), None)

    def flush(self, now: int, queue: ResourceIdentifier, samples: Iterable[Sample]) -> int:
        before, gone = self.held[queue], {sample.identity for sample in samples}
        self.held[queue] = [sample for sample in before if sample.identity not in gone]
        return len(before) - len(self.held[queue])

    def status(self, now: int, queue: ResourceIdentifier) -> SharedReaderQueueStatus:
        count = len(self.held[queue])
        statistics = QueueStatistics(self.queue_settings[queue], 0)
        return statistics.status(now, queue.name, CurrentCounts(count, 0, count, 0))

    def request_shutdown(self) -> None:
        if self.is_library:
            raise Refused("the service runs inside an application", remedy="Stop that application.")
        self.stopping = True


def queue_settings(name: str = "Orders", **other: object) -> SharedReaderQueueSettings:
    return replace(SharedReaderQueueSettings(name, f"{name}Topic"), **other)  # type: ignore[arg-type]


@pytest.fixture
def host() -> PlainHost:
    made = PlainHost()
    made.create_queue(0, S, queue_settings())
    for number, state in ((1, SampleState.SENT), (2, SampleState.ENQUEUED), (3, SampleState.ASSIGNED)):
        made.held[ORDERS].append(Sample(number, SampleIdentity(GUID, number), b"x" * number, number, 7, 9, state=state))
    return made


def answers(host: AdminHost, command: object) -> Sequence[Reply]:
    """All replies, those of a long answer too."""
    begun = handle(host, 1, command)  # type: ignore[arg-type]
    if not isinstance(begun, LongAnswer):
        return begun
    replies: list[Reply] = []
    while not begun.is_over:
        replies += begun.take(1)
    return replies


def only(host: AdminHost, command: object) -> Reply:
    replies = answers(host, command)
    assert len(replies) == 1
    return replies[0]


def test_a_host_of_dictionaries_meets_the_protocol() -> None:
    checked: AdminHost = PlainHost()
    assert checked.application_name == "here"


def test_creating_a_queue(host: PlainHost) -> None:
    reply = only(host, CreateQueue(S, queue_settings("Bills")))
    assert (reply.retcode, reply.text) == (ReturnCode.OK, "queue P/S/Bills is created")
    assert S.child(ResourceKind.SHARED_READER_QUEUE, "Bills") in host.queues()


def test_the_same_queue_again_is_duplicated_and_another_configuration_already_exists(host: PlainHost) -> None:
    again = only(host, CreateQueue(S, queue_settings()))
    assert again.retcode is ReturnCode.DUPLICATED
    assert again.text == "queue P/S/Orders exists already, with the same configuration"
    limits = ResourceLimitSettings(max_count=5)
    other = only(host, CreateQueue(S, queue_settings(limits=limits)))
    assert other.retcode is ReturnCode.ALREADY_EXISTS
    assert other.text == "queue P/S/Orders exists already, with a different configuration"
    assert host.queue_settings[ORDERS] == queue_settings()


def test_a_dead_letter_queue_of_the_same_name_is_in_the_way_too(host: PlainHost) -> None:
    host.create_queue(0, S, queue_settings("Dead", is_dead_letter=True))
    assert only(host, CreateQueue(S, queue_settings("Dead"))).retcode is ReturnCode.ALREADY_EXISTS


def test_a_queue_s_session_must_be_one_of_its_subscriber(host: PlainHost) -> None:
    host.subscriber_settings[S] = replace(host.subscriber_settings[S], sessions=(SessionSettings("Fast"),))
    refused = only(host, CreateQueue(S, queue_settings("New", session="Nope")))
    assert (refused.retcode, refused.text) == (
        ReturnCode.ERROR,
        "shared subscriber P/S has no session 'Nope'. Its sessions: Fast",
    )
    assert only(host, CreateQueue(S, queue_settings("New", session="Fast"))).retcode is ReturnCode.OK


def test_what_cannot_be_created_is_an_error_with_its_reason(host: PlainHost) -> None:
    nowhere = only(host, CreateQueue(P.child(ResourceKind.SHARED_SUBSCRIBER, "T"), queue_settings("Bills")))
    assert (nowhere.retcode, nowhere.not_found) == (ReturnCode.ERROR, True)
    assert nowhere.text == "there is no shared subscriber P/T. There is P/S."
    wrong_kind = only(host, CreateQueue(P, queue_settings("Bills")))
    assert (wrong_kind.retcode, wrong_kind.not_found) == (ReturnCode.ERROR, False)
    assert "/domain_participant/P names no shared subscriber" in wrong_kind.text
    nameless = only(host, CreateQueue(S, queue_settings("")))
    assert "has no name" in nameless.text
    taken = only(host, CreateQueue(S, queue_settings("Bills", topic_name="OrdersTopic")))
    assert (taken.retcode, taken.text) == (ReturnCode.ERROR, "topic 'OrdersTopic' is taken")


def test_deleting_a_queue(host: PlainHost) -> None:
    assert only(host, DeleteQueue(ORDERS)) == Reply(ReturnCode.OK, "queue P/S/Orders is deleted")
    gone = only(host, DeleteQueue(ORDERS))
    assert (gone.retcode, gone.text, gone.not_found) == (
        ReturnCode.ERROR,
        "there is no shared reader queue P/S/Orders. There is none yet.",
        True,
    )


def test_a_misspelt_queue_is_answered_with_the_near_name(host: PlainHost) -> None:
    reply = only(host, GetStatus(S.child(ResourceKind.SHARED_READER_QUEUE, "Order")))
    assert reply.text == "there is no shared reader queue P/S/Order. Did you mean P/S/Orders?"


@pytest.mark.parametrize("command", [DeleteQueue(S), FlushQueue(S), GetMessages(P), GetData(S), GetStatus(S)])
def test_a_resource_that_is_no_queue_is_refused(host: PlainHost, command: object) -> None:
    reply = only(host, command)
    assert reply.retcode is ReturnCode.ERROR
    assert "names no queue" in reply.text


def test_flushing_everything_and_by_selector(host: PlainHost) -> None:
    sent = only(host, FlushQueue(ORDERS.at(ResourceKind.MESSAGE), "@sample_queue_status = SENT_MESSAGE_STATUS"))
    assert sent == Reply(ReturnCode.OK, "1 sample removed from queue P/S/Orders")
    assert [sample.position for sample in host.held[ORDERS]] == [2, 3]
    assert only(host, FlushQueue(ORDERS)).text == "2 samples removed from queue P/S/Orders"
    assert only(host, FlushQueue(ORDERS)).text == "0 samples removed from queue P/S/Orders"


def test_a_wrong_selector_is_answered_and_removes_nothing(host: PlainHost) -> None:
    for command in (FlushQueue(ORDERS, "1 ="), GetMessages(ORDERS, "1 =")):
        reply = only(host, command)
        assert reply.retcode is ReturnCode.ERROR
        assert reply.text.startswith("selector, column 4: it ends too early. Expected a field")
    assert len(host.held[ORDERS]) == 3


def test_getting_samples_answers_one_reply_each_in_queue_order(host: PlainHost) -> None:
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


def test_selecting_one_identity_does_not_scan(host: PlainHost) -> None:
    selector = (
        f"@original_sample_identity.writer_guid.value = &hex({1:032x}) AND "
        "(@original_sample_identity.sequence_number = (0,3) OR @original_sample_identity.sequence_number = (0,2) "
        "OR @original_sample_identity.sequence_number = (0,9))"
    )
    replies = answers(host, GetMessages(ORDERS, selector))
    assert [reply.body.position for reply in replies if isinstance(reply.body, MessageData)] == [2, 3]
    assert (host.scans, host.lookups) == (0, 3)


def test_no_selected_sample_is_one_reply_without_a_body(host: PlainHost) -> None:
    reply = only(host, GetMessages(ORDERS, "@sample_queue_status = DELIVERED_MESSAGE_STATUS"))
    assert reply == Reply(ReturnCode.OK, "no sample of queue P/S/Orders is selected")


def test_a_dead_letter_tells_where_it_came_from(host: PlainHost) -> None:
    host.create_queue(0, S, queue_settings("Dead", is_dead_letter=True))
    host.held[DEAD].append(
        Sample(
            1,
            SampleIdentity(GUID, 1),
            b"",
            0,
            0,
            0,
            dead_letter=DeadLetterOrigin("OrdersTopic@S", 7, SampleIdentity(GUID, 2), DeadLetterReason.LIFESPAN),
            state=SampleState.ENQUEUED,
        )
    )
    body = only(host, GetMessages(DEAD)).body
    assert isinstance(body, MessageData)
    assert (body.dead_letter_from, body.dead_letter_reason) == ("OrdersTopic@S", "LIFESPAN")
    assert body.identity == SampleIdentity(GUID, 2), "the identity of the undelivered sample, not the letter's own"
    pinned = "@original_sample_identity.writer_guid.value = &hex({}) AND @original_sample_identity.sequence_number = {}"
    assert only(host, GetMessages(DEAD, pinned.format(GUID.hex(), "(0,2)"))).body == body
    assert only(host, GetMessages(DEAD, pinned.format(GUID.hex(), "(0,1)"))).body is None


def test_the_status_of_one_queue_and_of_all(host: PlainHost) -> None:
    one = only(host, GetStatus(ORDERS.at(ResourceKind.STATUS))).body
    assert isinstance(one, SharedReaderQueueStatus)
    assert one.current_message_count == 3
    host.create_queue(0, S, queue_settings("Bills"))
    assert len(answers(host, GetStatus(ResourceIdentifier((), ResourceKind.STATUS)))) == 2


def test_the_status_of_a_service_without_queues_is_one_reply_without_a_body() -> None:
    assert only(PlainHost(), GetStatus(ResourceIdentifier())) == Reply(ReturnCode.OK, "service here holds no queue")


def test_the_service_data_lists_queues_and_containers(host: PlainHost) -> None:
    body = only(host, GetData(ResourceIdentifier((), ResourceKind.DATA))).body
    assert body == ServiceData((QueueData("P/S/Orders", "OrdersTopic", str(ORDERS)),), (str(P),), (str(S),))
    assert only(host, GetData(ORDERS)).body == QueueData("P/S/Orders", "OrdersTopic", str(ORDERS))


def test_creating_and_deleting_a_subscriber(host: PlainHost) -> None:
    settings = SharedSubscriberSettings("T", queues=(queue_settings("Bills"),))
    assert only(host, CreateSubscriber(P, settings)).text == "shared subscriber P/T is created"
    assert only(host, CreateSubscriber(P, settings)).retcode is ReturnCode.DUPLICATED
    other = replace(settings, sessions=(SessionSettings("slow"),))
    assert only(host, CreateSubscriber(P, other)).retcode is ReturnCode.ALREADY_EXISTS
    resource = P.child(ResourceKind.SHARED_SUBSCRIBER, "T")
    assert only(host, DeleteSubscriber(resource)).text == "shared subscriber P/T is deleted"
    assert only(host, DeleteSubscriber(resource)).not_found
    assert [queue.name for queue in host.queues()] == ["Orders"]


def test_a_queue_created_since_does_not_make_a_subscriber_another_one(host: PlainHost) -> None:
    assert only(host, CreateSubscriber(P, SharedSubscriberSettings("S"))).retcode is ReturnCode.DUPLICATED
    more = SharedSubscriberSettings("S", queues=(queue_settings("Bills"),))
    assert only(host, CreateSubscriber(P, more)).retcode is ReturnCode.ALREADY_EXISTS


def test_a_subscriber_needs_a_participant_that_exists_and_a_name(host: PlainHost) -> None:
    elsewhere = only(host, CreateSubscriber(parse_resource("/domain_participant/X"), SharedSubscriberSettings("T")))
    assert (elsewhere.text, elsewhere.not_found) == ("there is no domain participant X. There is P.", True)
    assert "has no name" in only(host, CreateSubscriber(P, SharedSubscriberSettings(""))).text


def test_shutting_down_or_not_supporting_it(host: PlainHost) -> None:
    host.is_library = True
    reply = only(host, Shutdown())
    assert (reply.retcode, host.stopping) == (ReturnCode.UNSUPPORTED, False)
    assert reply.text == "the service runs inside an application. Stop that application."
    host.is_library = False
    assert only(host, Shutdown()) == Reply(ReturnCode.OK, "service here is shutting down")
    assert host.stopping


def test_statuses_by_state() -> None:
    assert message_status(SampleState.ASSIGNED) is MessageStatus.UNDELIVERED
    assert message_status(SampleState.SENT) is MessageStatus.SENT
    assert message_status(SampleState.DELIVERED) is MessageStatus.DELIVERED
