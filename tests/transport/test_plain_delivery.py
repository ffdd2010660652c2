"""Plain producers at a domain's delivery: when their topic is read, and what an orderly stop still reads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cyclonedds.util import duration

from qsctl.core.messages import Inbound, Write
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.plain.topic import class_of_builtin
from qsctl.transport.dds.serving._delivery import DomainDelivery
from tests.dds.domains import claim_domain, release_domain
from tests.dds.peer.plain_types import Octets
from tests.dds.plain_peer import PlainPeer, plain_peers
from tests.patience import eventually

COUNT = 20


class Service:
    """The delivery of one queue, without a service around it."""

    def __init__(self, domain: int) -> None:
        self.has_room = True
        self.participant = Participant(domain, name="service")
        self.delivery = DomainDelivery(
            "P", self.participant, "app", class_of_builtin, lambda queue: self.has_room and queue == "P/S/Orders"
        )
        settings = SharedReaderQueueSettings("Orders", "Orders", "DDS::Octets")
        self.delivery.reconcile({"P/S/Orders": ("S", settings)})
        self.inbox: list[Inbound] = []

    def poll(self) -> bool:
        self.inbox += self.delivery.poll()
        return True

    @property
    def payloads(self) -> list[bytes]:
        return [each.payload for each in self.inbox if isinstance(each, Write)]


@pytest.fixture
def domain() -> Iterator[int]:
    claimed = claim_domain()
    yield claimed
    release_domain(claimed)


@pytest.fixture
def peer(domain: int) -> Iterator[PlainPeer]:
    with plain_peers(domain) as make:
        yield make()


@pytest.fixture
def service(domain: int) -> Iterator[Service]:
    made = Service(domain)
    yield made
    made.delivery.close()


def test_topic_is_read_while_there_is_room_and_what_is_there_at_a_stop(service: Service, peer: PlainPeer) -> None:
    writer = peer.writer("Orders", Octets, matched=None)
    assert eventually(lambda: service.poll() and writer.get_publication_matched_status().current_count == 1)
    service.has_room = False
    for number in range(COUNT):
        writer.write(Octets(b"%d" % number))
    assert writer.wait_for_acks(duration(seconds=60))
    service.poll()
    assert service.payloads == [], "the queue is full"
    service.delivery.accepts = False
    service.poll()
    assert not service.delivery.is_draining, "there is no room for it"
    service.has_room = True
    assert service.delivery.is_draining
    assert eventually(lambda: service.poll() and not service.delivery.is_draining)
    assert service.payloads == [b"%d" % number for number in range(COUNT)]
    assert eventually(lambda: writer.get_publication_matched_status().current_count == 0), "its producers see it leave"
    assert all(isinstance(each, Write) and each.waits_when_full for each in service.inbox)


def test_sample_of_a_writer_that_is_gone_is_read(service: Service, peer: PlainPeer) -> None:
    waiting = peer.writer("Orders", Octets, matched=None)
    assert eventually(lambda: service.poll() and waiting.get_publication_matched_status().current_count == 1)
    short = peer.writer("Orders", Octets)
    short.write(Octets(b"last words"))
    assert short.wait_for_acks(duration(seconds=60))
    short.__del__()
    assert eventually(lambda: service.poll() and bool(service.payloads))
    assert service.payloads == [b"last words"]
