"""A consumer's reader is gone, and discovery is read late: what was never written to it waits for another one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from cyclonedds.qos import Policy

from qsctl.core.messages import Acknowledgment, AckResponse, ConsumerJoined, ConsumerLeft, Delivery, Inbound
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.identity import Guid, SampleIdentity
from qsctl.transport.dds.clients.client_domain import ClientDomain
from qsctl.transport.dds.clients.client_ports import ConsumerPort
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import Changes
from qsctl.transport.dds.serving._delivery import DomainDelivery
from tests.dds.domains import claim_domain, release_domain
from tests.dds.peer import queue_types as idl
from tests.dds.plain_peer import PlainConsumer, PlainPeer, plain_peers
from tests.patience import eventually

QUEUE = "P/S/Orders"
WRITER = Guid(b"a producer's own")


class LateService:
    """The delivery of one queue, without a service around it, and with a discovery that can be held."""

    def __init__(self, domain: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.delivery = DomainDelivery("P", Participant(domain, name="service"), "app")
        self.delivery.reconcile({QUEUE: ("S", SharedReaderQueueSettings("Orders", "Orders", "DDS::Octets"))})
        self.is_late = False
        self.inbox: list[Inbound] = []
        look = self.delivery.discovery.look
        monkeypatch.setattr(
            self.delivery.discovery, "look", lambda ready=None: Changes() if self.is_late else look(ready)
        )

    def has(self, kind: type[Any]) -> bool:
        self.inbox += self.delivery.poll()
        self.delivery.flush()
        return any(isinstance(each, kind) for each in self.inbox)

    def deliver(self, guid: Guid, *positions: int) -> None:
        deliveries = [Delivery(QUEUE, guid, each, identity(each), b"x") for each in positions]
        self.delivery.queues[QUEUE].deliver(guid, deliveries)
        self.delivery.flush()

    def taken(self) -> list[Inbound]:
        taken, self.inbox = self.inbox, []
        return taken

    def has_seen_it_go(self, guid: Guid) -> bool:
        """Whether the library knows that the reader of a consumer is gone."""
        queue: Any = self.delivery.queues[QUEUE]
        plain = queue.plain._channels.get(guid)
        frames = queue._channels[guid]._frames if plain is None else plain._writer
        # Not by the status of the writer, which is read once.
        return bool(frames.writer._library.dds_get_matched_subscriptions(frames.writer.reference, None, 0) == 0)


def identity(number: int) -> SampleIdentity:
    return SampleIdentity(WRITER, number)


@pytest.fixture
def domain() -> Iterator[int]:
    claimed = claim_domain()
    yield claimed
    release_domain(claimed)


@pytest.fixture
def service(domain: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[LateService]:
    made = LateService(domain, monkeypatch)
    yield made
    made.delivery.close()


@pytest.fixture
def peer(domain: int) -> Iterator[PlainPeer]:
    with plain_peers(domain) as make:
        yield make()


@pytest.fixture
def client(domain: int) -> Iterator[ClientDomain]:
    made = ClientDomain(Participant(domain))
    yield made
    made.close()


def joined(service: LateService) -> Guid:
    assert eventually(lambda: service.has(ConsumerJoined))
    (message,) = service.taken()
    assert isinstance(message, ConsumerJoined)
    return message.consumer_guid


def test_plain_consumer_that_is_gone_is_found_by_what_is_sent_to_it(service: LateService, peer: PlainPeer) -> None:
    consumer = PlainConsumer.__new__(PlainConsumer)
    place = "qsctl/Orders/S"
    consumer.partition, consumer.taken = "one", []
    consumer.reader = peer.reader(f"{place}/delivery", idl.Delivery, "one")
    consumer.writer = peer.writer(f"{place}/acknowledgment", idl.Acknowledgment, matched=None)
    guid = joined(service)
    service.deliver(guid, 1, 2)
    first, _ = consumer.receive(2)
    service.is_late = True
    consumer.answer(first)
    consumer.reader.__del__()
    assert eventually(lambda: service.has_seen_it_go(guid))
    service.deliver(guid, 3)
    service.deliver(guid, 4, 5)
    assert eventually(lambda: service.has(ConsumerLeft))
    assert service.taken() == [
        Acknowledgment(QUEUE, guid, identity(1), AckResponse.ACCEPTED),
        ConsumerLeft(QUEUE, guid, unsent=(3, 4, 5)),
    ], "what it acknowledged before counts; the second was sent, and nobody knows what became of it"
    assert service.delivery.is_settling
    service.is_late = False
    assert eventually(lambda: not service.has(ConsumerLeft) and not service.delivery.is_settling)
    assert service.taken() == [], "it has left once"
    again = peer.reader(f"{place}/delivery", idl.Delivery, "one")
    assert joined(service) != guid
    again.__del__()


def test_wrapper_that_is_gone_is_found_by_what_is_sent_to_it(service: LateService, client: ClientDomain) -> None:
    guid = Guid(bytes(range(16)))
    port: Any = ConsumerPort(client.participant, "Orders", "S", guid)
    client.add(port)
    assert eventually(lambda: [client.turn(1_000_000), service.has(ConsumerJoined)][1])
    assert joined(service) == guid
    service.is_late = True
    port._samples.close()
    assert eventually(lambda: service.has_seen_it_go(guid))
    service.deliver(guid, 1)
    assert eventually(lambda: service.has(ConsumerLeft))
    assert service.taken() == [ConsumerLeft(QUEUE, guid, unsent=(1,))]
    port._samples = port._join()
    service.is_late = False
    assert joined(service) == guid, "its new reader is another one, of the same consumer"
    assert service.taken() == []
    service.deliver(guid, 1)
    assert eventually(lambda: [client.turn(1_000_000), bool(port.poll())][1])


def test_what_waits_for_room_when_the_reader_goes_was_not_sent(service: LateService, peer: PlainPeer) -> None:
    """The consumer's cache is full at 8 MiB."""
    place = "qsctl/Orders/S"
    reader = peer.reader(f"{place}/delivery", idl.Delivery, "one", Policy.ResourceLimits(max_samples=2))
    writer = peer.writer(f"{place}/acknowledgment", idl.Acknowledgment, matched=None)
    guid = joined(service)
    payload = bytes(1_000_000)
    deliveries = [Delivery(QUEUE, guid, each, identity(each), payload) for each in range(1, 41)]
    service.delivery.queues[QUEUE].deliver(guid, deliveries)
    assert not service.delivery.flush(), "some wait"
    assert not service.has(ConsumerLeft)
    reader.__del__()
    assert eventually(lambda: service.has(ConsumerLeft))
    (left,) = service.taken()
    assert isinstance(left, ConsumerLeft)
    assert 0 < len(left.unsent) < 40
    assert left.unsent == tuple(range(41 - len(left.unsent), 41)), "the first were sent"
    writer.__del__()
