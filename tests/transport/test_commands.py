"""Commands and replies on the wire: what is sent is what is read, and the manual's own spellings are understood."""

from __future__ import annotations

import contextlib
import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.core.admin.command import (
    ChangeMembers,
    Command,
    CreateQueue,
    CreateSubscriber,
    DeleteQueue,
    DeleteSubscriber,
    Drain,
    FlagSamples,
    FlushQueue,
    ForceQuorum,
    GetConfiguration,
    GetData,
    GetMessages,
    GetRecording,
    GetStatus,
    HeldSample,
    InsertSamples,
    MemberAction,
    MoveSamples,
    RemoveSamples,
    Shutdown,
    StartRecording,
    StepDown,
    StopRecording,
    UpdateQueue,
)
from qsctl.core.admin.reply import (
    ConfigurationText,
    MessageData,
    MessageStatus,
    RecordingStatus,
    Reply,
    ReturnCode,
    SamplesChanged,
)
from qsctl.core.admin.request import xml_of_body
from qsctl.core.inserted_sample import InsertedSample
from qsctl.core.messages import CommandReply
from qsctl.core.queue.settings import (
    DistributionSettings,
    MonitoringSettings,
    PersistenceKind,
    PersistenceSettings,
    RedeliverySettings,
    ReplacementKind,
    ResourceLimitSettings,
    SessionSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.settings import ServiceSettings, SharedSubscriberSettings
from qsctl.errors import Refused, UsageError
from qsctl.identity import NIL_IDENTITY, Guid, Incarnation, SampleIdentity
from qsctl.resource import ResourceIdentifier, ResourceKind
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.wire import bodies
from qsctl.transport.dds.wire.bodies import octets_of
from qsctl.transport.dds.wire.commands import command_from_wire, request_from_octets, wire_request
from qsctl.transport.dds.wire.replies import queue_domains, reply_octets, reply_of, reply_parts
from qsctl.transport.dds.wire.wire_types import CommandReplyRetcode, OriginalCommandReply
from tests.transport.monitoring_bodies import DATA, QUEUE, STATUS, SUBSCRIBER

DEAD = SUBSCRIBER.child(ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE, "D")
REQUEST = SampleIdentity(Guid(b"r" * 16), 2**40 + 1)
SERVICE = ServiceSettings("Test")


class Snippets:
    """Reads bodies with `config`, as a service does."""

    def __init__(self, service: ServiceSettings = SERVICE) -> None:
        self.service = service

    def queue(self, xml: str, subscriber: ResourceIdentifier) -> SharedReaderQueueSettings:
        from qsctl.config.snippet import read_queue_snippet

        return read_queue_snippet(xml, self.service, source="the body")

    def subscriber(self, xml: str, participant: ResourceIdentifier) -> SharedSubscriberSettings:
        from qsctl.config.snippet import read_subscriber_snippet

        return read_subscriber_snippet(xml, self.service, source="the body")


queues = st.builds(
    SharedReaderQueueSettings,
    name=st.from_regex(r"[A-Za-z0-9_.]{1,20}", fullmatch=True),
    topic_name=st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,20}", fullmatch=True),
    type_name=st.just("DDS::Octets"),
    session=st.just("s"),
    distribution=st.builds(
        DistributionSettings,
        unacked_threshold=st.integers(-1, 1000),
        allow_consumer_feedback=st.booleans(),
        mark_last_undelivered_sample=st.booleans(),
    ),
    lifespan_ns=st.integers(1, 10**15),
    redelivery=st.builds(
        RedeliverySettings, max_delivery_retries=st.integers(0, 100), response_timeout_ns=st.integers(1, 10**15)
    ),
    persistence=st.builds(
        PersistenceSettings, kind=st.sampled_from(PersistenceKind), in_memory_state=st.booleans(), restore=st.booleans()
    ),
    app_ack_sample_to_producer=st.booleans(),
    limits=st.builds(
        ResourceLimitSettings,
        max_count=st.integers(10, 1000),
        max_in_memory_bytes=st.integers(1, 10**9),
        high_watermark_percent=st.integers(51, 100),
        low_watermark_percent=st.integers(1, 50),
        replacement=st.sampled_from(ReplacementKind),
    ),
)


