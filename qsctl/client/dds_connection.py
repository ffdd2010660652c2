"""A service reached over DDS as the `Connection` that every command of the command line uses.

Decides: which domain a queue's samples travel in, asked from the service itself; and when a client that came for a few
samples lets go of the others.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import msgspec

from qsctl.client.administrator import Administrator
from qsctl.client.blocking import QueueConsumer
from qsctl.client.session import TURN_NS, ClientSession
from qsctl.core.admin.command import Command, GetData
from qsctl.core.admin.reply import QueueData, Reply, ServiceData
from qsctl.core.messages import AckResponse, Delivery, QueueName, Write, WriteAcknowledgment
from qsctl.core.records import DeadLetterReason
from qsctl.errors import NoAnswer, NotFound
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import SECOND_NS
from qsctl.resource import ResourceIdentifier, ResourceKind, parse_resource
from qsctl.transport.dds.bodies import dead_letter_from_octets
from qsctl.transport.dds.client_ports import ProducerPort, require_size
from qsctl.transport.dds.matches import QueueAppeared, QueueVanished
from qsctl.transport.dds.participant import DomainSettings
from qsctl.transport.dds.replies import queue_domains

LINGER_S: Final = 0.1
"""Samples that come so soon after another belong to the same batch."""

MORE_S: Final = 0.3
"""What a service is given to send more after it was answered, when the caller is not willing to wait at all."""

WINDOW_COUNT: Final = 2000


class _Hosted(msgspec.Struct, frozen=True):
    """Where a queue is."""

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
        timeout_s: for a command, for finding a queue, and for the acknowledgments of a write.
    """

    def __init__(self, domain_id: int, timeout_s: float, settings: DomainSettings | None = None) -> None:
        self._timeout_s = timeout_s
        self._settings = settings
        self._domain_id = domain_id
        self._administrator = Administrator(domain_id, timeout_s, settings)
        self._hosted: dict[QueueName, _Hosted] = {}
        self._sessions: dict[int, ClientSession] = {}
        self._producers: dict[tuple[int, str, Guid], ProducerPort] = {}
        self._consumers: dict[QueueName, QueueConsumer[bytes]] = {}
        self._positions: dict[SampleIdentity, int] = {}

    def request(self, command: Command, target: str = "*") -> list[Reply]:
        """See `Connection`."""
        return [each.reply for each in self._administrator.request(command, target)]

    def write(self, samples: Sequence[Write]) -> list[WriteAcknowledgment]:
        """See `Connection`.

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

    def receive(self, queue: QueueName, max_samples: int, timeout_s: float) -> list[Delivery]:
        """See `Connection`.

        Raises:
            NoAnswer: the queue is not reached in time.
            NotFound: no service hosts it.
        """
        hosted = self._host_of(queue)
        consumer = self._consumers.get(queue)
        if consumer is None:
            consumer = QueueConsumer(
                hosted.data.topic_name,
                hosted.subscriber,
                unacked_threshold=max_samples - 1,
                session=self._session(hosted.domain_id),
            )
            self._consumers[queue] = consumer
            consumer.wait_for_queue(self._timeout_s)
        taken: list[Delivery] = []
        patience_s = max(timeout_s, MORE_S)
        while len(taken) < max_samples:
            batch = consumer.receive(max_samples - len(taken), patience_s)
            if not batch:
                break
            taken += [self._delivery(queue, hosted, each.delivery) for each in batch]
            patience_s = LINGER_S
        return taken

    def acknowledge(self, delivery: Delivery, ok: bool) -> None:
        """See `Connection`."""
        consumer = self._consumers[delivery.queue]
        consumer.state.acknowledge(delivery.identity, AckResponse.ACCEPTED if ok else AckResponse.REJECTED)
        if not consumer.state.touched_count:
            consumer.flush()

    def close(self) -> None:
        """Answer what was acknowledged, hand back what was not touched, leave every domain."""
        for consumer in self._consumers.values():
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
            raise NotFound(f"no queue takes topic {topic_name!r}", remedy="List the queues with `qsctl get data`.")
        domain_id = self._host_of(next(iter(queues.values()))).domain_id
        session = self._session(domain_id)
        port = self._producers.get((domain_id, topic_name, guid))
        if port is None:
            port = ProducerPort(session.domain.participant, topic_name, guid)
            session.domain.add(port)
            self._producers[domain_id, topic_name, guid] = port
        return _Writing(session, port, queues, samples).run(self._timeout_s)

    def _delivery(self, queue: QueueName, hosted: _Hosted, delivery: Delivery) -> Delivery:
        position = self._positions.setdefault(delivery.identity, len(self._positions))
        if not hosted.data.is_dead_letter:
            return msgspec.structs.replace(delivery, queue=queue, position=position)
        letter = dead_letter_from_octets(delivery.payload or b"")
        return msgspec.structs.replace(
            delivery,
            queue=queue,
            position=position,
            payload=letter.payload,
            dead_letter_from=letter.queue_name,
            dead_letter_reason=DeadLetterReason[letter.reason],
        )

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
        for reply in self._administrator.request(command, "*"):
            if not isinstance(reply.reply.body, ServiceData):
                continue
            domains = queue_domains(reply.octets)
            for data in reply.reply.body.queues:
                resource = parse_resource(data.resource)
                name = "/".join(each for _, each in resource.names)
                domain_id = domains.get(data.resource, -1)
                self._hosted[name] = _Hosted(data, resource, domain_id if domain_id >= 0 else self._domain_id)
        return self._hosted


class _Writing:
    """Samples on their way into the queues of a topic, in windows, until every queue that answers has."""

    def __init__(
        self, session: ClientSession, port: ProducerPort, queues: dict[str, QueueName], samples: list[Write]
    ) -> None:
        self._session = session
        self._port = port
        self._queues = queues
        self._samples = samples
        self._acknowledging: dict[str, bool] = {}
        self._answers: list[WriteAcknowledgment] = []
        self._open: dict[SampleIdentity, set[str]] = {}
        self._sent_count = 0

    def run(self, timeout_s: float) -> list[WriteAcknowledgment]:
        wanted = set(self._queues)
        for queue, acknowledges in self._port.matched_queues().items():
            self._acknowledging[queue] = acknowledges
        self._session.run_until(lambda: wanted <= set(self._acknowledging), timeout_s, self._turn)
        if not self._acknowledging:
            raise NoAnswer(
                f"no queue of topic {self._port.topic_name!r} was reached in {timeout_s:g} s",
                remedy="Check that the queue's domain can be reached from here.",
            )
        deadline = time.monotonic() + timeout_s
        while self._sent_count < len(self._samples) or self._open:
            self._send_more()
            before = len(self._answers)
            self._session.domain.turn(TURN_NS)
            self._turn()
            if len(self._answers) > before:
                deadline = time.monotonic() + timeout_s
            elif time.monotonic() >= deadline:
                break
        while not self._port.flush() and time.monotonic() < deadline:
            self._session.domain.turn(SECOND_NS // 1000)
        return self._answers

    def _send_more(self) -> None:
        room = WINDOW_COUNT - len(self._open)
        batch = self._samples[self._sent_count : self._sent_count + room]
        if not batch or self._port.backlog_count:
            return
        answering = {queue for queue, acknowledges in self._acknowledging.items() if acknowledges}
        self._port.send(batch)
        self._port.flush()
        self._sent_count += len(batch)
        if answering:
            self._open.update((each.identity, set(answering)) for each in batch)

    def _turn(self) -> None:
        for news in self._port.poll():
            if type(news) is QueueAppeared:
                self._acknowledging[news.queue] = news.acknowledges
            elif type(news) is QueueVanished:
                self._acknowledging.pop(news.queue, None)
                for waiting in self._open.values():
                    waiting.discard(news.queue)
            elif type(news) is WriteAcknowledgment:
                name = self._queues.get(news.queue, news.queue)
                self._answers.append(WriteAcknowledgment(name, news.identity, news.response))
                waiting_for = self._open.get(news.identity)
                if waiting_for is not None:
                    waiting_for.discard(news.queue)
                    if not waiting_for:
                        del self._open[news.identity]
