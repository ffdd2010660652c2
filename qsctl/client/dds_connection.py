"""A service reached over DDS as the `Connection` that every command of the command line uses.

Decides: which domain a queue's samples travel in, as the service replies; and when a client that wants a few samples
returns the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from qsctl.client.consumer import QueueConsumer
from qsctl.client.dds_administrator import Administrator
from qsctl.client.dead_letters import opened
from qsctl.client.sample_writer import SampleWriter
from qsctl.client.session import ClientSession
from qsctl.core.admin.command import Command, GetData
from qsctl.core.admin.reply import QueueData, ServiceData
from qsctl.core.messages import AckResponse, CommandReply, Delivery, QueueName, Write, WriteAcknowledgment
from qsctl.errors import NotFound
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.resource import ResourceIdentifier, ResourceKind, parse_resource
from qsctl.transport.dds.clients.client_ports import require_size
from qsctl.transport.dds.participant import DomainSettings
from qsctl.transport.dds.wire.commands import RawCreate
from qsctl.transport.dds.wire.replies import queue_domains


class _Hosted(msgspec.Struct, frozen=True):
    """The place of a queue."""

    data: QueueData
    resource: ResourceIdentifier
    domain_id: int

    @property
    def subscriber(self) -> str:
        return self.resource.parent.name

    @property
    def label(self) -> str:
        return f"{self.data.topic_name}@{self.subscriber}"


class DdsConnection:
    """Commands in the administration domain, samples in the domains of the queues.

    Args:
        domain_id: the administration domain.
        timeout_s: for a command, for the discovery of a queue, and for the acknowledgments of a write.
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
        self._hosted: dict[QueueName, _Hosted] = {}
        self._sessions: dict[int, ClientSession] = {}
        self._writers: dict[tuple[int, str, Guid], SampleWriter] = {}
        self._consumers: dict[QueueName, QueueConsumer[bytes]] = {}
        self._positions: dict[SampleIdentity, int] = {}
        self.on_silence: Callable[[int], None] | None = None
        """Called in `write`, with the number of samples, where no queue has answered for a second."""
        self._is_closed = False

    @property
    def place(self) -> str:
        """The domain of the services, and how long they have."""
        return f"domain {self._domain_id} within {self._timeout_s:g} s"

    def why_silent(self) -> str:
        """Return the likely reason why no service answered: what discovery shows of the domain decides."""
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
        """The services that did not answer the latest command for them."""
        return self._administrator.silent

    @property
    def tolerates_silence(self) -> bool:
        """Return whether the replies of those that answer are enough."""
        return self._administrator.tolerates_silence

    @tolerates_silence.setter
    def tolerates_silence(self, tolerates: bool) -> None:
        self._administrator.tolerates_silence = tolerates

    def request(self, command: Command, target: str = "*") -> list[CommandReply]:
        """Send a command to every service that the target pattern means; their replies, those of each in order."""
        return [each.message for each in self._administrator.request(command, target)]

    def create_from_body(self, container: ResourceIdentifier, body: str, target: str = "*") -> list[CommandReply]:
        """Send a CREATE with its body unchanged (`SendsBodies`)."""
        return [each.message for each in self._administrator.request(RawCreate(container, body), target)]

    def write(self, samples: Sequence[Write]) -> list[WriteAcknowledgment]:
        """Write samples; return when every queue of the topic has acknowledged, or time is up.

        Raises:
            NoAnswer: no queue of the topic is reached in time.
            UsageError: a sample is too large.
        """
        answers: list[WriteAcknowledgment] = []
        for participant, topic_name, guid in dict.fromkeys(
            (each.participant, each.topic_name, each.identity.writer_guid) for each in samples
        ):
            group = [
                each
                for each in samples
                if (each.participant, each.topic_name, each.identity.writer_guid) == (participant, topic_name, guid)
            ]
            answers += self._write(participant, topic_name, guid, group)
        return answers

    def receive(
        self, queue: QueueName, max_samples: int, timeout_s: float, source_guid: Guid = NIL_GUID
    ) -> list[Delivery]:
        """Be a consumer of the queue: receive at most the given number of samples, waiting a bounded time for the
        first.

        Raises:
            NoAnswer: the queue is not reached in time, or does not answer whether it has more.
            NotFound: no service hosts it.
        """
        hosted = self._host_of(queue)
        consumer = self._consumers.get(queue)
        if consumer is None:
            consumer = QueueConsumer(
                hosted.data.topic_name,
                hosted.subscriber,
                source_guid=source_guid,
                unacked_threshold=max_samples - 1,
                session=self._session(hosted.domain_id),
            )
            self._consumers[queue] = consumer
            consumer.wait_for_queue(self._timeout_s)
        received: list[Delivery] = []
        wait_s = timeout_s
        while len(received) < max_samples:
            batch = consumer.receive_available(max_samples - len(received), self._timeout_s)
            if not batch and wait_s > 0 and not received:
                batch = consumer.receive(max_samples, wait_s)
            if not batch:
                break
            received += [self._delivery(queue, hosted, each.delivery) for each in batch]
        return received

    def acknowledge(self, delivery: Delivery, ok: bool) -> None:
        """Acknowledge a sample: true accepts it, false rejects it [QS 2.5]."""
        consumer = self._consumers[delivery.queue]
        consumer.state.acknowledge(delivery.identity, AckResponse.ACCEPTED if ok else AckResponse.REJECTED)
        if not consumer.state.touched_count:
            consumer.flush()

    @property
    def dds_settings(self) -> DomainSettings | None:
        """Return the way in which clients take part in the domains; None: on the loopback."""
        return self._settings

    def place_of(self, queue: QueueName) -> tuple[str, str, int]:
        """Return the topic, the shared subscriber and the domain of a queue.

        Raises:
            NotFound: no service hosts it.
        """
        hosted = self._host_of(queue)
        return hosted.data.topic_name, hosted.subscriber, hosted.domain_id

    def close(self) -> None:
        """Send the acknowledgments, return the rest, leave every domain; once.

        What was received and not acknowledged may have been shown: it is returned as redelivered.
        """
        if self._is_closed:
            return
        self._is_closed = True
        for consumer in self._consumers.values():
            consumer.state.acknowledge_all(AckResponse.RETURNED)
            consumer.close()
        for session in self._sessions.values():
            session.close()
        self._administrator.leave()

    def _write(self, participant: str, topic_name: str, guid: Guid, samples: list[Write]) -> list[WriteAcknowledgment]:
        for sample in samples:
            require_size(len(sample.payload))
        queues = {
            each.label: name
            for name, each in self._all_hosted().items()
            if each.data.topic_name == topic_name
            and name.split("/", 1)[0] == participant
            and not each.data.is_dead_letter
        }
        if not queues:
            raise NotFound(f"no queue has topic {topic_name!r}", remedy="List the queues with `qsctl get data`.")
        domain_id = self._host_of(next(iter(queues.values()))).domain_id
        writer = self._writers.get((domain_id, topic_name, guid))
        if writer is None:
            writer = self._writers[domain_id, topic_name, guid] = SampleWriter(
                self._session(domain_id), topic_name, guid
            )
        writer.on_silence = self.on_silence
        return writer.write(samples, queues, self._timeout_s)

    def _delivery(self, queue: QueueName, hosted: _Hosted, delivery: Delivery) -> Delivery:
        position = self._positions.setdefault(delivery.identity, len(self._positions))
        if hosted.data.is_dead_letter:
            delivery = opened(delivery)
        return msgspec.structs.replace(delivery, queue=queue, position=position)

    def _session(self, domain_id: int) -> ClientSession:
        session = self._sessions.get(domain_id)
        if session is None:
            session = self._sessions[domain_id] = ClientSession(domain_id, self._settings)
        return session

    def _host_of(self, queue: QueueName) -> _Hosted:
        hosted = self._hosted.get(queue) or self._all_hosted().get(queue)
        if hosted is None:
            raise NotFound(f"no service hosts queue {queue}", remedy="List the queues with `qsctl get data`.")
        return hosted

    def _all_hosted(self) -> dict[QueueName, _Hosted]:
        command = GetData(ResourceIdentifier().at(ResourceKind.DATA))
        for message, octets in self._administrator.request(command, "*"):
            body = message.reply.body
            if not isinstance(body, ServiceData):
                continue
            domains = queue_domains(octets)
            for data in body.queues:
                resource = parse_resource(data.resource)
                name = "/".join(each for _, each in resource.names)
                domain_id = domains.get(data.resource, -1)
                self._hosted[name] = _Hosted(data, resource, domain_id if domain_id >= 0 else self._domain_id)
        return self._hosted
