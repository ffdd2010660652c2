"""A service's queues and subscribers, with the operations of administration [QS 5].

Decides: the records of a change, and their effect when they are replayed. `queue.hosting` decides what may be created
or deleted, `admin` the return codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import NamedTuple, assert_never

import msgspec

from qsctl.core.inserted_sample import InsertedSample
from qsctl.core.queue.hosting import Hosting, queue_identifier, subscriber_identifier
from qsctl.core.queue.insertion import Insertion
from qsctl.core.queue.outbox import Outbox
from qsctl.core.queue.sample import Sample
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.core.ready import Ready
from qsctl.core.records import (
    ConfigurationFollowed,
    QueueChanged,
    QueueCreated,
    QueueDeleted,
    ServiceRecord,
    ServiceStarted,
    SubscriberCreated,
    SubscriberDeleted,
)
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.core.statistics.monitors import Monitors
from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.errors import NotFound, NotMaster, Refused
from qsctl.identity import NIL_INCARNATION, DrawIncarnation, Incarnation, SampleIdentity, WholeIncarnation
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.resource import ResourceIdentifier, ResourceKind


class LatestMove(NamedTuple):
    """Samples that a command moved in the turn before, in pairs: as the source held it, and as the target holds it."""

    source: SharedReaderQueue
    target: SharedReaderQueue
    samples: Sequence[tuple[Sample, Sample]]


class HeldAtRest(msgspec.Struct, frozen=True, array_like=True):
    """The number of samples in a queue while its service does not run, and the queue's creation."""

    count: int
    incarnation: WholeIncarnation


