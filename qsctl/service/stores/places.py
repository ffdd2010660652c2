"""The hosted queues with the parts of their files' names [QS 2.14.2]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from qsctl.core.hosted_service import HostedService
from qsctl.core.messages import QueueName
from qsctl.core.queue.settings import PersistenceKind, SharedReaderQueueSettings


class HostedPlace(NamedTuple):
    """A queue's domain, shared subscriber and settings."""

    domain_id: int
    subscriber: str
    settings: SharedReaderQueueSettings

    @property
    def is_persistent(self) -> bool:
        """Return whether its samples are in a store that outlives the service; those of a replicated queue are in its
        log.
        """
        return self.settings.persistence.kind is PersistenceKind.PERSISTENT and not self.settings.replication.enabled


Places: TypeAlias = Mapping[QueueName, HostedPlace]


def places_of(hosted: HostedService) -> dict[QueueName, HostedPlace]:
    """Return every queue that a service hosts, by its full name."""
    domains = {settings.name: settings.domain_id for settings in hosted.participants().values()}
    found = {}
    for resource, settings in hosted.queues().items():
        (_, participant), (_, subscriber), (_, queue) = resource.names
        found[f"{participant}/{subscriber}/{queue}"] = HostedPlace(domains[participant], subscriber, settings)
    return found