GUIDS = [Guid(bytes([at] * 16)) for at in range(1, 5)]
INSERTED = (
    InsertedSample(REQUEST, b"\0\xff", *GUIDS[:2], SampleIdentity(GUIDS[2], 2**40), GUIDS[3], 4, False, 10**18, "T@S"),
    InsertedSample(REQUEST, b""),
)
HELD = (HeldSample(2**40, REQUEST, "T@S"), HeldSample(1, REQUEST))


def over_the_wire(command: Command) -> Command:
    request = request_from_octets(octets_of(wire_request(command, "Test*", REQUEST)))
    assert request is not None
    assert request.service_name == "Test*"
    assert bodies.identity_from_wire(request.request_identity) == REQUEST
    return command_from_wire(request, Snippets())


@pytest.mark.parametrize(
    "command",
    [
        DeleteQueue(QUEUE),
        FlushQueue(QUEUE.at(ResourceKind.MESSAGE), "@sample_queue_status = SENT_MESSAGE_STATUS"),
        GetStatus(QUEUE.at(ResourceKind.STATUS)),
        GetStatus(ResourceIdentifier().at(ResourceKind.STATUS)),
        GetStatus(None),
        GetData(ResourceIdentifier().at(ResourceKind.DATA)),
        GetMessages(QUEUE.at(ResourceKind.MESSAGE), ""),
        GetMessages(QUEUE.at(ResourceKind.MESSAGE), "", 7),
        GetMessages(QUEUE.at(ResourceKind.MESSAGE), "", 0, 2**40),
        GetMessages(QUEUE.at(ResourceKind.MESSAGE), "", 7, 2**40, Incarnation(2**63 - 1)),
        GetMessages(QUEUE.at(ResourceKind.MESSAGE), "", 7, 2**40, Incarnation(2**63 - 1), allows_stale=True),
        GetMessages(QUEUE.at(ResourceKind.MESSAGE), "x = 1", allows_stale=True),
        InsertSamples(QUEUE.at(ResourceKind.MESSAGE), INSERTED),
        FlagSamples(QUEUE.at(ResourceKind.MESSAGE), HELD),
        RemoveSamples(QUEUE.at(ResourceKind.MESSAGE), HELD),
        MoveSamples(QUEUE.at(ResourceKind.MESSAGE), DEAD.at(ResourceKind.MESSAGE), HELD),
        MoveSamples(
            QUEUE.at(ResourceKind.MESSAGE),
            DEAD.at(ResourceKind.MESSAGE),
            HELD,
            Incarnation(2**62),
            True,
            (b"x", *(b"" for _ in HELD[1:])),
        ),
        DeleteSubscriber(SUBSCRIBER),
        DeleteQueue(QUEUE, only_if_empty=True),
        DeleteSubscriber(SUBSCRIBER, only_if_empty=True),
        GetConfiguration(),
        ForceQuorum(QUEUE),
        ForceQuorum(QUEUE, is_trial=True),
        ForceQuorum(None),
        ForceQuorum(None, is_trial=True),
        ChangeMembers(QUEUE, MemberAction.ADD, "lab 4"),
        ChangeMembers(QUEUE, MemberAction.ADD_WITNESS, "lab 4", is_trial=True),
        ChangeMembers(None, MemberAction.REMOVE, "a_member", is_trial=True),
        StepDown(QUEUE),
        StepDown(QUEUE, "lab 4", is_trial=True),
        StepDown(None, is_trial=True),
        Drain(),
        Drain(is_trial=True),
        Shutdown(),
        StartRecording("a folder", "events", 5 << 30, 0.25),
        StopRecording(),
        GetRecording(),
    ],
)
def test_a_command_arrives_as_it_was_sent(command: Command) -> None:
    assert over_the_wire(command) == command


@given(queues)
def test_the_settings_of_a_queue_arrive_as_they_were_sent(settings: SharedReaderQueueSettings) -> None:
    assert over_the_wire(CreateQueue(SUBSCRIBER, settings)) == CreateQueue(SUBSCRIBER, settings)


@given(queues)
def test_settings_of_an_update_arrive_whatever_the_service_would_hand_down(settings: SharedReaderQueueSettings) -> None:
    command = UpdateQueue(SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, settings.name), settings)
    request = request_from_octets(octets_of(wire_request(command, "Test*", REQUEST)))
    assert command_from_wire(request, Snippets(ServiceSettings("Test", monitoring=MonitoringSettings(True)))) == command