class HostedService:
    """The queues of one service instance with their statistics.

    Resource identifiers have no `status`, `data` or `message` leaf here. A method raises `NotFound` if its identifier
    does not exist, and `Refused` if the change is impossible; the message contains the name or the reason.

    Args:
        settings: the initial configuration.
        now: the instant from which statistics are counted.
        draw: returns the incarnation of each new queue or subscriber.
        journals_everything: whether volatile queues are recorded too.
        replicates: whether replicated queues are recorded, each in the stream of its replication group.
        payload_size_bytes_max: a larger payload is refused, whatever its source.
        stops_on_command: whether SHUTDOWN is obeyed.

    Raises:
        Refused: the configuration contains two queues of one name or topic, or an invalid dead-letter queue.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        now: Nanoseconds,
        *,
        draw: DrawIncarnation,
        journals_everything: bool,
        replicates: bool = False,
        payload_size_bytes_max: int = INFINITE_NS,
        stops_on_command: bool = True,
    ) -> None:
        self._draw = draw
        self._journals_everything = journals_everything
        self._replicates = replicates
        self._payload_size_bytes_max = payload_size_bytes_max
        self.stops_on_command = stops_on_command
        self._share_count = INFINITE_NS
        self._reports_each_step = True
        self._reports_inputs = False
        self.shutting_down = False
        """Whether a SHUTDOWN was accepted [QS 5.4.9]."""
        self._holds_back = False
        self.latest_move: LatestMove | None = None
        """The latest move of samples, kept until it is known whether the disk stored it."""
        self.of_group: Callable[[str], Incarnation] = _of_no_group
        """Return the incarnation on which a cluster agreed for a created resource, by full name; nil: draw one here."""
        self._host(now, ServiceStarted(settings, draw()))

    def _host(self, now: Nanoseconds, started: ServiceStarted) -> None:
        """Replace everything by a configuration with empty queues."""
        self.outbox = Outbox()
        self.outbox.share_count = self._share_count
        self.outbox.reports_each_step = self._reports_each_step
        self.outbox.reports_inputs = self._reports_inputs
        self.outbox.holds_back = self._holds_back
        self.outbox.payload_size_bytes_max = self._payload_size_bytes_max
        self._hosting = Hosting(
            started.settings,
            self.outbox,
            journals_everything=self._journals_everything,
            replicates=self._replicates,
            incarnation=started.incarnation,
            incarnations=started.incarnations,
        )
        self.application_name = started.settings.application_name
        """The name against which a command's target pattern is matched."""
        self.by_name = self._hosting.queues
        """The queues by full name; changed only by the methods of this class."""
        self.by_topic = self._hosting.by_topic
        """The queues of each domain participant and topic."""
        self.deleted: dict[str, Incarnation] = dict(started.deleted)
        """The streams of deleted replicated queues whose logs may still exist, see `log_dropped`.

        The value is the incarnation of a group that was created again under the name.
        """
        self.followed: ConfigurationFollowed | None = None
        """Progress in the configuration log of a cluster [QS 7.2]; None: there is no such log."""
        self.statistics = Monitors(self.outbox)
        self.statistics.watch(now, self.by_name.values())

    @property
    def share_count(self) -> int:
        """Return the quantum: the number of samples that one queue moves in a row; the rest is due at once.

        It bounds the effect of a joining or leaving consumer, a lifespan, a time-out or a command. Unbounded by
        default; a driver with several peers sets it.
        """
        return self._share_count

    @share_count.setter
    def share_count(self, share_count: int) -> None:
        self._share_count = self.outbox.share_count = share_count

    @property
    def reports_each_step(self) -> bool:
        """Return whether each step of a sample is an event; if not, usual steps are counted. Initially True.

        See `SamplesPassed`; a driver that only counts sets it to False.
        """
        return self._reports_each_step

    @reports_each_step.setter
    def reports_each_step(self, reports: bool) -> None:
        self._reports_each_step = self.outbox.reports_each_step = reports

    @property
    def reports_inputs(self) -> bool:
        """Return whether messages that cause no event are reported with the events, see `Input`. Initially False."""
        return self._reports_inputs

    @reports_inputs.setter
    def reports_inputs(self, reports: bool) -> None:
        self._reports_inputs = self.outbox.reports_inputs = reports

    @property
    def holds_back(self) -> bool:
        """Return whether no new sample is enqueued, because memory is at its bound."""
        return self._holds_back

    @holds_back.setter
    def holds_back(self, holds_back: bool) -> None:
        self._holds_back = self.outbox.holds_back = holds_back
        for queue in self.by_name.values():
            queue.context.find_bound()

    def take_ready(self) -> Ready:
        """Update the statistics, and return all output since the last call."""
        self.statistics.close_batch()
        return self.outbox.take()

    def replay(self, now: Nanoseconds, record: ServiceRecord) -> None:
        """Apply a record of the service. A stored configuration replaces the given one [QS 2.14.1]."""
        hosting, statistics = self._hosting, self.statistics
        match record:
            case ServiceStarted():
                self._host(now, record)
            case SubscriberCreated(participant, settings, incarnation):
                added = hosting.add_subscriber(participant, settings, incarnation)
                self._note_created_again(added, incarnation)
                statistics.watch(now, added)
            case SubscriberDeleted(participant, subscriber):
                removed = hosting.remove_subscriber(participant, subscriber)
                self._note_deleted(removed)
                statistics.unwatch(removed)
            case QueueCreated(participant, subscriber, settings, incarnation):
                added = hosting.add_queue(participant, subscriber, settings, incarnation)
                self._note_created_again(added, incarnation)
                _be_all(added, incarnation)
                statistics.watch(now, added)
            case QueueDeleted(participant, subscriber, name):
                removed = hosting.remove_queue(participant, subscriber, name)
                self._note_deleted(removed)
                statistics.unwatch(removed)
            case ConfigurationFollowed():
                self.followed = record
            case QueueChanged(participant, subscriber, settings):
                hosting.change_queue(now, participant, subscriber, settings)
            case _:
                assert_never(record)
        self.outbox.service_stream.base_index += 1

    def rest(self, now: Nanoseconds, held: Mapping[str, HeldAtRest]) -> None:
        """Set the content of queues, by full name, from counts alone, if only status and data will be requested."""
        for name, each in held.items():
            self.by_name[name].be(each.incarnation)
            self.statistics.rest(now, name, each.count)

    def log_dropped(self, stream: str) -> None:
        """Record that the log of a deleted replicated queue no longer exists on disk."""
        self.deleted.pop(stream, None)

    def _note_deleted(self, queues: Iterable[SharedReaderQueue]) -> None:
        self.deleted |= {queue.stream.name: NIL_INCARNATION for queue in queues if queue.is_replicated}

    def _note_created_again(self, queues: Iterable[SharedReaderQueue], incarnation: Incarnation) -> None:
        for queue in queues:
            if queue.stream.name in self.deleted:
                self.deleted[queue.stream.name] = incarnation

    def restores(self, queue: SharedReaderQueue) -> bool:
        """Return whether a restart restores the samples of a queue."""
        return self._journals_everything or (queue.journaled and queue.settings.persistence.restore)

    def begin_anew(self) -> None:
        """Draw new incarnations for the queues that a restart leaves empty, because their positions restart.

        A replicated queue keeps the incarnation of its group.
        """
        for queue in self.by_name.values():
            if not (queue.is_replicated or self.restores(queue)):
                queue.be(self._draw())

    def draw_incarnation(self) -> Incarnation:
        """Return a new incarnation."""
        return self._draw()

    def started(self) -> ServiceStarted:
        """Return the record of the current configuration."""
        return ServiceStarted(
            self.settings(), self._hosting.incarnation, self._hosting.incarnations(), dict(self.deleted)
        )

    def dead_letters_of(self, queue: SharedReaderQueue) -> SharedReaderQueue | None:
        """Return the queue that receives a queue's dead letters [QS 2.12]; None: it has none."""
        return self._hosting.dead_letters_of(queue)

    def settings(self) -> ServiceSettings:
        """Return the current configuration."""
        return self._hosting.settings()

    def participants(self) -> Mapping[ResourceIdentifier, DomainParticipantSettings]:
        """Return the domain participants, in the order of the configuration."""
        return self._hosting.participants()

    def subscribers(self) -> Mapping[ResourceIdentifier, SharedSubscriberSettings]:
        """Return the shared subscribers with their current queues."""
        return {
            subscriber_identifier(participant, name): hosted.current_settings()
            for (participant, name), hosted in self._hosting.subscribers.items()
        }

    def queues(self) -> Mapping[ResourceIdentifier, SharedReaderQueueSettings]:
        """Return the queues, including dead-letter queues and implicit reply queues."""
        return {
            queue_identifier(participant, name, queue.settings): queue.settings
            for (participant, name), hosted in self._hosting.subscribers.items()
            for queue in hosted.queues.values()
        }

    def follow_cluster(self, followed: ConfigurationFollowed) -> None:
        """Record the progress in the cluster's configuration log."""
        self.followed = followed
        self.outbox.service_stream.record(followed)

    def create_queue(
        self,
        now: Nanoseconds,
        subscriber: ResourceIdentifier,
        settings: SharedReaderQueueSettings,
        incarnation: Incarnation = NIL_INCARNATION,
    ) -> None:
        """Create a queue, and the implicit reply queue that it requires [QS 5.4.1].

        Args:
            now: the instant.
            subscriber: the shared subscriber that gets the queue.
            settings: the requested settings.
            incarnation: the one on which a replication group agreed; nil: draw one.

        Raises:
            NotFound: the shared subscriber does not exist.
            Refused: the name or topic is in use, or the dead-letter queue is invalid.
        """
        participant, name = self._subscriber(subscriber)
        incarnation = incarnation or self.of_group(f"{participant}/{name}/{settings.name}") or self._draw()
        added = self._hosting.add_queue(participant, name, settings, incarnation)
        self._note_created_again(added, incarnation)
        _be_all(added, incarnation)
        self.statistics.watch(now, added)
        self.outbox.service_stream.record(QueueCreated(participant, name, settings, incarnation))

    def deleted_with(self, queue: ResourceIdentifier) -> list[ResourceIdentifier]:
        """Return the queues that a deletion of this one removes: itself, and its implicit reply queue.

        Raises:
            NotFound: the queue does not exist.
            Refused: as `delete_queue` does.
        """
        settings = self.queue(queue).settings
        participant, subscriber = self._subscriber(queue.parent)
        going = self._hosting.removed_with(participant, subscriber, settings.name)
        return [queue_identifier(participant, subscriber, each.settings) for each in going]

    def shut(self, now: Nanoseconds, queue: ResourceIdentifier) -> None:
        """Stop a queue that will be deleted from accepting samples.

        Raises:
            NotFound: the queue does not exist.
        """
        shut = self.queue(queue)
        self._hosting.shut(queue.names[0][1], shut)
        shut.shut(now)

    def is_shut(self, queue: ResourceIdentifier) -> bool:
        """Return whether a queue is being deleted.

        Raises:
            NotFound: the queue does not exist.
        """
        return self.queue(queue).is_shut

    def is_following(self, queue: ResourceIdentifier) -> bool:
        """Return whether a queue is a replica whose samples only its master removes.

        Raises:
            NotFound: the queue does not exist.
        """
        return self.queue(queue).is_following

    def delete_queue(self, now: Nanoseconds, queue: ResourceIdentifier) -> None:
        """Remove a queue, its samples and its implicit reply queue [QS 5.4.2].

        Raises:
            NotFound: the queue does not exist.
            Refused: it is an implicit reply queue, or the dead-letter queue of a queue that remains.
        """
        settings = self.queue(queue).settings
        participant, subscriber = self._subscriber(queue.parent)
        removed = self._hosting.remove_queue(participant, subscriber, settings.name)
        self._note_deleted(removed)
        self._close(now, removed)
        self.outbox.service_stream.record(QueueDeleted(participant, subscriber, settings.name))

    def change_queue(self, now: Nanoseconds, queue: ResourceIdentifier, settings: SharedReaderQueueSettings) -> bool:
        """Change the settings of a queue and of its implicit reply queue; return whether they differ from the former.

        Raises:
            NotFound: the queue does not exist.
            Refused: the change requires that the queue is created anew.
        """
        former = self.queue(queue).settings
        if settings.name != former.name:
            raise Refused(f"queue {queue.bare} keeps its name", remedy="Leave the name as it is, or create another.")
        participant, subscriber = self._subscriber(queue.parent)
        self._hosting.check_change(participant, subscriber, settings)
        if settings == former:
            return False
        self._hosting.change_queue(now, participant, subscriber, settings)
        self.outbox.service_stream.record(QueueChanged(participant, subscriber, settings))
        return True

    def create_subscriber(
        self,
        now: Nanoseconds,
        participant: ResourceIdentifier,
        settings: SharedSubscriberSettings,
        incarnation: Incarnation = NIL_INCARNATION,
    ) -> None:
        """Create a shared subscriber with its queues, all or nothing [QS 5.4.7].

        Args:
            now: the instant.
            participant: the domain participant that gets it.
            settings: the requested settings.
            incarnation: as for `create_queue`, of the subscriber and all its queues.

        Raises:
            NotFound: the domain participant does not exist.
            Refused: its name is in use, or its queues contradict each other.
        """
        if participant not in self._hosting.participants():
            raise NotFound(f"there is no domain participant {participant}")
        incarnation = incarnation or self.of_group(f"{participant.name}/{settings.name}") or self._draw()
        added = self._hosting.add_subscriber(participant.name, settings, incarnation)
        self._note_created_again(added, incarnation)
        self.statistics.watch(now, added)
        self.outbox.service_stream.record(SubscriberCreated(participant.name, settings, incarnation))

    def delete_subscriber(self, now: Nanoseconds, subscriber: ResourceIdentifier) -> None:
        """Remove a shared subscriber with its queues [QS 5.4.8].

        Raises:
            NotFound: the shared subscriber does not exist.
        """
        participant, name = self._subscriber(subscriber)
        removed = self._hosting.remove_subscriber(participant, name)
        self._note_deleted(removed)
        self._close(now, removed)
        self.outbox.service_stream.record(SubscriberDeleted(participant, name))

    def queue(self, resource: ResourceIdentifier) -> SharedReaderQueue:
        """Return the queue of this identifier.

        Raises:
            NotFound: it does not exist, or is a dead-letter queue where an ordinary one is identified, or the reverse.
        """
        queue = self.by_name.get("/".join(name for _, name in resource.names))
        if (
            queue is None
            or not resource.is_queue()
            or (resource.kind is ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE) is not queue.settings.is_dead_letter
        ):
            raise NotFound(f"there is no queue {resource.bare}")
        return queue

    def samples(self, queue: ResourceIdentifier, after_position: int = 0) -> Iterator[Sample]:
        """Return the held samples behind a position, in queue order; see `present` for their later state."""
        held = self.queue(queue).held
        return held.newer_than(after_position) if after_position else iter(held)

    def sample(self, queue: ResourceIdentifier, identity: SampleIdentity) -> Sample | None:
        """Return the held sample of this identity, by the index; None: it is not held."""
        return self.queue(queue).held.find(identity)

    def present(self, queue: ResourceIdentifier, sample: Sample) -> Sample | None:
        """Return a sample that `samples` returned earlier as it is now; None: it is no longer held.

        Raises:
            NotFound: the queue does not exist.
        """
        return _held_at(self.queue(queue), sample)

    def flush(self, now: Nanoseconds, queue: ResourceIdentifier, samples: Iterable[Sample]) -> int:
        """Remove those of these samples that the queue still holds; return their number [QS 5.4.3].

        Raises:
            NotFound: the queue does not exist.
            Refused: it is a replicated queue whose master is another service.
        """
        return self._mastered(queue).flush(now, samples)

    def insert(self, now: Nanoseconds, queue: ResourceIdentifier, samples: Sequence[InsertedSample]) -> list[Insertion]:
        """Enqueue samples that a command carries, in their order; return the outcome of each.

        Once the queue has no room for one, it is offered none of the following: a smaller one must not overtake it.

        Raises:
            NotFound: the queue does not exist.
            Refused: it is being deleted, or is a replicated queue whose master is another service.
        """
        found = self._mastered(queue)
        if found.is_shut:
            raise Refused(f"queue {found.name} is being deleted", remedy="Choose another queue.")
        became: list[Insertion] = []
        for each in samples:
            is_full = bool(became) and became[-1] is Insertion.NO_ROOM
            became.append(Insertion.NO_ROOM if is_full else found.insert(now, each))
        return became

    def move(
        self,
        now: Nanoseconds,
        source: ResourceIdentifier,
        target: ResourceIdentifier,
        samples: Sequence[Sample | None],
        payloads: Sequence[bytes],
        *,
        begins_anew: bool,
    ) -> list[Insertion]:
        """Move samples to another queue of this service, each by a single record; return the outcome of each.

        No consumer is sent them before the next turn, which begins once the records are durable.

        Args:
            now: the instant.
            source: the queue that holds them.
            target: the queue to which they move.
            samples: as the source holds them; None: the source does not hold this one.
            payloads: the payload of each, for a target that keeps payloads in memory; empty: none were sent along, and
                no sample is moved from the first on that needs one.
            begins_anew: whether their lifespans begin now.

        Raises:
            NotFound: a queue does not exist.
            Refused: the target is being deleted, the source is suspended by a disk error, one of them has its master in
                another service, or they are in different replicated logs.
        """
        origin, place = self._mastered(source), self._mastered(target)
        if place.is_shut:
            raise Refused(f"queue {place.name} is being deleted", remedy="Choose another queue.")
        if origin.context.is_suspended:
            raise Refused(f"queue {origin.name} is suspended, for it cannot be stored", remedy="Make room on the disk.")
        if (origin.is_replicated or place.is_replicated) and origin.stream is not place.stream:
            raise Refused(
                f"{origin.name} and {place.name} are not in one log of replicas",
                remedy="Copy the samples to the one, then remove them from the other.",
            )
        became: list[Insertion] = []
        moved: list[tuple[Sample, Sample]] = []
        waits_for_payloads = False
        for sample, given in zip(samples, payloads or repeat(None, len(samples)), strict=True):
            if sample is None or not origin.is_waiting(sample):
                became.append(Insertion.NOT_WAITING)
                continue
            if waits_for_payloads:  # those behind would be in front of it in the target
                became.append(Insertion.NO_PAYLOAD)
                continue
            payload = sample.payload
            if payload is None and given is not None and len(given) == sample.size_bytes:
                payload = given
            result, held = place.receive_moved(now, origin, sample, payload, begins_anew=begins_anew)
            became.append(result)
            waits_for_payloads = result is Insertion.NO_PAYLOAD and not payloads
            if held is not None:
                moved.append((sample, held))
        if any(each.is_done for each in became):
            self.outbox.moves_samples = True
            self.latest_move = LatestMove(origin, place, moved)
            place.serve_next(now)
        return became

    def forget_latest_move(self) -> None:
        """Forget the latest move, which is stored by now, unless a disk error suspended one of its queues."""
        move = self.latest_move
        if move is not None and not (move.source.context.is_suspended or move.target.context.is_suspended):
            self.latest_move = None

    def complete_latest_move(self, now: Nanoseconds, queue: SharedReaderQueue) -> None:
        """Ensure that each moved sample is in exactly one queue, after a disk error undid one side of the move.

        As at a restart the record in the target decides. If the source exists only in memory and the target did not
        store a sample, the source holds it again.

        Args:
            now: the instant.
            queue: the queue that was rolled back to its store.
        """
        if self.latest_move is None or queue not in self.latest_move[:2]:
            return
        source, target, samples = self.latest_move
        for was, held in samples:
            in_source, in_target = _held_at(source, was), _held_at(target, held)
            if in_source and in_target:
                leaving = source if target.journaled else target
                leaving.removal.end_moved(now, in_source if leaving is source else in_target)
            elif not (in_source or in_target or source.journaled):
                source.hold_again(now, was)

    def flag(self, queue: ResourceIdentifier, samples: Sequence[Sample | None]) -> list[bool]:
        """Flag samples that no consumer has as redelivered; return for each whether it is flagged. None: False.

        Raises:
            NotFound: the queue does not exist.
            Refused: it is a replicated queue whose master is another service.
        """
        found = self._mastered(queue)
        return [sample is not None and found.flag(sample) for sample in samples]

    def _mastered(self, queue: ResourceIdentifier) -> SharedReaderQueue:
        """Return the queue of this identifier, after checking that this service may change its samples.

        Raises:
            NotFound: the queue does not exist.
            NotMaster: it is a replicated queue whose master is another service.
        """
        found = self.queue(queue)
        if found.is_following:
            raise NotMaster(
                f"this service is not the master of the replicated queue {queue.bare}",
                remedy="Send the command to all services of the cluster by a common target pattern: the master obeys. "
                "`qsctl get replication` shows which one it is, or why there is none.",
            )
        return found

    def status(
        self, now: Nanoseconds, queue: ResourceIdentifier, *, with_consumers: bool = False
    ) -> SharedReaderQueueStatus:
        """Return a queue's status for a command; reading it resets the `change` counters to zero [QS 5.4.4]."""
        return self.statistics.status(now, self.queue(queue).name, with_consumers=with_consumers)

    def request_shutdown(self) -> None:
        """Begin the shutdown: the driver stops after it has sent the messages that are ready [QS 5.4.9].

        Raises:
            Refused: the service runs as a daemon.
        """
        if not self.stops_on_command:
            raise Refused(
                f"service {self.application_name} runs as a daemon", remedy="Stop it where it was started: SIGTERM."
            )
        self.shutting_down = True

    def _close(self, now: Nanoseconds, queues: list[SharedReaderQueue]) -> None:
        for queue in queues:
            queue.close(now)
        self.statistics.count_events()
        self.statistics.unwatch(queues)

    def _subscriber(self, resource: ResourceIdentifier) -> tuple[str, str]:
        participant, subscriber = resource.parent.name, resource.name
        if subscriber_identifier(participant, subscriber) != resource.bare or (
            (participant, subscriber) not in self._hosting.subscribers
        ):
            raise NotFound(f"there is no shared subscriber {resource.bare}")
        return participant, subscriber


def _be_all(queues: Iterable[SharedReaderQueue], incarnation: Incarnation) -> None:
    """Set the incarnation of queues created by one command; replicated ones keep that of their group."""
    for queue in queues:
        queue.be(incarnation)


def _of_no_group(_name: str) -> Incarnation:
    """Return the nil incarnation; a function of the module, because the simulator pickles services."""
    return NIL_INCARNATION


def _held_at(queue: SharedReaderQueue, sample: Sample) -> Sample | None:
    """Return the sample of the queue that has the position and identity of an earlier one; None: it is not held."""
    held = queue.held.find(sample.identity)
    return held if held is not None and held.position == sample.position else None
