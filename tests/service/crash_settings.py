"""The services that the crash tests kill."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from qsctl.config.filesystem import FilesystemSettings, JournalMode, Synchronization
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.queue.settings import (
    PersistenceKind,
    PersistenceSettings,
    RedeliverySettings,
    ResourceLimitSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import counted_incarnations
from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.service.run.loop import ServiceLoop
from qsctl.service.stores.restore import restore
from qsctl.service.stores.stores import Stores

RETRIES = 2


def with_dead_letters(*, in_memory_state: bool) -> ServiceConfiguration:
    """Two retries, a response time-out of 3 ms, and room for 40 dead letters."""
    given = configuration(in_memory_state=in_memory_state, mode=JournalMode.DELETE)
    (participant,) = given.service.participants
    (subscriber,) = participant.subscribers
    (orders,) = subscriber.queues
    orders = replace(
        orders, dead_letter_queue="dead", redelivery=RedeliverySettings(RETRIES, response_timeout_ns=3 * MILLISECOND_NS)
    )
    dead = SharedReaderQueueSettings(
        "dead",
        "Dead",
        is_dead_letter=True,
        persistence=orders.persistence,
        redelivery=RedeliverySettings(1_000_000, response_timeout_ns=3600 * SECOND_NS),
        limits=ResourceLimitSettings(max_count=40),
    )
    subscriber = replace(subscriber, queues=(orders, dead))
    service = replace(given.service, participants=(replace(participant, subscribers=(subscriber,)),))
    return replace(given, service=service)


def configuration(
    *,
    in_memory_state: bool,
    persistent: bool = True,
    mode: JournalMode = JournalMode.DELETE,
    synchronization: Synchronization = Synchronization.FULL,
) -> ServiceConfiguration:
    kind = PersistenceKind.PERSISTENT if persistent else PersistenceKind.VOLATILE
    queue = SharedReaderQueueSettings(
        "orders",
        "Order",
        redelivery=RedeliverySettings(max_delivery_retries=1_000_000),
        persistence=PersistenceSettings(kind, in_memory_state=in_memory_state),
    )
    participant = DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S", queues=(queue,)),))
    filesystem = FilesystemSettings(file_max_size_kb=8, synchronization=synchronization, journal_mode=mode)
    return ServiceConfiguration("crash", ServiceSettings("crash", (participant,)), filesystem=filesystem)


def service_in(directory: Path) -> ServiceLoop:
    """A service that keeps its queues in a directory, whose name ends with the kind of their stores."""
    configured = with_dead_letters(in_memory_state=directory.name.endswith("segments"))
    stores = Stores(directory, configured.filesystem, "crash", keeps_service_state=False)
    engine = ServiceEngine(
        configured.service, started_at=1, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY
    )
    loop = ServiceLoop(engine, stores)
    restore(engine, stores, loop.clock())
    return loop
