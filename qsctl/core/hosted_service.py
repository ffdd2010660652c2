"""What a service hosts, as administration sees and changes it [QS 5]: the engine's `AdminHost` half.

Decides: what a change writes into the service's records, and which statistics belong to which queue. What may be
created or deleted is `queue.hosting`'s, return codes are `admin`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Final

import msgspec

from qsctl.core.messages import StatusPublication
from qsctl.core.queue.hosting import Hosting, queue_identifier, subscriber_identifier
from qsctl.core.queue.outbox import Outbox
from qsctl.core.queue.sample import Sample
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.core.records import QueueCreated, QueueDeleted, SubscriberCreated, SubscriberDeleted
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.core.statistics.counters import QueueStatistics
from qsctl.core.statistics.status import CurrentCounts, SharedReaderQueueStatus
from qsctl.errors import Damaged, NotFound, Refused
from qsctl.identity import SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.resource import ResourceIdentifier, ResourceKind

_QUEUE_OF: Final = attrgetter("queue")


class Monitor:
    """A queue's statistics, and its place in the agenda for the periodic publication (chapter 6)."""

    __slots__ = ("_count", "_outbox", "queue", "statistics", "wakes_at_ns")

    def __init__(self, queue: SharedReaderQueue, now: Nanoseconds, outbox: Outbox, count: Callable[[], None]) -> None:
        self.queue = queue
        self.statistics = QueueStatistics(queue.settings, now)
        self.wakes_at_ns: Nanoseconds = INFINITE_NS
        self._outbox = outbox
        self._count = count

    def next_deadline(self) -> Nanoseconds | None:
        """When the status is next due."""
        return self.statistics.next_deadline()

    def advance(self, now: Nanoseconds) -> None:
        """Publish the status if it is due."""
        if self.statistics.advance(now):
            self._count()
            status = self.statistics.publication(now, self.queue.name, self.counts())
            self._outbox.send(self.queue.stream, StatusPublication(self.queue.name, status))

    def counts(self) -> CurrentCounts:
        """What the queue holds. An acknowledged sample leaves at once, so none is ever counted as acknowledged."""
        queue = self.queue
        held = len(queue.held)
        outside, undeliverable = len(queue.reader_cache), queue.undeliverable_count()
        return CurrentCounts(held, 0, held, queue.sent_count(), outside, undeliverable)


