"""The programs of floods: `python -m tests.dds.floods KIND DOMAIN`, until the process is ended.

Each does one thing as fast as it can, as a program with a fault would, from one participant. It prints `ready`, and
then how often it has done it: each power of two.
"""

import contextlib
import itertools
import socket
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from cyclonedds.idl import IdlStruct
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

from qsctl.client import ClientSession, QueueConsumer, QueueProducer
from qsctl.client._dds_administrator import Administrator
from qsctl.core.admin.command import CreateQueue, GetStatus
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.identity import Guid, SampleIdentity
from qsctl.resource import ResourceKind, parse_resource
from qsctl.transport.dds.channels import FrameWriter
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.qos import reader_qos
from qsctl.transport.dds.wire.bodies import octets_of
from qsctl.transport.dds.wire.commands import wire_request
from qsctl.transport.dds.wire.raw import RawReader, close_entity
from qsctl.transport.dds.wire.wire_types import (
    COMMAND_REPLY_TOPIC,
    COMMAND_REQUEST_TOPIC,
    WireCommandReply,
    WireCommandRequest,
)
from tests.fuzz.mutation import mutations

SUBSCRIBER = parse_resource("/domain_participant/P/shared_subscriber/S")
HOARD = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/Hoard")
CONSUMERS = 400
DATAGRAMS_A_SECOND = 4_000
DATAGRAMS_AT_ONCE = 20
"""Far more overflow the buffer in which the system keeps a process's datagrams: those of others are lost, too, whatever
a service does with what it receives."""

UNUSED_PLACE = 60
"""The index of a participant that is not there, of those that others look for."""

TOPICS_MAX = 100
"""Endpoints of a flood that are there at a time."""


@dataclass
class Wrong(IdlStruct, typename="Wrong"):
    """A type that no queue has."""

    number: int


def creates(domain: int) -> Iterator[None]:
    """CREATE queues, one after another."""
    administrator = Administrator(domain, 60.0)
    for number in itertools.count():
        settings = SharedReaderQueueSettings(f"F{number}", f"Flood{number}", type_name="DDS::Octets", session="s")
        administrator.request(CreateQueue(SUBSCRIBER, settings), "*")
        yield


def gets(domain: int) -> Generator[None]:
    """GET the status, without waiting for the answer to the last."""
    participant = Participant(domain)
    assert participant.entity is not None
    with closing(participant):
        writer = FrameWriter(participant, participant.topic(COMMAND_REQUEST_TOPIC, WireCommandRequest))
        topic = participant.topic(COMMAND_REPLY_TOPIC, WireCommandReply)
        reader = RawReader(DataReader(participant.entity, topic, qos=reader_qos()))
        command = GetStatus(HOARD.at(ResourceKind.STATUS))
        for number in itertools.count(1):
            writer.put(octets_of(wire_request(command, "*", SampleIdentity(Guid(b"g" * 16), number))))
            while not writer.flush():
                time.sleep(0.001)
            reader.take()
            yield


def topics(domain: int) -> Iterator[None]:
    """Open and close writers, each on a topic of its own."""
    participant = Participant(domain)
    entity: Any = participant.entity
    kept: list[Any] = []
    for number in itertools.count():
        topic = Topic(entity, f"Passing{number}", Wrong)
        kept.append(DataWriter(entity, topic))
        if len(kept) > TOPICS_MAX:
            close_entity(kept.pop(0))
        yield


def consumers(domain: int) -> Iterator[None]:
    """Receive samples and acknowledge none."""
    session = ClientSession(domain)
    hoarders = [QueueConsumer("Hoard", "S", domain, session=session) for _ in range(CONSUMERS)]
    producer = QueueProducer("Hoard", session=session)
    for hoarder in hoarders:
        hoarder.wait_for_queue(60.0)
    producer.wait_for_queue(60.0)
    while True:
        if producer.has_room():
            producer.write(bytes(100))
        producer.turn()
        for hoarder in hoarders:
            hoarder.turn()
        yield


def wrong_writers(domain: int) -> Iterator[None]:
    """Open and close writers of another type on the queue's topic, a hundred at a time."""
    participant = Participant(domain)
    entity: Any = participant.entity
    topic = Topic(entity, "Orders", Wrong)
    writers: list[Any] = []
    while True:
        writers.append(DataWriter(entity, topic))
        if len(writers) > TOPICS_MAX:
            close_entity(writers.pop(0))
        yield


def datagrams(domain: int) -> Iterator[None]:
    """Send the announcements of those who are there, changed, to where the service, which came first, receives.

    Each participant announces itself to every place where another one may be: this listens where none is.
    """
    first_port = 7410 + 250 * domain
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as place:
        place.bind(("127.0.0.1", first_port + 2 * UNUSED_PLACE))
        seen: set[bytes] = set()
        ends_at = time.monotonic() + 3.0
        while not seen or time.monotonic() < ends_at:
            seen.add(place.recv(65_536))
        place.setblocking(False)
        for number in itertools.count():
            time.sleep(DATAGRAMS_AT_ONCE / DATAGRAMS_A_SECOND)
            for datagram in mutations(sorted(seen), (), DATAGRAMS_AT_ONCE, number):
                for port in (first_port, first_port + 1):
                    with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
                        place.sendto(datagram, ("127.0.0.1", port))
                yield


KINDS = {each.__name__: each for each in (creates, gets, topics, consumers, wrong_writers, datagrams)}

if __name__ == "__main__":
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for count, _ in enumerate(KINDS[sys.argv[1]](int(sys.argv[2])), 1):
        if count & (count - 1) == 0:
            sys.stdout.write(f"{count}\n")
            sys.stdout.flush()
