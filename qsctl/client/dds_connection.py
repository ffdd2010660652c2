"""A service reached over DDS as the `Connection` that every command of the command line uses.

Decides: which domain a queue's samples travel in, as the service replies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from qsctl.client._dds_administrator import Administrator
from qsctl.client.dds_samples import DdsSamples, LocatedQueue, located_queue
from qsctl.core.admin.command import Command, GetData
from qsctl.core.admin.reply import ServiceData
from qsctl.core.messages import CommandReply, Delivery, QueueName, Write, WriteAcknowledgment
from qsctl.identity import NIL_GUID, Guid
from qsctl.resource import ResourceIdentifier, ResourceKind
from qsctl.transport.dds.participant import DomainSettings
from qsctl.transport.dds.wire.commands import RawBody
from qsctl.transport.dds.wire.replies import queue_domains


class DdsConnection:
    """Commands in the administration domain, samples in the domains of the queues.

    Args:
        domain_id: the administration domain.
        timeout_s: the time limit of a command, of the discovery of a queue, and of the acknowledgments of a write.
        key_file: signs commands, see `Administrator`.
    """

    def __init__(
        self,
        domain_id: int,
        timeout_s: float,
        settings: DomainSettings | None = None,
        key_file: Path | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._settings = settings
        self._domain_id = domain_id
        self._administrator = Administrator(domain_id, timeout_s, settings, key_file)
        self._samples = DdsSamples(self._hosted, timeout_s, settings)
        self._is_closed = False

    @property
    def place(self) -> str:
        """The text that names the searched domain and the time limit."""
        return f"domain {self._domain_id} within {self._timeout_s:g} s"

    def why_silent(self) -> str:
        """Return the likely reason why no service answered, from the discovered participants of the domain."""
        services = self._administrator.services_there()
        if services:
            return (
                f"Without administration in this domain: {', '.join(services[:5])}. Give the service an "
                "<administration> with this <domain_id>, start it with -remoteAdministrationDomainId "
                f"{self._domain_id}, or name the domain of its administration with --service."
            )
        where = self._settings.interface if self._settings is not None else DomainSettings().interface
        return (
            f"Nothing of a service is seen in domain {self._domain_id} on interface {where}. None runs, or it is "
            "in another domain (this one is that of --service, QSCTL_SERVICE or the current context, `qsctl context "
            "list`), or on another interface (--interface of `qsctl serve`, interface= of --service)."
        )

    @property
    def silent(self) -> frozenset[str]:
        """The services that did not answer the latest command."""
        return self._administrator.silent

    @property
    def tolerates_silence(self) -> bool:
        """Return whether a command succeeds with the replies of the services that answer."""
        return self._administrator.tolerates_silence

    @tolerates_silence.setter
    def tolerates_silence(self, tolerates: bool) -> None:
        self._administrator.tolerates_silence = tolerates

    @property
    def on_silence(self) -> Callable[[int], None] | None:
        """The function called with the number of samples while `write` waits, if no queue has answered for a second."""
        return self._samples.on_silence

    @on_silence.setter
    def on_silence(self, on_silence: Callable[[int], None] | None) -> None:
        self._samples.on_silence = on_silence

    def request(self, command: Command, target: str = "*") -> list[CommandReply]:
        """Send a command to every service that matches the target pattern; return their replies, those of each in
        order.
        """
        return [each.message for each in self._administrator.request(command, target)]

    def create_from_body(self, container: ResourceIdentifier, body: str, target: str = "*") -> list[CommandReply]:
        """Send a CREATE with its body unchanged (`SendsBodies`)."""
        return [each.message for each in self._administrator.request(RawBody(container, body), target)]

    def update_from_body(self, queue: ResourceIdentifier, body: str, target: str = "*") -> list[CommandReply]:
        """Send an UPDATE with its body unchanged (`SendsBodies`)."""
        return [each.message for each in self._administrator.request(RawBody(queue, body, is_update=True), target)]

    def write(self, samples: Sequence[Write]) -> list[WriteAcknowledgment]:
        """Write samples, and wait until every queue of the topic has acknowledged them, or the time limit has passed.

        Raises:
            NoAnswer: no queue of the topic is discovered in time.
            UsageError: a sample is too large.
        """
        return self._samples.write(samples)

    def receive(
        self, queue: QueueName, max_samples: int, timeout_s: float, source_guid: Guid = NIL_GUID
    ) -> list[Delivery]:
        """Receive at most `max_samples` samples of a queue as a consumer, waiting at most `timeout_s` for the first.

        Raises:
            NoAnswer: the queue is not discovered in time, or does not report whether it has more samples.
            NotFound: no service hosts it.
        """
        return self._samples.receive(queue, max_samples, timeout_s, source_guid)

    def acknowledge(self, delivery: Delivery, ok: bool) -> None:
        """Acknowledge a sample: True accepts it, False rejects it [QS 2.5]."""
        self._samples.acknowledge(delivery, ok)

    @property
    def dds_settings(self) -> DomainSettings | None:
        """Return the settings by which clients join the domains; None: on loopback."""
        return self._settings

    def place_of(self, queue: QueueName) -> tuple[str, str, int]:
        """Return the topic, the shared subscriber and the domain of a queue.

        Raises:
            NotFound: no service hosts it.
        """
        return self._samples.place_of(queue)

    def close(self) -> None:
        """Send the acknowledgments, return other samples to their queues, and leave every domain; further calls do
        nothing.

        Samples received and not acknowledged return as redelivered, because the user may have seen them.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._samples.close()
        self._administrator.leave()

    def _hosted(self) -> dict[QueueName, LocatedQueue]:
        found: dict[QueueName, LocatedQueue] = {}
        for message, octets in self._administrator.request(GetData(ResourceIdentifier().at(ResourceKind.DATA)), "*"):
            body = message.reply.body
            if not isinstance(body, ServiceData):
                continue
            domains = queue_domains(octets)
            for data in body.queues:
                domain_id = domains.get(data.resource, -1)
                queue = located_queue(data, domain_id if domain_id >= 0 else self._domain_id)
                found[queue.name] = queue
        return found
