"""The DDS transport of a whole service: its domain participants, administration, monitoring and logging.

Decides: which participants exist, and the work of the transport in a driver's turn. Administration, monitoring and each
`<domain_participant>` have a participant of their own [QS 3.3.3, 3.3.4.2 and 3.3.6]; all share a waitset.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from qsctl.config.signing_keys import read_keys
from qsctl.core.messages import (
    CommandReply,
    CommandRequest,
    Delivery,
    Inbound,
    Message,
    QueueName,
    RunAccepted,
    RunDelivery,
    StatusPublication,
    WriteAcknowledgment,
)
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.records import DeadLetterReason
from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.errors import Refused
from qsctl.identity import NIL_GUID, Guid
from qsctl.instant import MILLISECOND_NS, SECOND_NS, Nanoseconds
from qsctl.transport.dds.boundary import Boundary
from qsctl.transport.dds.diagnosis.incompatible_peers import IncompatiblePeers
from qsctl.transport.dds.diagnosis.library_log import LIBRARY_LOG
from qsctl.transport.dds.participant import DomainSettings, Participant, Waiter
from qsctl.transport.dds.peers.namesakes import LOOK_EVERY_NS, Namesakes, service_policy
from qsctl.transport.dds.plain.topic import ClassOf, class_of_builtin
from qsctl.transport.dds.replicas.letter_box import FragmentNumbers, Seen
from qsctl.transport.dds.replicas.letter_signatures import ClusterKeys, LetterSigner
from qsctl.transport.dds.replicas.link_domain import LinkDomain
from qsctl.transport.dds.replicas.replica_link import ReplicaLink, link_qos
from qsctl.transport.dds.serving._delivery import DomainDelivery
from qsctl.transport.dds.serving._endpoint_trial import try_endpoints
from qsctl.transport.dds.serving.administration import AdminEndpoints, LoggerEndpoint, MonitoringEndpoint
from qsctl.transport.dds.serving.endpoints import QueueEndpoints, TopicEndpoints
from qsctl.transport.dds.wire.bodies import dead_letter_octets
from qsctl.transport.dds.wire.commands import SnippetReader
from qsctl.transport.dds.wire.signed_commands import RUN_BYTES, CommandVerifier

MessageKind = TypeVar("MessageKind")

HURRY_NS: Nanoseconds = MILLISECOND_NS
"""Time to the next attempt while a peer's cache is full or a consumer is being reached."""


@dataclass(frozen=True, slots=True)
class DomainPlace:
    """A DDS domain, with the settings of this service in it."""

    domain_id: int
    settings: DomainSettings = DomainSettings()


@dataclass(frozen=True, slots=True)
class ServicePlaces:
    """The domains of a service. None: administration, monitoring or the distributed logger is off.

    `delivers` False: other processes host the queues, and only the numbers of their domains are used here.
    """

    participants: Mapping[str, DomainPlace] = field(default_factory=dict)
    administration: DomainPlace | None = None
    monitoring: DomainPlace | None = None
    logger: DomainPlace | None = None
    configuration: DomainPlace | None = None
    """The domain in which a cluster's members agree on their configuration [QS 7.2]; None: it is not replicated."""
    key_file: Path | None = None
    """The keys with which administration commands must be signed; None: they need no signature."""
    cluster_key_file: Path | None = None
    """The keys with which members of a cluster sign their letters; None: letters are not signed."""
    accepts_unsigned: bool = False
    """Whether letters without a signature are accepted beside signed ones."""
    delivers: bool = True
    run: str = ""
    """Distinguishes this run of the service from another of the same name; shared by its processes. Empty: unused."""


class CommandSource(Protocol):
    """A source of commands that accepts the replies: administration over DDS, or another process."""

    def poll(self, *, one: bool = False) -> list[CommandRequest]:
        """Return up to a turn's share of the received commands; with `one` at most one, as other work waits."""

    @property
    def is_waiting(self) -> bool:
        """Return whether received commands wait to be polled."""

    def reply(self, message: CommandReply, domain_ids: Mapping[str, int], /) -> None:
        """Send a reply in this turn's flush."""

    def receive(self, ready: Collection[object], /) -> None:
        """Queue the received commands for `poll`; `ready` is the result of `Waiter.ready`."""

    def flush(self) -> bool:
        """Send the turn's replies; return False if some wait for room."""

    def close(self) -> None:
        """Stop receiving commands."""


