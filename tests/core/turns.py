"""Turns of small services, and what a driver does with them: for tests."""

from __future__ import annotations

from typing import Any

from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import (
    CommandRequest,
    Inbound,
    Outbound,
    Write,
    WriteAcknowledgment,
)
from qsctl.core.queue.settings import (
    PersistenceKind,
    PersistenceSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.core.turn import Group, Turn
from qsctl.identity import Guid, SampleIdentity, counted_incarnations
from qsctl.resource import parse_resource

WRITER, READER = Guid(b"w" * 16), Guid(b"r" * 16)
SUBSCRIBER = parse_resource("/domain_participant/P/shared_subscriber/S")
ORDERS = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/orders")
PERSISTENT = PersistenceSettings(PersistenceKind.PERSISTENT)


def queue(name: str, **given: Any) -> SharedReaderQueueSettings:
    return SharedReaderQueueSettings(name, name.capitalize(), **given)


def engine_of(*queues: SharedReaderQueueSettings) -> ServiceEngine:
    subscriber = SharedSubscriberSettings("S", (), queues)
    settings = ServiceSettings("svc", (DomainParticipantSettings("P", 0, (subscriber,)),))
    return ServiceEngine(settings, started_at=0, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY)


def turn_of(*queues: SharedReaderQueueSettings, **given: Any) -> Turn:
    """A turn whose service has recorded its configuration."""
    engine = engine_of(*queues)
    engine.finish_restore(0)
    turn = Turn(engine, **given)
    run(turn)
    write_all(turn)
    turn.to_send()
    assert turn.is_idle
    return turn


def run(turn: Turn, *messages: Inbound, now: int = 0) -> None:
    turn.receive(messages)
    while turn.step(now):
        pass


def write_all(turn: Turn) -> None:
    while (group := turn.to_write()) is not None:
        report(turn, group)


def report(turn: Turn, group: Group) -> None:
    for ready in group.turns:
        for batch in ready.batches:
            turn.durable(batch.stream, batch.last_index)


def write(number: int, topic: str = "Orders") -> Write:
    return Write("P", topic, SampleIdentity(WRITER, number), b"%d" % number)


def command(each: Any) -> CommandRequest:
    return CommandRequest(SampleIdentity(READER, 1), "*", each)


def sent(turn: Turn) -> list[Outbound]:
    return [message for released in turn.to_send() for message in released.messages]


def acknowledged(turn: Turn) -> list[tuple[str, int]]:
    return [
        (each.queue.rpartition("/")[2], each.identity.sequence_number)
        for each in sent(turn)
        if isinstance(each, WriteAcknowledgment)
    ]
