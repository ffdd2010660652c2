"""The commands' `Connection` to the service of tests: commands by function call, samples over DDS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from qsctl.client.dds_samples import DdsSamples, LocatedQueue, located_queue
from qsctl.core.admin.command import Command, GetConfiguration, GetData, GetMessages, GetStatus
from qsctl.core.admin.reply import ServiceData
from qsctl.core.messages import CommandReply, Delivery, QueueName, Write, WriteAcknowledgment
from qsctl.identity import NIL_GUID, Guid
from qsctl.resource import ResourceIdentifier, ResourceKind
from qsctl.testing._running_service import RunningService

TIMEOUT_S: Final = 10.0
"""Longest wait for a queue and for its acknowledgments, in seconds of real time."""

_READS = GetStatus | GetData | GetMessages | GetConfiguration


class DirectConnection:
    """A test's connection to the service in this process.

    A command sees the effects of everything that was sent to the service before it.

    Args:
        service: returns the running service, which may have been restarted since the last call.
        domain_id: DDS domain of the queues.
    """

    def __init__(self, service: Callable[[], RunningService], domain_id: int) -> None:
        self._service = service
        self._domain_id = domain_id
        self._samples = DdsSamples(self._hosted, TIMEOUT_S)

    def request(self, command: Command, target: str = "*") -> list[CommandReply]:
        """Send a command and return its replies.

        Raises:
            Unavailable: the service has ended.
            NoAnswer: the service stays busy, or does not reply.
        """
        service = self._service()
        if isinstance(command, _READS):
            service.rest()
        return service.request(command, target)

    def write(self, samples: Sequence[Write]) -> list[WriteAcknowledgment]:
        """Write samples; return when every queue of the topic has acknowledged them, or at the timeout.

        Raises:
            NoAnswer: no queue of the topic was discovered in time.
            UsageError: a sample is too large.
        """
        return self._samples.write(samples)

    def receive(
        self, queue: QueueName, max_samples: int, timeout_s: float, source_guid: Guid = NIL_GUID
    ) -> list[Delivery]:
        """Receive samples as a consumer of the queue: at most `max_samples`, after at most `timeout_s` of waiting for
        the first.

        Raises:
            NoAnswer: the queue was not discovered in time.
            NotFound: no queue has this name.
        """
        return self._samples.receive(queue, max_samples, timeout_s, source_guid)

    def acknowledge(self, delivery: Delivery, ok: bool) -> None:
        """Acknowledge a sample: true accepts it, false rejects it [QS 2.5]."""
        self._samples.acknowledge(delivery, ok)

    @property
    def dds_settings(self) -> None:
        """Return None: clients join the domain with default settings, on the loopback interface."""
        return None

    def place_of(self, queue: QueueName) -> tuple[str, str, int]:
        """Return the topic, the shared subscriber and the domain of a queue.

        Raises:
            NotFound: no queue has this name.
        """
        return self._samples.place_of(queue)

    def close(self) -> None:
        """Send the acknowledgments, return unacknowledged samples to their queues, and leave the domain."""
        self._samples.close()

    def _hosted(self) -> dict[QueueName, LocatedQueue]:
        found: dict[QueueName, LocatedQueue] = {}
        for each in self.request(GetData(ResourceIdentifier().at(ResourceKind.DATA))):
            if isinstance(each.reply.body, ServiceData):
                for data in each.reply.body.queues:
                    queue = located_queue(data, self._domain_id)
                    found[queue.name] = queue
        return found