def test_configuration_arrives_whole_or_not_at_all() -> None:
    reply = CommandReply(REQUEST, "Service", Reply(ReturnCode.OK, body=ConfigurationText("<dds/>é" * 10_000)))
    octets = reply_octets(reply, {})
    assert reply_of(reply_parts(octets), GetConfiguration()).message == reply
    parts = reply_parts(octets)
    for damaged in (parts.octets[:-1], b"x", zlib.compress(b"\xff")):
        with pytest.raises(Malformed, match="the text of a configuration"):
            reply_of(parts._replace(octets=damaged), GetConfiguration())


def test_a_subscriber_arrives_with_its_queues_and_a_session_of_its_own() -> None:
    queue = SharedReaderQueueSettings(
        name="Q", topic_name="T", type_name="DDS::Octets", session="s", dead_letter_queue="D"
    )
    dead = SharedReaderQueueSettings(name="D", topic_name="D", session="s", is_dead_letter=True)
    settings = SharedSubscriberSettings("New", (SessionSettings("s", dequeue_period_ns=5),), (queue, dead))
    arrived = over_the_wire(CreateSubscriber(SUBSCRIBER.parent, settings))
    assert isinstance(arrived, CreateSubscriber)
    assert {each.name: each for each in arrived.settings.queues} == {"Q": queue, "D": dead}
    assert arrived.settings.sessions == settings.sessions
    bare = over_the_wire(CreateSubscriber(SUBSCRIBER.parent, SharedSubscriberSettings("Bare")))
    assert isinstance(bare, CreateSubscriber)
    assert [session.name for session in bare.settings.sessions] == ["session"]


@pytest.mark.parametrize(
    ("octets", "message"),
    [
        (b"\xc1", "the samples of the body cannot be read"),
        (msgspec.msgpack.encode([[1, [b"short", 1]]]), "Expected `bytes` of length >= 16"),
        (msgspec.msgpack.encode([[1, [b"x" * 16, -1]]]), "Expected `int` >= 0"),
        (msgspec.msgpack.encode([["one", [b"x" * 16, 1]]]), "Expected `int`, got `str`"),
    ],
)
def test_body_that_names_no_samples_is_refused(octets: bytes, message: str) -> None:
    request = wire_request(RemoveSamples(QUEUE.at(ResourceKind.MESSAGE), HELD), "Test", REQUEST)
    request.octet_body = octets
    with pytest.raises(UsageError, match=message):
        command_from_wire(request, Snippets())


def test_samples_are_inserted_in_the_messages_of_a_queue_only() -> None:
    request = wire_request(InsertSamples(QUEUE.at(ResourceKind.MESSAGE), INSERTED), "Test", REQUEST)
    request.resource_identifier = str(QUEUE)
    with pytest.raises(UsageError, match="names no samples"):
        command_from_wire(request, Snippets())


@pytest.mark.parametrize("body", ["", "[]", '{"level": "events"}', '{"folder": 7}', '{"folder": "x", "path": "y"}'])
def test_body_that_starts_no_recording_is_refused(body: str) -> None:
    request = wire_request(StartRecording("x"), "Test", REQUEST)
    request.string_body = body
    with pytest.raises(UsageError, match="the body of CREATE /recording cannot be read"):
        command_from_wire(request, Snippets())


def test_status_of_a_recording_arrives_as_it_was_sent() -> None:
    status = RecordingStatus("/a folder", "failed", "No space left", "messages", 0.5, 7, 8, 9, 10, 11, True)
    sent = CommandReply(REQUEST, "Test", Reply(ReturnCode.OK, "", status))
    assert reply_of(reply_parts(reply_octets(sent, {})), GetRecording()).message == sent


@pytest.mark.parametrize(
    "body",
    [
        'str://"<a b="c"/>"',
        'str://"<a b=\\"c\\"/>"',
        '  str://"<a b="c"/>"  ',
        '<a b="c"/>',
    ],
)
def test_a_body_is_read_in_every_spelling_of_the_manual(body: str) -> None:
    assert xml_of_body(body) == '<a b="c"/>'


