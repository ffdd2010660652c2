"""The service of tests as the `Connection` of every command: commands in this process, samples over DDS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from qsctl.client.dds_samples import DdsSamples, LocatedQueue, located_queue
from qsctl.core.admin.command import Command, GetConfiguration, GetData, GetMessages, GetStatus
from qsctl.core.admin.reply import ServiceData
from qsctl.core.messages import CommandReply, Delivery, QueueName, Write, WriteAcknowledgment
from qsctl.identity import NIL_GUID, Guid
from qsctl.resource import ResourceIdentifier, ResourceKind
from qsctl.testing.running_service import RunningService

TIMEOUT_S: Final = 10.0
"""Longest wait for a queue, and for its acknowledgments, of real time."""

_READS = GetStatus | GetData | GetMessages | GetConfiguration


class DirectConnection:
    """Commands and samples of one test.

    What a command reads is what the service holds once it has processed everything that was sent before.

    Args:
        service: returns the service as it runs now: it may have been restarted.
        domain_id: the domain of its queues.
    """

    def __init__(self, service: Callable[[], RunningService], domain_id: int) -> None:
        self._service = service
        self._domain_id = domain_id
        self._samples = DdsSamples(self._hosted, TIMEOUT_S)

    def request(self, command: Command, target: str = "*") -> list[CommandReply]:
        """Send a command; return its replies.

        Raises:
            Unavailable: the service has ended.
            NoAnswer: it does not rest, or does not answer.
        """
        service = self._service()
        if isinstance(command, _READS):
            service.rest()
        return service.request(command, target)

    def write(self, samples: Sequence[Write]) -> list[WriteAcknowledgment]:
        """Write samples; return when every queue of the topic has acknowledged, or time is up.

        Raises:
            NoAnswer: no queue of the topic is reached in time.
            UsageError: a sample is too large.
        """
        return self._samples.write(samples)

    def receive(
        self, queue: QueueName, max_samples: int, timeout_s: float, source_guid: Guid = NIL_GUID
    ) -> list[Delivery]:
        """Be a consumer of the queue: receive at most the given number of samples, waiting a bounded time for the
        first.

        Raises:
            NoAnswer: the queue is not reached in time.
            NotFound: there is none of that name.
        """
        return self._samples.receive(queue, max_samples, timeout_s, source_guid)

    def acknowledge(self, delivery: Delivery, ok: bool) -> None:
        """Acknowledge a sample: true accepts it, false rejects it [QS 2.5]."""
        self._samples.acknowledge(delivery, ok)

    @property
    def dds_settings(self) -> None:
        """Return None: clients take part in the domain on the loopback."""
        return None

    def place_of(self, queue: QueueName) -> tuple[str, str, int]:
        """Return the topic, the shared subscriber and the domain of a queue.

        Raises:
            NotFound: there is none of that name.
        """
        return self._samples.place_of(queue)

    def close(self) -> None:
        """Send the acknowledgments, return the rest, and leave the domain."""
        self._samples.close()

    def _hosted(self) -> dict[QueueName, LocatedQueue]:
        found: dict[QueueName, LocatedQueue] = {}
        for each in self.request(GetData(ResourceIdentifier().at(ResourceKind.DATA))):
            if isinstance(each.reply.body, ServiceData):
                for data in each.reply.body.queues:
                    queue = located_queue(data, self._domain_id)
                    found[queue.name] = queue
        return found
