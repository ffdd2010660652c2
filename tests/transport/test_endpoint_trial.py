"""A queue whose endpoints cannot be made is refused without a trace; a stored one is left out, the others served."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from qsctl.config.filesystem import FilesystemSettings
from qsctl.config.settings import ServiceConfiguration, ServicePersistenceSettings, ServiceQosSettings
from qsctl.core.admin.command import CreateQueue, CreateSubscriber, GetStatus
from qsctl.core.admin.reply import ReturnCode
from qsctl.core.messages import CommandReply, CommandRequest
from qsctl.core.queue.settings import DistributionSettings, PersistenceKind, SharedReaderQueueSettings
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.errors import InvalidInput, Refused
from qsctl.identity import Guid, SampleIdentity
from qsctl.resource import ResourceKind, parse_resource
from qsctl.service.process.daemon import Daemon
from qsctl.service.process.logger import ServiceLog, Verbosity
from qsctl.service.run.open_service import DaemonOptions
from qsctl.transport.dds.participant import DomainSettings, Participant
from qsctl.transport.dds.qos import map_qos
from qsctl.transport.dds.serving import _endpoint_trial as endpoint_trial
from qsctl.transport.dds.serving._delivery import DomainDelivery
from qsctl.transport.dds.serving._endpoint_trial import try_endpoints
from qsctl.transport.dds.serving.service_transport import DomainPlace, ServicePlaces
from qsctl.transport.dds.wire.wire_types import WireAcknowledgmentFrame
from tests.service.pipelines import service

DOMAIN = 167
SUBSCRIBER = parse_resource("/domain_participant/P/shared_subscriber/S")
FILTER = (
    "<datareader_qos><deadline><period><sec>1</sec></period></deadline><time_based_filter><minimum_separation><sec>2</sec>"
    "</minimum_separation></time_based_filter></datareader_qos>"
)
WRONG_KIND = "<datawriter_qos><durability><kind>ETERNAL</kind></durability></datawriter_qos>"


def queue(name: str, topic: str = "", **qos: str) -> SharedReaderQueueSettings:
    return SharedReaderQueueSettings(
        name, topic or f"{name}Topic", qos=qos, distribution=DistributionSettings(allow_consumer_feedback=True)
    )


GOOD = queue("Good")
BAD = [
    queue("Filtered", datareader_qos=FILTER),
    queue("Eternal", datawriter_qos=WRONG_KIND),
    queue("Starred", "a*b"),
    queue("Foreign", "ö"),
    queue("Builtin", "DCPSTopic"),
    queue("NoXml", datareader_qos="<datareader_qos>"),
]


@pytest.fixture
def participant() -> Iterator[Participant]:
    participant = Participant(DOMAIN, DomainSettings(), name="trial")
    yield participant
    participant.close()


def entity_count(participant: Participant) -> int:
    assert participant.entity is not None
    children = participant.entity.get_children()
    return len(children) + sum(len(child.get_children()) for child in children if hasattr(child, "get_children"))


def test_endpoints_that_can_be_made_pass_and_leave_nothing(participant: Participant) -> None:
    before = entity_count(participant)
    try_endpoints(participant, "S", GOOD)
    assert entity_count(participant) == before


def test_policies_that_passed_are_not_tried_again_and_those_that_failed_are(
    participant: Participant, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    for kind in ("DataWriter", "DataReader"):
        make = getattr(endpoint_trial, kind)
        monkeypatch.setattr(
            endpoint_trial,
            kind,
            lambda *given, make=make, kind=kind, **qos: (made.append(kind), make(*given, **qos))[1],
        )
    monkeypatch.setattr(endpoint_trial, "_PASSED_WRITERS", {})
    monkeypatch.setattr(endpoint_trial, "_PASSED_READERS", {})
    try_endpoints(participant, "S", GOOD)
    assert made == ["DataWriter", "DataReader"]
    try_endpoints(participant, "S", queue("Another"))
    assert made == ["DataWriter", "DataReader"]
    for _ in range(2):
        with pytest.raises(Refused, match="<datareader_qos>"):
            try_endpoints(participant, "S", queue("Filtered", datareader_qos=FILTER))
    assert made == ["DataWriter", "DataReader", "DataReader", "DataReader"]
    monkeypatch.setattr(endpoint_trial, "PASSED_MAX", 1)
    try_endpoints(participant, "S", queue("Other", datareader_qos="<datareader_qos/>"))
    try_endpoints(participant, "S", GOOD)
    assert made[4:] == ["DataReader", "DataReader"], "the oldest note has made room"


def test_the_topics_of_a_queue_are_tried_though_its_policies_passed(participant: Participant) -> None:
    try_endpoints(participant, "S", GOOD)
    participant.topic("Taken@S", WireAcknowledgmentFrame)
    before = entity_count(participant)
    with pytest.raises(Refused, match=r"Taken@S.* is used with the types"):
        try_endpoints(participant, "S", queue("Good", "Taken"))
    assert entity_count(participant) == before


@pytest.mark.parametrize("settings", BAD, ids=lambda each: each.name)
def test_endpoints_that_cannot_be_made_are_refused_and_leave_nothing(
    participant: Participant, settings: SharedReaderQueueSettings
) -> None:
    before = entity_count(participant)
    with pytest.raises(Refused, match=f"the queue {settings.name} cannot be offered over DDS") as raised:
        try_endpoints(participant, "S", settings)
    assert raised.value.remedy
    assert entity_count(participant) == before


def test_a_queue_without_endpoints_is_reported_and_the_others_are_served(participant: Participant) -> None:
    delivery = DomainDelivery("P", participant, "app")
    wanted = {f"P/S/{each.name}": ("S", each) for each in BAD}
    delivery.reconcile(wanted)
    before = entity_count(participant)
    assert delivery.failures.keys() == wanted.keys()
    assert not delivery.queues
    assert not delivery.topics
    delivery.reconcile(wanted | {"P/S/Good": ("S", GOOD)})
    assert list(delivery.queues) == ["P/S/Good"]
    assert entity_count(participant) > before
    assert delivery.poll() == []
    delivery.reconcile({"P/S/Good": ("S", GOOD)})
    assert not delivery.failures
    delivery.close()


@pytest.mark.parametrize("settings", BAD, ids=lambda each: each.name)
def test_a_create_is_refused_without_a_trace(
    tmp_path: Path, participant: Participant, settings: SharedReaderQueueSettings
) -> None:
    loop = service(tmp_path, keeps_state=True)
    assert loop.stores.service is not None
    loop.try_endpoints = lambda _name, subscriber, each: try_endpoints(participant, subscriber, each)
    stored = list(loop.stores.service.load())
    hosted = dict(loop.engine.hosted.queues())
    within = SharedSubscriberSettings("New", queues=(GOOD, settings))
    for command in (CreateQueue(SUBSCRIBER, settings), CreateSubscriber(SUBSCRIBER.parent, within)):
        ready = loop.turn([CommandRequest(SampleIdentity(Guid(b"r" * 16), 1), "app", command)])
        (reply,) = (each for each in ready.messages if isinstance(each, CommandReply))
        assert reply.reply.retcode is ReturnCode.ERROR
        assert settings.name in reply.reply.text
        assert loop.engine.hosted.queues() == hosted
        assert list(loop.stores.service.load()) == stored
    assert len(loop.engine.hosted.subscribers()) == 1
    loop.stores.close()


class Commands:
    """A source of commands that tests fill; keeps the replies."""

    malformed_count = 0

    def __init__(self) -> None:
        self.waiting: list[CommandRequest] = []
        self.replies: list[CommandReply] = []
        self.answered = threading.Event()

    @property
    def is_waiting(self) -> bool:
        return bool(self.waiting)

    def receive(self, _ready: object) -> None:
        pass

    def poll(self, *, one: bool = False) -> list[CommandRequest]:
        waiting, self.waiting = self.waiting, []
        return waiting

    def reply(self, message: CommandReply, _domain_ids: object) -> None:
        self.replies.append(message)
        self.answered.set()

    def flush(self) -> bool:
        return True

    def close(self) -> None:
        pass


def test_a_service_starts_though_a_stored_queue_cannot_be_offered(tmp_path: Path) -> None:
    subscriber = SharedSubscriberSettings("S", queues=(GOOD, BAD[0]))
    settings = ServiceSettings("app", (DomainParticipantSettings("P", DOMAIN, (subscriber,)),))
    persistent = ServiceQosSettings(persistence=ServicePersistenceSettings(kind=PersistenceKind.PERSISTENT))
    configuration = ServiceConfiguration(
        "app", settings, filesystem=FilesystemSettings(directory=tmp_path), service_qos=persistent
    )
    options = DaemonOptions(ServicePlaces({"P": DomainPlace(DOMAIN)}), storage_directory=tmp_path)
    for _ in range(2):  # the second time from what is stored
        stream = StringIO()
        commands = Commands()
        daemon = Daemon(
            configuration, options, ServiceLog("app", Verbosity.INFORMATION, stream=stream), commands=commands
        )
        started = threading.Event()
        thread = threading.Thread(target=daemon.run, args=(started.set,))
        thread.start()
        try:
            assert started.wait(60)
            resource = SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "Filtered").at(ResourceKind.STATUS)
            request = CommandRequest(SampleIdentity(Guid(b"r" * 16), 1), "app", GetStatus(resource))
            commands.waiting.append(request)
            daemon.transport.wake()
            assert commands.answered.wait(60)
        finally:
            daemon.stop("the test")
            thread.join(60)
        assert not thread.is_alive()
        assert "is not offered over DDS" in commands.replies[0].reply.text
        lines = [line for line in stream.getvalue().splitlines() if "queue_not_offered" in line]
        assert len(lines) == 1
        assert "P/S/Filtered" in lines[0]


def test_policies_of_another_kind_of_entity_are_named_and_not_applied() -> None:
    odd = (
        "<datareader_qos><lifespan><duration><sec>x</sec></duration></lifespan><lifespan/><transport_priority><value>y"
        "</value></transport_priority><deadline/><deadline><period><sec>010</sec></period></deadline></datareader_qos>"
    )
    mapped = map_qos(odd)
    assert mapped.unsupported == ("lifespan", "lifespan", "transport_priority")
    assert [each.deadline for each in mapped.policies] == [10 * 10**9]


@pytest.mark.parametrize("value", ["", "-5", "+7", "010", "0x10", "2147483647"])
def test_a_priority_in_any_spelling_is_a_number(value: str) -> None:
    xml = f"<datawriter_qos><transport_priority><value>{value}</value></transport_priority></datawriter_qos>"
    assert len(map_qos(xml).policies) == 1


@pytest.mark.parametrize("value", ["x", "2147483648", "9" * 100])
def test_a_priority_that_is_none_is_refused(value: str) -> None:
    xml = f"<datawriter_qos><transport_priority><value>{value}</value></transport_priority></datawriter_qos>"
    with pytest.raises(InvalidInput, match="transport_priority"):
        map_qos(xml)