class HostedService:
    """The queues of one service instance with their statistics.

    Args:
        settings: what is hosted at first.
        started_at: the instant statistics count from.
        journals_everything: whether volatile queues are recorded too.
        stops_on_command: whether SHUTDOWN is obeyed.

    Raises:
        Refused: the configuration holds two queues of one name or topic, or impossible dead letters.
    """

    def __init__(
        self, settings: ServiceSettings, *, started_at: Nanoseconds, journals_everything: bool, stops_on_command: bool
    ) -> None:
        self._now = started_at
        self._journals_everything = journals_everything
        self._stops_on_command = stops_on_command
        self._share_count = INFINITE_NS
        self.shutting_down = False
        """A SHUTDOWN was accepted [QS 5.4.9]."""
        self._host(settings)

    @property
    def application_name(self) -> str:
        """What a command's target pattern is matched against."""
        return self._application_name

    @property
    def share_count(self) -> int:
        """How many samples one queue moves in a row, where a consumer that comes or goes, a lifespan, a time-out or a
        command concerns more; the rest is due at once. No bound by default: it is for who must not keep others waiting.
        """
        return self._share_count

    @share_count.setter
    def share_count(self, share_count: int) -> None:
        self._share_count = self._outbox.share_count = share_count

    def settings(self) -> ServiceSettings:
        """The configuration as it is now."""
        return self._hosting.settings()

    def participants(self) -> Mapping[ResourceIdentifier, DomainParticipantSettings]:
        """The domain participants, in the order of the configuration."""
        return self._hosting.participants()

    def subscribers(self) -> Mapping[ResourceIdentifier, SharedSubscriberSettings]:
        """The shared subscribers with the queues they hold now."""
        return {
            subscriber_identifier(participant, name): hosted.current_settings()
            for (participant, name), hosted in self._hosting.subscribers.items()
        }

    def queues(self) -> Mapping[ResourceIdentifier, SharedReaderQueueSettings]:
        """The queues, dead-letter queues and implicit reply queues included."""
        return {
            queue_identifier(participant, name, queue.settings): queue.settings
            for (participant, name), hosted in self._hosting.subscribers.items()
            for queue in hosted.queues.values()
        }

    def create_queue(
        self, now: Nanoseconds, subscriber: ResourceIdentifier, settings: SharedReaderQueueSettings
    ) -> None:
        """Host one more queue, and the implicit reply queue that it brings [QS 5.4.1].

        Raises:
            NotFound: there is no such shared subscriber.
            Refused: its name or topic is taken, or its dead letters are impossible.
        """
        participant, name = self._subscriber(subscriber)
        self._watch(now, self._hosting.add_queue(participant, name, settings))
        self._outbox.service_stream.record(QueueCreated(participant, name, settings))

    def deleted_with(self, queue: ResourceIdentifier) -> list[ResourceIdentifier]:
        """The queues that go when this one is deleted: it, and its implicit reply queue.

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
        """Whether a queue is being deleted.

        Raises:
            NotFound: there is no such queue.
        """
        return self.queue(queue).is_shut

    def delete_queue(self, now: Nanoseconds, queue: ResourceIdentifier) -> None:
        """Remove a queue, its samples and its implicit reply queue [QS 5.4.2].

        Raises:
            NotFound: there is no such queue.
            Refused: it is an implicit reply queue, or holds the dead letters of a queue that remains.
        """
        settings = self.queue(queue).settings
        participant, subscriber = self._subscriber(queue.parent)
        self._close(now, self._hosting.remove_queue(participant, subscriber, settings.name))
        self._outbox.service_stream.record(QueueDeleted(participant, subscriber, settings.name))

    def create_subscriber(
        self, now: Nanoseconds, participant: ResourceIdentifier, settings: SharedSubscriberSettings
    ) -> None:
        """Host one more shared subscriber with its queues, all or nothing [QS 5.4.7].

        Raises:
            NotFound: there is no such domain participant.
            Refused: its name is taken, or its queues cannot stand together.
        """
        if participant not in self._hosting.participants():
            raise NotFound(f"there is no domain participant {participant}")
        self._watch(now, self._hosting.add_subscriber(participant.name, settings))
        self._outbox.service_stream.record(SubscriberCreated(participant.name, settings))

    def delete_subscriber(self, now: Nanoseconds, subscriber: ResourceIdentifier) -> None:
        """Remove a shared subscriber with its queues [QS 5.4.8].

        Raises:
            NotFound: there is no such shared subscriber.
        """
        participant, name = self._subscriber(subscriber)
        self._close(now, self._hosting.remove_subscriber(participant, name))
        self._outbox.service_stream.record(SubscriberDeleted(participant, name))

    def queue(self, resource: ResourceIdentifier) -> SharedReaderQueue:
        """The queue of this identifier.

        Raises:
            NotFound: there is none, or it is of the other kind.
        """
        queue = self._queues.get("/".join(name for _, name in resource.names))
        if (
            queue is None
            or not resource.is_queue()
            or (resource.kind is ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE) is not queue.settings.is_dead_letter
        ):
            raise NotFound(f"there is no queue {resource.bare}")
        return queue

    def samples(self, queue: ResourceIdentifier) -> Iterator[Sample]:
        """The held samples in queue order."""
        return iter(self.queue(queue).held)

    def sample(self, queue: ResourceIdentifier, identity: SampleIdentity) -> Sample | None:
        """The held sample of this identity, by index."""
        return self.queue(queue).held.known.get(identity)

    def flush(self, now: Nanoseconds, queue: ResourceIdentifier, samples: Iterable[Sample]) -> int:
        """Remove those of these samples that the queue still holds; returns how many went [QS 5.4.3]."""
        return self.queue(queue).flush(now, samples)

    def status(self, now: Nanoseconds, queue: ResourceIdentifier) -> SharedReaderQueueStatus:
        """The status as a command answers it: reading starts `change` again from zero [QS 5.4.4]."""
        self._count_events()
        monitor = self._monitors[self.queue(queue).name]
        return monitor.statistics.status(now, monitor.queue.name, monitor.counts())

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

    def statistics_snapshot(self) -> bytes:
        """Counters and windows of every queue, so that they outlive the process."""
        self._count_events()
        return msgspec.msgpack.encode({name: each.statistics.snapshot() for name, each in self._monitors.items()})

    def restore_statistics(self, stored: bytes) -> None:
        """Take up what `statistics_snapshot` gave; queues that are gone are passed over.

        Call it before the first turn. Where a queue does not hold what its counters say, see `QueueStatistics.restore`.

        Raises:
            Damaged: the bytes are no such snapshot; counters read so far stay.
        """
        try:
            snapshots = msgspec.msgpack.decode(stored, type=dict[str, bytes])
        except msgspec.MsgspecError as error:
            raise Damaged(
                f"the stored statistics cannot be read: {error}", remedy="Counting starts again from zero."
            ) from error
        self._count_events()
        for name, each in snapshots.items():
            if name in self._monitors:
                self._monitors[name].statistics.restore(each)

    def _host(self, settings: ServiceSettings) -> None:
        """Begin with a configuration, and with nothing in its queues."""
        self._outbox = Outbox()
        self._outbox.share_count = self._share_count
        self._counted_events = 0
        self._hosting = Hosting(settings, self._outbox, journals_everything=self._journals_everything)
        self._application_name = settings.application_name
        self._queues = self._hosting.queues
        self._by_topic = self._hosting.by_topic
        self._monitors: dict[str, Monitor] = {}
        self._watch(self._now, self._queues.values())

    def _watch(self, now: Nanoseconds, queues: Iterable[SharedReaderQueue]) -> None:
        for queue in queues:
            monitor = self._monitors[queue.name] = Monitor(queue, now, self._outbox, self._count_events)
            deadline = monitor.next_deadline()
            if deadline is not None:
                self._outbox.agenda.wake(monitor, deadline)

    def _close(self, now: Nanoseconds, queues: list[SharedReaderQueue]) -> None:
        for queue in queues:
            queue.close(now)
        self._count_events()
        self._unwatch(queues)

    def _unwatch(self, queues: Iterable[SharedReaderQueue]) -> None:
        for queue in queues:
            self._outbox.agenda.forget(self._monitors.pop(queue.name))

    def _count_events(self) -> None:
        """Tell the statistics what happened since they were last told."""
        events = self._outbox.events
        new = events[self._counted_events :] if self._counted_events else events
        self._counted_events = len(events)
        if len(self._monitors) == 1 and new:
            self._monitors[new[0].queue].statistics.tell_all(new)
            return
        for queue, of_queue in groupby(new, _QUEUE_OF):
            self._monitors[queue].statistics.tell_all(list(of_queue))

    def _subscriber(self, resource: ResourceIdentifier) -> tuple[str, str]:
        participant, subscriber = resource.parent.name, resource.name
        if subscriber_identifier(participant, subscriber) != resource.bare or (
            (participant, subscriber) not in self._hosting.subscribers
        ):
            raise NotFound(f"there is no shared subscriber {resource.bare}")
        return participant, subscriber
