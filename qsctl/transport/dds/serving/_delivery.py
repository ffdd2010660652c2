"""Delivery in one domain: the endpoints of one configured domain participant, as one inbox and one outbox.

Decides: which endpoint a message belongs to. The driver polls, steps its engine, sends, and flushes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from qsctl.core.messages import Inbound, ProducerLeft, QueueName
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.identity import NIL_GUID
from qsctl.instant import Nanoseconds
from qsctl.transport.dds.channels import RETURN_NS
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import Discovery, RemoteEndpoint
from qsctl.transport.dds.plain.flow import FlowDomains
from qsctl.transport.dds.plain.topic import ClassOf, PlainSurroundings, PlainTopic, class_of_builtin
from qsctl.transport.dds.plain.type_lookups import TypeLookups
from qsctl.transport.dds.replicas.letter_box import SILENCE_NS, FragmentNumbers, Seen
from qsctl.transport.dds.replicas.letter_signatures import LetterSigner
from qsctl.transport.dds.replicas.replica_link import LinkQos, ReplicaLink
from qsctl.transport.dds.serving._endpoint_trial import CANNOT_BE_MADE, reason_of
from qsctl.transport.dds.serving.endpoints import QueueEndpoints, TopicEndpoints, Unsent
from qsctl.transport.dds.serving.turns import Inbox, Rotation, read_all
from qsctl.transport.dds.wire.wire_types import producer_acknowledgment_topic

Closed = TypeVar("Closed", TopicEndpoints, QueueEndpoints)


class DomainDelivery:
    """The queues and topics of one `<domain_participant>` [QS Table 3.10].

    Args:
        name: the `name` attribute of the domain participant.
        participant: its DDS participant; closed together with this.
        service_name: the application name that the endpoints announce.
        class_of: returns the classes of the configuration's types.
        has_room: whether plain samples for a queue, by its full name, may be read.
    """

    def __init__(
        self,
        name: str,
        participant: Participant,
        service_name: str,
        class_of: ClassOf = class_of_builtin,
        has_room: Callable[[QueueName], bool] = lambda _: True,
    ) -> None:
        self.name = name
        self.participant = participant
        self._service_name = service_name
        self._discovery = Discovery(participant)
        self._topics: dict[str, TopicEndpoints] = {}
        self._queues: dict[str, QueueEndpoints] = {}
        self._topic_of_queue: dict[str, TopicEndpoints] = {}
        self._failures: dict[QueueName, str] = {}
        self._answering = Rotation[QueueEndpoints]()
        self._writing = Rotation[TopicEndpoints]()
        self._attended: dict[TopicEndpoints | QueueEndpoints, None] = {}
        """The sources that are polled in each turn, even without new data."""
        self._unsent: Unsent = {}
        self._queues_on: dict[str, dict[QueueEndpoints, None]] = {}
        """The queues that an endpoint on a DDS topic may concern, by the topic's name."""
        self._topics_on: dict[str, dict[TopicEndpoints, None]] = {}
        self._awaiting: dict[int, RemoteEndpoint] = {}
        """Endpoints that appeared and are relevant, for which nothing has been opened yet, by handle."""
        self._renewals: dict[str, Nanoseconds] = {}
        """Instant at which the queues of a topic are announced again, after one of its producers has reappeared."""
        self.replica_link: ReplicaLink | None = None
        """The messages between replicas in this domain; None: there are no replicas."""
        self._lookups: TypeLookups | None = None
        self._around = PlainSurroundings(FlowDomains(participant), class_of, self._type_lookups, has_room)
        self.accepts = True
        """Whether samples are accepted from producers; False while the service shuts down."""

    def _type_lookups(self) -> TypeLookups:
        if self._lookups is None:
            self._lookups = TypeLookups(self.participant)
        return self._lookups

    def reconcile(self, wanted: Mapping[QueueName, tuple[str, SharedReaderQueueSettings]]) -> None:
        """Open the endpoints of added queues and close those of removed ones.

        A queue whose endpoints cannot be created has none at all, and is listed in `failures`.

        Args:
            wanted: the shared subscriber's name and the settings of each queue, by its full name.
        """
        for name in [name for name in self._queues if name not in wanted]:
            if (topic := self._topic_of_queue.get(name)) is not None:
                topic.end(name)
            self._close_queue(name)
        self._failures = {name: each for name, each in self._failures.items() if name in wanted}
        for name, (subscriber, queue) in wanted.items():
            if name in self._queues or name in self._failures:
                continue
            try:
                self._open_queue(name, subscriber, queue)
            except CANNOT_BE_MADE as error:
                # An older stored configuration may contain a queue that is refused now; others are not affected.
                self._failures[name] = reason_of(error)

    @property
    def failures(self) -> Mapping[QueueName, str]:
        """Return the reason for which a hosted queue has no endpoints, by its full name; a new creation tries again."""
        return self._failures

    def poll(self, ready: Sequence[object] | None = None) -> list[Inbound]:
        """Return a turn's share of the received messages; consumers first, so that they have joined before the samples.

        Args:
            ready: the result of `Waiter.ready`; None: it was not called.
        """
        inbox = Inbox()
        if ready is None:
            ready = self.participant.waiter.ready()
        changes = self._discovery.look(ready)
        for endpoint in changes.vanished:
            self._awaiting.pop(endpoint.handle, None)
            self._vanished(endpoint, inbox)
        for endpoint in changes.appeared:
            if self._is_concerned(endpoint):
                self._awaiting[endpoint.handle] = endpoint
        if self._awaiting:
            self._open_for_awaiting()
        if self._renewals:
            self._announce_again()
        queues: list[QueueEndpoints] = []
        topics: list[TopicEndpoints] = []
        # The cost of a turn depends on the received messages: of a thousand queues most have none.
        for source in (*self._attended, *ready):
            if isinstance(source, QueueEndpoints):
                if self._queues.get(source.name) is source:
                    queues.append(source)
            elif isinstance(source, TopicEndpoints) and self._topics.get(source.topic_name) is source:
                topics.append(source)
        self._attend(self._answering.poll(queues, inbox))
        self._around.flows.look()
        if self.accepts:
            self._attend(self._writing.poll(topics, inbox))
        else:
            for topic in self._topics.values():
                if topic.plain is not None:
                    topic.plain.drain(inbox)
        return inbox

    def _attend(self, polled: Iterable[TopicEndpoints | QueueEndpoints]) -> None:
        """Poll each of these in every turn while it needs it, otherwise only when it has data."""
        for source in polled:
            if source.waits:
                self._attended[source] = None
            else:
                self._attended.pop(source, None)

    @property
    def is_draining(self) -> bool:
        """Return whether samples that plain producers consider delivered are still to be read."""
        return any(topic.plain is not None and topic.plain.is_draining for topic in self._topics.values())

    @property
    def discovery(self) -> Discovery:
        """Return the readers and writers of the domain."""
        return self._discovery

    @property
    def queues(self) -> Mapping[QueueName, QueueEndpoints]:
        """Return the endpoints of each queue, by its full name."""
        return self._queues

    @property
    def topics(self) -> Mapping[QueueName, TopicEndpoints]:
        """Return the endpoints of each queue's topic, by the queue's full name; dead-letter queues have none."""
        return self._topic_of_queue

    def flush(self) -> bool:
        """Send the turn's frames; return False if some wait for room in a peer, and it must be called again soon."""
        done = True
        for each in [*self._unsent]:
            if each.flush():
                del self._unsent[each]
            else:
                done = False
                if each.waits:
                    self._attend([each])
        return done

    @property
    def is_settling(self) -> bool:
        """Return whether a discovered consumer is not reached yet, so that a poll is needed within a millisecond."""
        return bool(self._renewals) or any(
            isinstance(each, QueueEndpoints) and each.is_joining for each in self._attended
        )

    def close(self) -> None:
        """Leave the domain; peers see it at once."""
        for name in list(self._queues):
            self._close_queue(name)
        if self._lookups is not None:
            self._lookups.close()
        self._around.flows.close()
        self.participant.boundary.time.connection.leave(self)
        self._discovery.close()
        self.participant.close()

    def _open_queue(self, name: str, subscriber: str, settings: SharedReaderQueueSettings) -> None:
        queue = QueueEndpoints(self.participant, name, subscriber, settings, self._service_name, self._unsent)
        is_new_topic = not settings.is_dead_letter and settings.topic_name not in self._topics
        if not settings.is_dead_letter:
            topic = self._topics.get(settings.topic_name)
            if topic is None:
                try:
                    topic = TopicEndpoints(
                        self.participant,
                        self.name,
                        settings.topic_name,
                        self._service_name,
                        settings.qos.get("datareader_qos", ""),
                        self._unsent,
                    )
                except BaseException:
                    queue.close()
                    raise
                topic.plain = PlainTopic(
                    self.participant, self.name, settings, topic.queues, topic.replicas, self._around, topic
                )
                self._topics[settings.topic_name] = topic
                for each in topic.concerned:
                    self._topics_on.setdefault(each, {})[topic] = None
            topic.queues[name] = queue.topic_name
            if queue.replica != NIL_GUID:
                topic.replicas[queue.topic_name] = queue.replica
            self._topic_of_queue[name] = topic
        self._queues[name] = queue
        for each in queue.concerned:
            self._queues_on.setdefault(each, {})[queue] = None
        self._show_plain(queue, is_new_topic)
        for endpoint in self._there():
            if not endpoint.is_writer and endpoint.topic_name in (
                queue.topic_name,
                producer_acknowledgment_topic(settings.topic_name),
            ):
                self._appeared(endpoint, only=queue)
        self._attend([queue])

    def _show_plain(self, queue: QueueEndpoints, is_new_topic: bool) -> None:
        """Pass the existing endpoints without qsctl to a new queue, and to its topic if that is new too."""
        there = self._there()
        boundary = self.participant.boundary
        topic = self._topics[queue.settings.topic_name].plain if is_new_topic else None
        for plain in (queue.plain, topic):
            if plain is not None:
                boundary.each("the endpoints that are there", there, plain.appeared, lambda at: there[at].key.hex())
        if is_new_topic:
            self._attend([self._topics[queue.settings.topic_name]])

    def _close_queue(self, name: str) -> None:
        queue = self._queues.pop(name)
        self._answering.leave(queue)
        self._forget(queue, self._queues_on, queue.concerned)
        queue.close()
        topic = self._topic_of_queue.pop(name, None)
        if topic is not None:
            topic.replicas.pop(topic.queues.pop(name), None)
            if not topic.queues:
                del self._topics[topic.topic_name]
                self._writing.leave(topic)
                self._forget(topic, self._topics_on, topic.concerned)
                topic.close()

    def _forget(self, closed: Closed, on: dict[str, dict[Closed, None]], names: Iterable[str]) -> None:
        self._attended.pop(closed, None)
        self._unsent.pop(closed, None)
        for name in names:
            concerned = on[name]
            concerned.pop(closed, None)
            if not concerned:
                del on[name]

    def open_replica_link(
        self,
        cluster: str,
        own: Seen,
        qos: LinkQos,
        silence_ns: Nanoseconds = SILENCE_NS,
        signer: LetterSigner | None = None,
        numbers: FragmentNumbers | None = None,
    ) -> ReplicaLink:
        """Open the message link to the other members of a replication cluster; the caller closes it.

        Args:
            cluster: the name that all members share.
            own: see `ReplicaLink`.
            qos: configured additions to the link's quality of service.
            silence_ns: see `ReplicaLink`.
            signer: see `ReplicaLink`.
            numbers: see `ReplicaLink`.
        """
        link = ReplicaLink(self.participant, cluster, own, qos, silence_ns=silence_ns, signer=signer, numbers=numbers)
        for endpoint in self._there():
            link.appeared(endpoint)
        self.replica_link = link
        return link

    def _is_concerned(self, endpoint: RemoteEndpoint) -> bool:
        """Return whether an endpoint is relevant for any queue, topic or replica link here."""
        name = endpoint.topic_name
        return (
            name in self._queues_on or name in self._topics_on or name in self._topics or self.replica_link is not None
        )

    def _open_for_awaiting(self) -> None:
        """Open the entities for endpoints that appeared, within the time share."""
        share = self.participant.boundary.time.connection
        if not share.begins(self):
            return
        while self._awaiting and not share.is_over:
            self._notice(self._awaiting.pop(next(iter(self._awaiting))))
        share.end()
        if self._awaiting:
            share.wait(self)

    def _notice(self, endpoint: RemoteEndpoint) -> None:
        """Open the entities for an endpoint that appeared; a failure is reported, and affects no other endpoint."""
        self.participant.boundary.each(
            "the endpoints that appeared", (endpoint,), self._appeared, lambda _: endpoint.key.hex()
        )

    def _there(self) -> list[RemoteEndpoint]:
        """Return the existing endpoints, without those that wait to be processed."""
        return [each for each in self._discovery.endpoints() if each.handle not in self._awaiting]

    def _appeared(self, endpoint: RemoteEndpoint, *, only: QueueEndpoints | None = None) -> None:
        if self.replica_link is not None and only is None:
            self.replica_link.appeared(endpoint)
        if only is None:
            self._plain_appeared(endpoint)
        if endpoint.is_writer:
            if endpoint.returned and endpoint.traits.get("role") == "producer" and endpoint.topic_name in self._topics:
                self._renewals[endpoint.topic_name] = time.monotonic_ns() + RETURN_NS
            return
        for queue in self._queues_on.get(endpoint.topic_name, ()) if only is None else (only,):
            if queue.topic_name == endpoint.topic_name:
                queue.reader_appeared(endpoint)
                self._attend([queue])
        for topic in self._topics_on.get(endpoint.topic_name, ()):
            if producer_acknowledgment_topic(topic.topic_name) == endpoint.topic_name:
                topic.reader_appeared(endpoint)

    def _plain_appeared(self, endpoint: RemoteEndpoint) -> None:
        for queue in self._queues_on.get(endpoint.topic_name, ()):
            queue.plain.appeared(endpoint)
            self._attend([queue])
        for topic in self._topics_on.get(endpoint.topic_name, ()):
            if topic.plain is not None:
                topic.plain.appeared(endpoint)
                self._attend([topic])
                self._unsent[topic] = None

    def _announce_again(self) -> None:
        """Announce the queues of a topic again, so that a reappeared producer sends its unanswered samples again."""
        now = time.monotonic_ns()
        for topic_name in [name for name, due_at in self._renewals.items() if due_at <= now]:
            del self._renewals[topic_name]
            topic = self._topics.get(topic_name)
            for queue in topic.queues if topic is not None else ():
                self._queues[queue].announce_again()

    def _vanished(self, endpoint: RemoteEndpoint, inbox: Inbox) -> None:
        if self.replica_link is not None:
            self.replica_link.vanished(endpoint)
        queues, topics = self._queues_on.get(endpoint.topic_name, {}), self._topics_on.get(endpoint.topic_name, {})
        for queue in queues:
            queue.plain.vanished(endpoint, inbox)
            self._attend([queue])
        for each in topics:
            if each.plain is not None:
                each.plain.vanished(endpoint)
                self._attend([each])
        if endpoint.is_writer:
            topic = self._topics.get(endpoint.topic_name)
            if topic is not None and endpoint.guid != NIL_GUID and endpoint.traits.get("role") == "producer":
                # What the producer wrote before it left is read before it is reported to have left.
                read_all(topic.read, inbox)
                inbox.append(ProducerLeft(self.name, endpoint.topic_name, endpoint.guid))
                topic.writer_vanished(endpoint.guid)
            return
        for queue in queues:
            if queue.topic_name == endpoint.topic_name:
                read_all(queue.poll, inbox)
                queue.reader_vanished(endpoint, inbox)
                self._attend([queue])
        for topic in topics:
            if producer_acknowledgment_topic(topic.topic_name) == endpoint.topic_name:
                topic.reader_vanished(endpoint)
