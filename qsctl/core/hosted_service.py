"""A service's queues and subscribers, as administration reads and changes them [QS 5].

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
from qsctl.errors import NotFound, Refused
from qsctl.identity import NIL_INCARNATION, DrawIncarnation, Incarnation, SampleIdentity, WholeIncarnation
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.resource import ResourceIdentifier, ResourceKind


class LatestMove(NamedTuple):
    """Samples that a command moved in the turn before; each as the source held it, and as the target does."""

    source: SharedReaderQueue
    target: SharedReaderQueue
    samples: Sequence[tuple[Sample, Sample]]


class HeldAtRest(msgspec.Struct, frozen=True, array_like=True):
    """The content of a queue while nothing of it is in progress, and the queue's creation."""

    count: int
    incarnation: WholeIncarnation


class HostedService:
    """The queues of one service instance with their statistics.

    Identifiers are bare: without a `status`, `data` or `message` leaf. A method that is given one raises `NotFound`
    where it names nothing, and `Refused` where the change is impossible; the message gives the name or the reason.

    Args:
        settings: the initial configuration.
        now: the instant statistics count from.
        draw: gives each creation its incarnation.
        journals_everything: whether volatile queues are recorded too.
        replicates: whether replicated queues are recorded, each in the stream of its replication group.
        payload_size_bytes_max: a larger payload is refused, wherever it comes from.
        stops_on_command: whether SHUTDOWN is obeyed.

    Raises:
        Refused: the configuration holds two queues of one name or topic, or impossible dead letters.
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
        self._stops_on_command = stops_on_command
        self._share_count = INFINITE_NS
        self._reports_each_step = True
        self._reports_inputs = False
        self.shutting_down = False
        """A SHUTDOWN was accepted [QS 5.4.9]."""
        self._holds_back = False
        self.latest_move: LatestMove | None = None
        """Until the next turn: whether it could be stored is not known before."""
        self.of_group: Callable[[str], Incarnation] = _of_no_group
        """Gives what all members of a cluster call what a command creates, by full name; nil: it is drawn here."""
        self._host(now, ServiceStarted(settings, draw()))

    def _host(self, now: Nanoseconds, started: ServiceStarted) -> None:
        """Begin with a configuration, and with nothing in its queues."""
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
        """The name that a command's target pattern is matched against."""
        self.by_name = self._hosting.queues
        """The queues by their full names; a change is made by the methods here alone."""
        self.by_topic = self._hosting.by_topic
        """The queues that a participant and topic lead to."""
        self.deleted: dict[str, Incarnation] = dict(started.deleted)
        """The streams of replicated queues that were deleted: their logs may have outlived them, see `log_dropped`.

        With the incarnation of the group where it was created again.
        """
        self.followed: ConfigurationFollowed | None = None
        """Progress in the configuration log of a cluster [QS 7.2]; None: there is none."""
        self.statistics = Monitors(self.outbox)
        self.statistics.watch(now, self.by_name.values())

    @property
    def share_count(self) -> int:
        """Return how many samples one queue moves in a row, where a consumer that comes or goes, a lifespan, a time-out
        or a command concerns more; the rest is due at once. No bound by default: it is for drivers with several peers.
        """
        return self._share_count

    @share_count.setter
    def share_count(self, share_count: int) -> None:
        self._share_count = self.outbox.share_count = share_count

    @property
    def reports_each_step(self) -> bool:
        """Return whether each step of a sample is an event, as by default; else the usual ones are counted, see
        `SamplesPassed`: for drivers that only count.
        """
        return self._reports_each_step

    @reports_each_step.setter
    def reports_each_step(self, reports: bool) -> None:
        self._reports_each_step = self.outbox.reports_each_step = reports

    @property
    def reports_inputs(self) -> bool:
        """Return whether messages without an event are handed over with the events, see `Input`; by default not."""
        return self._reports_inputs

    @reports_inputs.setter
    def reports_inputs(self, reports: bool) -> None:
        self._reports_inputs = self.outbox.reports_inputs = reports

    @property
    def holds_back(self) -> bool:
        """Return whether nothing new is enqueued, for memory is at its bound."""
        return self._holds_back

    @holds_back.setter
    def holds_back(self, holds_back: bool) -> None:
        self._holds_back = self.outbox.holds_back = holds_back
        for queue in self.by_name.values():
            queue.context.find_bound()

    def take_ready(self) -> Ready:
        """Hand over what happened since the last time, counted."""
        self.statistics.close_batch()
        return self.outbox.take()

    def replay(self, now: Nanoseconds, record: ServiceRecord) -> None:
        """Do again what was recorded. A stored configuration takes the place of the one given [QS 2.14.1]."""
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
        """Let queues, by full name, hold samples that are not read: status and data are all that is asked for then."""
        for name, each in held.items():
            self.by_name[name].be(each.incarnation)
            self.statistics.rest(now, name, each.count)

    def log_dropped(self, stream: str) -> None:
        """Note that a store has nothing any more of a replicated queue that was deleted."""
        self.deleted.pop(stream, None)

    def _note_deleted(self, queues: Iterable[SharedReaderQueue]) -> None:
        self.deleted |= {queue.stream.name: NIL_INCARNATION for queue in queues if queue.is_replicated}

    def _note_created_again(self, queues: Iterable[SharedReaderQueue], incarnation: Incarnation) -> None:
        for queue in queues:
            if queue.stream.name in self.deleted:
                self.deleted[queue.stream.name] = incarnation

    def restores(self, queue: SharedReaderQueue) -> bool:
        """Return whether the samples of a queue outlive the service."""
        return self._journals_everything or (queue.journaled and queue.settings.persistence.restore)

    def begin_anew(self) -> None:
        """Give the queues an incarnation that a restart finds empty: their positions begin again.

        Those of a replication group have that of the group.
        """
        for queue in self.by_name.values():
            if not (queue.is_replicated or self.restores(queue)):
                queue.be(self._draw())

    def draw_incarnation(self) -> Incarnation:
        """Return an incarnation for something new."""
        return self._draw()

    def started(self) -> ServiceStarted:
        """Return the record of what is hosted now."""
        return ServiceStarted(
            self.settings(), self._hosting.incarnation, self._hosting.incarnations(), dict(self.deleted)
        )

    def dead_letters_of(self, queue: SharedReaderQueue) -> SharedReaderQueue | None:
        """Return the queue that takes a queue's dead letters [QS 2.12]."""
        return self._hosting.dead_letters_of(queue)

    def settings(self) -> ServiceSettings:
        """Return the configuration as it is now."""
        return self._hosting.settings()

    def participants(self) -> Mapping[ResourceIdentifier, DomainParticipantSettings]:
        """Return the domain participants, in the order of the configuration."""
        return self._hosting.participants()

    def subscribers(self) -> Mapping[ResourceIdentifier, SharedSubscriberSettings]:
        """Return the shared subscribers with the queues they hold now."""
        return {
            subscriber_identifier(participant, name): hosted.current_settings()
            for (participant, name), hosted in self._hosting.subscribers.items()
        }

    def queues(self) -> Mapping[ResourceIdentifier, SharedReaderQueueSettings]:
        """Return the queues, dead-letter queues and implicit reply queues included."""
        return {
            queue_identifier(participant, name, queue.settings): queue.settings
            for (participant, name), hosted in self._hosting.subscribers.items()
            for queue in hosted.queues.values()
        }

    def follow_cluster(self, followed: ConfigurationFollowed) -> None:
        """Record how far the configuration of the cluster is followed."""
        self.followed = followed
        self.outbox.service_stream.record(followed)

    def create_queue(
        self,
        now: Nanoseconds,
        subscriber: ResourceIdentifier,
        settings: SharedReaderQueueSettings,
        incarnation: Incarnation = NIL_INCARNATION,
    ) -> None:
        """Host one more queue, and the implicit reply queue that it brings [QS 5.4.1].

        Args:
            now: the instant.
            subscriber: where.
            settings: what was asked for.
            incarnation: what all members of a replication group call it; nil: one is drawn.

        Raises:
            NotFound: there is no such shared subscriber.
            Refused: its name or topic is taken, or its dead letters are impossible.
        """
        participant, name = self._subscriber(subscriber)
        incarnation = incarnation or self.of_group(f"{participant}/{name}/{settings.name}") or self._draw()
        added = self._hosting.add_queue(participant, name, settings, incarnation)
        self._note_created_again(added, incarnation)
        _be_all(added, incarnation)
        self.statistics.watch(now, added)
        self.outbox.service_stream.record(QueueCreated(participant, name, settings, incarnation))

    def deleted_with(self, queue: ResourceIdentifier) -> list[ResourceIdentifier]:
        """Return the queues that go when this one is deleted: it, and its implicit reply queue.

        Raises:
            NotFound: there is no such queue.
            Refused: as `delete_queue` does.
        """
        settings = self.queue(queue).settings
        participant, subscriber = self._subscriber(queue.parent)
        going = self._hosting.removed_with(participant, subscriber, settings.name)
        return [queue_identifier(participant, subscriber, each.settings) for each in going]

    def shut(self, now: Nanoseconds, queue: ResourceIdentifier) -> None:
        """Take no more samples into a queue that will be deleted.

        Raises:
            NotFound: there is no such queue.
        """
        shut = self.queue(queue)
        self._hosting.shut(queue.names[0][1], shut)
        shut.shut(now)

    def is_shut(self, queue: ResourceIdentifier) -> bool:
        """Return whether a queue is being deleted.

        Raises:
            NotFound: there is no such queue.
        """
        return self.queue(queue).is_shut

    def is_following(self, queue: ResourceIdentifier) -> bool:
        """Return whether a queue is a replica whose samples only its master removes.

        Raises:
            NotFound: there is no such queue.
        """
        return self.queue(queue).is_following

    def delete_queue(self, now: Nanoseconds, queue: ResourceIdentifier) -> None:
        """Remove a queue, its samples and its implicit reply queue [QS 5.4.2].

        Raises:
            NotFound: there is no such queue.
            Refused: it is an implicit reply queue, or holds the dead letters of a queue that remains.
        """
        settings = self.queue(queue).settings
        participant, subscriber = self._subscriber(queue.parent)
        removed = self._hosting.remove_queue(participant, subscriber, settings.name)
        self._note_deleted(removed)
        self._close(now, removed)
        self.outbox.service_stream.record(QueueDeleted(participant, subscriber, settings.name))

    def change_queue(self, now: Nanoseconds, queue: ResourceIdentifier, settings: SharedReaderQueueSettings) -> bool:
        """Let a queue have other settings, and its implicit reply queue with it; whether that changed anything.

        Raises:
            NotFound: there is no such queue.
            Refused: it cannot have them without being created anew.
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
        """Host another shared subscriber with its queues, all or nothing [QS 5.4.7].

        Args:
            now: the instant.
            participant: the domain participant that gets it.
            settings: the requested settings.
            incarnation: as for `create_queue`, of the subscriber and all its queues.

        Raises:
            NotFound: there is no such domain participant.
            Refused: its name is taken, or its queues contradict each other.
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
            NotFound: there is no such shared subscriber.
        """
        participant, name = self._subscriber(subscriber)
        removed = self._hosting.remove_subscriber(participant, name)
        self._note_deleted(removed)
        self._close(now, removed)
        self.outbox.service_stream.record(SubscriberDeleted(participant, name))

    def queue(self, resource: ResourceIdentifier) -> SharedReaderQueue:
        """Return the queue of this identifier.

        Raises:
            NotFound: there is none, or it is of the other kind.
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
        """Return the held samples in queue order, those behind a position."""
        held = self.queue(queue).held
        return iter(held.newer_than(after_position)) if after_position else iter(held)

    def sample(self, queue: ResourceIdentifier, identity: SampleIdentity) -> Sample | None:
        """Return the held sample of this identity, by index."""
        return self.queue(queue).held.known.get(identity)

    def flush(self, now: Nanoseconds, queue: ResourceIdentifier, samples: Iterable[Sample]) -> int:
        """Remove those of these samples that the queue still holds; returns how many went [QS 5.4.3].

        Raises:
            NotFound: there is no such queue.
            Refused: it is a replicated queue without a master here.
        """
        return self._mastered(queue).flush(now, samples)

    def insert(self, now: Nanoseconds, queue: ResourceIdentifier, samples: Sequence[InsertedSample]) -> list[Insertion]:
        """Enqueue samples that a command brings; returns what became of each.

        Raises:
            NotFound: there is no such queue.
            Refused: it is being deleted, or is a replicated queue without a master here.
        """
        found = self._mastered(queue)
        if found.is_shut:
            raise Refused(f"queue {found.name} is being deleted", remedy="Choose another queue.")
        return [found.insert(now, each) for each in samples]

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
        """Let samples leave a queue for another of this service, each in one record; return what became of each.

        A consumer is sent none of them before the next turn, which begins once the records are durable.

        Args:
            now: the instant.
            source: the queue that holds them.
            target: the queue that is to hold them.
            samples: as the source holds them; None is not held.
            payloads: the payload of each, for a target that keeps in memory what is on disk only; empty: not given.
            begins_anew: whether their lifespans begin now.

        Raises:
            NotFound: there is no such queue.
            Refused: the target is being deleted, the disk refuses the source, one of them has no master here, or they
                are in different logs of replicas.
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
        for sample, given in zip(samples, payloads or repeat(None, len(samples)), strict=True):
            if sample is None or not origin.is_waiting(sample):
                became.append(Insertion.NOT_WAITING)
                continue
            payload = sample.payload
            if payload is None and given is not None and len(given) == sample.size_bytes:
                payload = given
            result, held = place.receive_moved(now, origin, sample, payload, begins_anew=begins_anew)
            became.append(result)
            if held is not None:
                moved.append((sample, held))
        if any(each.is_done for each in became):
            self.outbox.moves_samples = True
            self.latest_move = LatestMove(origin, place, moved)
            place.serve_next(now)
        return became

    def forget_latest_move(self) -> None:
        """Note that what was moved last is stored, unless the disk refuses one of its queues."""
        move = self.latest_move
        if move is not None and not (move.source.context.is_suspended or move.target.context.is_suspended):
            self.latest_move = None

    def complete_latest_move(self, now: Nanoseconds, queue: SharedReaderQueue) -> None:
        """Let each sample that was moved last be in one queue again, where the disk refused a record of that.

        As at a restart the record in the target decides. A queue that is only in memory holds what the other one's
        store does not.

        Args:
            now: the instant.
            queue: it was set back to what its store holds.
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
        """Flag samples as redelivered that no consumer has; returns for each whether it is. None is not.

        Raises:
            NotFound: there is no such queue.
            Refused: it is a replicated queue without a master here.
        """
        found = self._mastered(queue)
        return [sample is not None and found.flag(sample) for sample in samples]

    def _mastered(self, queue: ResourceIdentifier) -> SharedReaderQueue:
        """Return the queue of this identifier, whose samples this service may change.

        Raises:
            NotFound: there is no such queue.
            Refused: it is a replicated queue without a master here.
        """
        found = self.queue(queue)
        if found.is_following:
            raise Refused(
                f"this service is not the master of the replicated queue {queue.bare}",
                remedy="Send the command to all services of the cluster by a common target pattern: the master obeys.",
            )
        return found

    def status(
        self, now: Nanoseconds, queue: ResourceIdentifier, *, with_consumers: bool = False
    ) -> SharedReaderQueueStatus:
        """Return the status as a command answers it: reading starts `change` again from zero [QS 5.4.4]."""
        return self.statistics.status(now, self.queue(queue).name, with_consumers=with_consumers)

    def request_shutdown(self) -> None:
        """Begin the shutdown sequence: the driver stops after it has sent what is ready [QS 5.4.9].

        Raises:
            Refused: the service runs as a daemon.
        """
        if not self._stops_on_command:
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
    """Give queues that came with one command its incarnation; replicated ones have none of their own."""
    for queue in queues:
        queue.be(incarnation)


def _of_no_group(_name: str) -> Incarnation:
    """Return the nil incarnation: a function of the module, for the simulator writes services by `pickle`."""
    return NIL_INCARNATION


def _held_at(queue: SharedReaderQueue, sample: Sample) -> Sample | None:
    """Return the sample that a queue holds in the place of one that it held before."""
    held = queue.held.known.get(sample.identity)
    return held if held is not None and held.position == sample.position else None
