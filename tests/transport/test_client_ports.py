"""A client's ends of a queue, against a service's ends of which one is missing for a while [QS 2.13]."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cyclonedds.sub import DataReader, Subscriber
from msgspec.structs import replace

from qsctl.core.client.consumer import Arrivals, SampleAnswers
from qsctl.core.messages import AckResponse, ConsumerAvailability
from qsctl.errors import UsageError
from qsctl.identity import Guid, SampleIdentity
from qsctl.transport.dds.channels import FrameWriter
from qsctl.transport.dds.clients.client_domain import ClientDomain
from qsctl.transport.dds.clients.client_ports import ConsumerPort, ProducerPort
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import Changes, RemoteEndpoint
from qsctl.transport.dds.peers.matches import QueueAppeared, ReappearedPeers
from qsctl.transport.dds.qos import partition_qos, reader_qos
from qsctl.transport.dds.serialized_reader import SerializedReader
from qsctl.transport.dds.wire import frames
from qsctl.transport.dds.wire.wire_types import (
    WireAcknowledgmentFrame,
    WireConsumerAvailability,
    WireFrame,
    availability_topic,
    consumer_acknowledgment_topic,
    consumer_topic,
)
from tests.answer_frames import parse_answers
from tests.dds.domains import claim_domain, release_domain
from tests.patience import eventually

GUID = Guid(bytes(range(16)))
ANSWERED = SampleIdentity(Guid(bytes(16)), 7)


@pytest.fixture
def service_and_client() -> Iterator[tuple[Participant, ClientDomain]]:
    domain = claim_domain()
    service, client = Participant(domain), ClientDomain(Participant(domain))
    yield service, client
    client.close()
    service.close()
    release_domain(domain)


def announce(service: Participant) -> FrameWriter:
    traits = {"role": "queue", "name": "Test", "topic": "T", "subscriber": "S", "acks": "1"}
    return FrameWriter(service, service.topic(consumer_topic("T", "S"), WireFrame), traits=traits)


def is_announced(client: ClientDomain) -> bool:
    return any(each.traits.get("role") == "queue" for each in client.discovery.endpoints())


def open_reader(service: Participant, topic_name: str, data_type: type) -> SerializedReader[bytes]:
    assert service.entity is not None
    qos = reader_qos(traits={"role": "service", "name": "Test"})
    return SerializedReader(service, DataReader(service.entity, service.topic(topic_name, data_type), qos=qos), bytes)


def test_answers_wait_until_the_announced_queue_reads_them(
    service_and_client: tuple[Participant, ClientDomain],
) -> None:
    """A queue's announcement may be seen long before its reader is: what is written between reaches nobody."""
    service, client = service_and_client
    port = ConsumerPort(client.participant, "T", "S", GUID)
    client.add(port)
    announcement = announce(service)
    assert eventually(lambda: [client.turn(1_000_000), is_announced(client)][1])
    port.send([SampleAnswers(AckResponse.ACCEPTED, [frames.key_of(ANSWERED)])])
    assert not port.flush(), "it waits"
    assert port.poll() == [], "nor is the queue matched"
    answers = open_reader(service, consumer_acknowledgment_topic("T", "S"), WireAcknowledgmentFrame)
    taken: list[bytes] = []

    def has_come() -> bool:
        client.turn(1_000_000)
        taken.extend(answers.take() or ())
        return bool(taken)

    assert eventually(has_come), "the answer is lost"
    assert parse_answers(taken[0])[2:] == ([ANSWERED], [1])
    assert [type(each) for each in port.poll()] == [QueueAppeared]
    assert port.flush()
    announcement.close()
    answers.close()


def test_a_queue_that_is_announced_anew_is_sent_the_availability_again(
    service_and_client: tuple[Participant, ClientDomain],
) -> None:
    service, client = service_and_client
    port = ConsumerPort(client.participant, "T", "S", GUID, feedback=True)
    client.add(port)
    answers = open_reader(service, consumer_acknowledgment_topic("T", "S"), WireAcknowledgmentFrame)
    heard = open_reader(service, availability_topic("T", "S"), WireConsumerAvailability)
    announcement = announce(service)
    taken: list[bytes] = []

    def has_come() -> bool:
        client.turn(1_000_000)
        taken.extend(heard.take() or ())
        return bool(taken)

    assert eventually(lambda: [client.turn(1_000_000), port.is_feedback_matched and bool(port.poll())][1])
    port.report(ConsumerAvailability(port.queue, GUID, reception_enabled=False, unacked_threshold=3))
    assert eventually(has_come)
    first = taken.pop()
    announcement.close()
    announcement = announce(service)
    assert eventually(has_come)
    assert taken == [first]
    for each in (announcement, answers, heard):
        each.close()


