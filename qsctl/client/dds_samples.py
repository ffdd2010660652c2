"""Writing and receiving samples of a service's queues over DDS, for commands and programs.

Decides: when a client that needs a few samples returns the others to their queue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from qsctl.client._dead_letters import opened
from qsctl.client._sample_writer import SampleWriter
from qsctl.client.consumer import QueueConsumer
from qsctl.client.session import ClientSession
from qsctl.core.admin.reply import QueueData
from qsctl.core.messages import AckResponse, Delivery, QueueName, Write, WriteAcknowledgment
from qsctl.errors import NotFound
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.resource import ResourceIdentifier, parse_resource
from qsctl.transport.dds.clients.client_ports import require_size
from qsctl.transport.dds.participant import DomainSettings


class LocatedQueue(msgspec.Struct, frozen=True):
    """A queue as reported by its service, with the DDS domain of its samples."""

    data: QueueData
    resource: ResourceIdentifier
    domain_id: int

    @property
    def name(self) -> QueueName:
        """Return the queue's full name."""
        return "/".join(each for _, each in self.resource.names)

    @property
    def subscriber(self) -> str:
        """Return the name of the queue's shared subscriber."""
        return self.resource.parent.name

    @property
    def label(self) -> str:
        """Return `<topic>@<subscriber>`."""
        return f"{self.data.topic_name}@{self.subscriber}"


def located_queue(data: QueueData, domain_id: int) -> LocatedQueue:
    """Return a queue with its domain, from the data that a service reports."""
    return LocatedQueue(data, parse_resource(data.resource), domain_id)


class DdsSamples:
    """The producers and consumers for a service's queues, until `close`.

    Args:
        hosted: requests and returns the currently hosted queues, by full name.
        timeout_s: the longest wait for the discovery of a queue, and for the acknowledgments of a write.
        settings: the settings to join the domains; None: on loopback.
    """

    def __init__(
        self,
        hosted: Callable[[], Mapping[QueueName, LocatedQueue]],
        timeout_s: float,
        settings: DomainSettings | None = None,
    ) -> None:
        self._ask_for_hosted = hosted
        self._timeout_s = timeout_s
        self._settings = settings
        self._hosted: dict[QueueName, LocatedQueue] = {}
        self._sessions: dict[int, ClientSession] = {}
        self._writers: dict[tuple[int, str, Guid], SampleWriter] = {}
        self._consumers: dict[QueueName, QueueConsumer[bytes]] = {}
        self._positions: dict[SampleIdentity, int] = {}
        self.on_silence: Callable[[int], None] | None = None
        """Called in `write`, with the number of samples, where no queue has answered for a second."""

    def write(self, samples: Sequence[Write]) -> list[WriteAcknowledgment]:
        """Write samples, and wait until every queue of the topic has acknowledged them, or the time limit has passed.

        Raises:
            NoAnswer: no queue of the topic is discovered in time.
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
        """Receive at most `max_samples` samples of a queue as a consumer, waiting at most `timeout_s` for the first.

        Raises:
            NoAnswer: the queue is not discovered in time, or does not report whether it has more samples.
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
        """Acknowledge a sample: True accepts it, False rejects it [QS 2.5]."""
        consumer = self._consumers[delivery.queue]
        if ok:
            consumer.acknowledge(delivery)
        else:
            consumer.reject(delivery)
        if not consumer.state.touched_count:
            consumer.flush()

    def place_of(self, queue: QueueName) -> tuple[str, str, int]:
        """Return the topic, the shared subscriber and the domain of a queue.

        Raises:
            NotFound: no service hosts it.
        """
        hosted = self._host_of(queue)
        return hosted.data.topic_name, hosted.subscriber, hosted.domain_id

    def close(self) -> None:
        """Send the acknowledgments, return other samples to their queues, and leave every domain.

        What was received and not acknowledged may have been shown: it is returned as redelivered.
        """
        for consumer in self._consumers.values():
            consumer.state.acknowledge_all(AckResponse.RETURNED)
            consumer.close()
        for session in self._sessions.values():
            session.close()

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

    def _delivery(self, queue: QueueName, hosted: LocatedQueue, delivery: Delivery) -> Delivery:
        position = self._positions.setdefault(delivery.identity, len(self._positions))
        if hosted.data.is_dead_letter:
            delivery = opened(delivery)
        return msgspec.structs.replace(delivery, queue=queue, position=position)

    def _session(self, domain_id: int) -> ClientSession:
        session = self._sessions.get(domain_id)
        if session is None:
            session = self._sessions[domain_id] = ClientSession(domain_id, self._settings)
        return session

    def _host_of(self, queue: QueueName) -> LocatedQueue:
        hosted = self._hosted.get(queue) or self._all_hosted().get(queue)
        if hosted is None:
            raise NotFound(f"no service hosts queue {queue}", remedy="List the queues with `qsctl get data`.")
        return hosted

    def _all_hosted(self) -> dict[QueueName, LocatedQueue]:
        self._hosted.update(self._ask_for_hosted())
        return self._hosted