class ServiceTransport:
    """A service's messages in and out. In each turn a driver calls `poll`, `put` and `flush`.

    Args:
        application_name: the name that target patterns are matched against; the participants' names begin with it.
        places: the domains.
        snippets: parses the bodies of CREATE commands.
        commands: the source of commands if `places` has no administration.
        class_of: the classes of the configuration's types, for producers without qsctl.
        has_room: whether no sample waits outside a queue, given by full name, so that plain samples may be read.

    Raises:
        UsageError, Refused, Unavailable: a participant cannot be created; nothing remains open.
        NotFound, Refused, InvalidInput: a key file cannot be used.
    """

    def __init__(
        self,
        application_name: str,
        places: ServicePlaces,
        snippets: SnippetReader,
        commands: CommandSource | None = None,
        class_of: ClassOf = class_of_builtin,
        has_room: Callable[[QueueName], bool] = lambda _: True,
    ) -> None:
        self.application_name = application_name
        self.boundary = Boundary()
        """The checks that every message of a peer passes before it enters the inbox."""
        self._domain_ids = {name: place.domain_id for name, place in places.participants.items()}
        self._deliveries: dict[str, DomainDelivery] = {}
        self._queues: dict[QueueName, QueueEndpoints] = {}
        self._topics: dict[QueueName, TopicEndpoints] = {}
        self._administration: CommandSource | None = commands
        self.verifier: CommandVerifier | None = None
        """The checks of the commands' signatures; None: they need none."""
        if places.administration is not None and places.key_file is not None:
            self.verifier = CommandVerifier(read_keys(places.key_file), secrets.token_bytes(RUN_BYTES))
        self._monitoring: MonitoringEndpoint | None = None
        self.logger: LoggerEndpoint | None = None
        self._run = places.run
        self._link_run = places.run or secrets.token_hex(8)
        """The run of both links: in one domain they read each other's announcements, and two would be two services."""
        self._numbers = FragmentNumbers()
        self._key_file = places.key_file
        self._cluster_keys: ClusterKeys | None = None
        if places.cluster_key_file is not None:
            self._cluster_keys = ClusterKeys(places.cluster_key_file, accepts_unsigned=places.accepts_unsigned)
        self._configuration_place = places.configuration
        self._configuration_domain: LinkDomain | None = None
        self._namesakes: dict[int, Namesakes] = {}
        self._look_at_ns: Nanoseconds = 0
        self._participants: list[Participant] = []
        self._incompatible: dict[int, IncompatiblePeers] = {}
        """Detection of incompatible peers, one per domain: all participants of a domain discover the same peers."""
        self._waiter: Waiter | None = None
        self._bell = threading.Event()
        """Event to wait for in a service that joins no domain."""
        self._all_sent = True
        self.replies_wait = False
        """Whether replies to commands waited for room, or for a reader, at the last flush."""
        try:
            for name, place in places.participants.items() if places.delivers else ():
                participant = self._open(place, name)
                self._deliveries[name] = DomainDelivery(name, participant, application_name, class_of, has_room)
            if places.administration is not None:
                participant = self._open(places.administration, "administration")
                self._participants.append(participant)
                self._administration = AdminEndpoints(participant, application_name, snippets, self.verifier)
                if places.logger == places.administration:
                    self.logger = LoggerEndpoint(participant)
            if places.logger is not None and self.logger is None:
                participant = self._open(places.logger, "logger")
                self._participants.append(participant)
                self.logger = LoggerEndpoint(participant)
            if places.monitoring is not None and places.delivers:
                participant = self._open(places.monitoring, "monitoring")
                self._participants.append(participant)
                self._monitoring = MonitoringEndpoint(participant)
        except BaseException:
            self.close()
            raise

    def _open(self, place: DomainPlace, role: str) -> Participant:
        name = f"{self.application_name}: {role}"
        user_data = service_policy(self.application_name, self._run) if self._run else None
        participant = Participant(
            place.domain_id,
            place.settings,
            name=name,
            waiter=self._waiter,
            user_data=user_data,
            boundary=self.boundary,
        )
        self._waiter = participant.waiter
        watch = self._incompatible.get(place.domain_id)
        if watch is None:
            self._incompatible[place.domain_id] = IncompatiblePeers(participant)
        else:
            watch.watch_for(participant)
        if self._run and place.domain_id not in self._namesakes:
            self._namesakes[place.domain_id] = Namesakes(participant, self.application_name, self._run)
        return participant

    def read_keys_again(self) -> tuple[str, ...]:
        """Accept exactly the keys that the key file contains now; return their numbers, none without a key file.

        Raises:
            NotFound, Refused, InvalidInput: the file cannot be used; the former keys remain accepted.
        """
        if self.verifier is None or self._key_file is None:
            return ()
        self.verifier.accept_keys(read_keys(self._key_file))
        return self.verifier.key_numbers

    def read_cluster_keys_again(self) -> tuple[str, ...]:
        """Use exactly the keys that the cluster's key file contains now; return their numbers, none without a file.

        Raises:
            NotFound, Refused, InvalidInput: the file cannot be used; the former keys remain in use.
        """
        return () if self._cluster_keys is None else self._cluster_keys.read_again()

    def _signer(self) -> LetterSigner | None:
        """Return the signer of a link's letters, which remembers what that link has accepted."""
        return None if self._cluster_keys is None else LetterSigner(self._link_run, self._cluster_keys)

    def namesakes(self) -> list[int]:
        """Return the domains in which another service of this name has appeared; checked at most once a second."""
        now = time.monotonic_ns()
        if now < self._look_at_ns:
            return []
        self._look_at_ns = now + LOOK_EVERY_NS
        return [domain_id for domain_id, namesakes in self._namesakes.items() if namesakes.look()]

    def open_replica_link(
        self,
        cluster: str,
        started_at_ns: Nanoseconds,
        replicated: Sequence[SharedReaderQueueSettings],
        silence_ns: Nanoseconds,
        *,
        joins: bool,
    ) -> ReplicaLink:
        """Open the message link between replicas, in the first domain participant's domain, which all members have.

        Args:
            cluster: the name that all members share.
            started_at_ns: the start of this process.
            replicated: the replicated queues; the configured QoS of the first is added to that of the link.
            silence_ns: see `ReplicaLink`.
            joins: whether this process joins a cluster that was formed.

        Raises:
            Refused: there is no domain participant.
        """
        delivery = next(iter(self._deliveries.values()), None)
        if delivery is None:
            raise Refused("replicas need a domain participant", remedy="Give the service a <domain_participant>.")
        own = Seen(self.application_name, self._link_run, started_at_ns, joins)
        return delivery.open_replica_link(cluster, own, link_qos(replicated), silence_ns, self._signer(), self._numbers)

    def open_configuration_link(self, cluster: str, started_at_ns: Nanoseconds, silence_ns: Nanoseconds) -> ReplicaLink:
        """Open the message link about the configuration, in a participant of its own in the administration's domain.

        Args:
            cluster: the name that all members share.
            started_at_ns: the start of this process.
            silence_ns: see `ReplicaLink`.

        Raises:
            Refused: there is no administration.
        """
        if self._configuration_place is None:
            raise Refused("a replicated configuration needs administration", remedy="Give the service one.")
        participant = self._open(self._configuration_place, "configuration replication")
        domain = self._configuration_domain = LinkDomain(
            participant, cluster, Seen(self.application_name, self._link_run, started_at_ns), silence_ns,
            self._signer(), self._numbers,
        )  # fmt: skip
        return domain.link

    def reconcile(self, queues: Mapping[QueueName, tuple[str, SharedReaderQueueSettings]]) -> None:
        """Open and close endpoints so that exactly these queues have them.

        Args:
            queues: the shared subscriber's name and the settings of each queue, by its full name.
        """
        for name, delivery in self._deliveries.items():
            delivery.reconcile({queue: each for queue, each in queues.items() if queue.split("/", 1)[0] == name})
        self._queues = {name: each for delivery in self._deliveries.values() for name, each in delivery.queues.items()}
        self._topics = {name: each for delivery in self._deliveries.values() for name, each in delivery.topics.items()}

    @property
    def failures(self) -> dict[QueueName, str]:
        """Return the reason for which a hosted queue has no endpoints in any domain, by its full name."""
        return {name: text for each in self._deliveries.values() for name, text in each.failures.items()}

    def try_endpoints(self, queue: QueueName, subscriber: str, settings: SharedReaderQueueSettings) -> None:
        """Try to create the endpoints of a queue before the queue is created; they are deleted at once.

        Raises:
            Refused: an endpoint cannot be created; the message names it and the reason.
        """
        delivery = self._deliveries.get(queue.split("/", 1)[0])
        participant = delivery.participant if delivery is not None else next(iter(self._participants), None)
        if participant is not None:
            try_endpoints(participant, subscriber, settings)

    def poll(self) -> list[Inbound]:
        """Return up to a turn's share of the received messages, without waiting."""
        inbox: list[Inbound] = []
        LIBRARY_LOG.turn()
        self.boundary.turn()
        for each in self._incompatible.values():
            each.turn()
        if self._configuration_domain is not None:
            self._configuration_domain.look()
        ready = self._waiter.ready() if self._waiter is not None else ()
        self._poll_commands(inbox, ready)
        commands_count = len(inbox)
        for delivery in self._deliveries.values():
            inbox += delivery.poll(ready)
        if len(inbox) > commands_count:
            self.boundary.time.note_samples()
        return inbox

    def _poll_commands(self, inbox: list[Inbound], ready: Sequence[object]) -> None:
        """Move commands into the inbox. Their processing, until the next turn, uses a time share of its own."""
        source, time_now = self._administration, self.boundary.time
        time_now.commands.end()
        if source is None:
            return
        source.receive(ready)
        if not source.is_waiting or not time_now.commands.begins(self):
            return
        inbox += source.poll(one=time_now.is_contended(time_now.clock()))
        if not inbox:
            time_now.commands.end()

    def usage(self) -> dict[str, int]:
        """Return the highest use of each limit per peer by any single peer, by the name of the limit."""
        administration = self._administration
        discoveries = [each.discovery for each in self._deliveries.values()]
        waiting_count = administration.most_waiting_count if isinstance(administration, AdminEndpoints) else 0
        return {
            "endpoints_per_peer": max((each.most_endpoints_count for each in discoveries), default=0),
            "consumers_per_peer": max((each.most_consumers_count for each in discoveries), default=0),
            "waiting_commands_per_peer": waiting_count,
        }

    def put(self, messages: Sequence[Message]) -> None:
        """Pack messages into frames, in order for each peer; `flush` sends them."""
        deliveries = _ByPeer[Delivery | RunDelivery]()
        answers = _ByPeer[WriteAcknowledgment | RunAccepted]()
        for message in messages:
            if type(message) is Delivery:
                if message.dead_letter_reason is not None:
                    message = _dead_letter(message, message.dead_letter_reason)
                if message.consumer_guid != deliveries.guid or message.queue is not deliveries.queue:
                    deliveries.turn_to(message.queue, message.consumer_guid)
                deliveries.latest.append(message)
            elif type(message) is WriteAcknowledgment:
                if message.identity.writer_guid != answers.guid or message.queue is not answers.queue:
                    answers.turn_to(message.queue, message.identity.writer_guid)
                answers.latest.append(message)
            elif type(message) is RunDelivery:
                deliveries.turn_to(message.queue, message.consumer_guid)
                deliveries.latest.append(message)
            elif type(message) is RunAccepted:
                answers.turn_to(message.queue, message.identity.writer_guid)
                answers.latest.append(message)
            elif isinstance(message, CommandReply):
                if self._administration is not None:
                    self._administration.reply(self._with_failure(message), self._domain_ids)
            elif isinstance(message, StatusPublication) and self._monitoring is not None:
                self._monitoring.publish(message)
        for (name, guid), to_consumer in deliveries.groups.items():
            if (queue := self._queues.get(name)) is not None:
                queue.deliver(guid, to_consumer)
        for (name, guid), to_producer in answers.groups.items():
            if (topic := self._topics.get(name)) is not None:
                topic.answer(name, guid, to_producer)

    def _with_failure(self, message: CommandReply) -> CommandReply:
        """Add the failure to a reply with the status of a queue that has no endpoints."""
        body = message.reply.body
        failure = self.failures.get(body.queue_name) if isinstance(body, SharedReaderQueueStatus) else None
        if failure is None:
            return message
        text = f"the queue {body.queue_name} is not offered over DDS: {failure}"  # type: ignore[union-attr]
        return msgspec.structs.replace(message, reply=msgspec.structs.replace(message.reply, text=text))

    def flush(self) -> bool:
        """Send the packed messages; return False if a peer's cache is full, so that it must be called again soon."""
        done = True
        for delivery in self._deliveries.values():
            done = delivery.flush() and done
        if self._administration is not None:
            self.replies_wait = not self._administration.flush()
            done = done and not self.replies_wait
        if self.logger is not None:
            done = self.logger.flush() and done
        if self._monitoring is not None:
            self._monitoring.flush()
        self._all_sent = done
        return done

    @property
    def is_in_a_hurry(self) -> bool:
        """Return whether messages wait to be sent, or a consumer is being reached."""
        return not self._all_sent or any(delivery.is_settling for delivery in self._deliveries.values())

    def wait(self, timeout_ns: Nanoseconds) -> None:
        """Sleep until a message may have arrived or the time is over; shorter while messages wait to be sent."""
        if self.is_in_a_hurry:
            timeout_ns = min(timeout_ns, HURRY_NS)
        elif (waits_ns := self.boundary.time.waits_ns()) is not None:
            timeout_ns = min(timeout_ns, waits_ns)
        if self._waiter is not None:
            self._waiter.wait(timeout_ns)
        elif self._bell.wait(timeout_ns / SECOND_NS):
            self._bell.clear()

    def wake(self) -> None:
        """End a `wait` of another thread, or the next one of this thread."""
        waiter = self._waiter  # which another thread may close meanwhile
        if waiter is not None:
            waiter.wake()
        else:
            self._bell.set()

    def accept_no_more(self) -> None:
        """Stop accepting samples from producers; consumers may still answer."""
        for delivery in self._deliveries.values():
            delivery.accepts = False

    @property
    def is_draining(self) -> bool:
        """Return whether samples that arrived before `accept_no_more` are still to be read."""
        return any(delivery.is_draining for delivery in self._deliveries.values())

    def close(self) -> None:
        """Leave every domain; flushed messages are still sent."""
        for endpoint in (self._administration, self._monitoring, self.logger):
            if endpoint is not None:
                endpoint.close()
        self._administration = self._monitoring = self.logger = None
        for watch in self._incompatible.values():
            watch.close()
        self._incompatible.clear()
        if self._configuration_domain is not None:
            self._configuration_domain.close()
            self._configuration_domain = None
        for namesakes in self._namesakes.values():
            namesakes.close()
        self._namesakes.clear()
        for delivery in self._deliveries.values():
            delivery.close()
        self._deliveries.clear()
        self._queues.clear()
        self._topics.clear()
        for participant in self._participants:
            participant.close()
        self._participants.clear()
        if self._waiter is not None:
            self._waiter.close()
            self._waiter = None
        self.boundary.close()


class _ByPeer(Generic[MessageKind]):
    """The messages of a turn by queue and peer; successive messages mostly have the same peer."""

    def __init__(self) -> None:
        self.groups: dict[tuple[QueueName, Guid], list[MessageKind]] = {}
        self.queue = ""
        self.guid = NIL_GUID
        self.latest: list[MessageKind] = []

    def turn_to(self, queue: QueueName, guid: Guid) -> None:
        """Select another peer: its messages become `latest`."""
        self.queue, self.guid = queue, guid
        self.latest = self.groups.setdefault((queue, guid), [])


def _dead_letter(delivery: Delivery, reason: DeadLetterReason) -> Delivery:
    """Return a dead letter in its wire form, whose payload also contains its origin and reason."""
    assert delivery.payload is not None, "the driver puts payloads back before it sends"
    octets = dead_letter_octets(delivery.dead_letter_from, delivery.dead_letter_identity, reason, delivery.payload)
    return msgspec.structs.replace(delivery, payload=octets)