def test_a_reappearance_is_reported_once_for_any_number_of_endpoints() -> None:
    reappeared = ReappearedPeers(lambda endpoint: endpoint.topic_name == "T")
    there = [RemoteEndpoint(number, True, "T", key=b"participant1" + bytes([0, 0, 0, number])) for number in range(3)]
    back = [RemoteEndpoint(each.handle, True, "T", key=each.key, returned=True) for each in there]
    assert not reappeared.look(Changes(appeared=tuple(there)))
    assert not reappeared.look(Changes(vanished=(there[0],)))
    assert not reappeared.look(Changes(vanished=tuple(there[1:])))
    assert reappeared.look(Changes(appeared=(back[0],)))
    assert not reappeared.look(Changes(appeared=(back[1],)))
    assert reappeared.look(Changes(vanished=(back[0],), appeared=(back[2],))), "gone and back again in one look"


def test_what_comes_of_a_queue_that_was_out_of_sight_is_not_taken_twice(
    service_and_client: tuple[Participant, ClientDomain],
) -> None:
    """The queue's service sends again what it has no word of, as it was; all that is given back comes again, marked."""
    service, client = service_and_client
    port = ConsumerPort(client.participant, "T", "S", GUID)
    client.add(port)
    channel = FrameWriter(service, service.topic(consumer_topic("T", "S"), WireFrame), partition=GUID.hex())
    assert client.participant.entity is not None
    beside = SerializedReader(
        client.participant,
        DataReader(
            Subscriber(client.participant.entity, qos=partition_qos(GUID.hex())),
            client.participant.topic(consumer_topic("T", "S"), WireFrame),
            qos=reader_qos(),
        ),
        bytes,
    )
    assert eventually(lambda: channel.writer.matched_count() == 2)

    def write(number: int) -> None:
        channel.put(frames.frame_of([frames.pack_sample(SampleIdentity(GUID, number), b"")]))
        channel.flush()
        assert eventually(lambda: bool(beside.take()))

    def numbers() -> list[int]:
        arrived = [each for each in port.poll() if isinstance(each, Arrivals)]
        return [frames.identity_of(key).sequence_number for each in arrived for key in each.samples]

    write(1)
    assert numbers() == [1]
    there = RemoteEndpoint(1, True, port.queue, key=b"participant1" + bytes(4))
    port.look(Changes(vanished=(there,)))
    write(2)
    port.look(Changes(appeared=(replace(there, returned=True),)))
    assert numbers() == []

    def goes_on() -> bool:
        write(3)
        return set(numbers()) == {3}

    assert eventually(goes_on), "the reader that begins anew"
    for each in (channel, beside):
        each.close()


def test_a_producer_writes_to_a_restarted_service_only_once_that_one_reads(
    service_and_client: tuple[Participant, ClientDomain],
) -> None:
    """The former one, which was killed, seems to read on until its lease is over, under the same name."""
    former, client = service_and_client
    restarted = Participant(former.domain_id)
    port = ProducerPort(client.participant, "T", GUID)
    client.add(port)
    readers = [open_reader(former, "T", WireFrame)]
    assert eventually(lambda: [client.turn(1_000_000), port._handshake.ready_readers(port._readers.keys())][1])
    announcement = announce(restarted)
    assert eventually(lambda: [client.turn(1_000_000), is_announced(client)][1])
    client.turn(1_000_000)
    assert port.poll() == [], "what is written now reaches only the dead"
    readers.append(open_reader(restarted, "T", WireFrame))
    assert eventually(lambda: [client.turn(1_000_000), port.poll()][1])
    for each in (announcement, *readers):
        each.close()
    restarted.close()


def test_a_queue_that_vanishes_during_the_handshake_leaves_no_short_deadline(
    service_and_client: tuple[Participant, ClientDomain], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, client = service_and_client
    port = ProducerPort(client.participant, "T", GUID)
    client.add(port)
    monkeypatch.setattr(port._writer, "drain", lambda _timeout_ns: False)
    reader = open_reader(service, "T", WireFrame)
    announcement = announce(service)
    assert eventually(lambda: [client.turn(1_000_000), not port.flush()][1]), "it is contacted"
    announcement.close()
    assert eventually(lambda: [client.turn(1_000_000), not is_announced(client)][1])
    assert eventually(port.flush)
    reader.close()


@pytest.mark.parametrize(("given", "announced"), [(None, None), (-1, None), (0, 0), (2**31 - 1, 2**31 - 1)])
def test_a_consumer_announces_a_threshold_that_services_read(
    service_and_client: tuple[Participant, ClientDomain], given: int | None, announced: int | None
) -> None:
    _, client = service_and_client
    client.add(ConsumerPort(client.participant, "T", "S", GUID, unacked_threshold=given))

    def found() -> list[RemoteEndpoint]:
        client.turn(1_000_000)
        return [each for each in client.discovery.endpoints() if each.traits.get("role") == "consumer"]

    assert eventually(found)
    assert [each.unacked_threshold for each in found()] == [announced]


@pytest.mark.parametrize("given", [-2, 2**31])
def test_a_threshold_that_no_service_reads_is_refused(
    service_and_client: tuple[Participant, ClientDomain], given: int
) -> None:
    _, client = service_and_client
    with pytest.raises(UsageError, match=f"threshold of {given} means nothing"):
        ConsumerPort(client.participant, "T", "S", GUID, unacked_threshold=given)
