"""The service's transport on DDS keeps the contract, with a producer of its own in another participant."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from qsctl.core.messages import Message, Write, WriteAcknowledgment
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.resource import ResourceIdentifier
from qsctl.transport.base import Transport
from qsctl.transport.dds.client_domain import ClientDomain
from qsctl.transport.dds.client_ports import ProducerPort
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.service_transport import DomainPlace, ServicePlaces, ServiceTransport
from tests.dds.domains import claim_domain
from tests.transport.contract import GUID, QUEUE, Peer, TransportContract

MILLISECOND_NS = 1_000_000


class NoSnippets:
    """Administration is off here."""

    def queue(self, xml: str, subscriber: ResourceIdentifier) -> SharedReaderQueueSettings:
        raise AssertionError(xml)

    def subscriber(self, xml: str, participant: ResourceIdentifier) -> SharedSubscriberSettings:
        raise AssertionError(xml)


class RemoteProducer:
    """A producer of the topic."""

    def __init__(self, domain: int) -> None:
        self._domain = ClientDomain(Participant(domain))
        self._port = ProducerPort(self._domain.participant, "T", GUID)
        self._domain.add(self._port)
        self._heard: list[Message] = []

    async def meet(self, transport: ServiceTransport) -> None:
        with anyio.fail_after(20):
            while not self._port.matched_queues():
                self._turn()
                transport.poll()
                transport.flush()
                await anyio.sleep(0.005)

    async def say(self, messages: Sequence[Write]) -> None:
        self._port.send(messages)
        self._turn()

    async def hear(self, count: int) -> list[Message]:
        while len(self._heard) < count:
            self._turn()
            await anyio.sleep(0.001)
        return self._heard

    async def leave(self) -> None:
        self._domain.close()

    def _turn(self) -> None:
        self._domain.turn(0)
        for news in self._port.poll():
            if isinstance(news, WriteAcknowledgment):
                assert news.queue == "T@S"
                self._heard.append(WriteAcknowledgment(QUEUE, news.identity, news.response))


class TestDds(TransportContract):
    async def open(self) -> tuple[Transport, Peer]:
        domain = claim_domain()
        transport = ServiceTransport("Test", ServicePlaces({"P": DomainPlace(domain)}), NoSnippets())
        settings = SharedReaderQueueSettings(name="Q", topic_name="T", session="s")
        transport.reconcile({QUEUE: ("S", settings)})
        peer = RemoteProducer(domain)
        await peer.meet(transport)
        return transport, peer