def test_a_remote_body_never_names_a_file() -> None:
    with pytest.raises(Refused, match="file://"):
        xml_of_body("file:///etc/passwd")
    with pytest.raises(UsageError, match="empty"):
        xml_of_body('str://""')


def test_texts_longer_than_the_wire_allows_are_refused_before_sending() -> None:
    with pytest.raises(UsageError, match="target has 256 octets"):
        wire_request(Shutdown(), "x" * 256, REQUEST)
    long = ResourceIdentifier(((ResourceKind.DOMAIN_PARTICIPANT, "é" * 1100),))
    with pytest.raises(UsageError, match="resource identifier"):
        wire_request(GetData(long), "x", REQUEST)


@given(st.binary(max_size=200))
def test_octets_that_are_no_request_are_malformed(octets: bytes) -> None:
    with contextlib.suppress(Malformed):
        assert isinstance(request_from_octets(octets).service_name, str)


MESSAGE = MessageData(
    "P/S/Q", 2**33, MessageStatus.SENT, REQUEST, b"\x01\x02", 2, 10**18 + 5, 3, True, "T@S", "LIFESPAN"
)

COPIED = msgspec.structs.replace(
    MESSAGE,
    flags=256,
    source_guid=GUIDS[0],
    related_source_guid=GUIDS[1],
    related_identity=SampleIdentity(GUIDS[2], 2**40),
    related_reader_guid=GUIDS[3],
    expires_at_ns=10**18 + 7,
    incarnation=Incarnation(2**63 - 1),
    dead_letter_position=2**40,
    dead_letter_incarnation=Incarnation(2**33 + 1),
)


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        (GetStatus(QUEUE), Reply(ReturnCode.OK, body=STATUS)),
        (GetStatus(None), Reply(ReturnCode.OK, body=STATUS)),
        (GetStatus(None), Reply(ReturnCode.OK, body=ConfigurationText("<dds/>"))),
        (GetData(ResourceIdentifier()), Reply(ReturnCode.OK, "said", body=DATA)),
        (GetData(QUEUE), Reply(ReturnCode.OK, body=DATA.queues[0])),
        (GetMessages(QUEUE), Reply(ReturnCode.OK, body=MESSAGE)),
        (GetMessages(QUEUE), Reply(ReturnCode.OK, body=COPIED)),
        (InsertSamples(QUEUE, ()), Reply(ReturnCode.OK, body=SamplesChanged(3, 1, (0, 2), "full"))),
        (MoveSamples(QUEUE, DEAD, ()), Reply(ReturnCode.OK, body=SamplesChanged(3, 1, (0, 2), "full", (5,), (6, 7)))),
        (DeleteQueue(QUEUE), Reply(ReturnCode.ERROR, "there is none", not_found=True)),
        (FlushQueue(QUEUE), Reply(ReturnCode.ERROR, "another is the master", not_master=True)),
        (Shutdown(), Reply(ReturnCode.UNSUPPORTED, "a daemon", native_retcode=3)),
    ],
)
def test_a_reply_arrives_as_it_was_sent(command: Command, reply: Reply) -> None:
    message = CommandReply(REQUEST, "Service", reply, intermediate=True)
    octets = reply_octets(message, {"P": 7})
    read = reply_of(reply_parts(octets), command)
    assert read.message == message


def test_a_service_reports_the_domain_of_each_queue() -> None:
    octets = octets_of(bodies.wire_service_data(DATA, {"P": 7}))
    assert queue_domains(octets) == {str(QUEUE): 7, "/x": -1}


def test_a_reply_with_the_original_members_only_is_read() -> None:
    wire: Any = OriginalCommandReply(CommandReplyRetcode.RTI_SERVICE_COMMAND_REPLY_DUPLICATED, 0, "there already", b"")  # type: ignore[arg-type]
    read = reply_of(reply_parts(octets_of(wire)), Shutdown())
    assert read.message == CommandReply(NIL_IDENTITY, "", Reply(ReturnCode.DUPLICATED, "there already"))


def test_a_dead_letter_gives_back_what_it_holds() -> None:
    octets = bodies.dead_letter_octets("T@S", REQUEST, 1, b"payload")
    assert bodies.dead_letter_from_octets(octets) == bodies.DeadLetter("T@S", REQUEST, "MAX_RETRIES", b"payload")
