"""Services with a pipeline, and what goes into and comes out of one: for tests."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.admin.command import CreateQueue, DeleteQueue, Shutdown
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import (
    CommandRequest,
    Delivery,
    Inbound,
    Outbound,
    Write,
    WriteAcknowledgment,
    one_by_one,
)
from qsctl.core.queue.settings import PersistenceKind, PersistenceSettings, SharedReaderQueueSettings
from qsctl.core.ready import Ready
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.core.turn import Released
from qsctl.identity import Guid, SampleIdentity, counted_incarnations
from qsctl.resource import parse_resource
from qsctl.service.run.loop import ServiceLoop
from qsctl.service.stores.restore import restore
from qsctl.service.stores.stores import Stores
from qsctl.service.stores.sync_thread import QUICK_SYNC_S
from qsctl.storage.base import Sync

WRITER, READER = Guid(b"w" * 16), Guid(b"r" * 16)
SUBSCRIBER = parse_resource("/domain_participant/P/shared_subscriber/S")
ORDERS = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/orders")
ON_DISK = PersistenceSettings(PersistenceKind.PERSISTENT, in_memory_state=False)
IN_MEMORY = PersistenceSettings(PersistenceKind.PERSISTENT)


def queue(name: str = "orders", persistence: PersistenceSettings = IN_MEMORY) -> SharedReaderQueueSettings:
    return SharedReaderQueueSettings(name, name.capitalize(), persistence=persistence)


def service(directory: Path, *queues: SharedReaderQueueSettings, keeps_state: bool = False) -> ServiceLoop:
    participant = DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S", queues=queues),))
    engine = ServiceEngine(
        ServiceSettings("app", (participant,)),
        started_at=1,
        draw=counted_incarnations(),
        journal=Journal.PERSISTENT_ONLY,
    )
    filesystem = FilesystemSettings(synchronization=Synchronization.FULL)
    stores = Stores(directory, filesystem, "app", keeps_service_state=keeps_state)
    restore(engine, stores, 1)
    loop = ServiceLoop(engine, stores)
    loop.turn()
    return loop


def pipelined(loop: ServiceLoop, *, quick_sync_s: float = QUICK_SYNC_S, **options: Any) -> ServiceLoop:
    """Return a loop over the same engine and stores that works on while the disk syncs."""
    return ServiceLoop(loop.engine, loop.stores, loop.clock, quick_sync_s=quick_sync_s, **options)


def writes(*numbers: int, topic: str = "Orders") -> list[Inbound]:
    return [Write("P", topic, SampleIdentity(WRITER, number), b"%d" % number) for number in numbers]


def command(each: CreateQueue | DeleteQueue | Shutdown) -> CommandRequest:
    return CommandRequest(SampleIdentity(READER, 1), "*", each)


def messages_of(finished: Sequence[Released]) -> list[Outbound]:
    return [message for ready in finished for message in ready.messages]


def numbers_of(messages: Sequence[Outbound]) -> list[int]:
    return [each.identity.sequence_number for each in messages if isinstance(each, WriteAcknowledgment)]


def payloads_of(messages: Sequence[Outbound]) -> list[bytes | None]:
    return [each.payload for each in one_by_one(messages) if isinstance(each, Delivery)]


def hold_syncs(monkeypatch: pytest.MonkeyPatch, entered: threading.Event, let_through: threading.Event) -> None:
    """Let no sync begin before `let_through` is set; `entered` tells that one wants to."""
    real = Stores.write

    def write(self: Stores, turns: Sequence[Ready]) -> Sync | None:
        sync = real(self, turns)
        if sync is None:
            return None

        def held() -> None:
            entered.set()
            assert let_through.wait(10)
            sync()

        return held

    monkeypatch.setattr(Stores, "write", write)
