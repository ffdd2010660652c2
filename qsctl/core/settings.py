"""The configuration of a queuing service instance for the engine: participants, subscribers and queues [QS 2.1].

Settings of administration, monitoring transport and storage belong to the drivers (`config/settings.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from qsctl.core.queue.settings import (
    MonitoringSettings,
    ReplicationSettings,
    SampleBufferSettings,
    SessionSettings,
    SharedReaderQueueSettings,
    StatisticsSettings,
)


@dataclass(frozen=True, slots=True)
class SharedSubscriberSettings:
    """A `<shared_subscriber>` [QS Table 3.11]. At most one of `queues` is a dead-letter queue."""

    name: str
    sessions: tuple[SessionSettings, ...] = ()
    queues: tuple[SharedReaderQueueSettings, ...] = ()
    qos: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DomainParticipantSettings:
    """A `<domain_participant>` [QS Table 3.10]."""

    name: str
    domain_id: int
    subscribers: tuple[SharedSubscriberSettings, ...] = ()
    sample_buffer: SampleBufferSettings = SampleBufferSettings()
    qos: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """A `<queuing_service>` [QS Table 3.2] under its application name.

    `monitoring`, `statistics` and `replication` are inherited by queues that are created at run time [QS 3.3.4.2.1,
    3.3.4.3, 7.1.3].
    """

    application_name: str
    participants: tuple[DomainParticipantSettings, ...] = ()
    monitoring: MonitoringSettings = MonitoringSettings()
    statistics: StatisticsSettings = StatisticsSettings()
    replication: ReplicationSettings = ReplicationSettings()


def queues_of(
    service: ServiceSettings,
) -> Iterator[tuple[DomainParticipantSettings, SharedSubscriberSettings, SharedReaderQueueSettings]]:
    """Yield every queue of a service with its participant and subscriber."""
    for participant in service.participants:
        for subscriber in participant.subscribers:
            for queue in subscriber.queues:
                yield participant, subscriber, queue


def queues_by_name(service: ServiceSettings) -> dict[str, SharedReaderQueueSettings]:
    """Return the queues of a service by full name, `<domain participant>/<shared subscriber>/<queue>`."""
    return {
        f"{participant.name}/{subscriber.name}/{queue.name}": queue
        for participant, subscriber, queue in queues_of(service)
    }


ChangeQueue: TypeAlias = Callable[
    [DomainParticipantSettings, SharedSubscriberSettings, SharedReaderQueueSettings], SharedReaderQueueSettings | None
]
"""Return the settings that replace a queue's; None: the queue is dropped."""


def with_queues(service: ServiceSettings, change: ChangeQueue) -> ServiceSettings:
    """Return a service whose queues are replaced or dropped by `change`; all participants and subscribers are kept."""
    return replace(
        service,
        participants=tuple(
            replace(
                participant,
                subscribers=tuple(
                    replace(
                        subscriber,
                        queues=tuple(
                            changed
                            for queue in subscriber.queues
                            if (changed := change(participant, subscriber, queue)) is not None
                        ),
                    )
                    for subscriber in participant.subscribers
                ),
            )
            for participant in service.participants
        ),
    )
