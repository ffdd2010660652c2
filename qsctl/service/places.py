"""Where each queue of a service stands: what its files are named after [QS 2.14.2]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, TypeAlias

from qsctl.core.messages import QueueName
from qsctl.core.queue.settings import PersistenceKind, SharedReaderQueueSettings
from qsctl.core.settings import DomainParticipantSettings
from qsctl.resource import ResourceIdentifier


class Place(NamedTuple):
    """A queue's domain, shared subscriber and settings."""

    domain_id: int
    subscriber: str
    settings: SharedReaderQueueSettings

    @property
    def is_persistent(self) -> bool:
        """Whether its samples outlive the service."""
        return self.settings.persistence.kind is PersistenceKind.PERSISTENT


Places: TypeAlias = Mapping[QueueName, Place]


class HasQueues(Protocol):
    """What is asked of an engine."""

    def participants(self) -> Mapping[ResourceIdentifier, DomainParticipantSettings]:
        """The domain participants."""

    def queues(self) -> Mapping[ResourceIdentifier, SharedReaderQueueSettings]:
        """The queues, implicit reply queues included."""


def places_of(engine: HasQueues) -> dict[QueueName, Place]:
    """Every queue that an engine hosts now, by its full name."""
    domains = {settings.name: settings.domain_id for settings in engine.participants().values()}
    found = {}
    for resource, settings in engine.queues().items():
        (_, participant), (_, subscriber), (_, queue) = resource.names
        found[f"{participant}/{subscriber}/{queue}"] = Place(domains[participant], subscriber, settings)
    return found
