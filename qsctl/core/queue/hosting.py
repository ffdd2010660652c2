"""The queues of a service: domain participants, their shared subscribers, their queues [QS 2.1].

Decides: which queues may be created or deleted beside the existing ones, which implicit reply queue comes with a queue
[QS 2.11], and which queues receive a topic's samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from qsctl.core.queue.change import WITHOUT_LOSS, fixed_differences
from qsctl.core.queue.outbox import Outbox
from qsctl.core.queue.settings import PersistenceKind, SharedReaderQueueSettings
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.errors import Refused
from qsctl.identity import NIL_INCARNATION, Incarnation
from qsctl.instant import Nanoseconds
from qsctl.resource import ResourceIdentifier, ResourceKind

NOTHING_LISTED: Final[Mapping[str, Incarnation]] = MappingProxyType({})
"""Empty mapping: every subscriber and queue has the incarnation of the service."""


def participant_identifier(participant: str) -> ResourceIdentifier:
    """Return `/domain_participant/P`."""
    return ResourceIdentifier(((ResourceKind.DOMAIN_PARTICIPANT, participant),))


def subscriber_identifier(participant: str, subscriber: str) -> ResourceIdentifier:
    """Return `/domain_participant/P/shared_subscriber/S`."""
    return participant_identifier(participant).child(ResourceKind.SHARED_SUBSCRIBER, subscriber)


def queue_identifier(participant: str, subscriber: str, settings: SharedReaderQueueSettings) -> ResourceIdentifier:
    """Return `…/shared_reader_queue/Q`, or `…/dead_letter_shared_reader_queue/Q`."""
    kind = ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE if settings.is_dead_letter else ResourceKind.SHARED_READER_QUEUE
    return subscriber_identifier(participant, subscriber).child(kind, settings.name)


def reply_topic(settings: SharedReaderQueueSettings) -> str:
    """Return the topic of a queue's replies [QS Table 3.14]; empty: it has no `reply_type`."""
    return (settings.reply_topic or f"{settings.topic_name}Reply") if settings.reply_type else ""


def tied_queues(
    queues: Iterable[SharedReaderQueueSettings],
) -> Iterator[tuple[SharedReaderQueueSettings, SharedReaderQueueSettings]]:
    """Yield the pairs of a subscriber's queues that must be in one engine.

    These are a queue and its dead-letter queue, because a sample moves between them atomically, and a queue and the
    declared queue of its reply topic, which replaces the implicit reply queue.
    """
    by_name = {queue.name: queue for queue in queues}
    by_topic = {queue.topic_name: queue for queue in by_name.values()}
    for queue in by_name.values():
        if queue.dead_letter_queue in by_name:
            yield queue, by_name[queue.dead_letter_queue]
        replies = reply_topic(queue)
        if replies and replies in by_topic:
            yield queue, by_topic[replies]


def reply_queue_name(settings: SharedReaderQueueSettings) -> str:
    """Return the name of the implicit reply queue of a queue with a `reply_type`."""
    return f"{settings.name}Reply"


def implicit_reply_queue(settings: SharedReaderQueueSettings) -> SharedReaderQueueSettings:
    """Return the settings of the implicit reply queue of a queue with a `reply_type` [QS 2.11, Table 3.14].

    They are the queue's own, but for names, topic and types.
    """
    return replace(
        settings,
        name=reply_queue_name(settings),
        topic_name=reply_topic(settings),
        type_name=settings.reply_type,
        reply_type="",
        reply_topic="",
    )


class HostedSubscriber:
    """A shared subscriber and its queues by name."""

    __slots__ = ("implicit", "incarnation", "participant", "queues", "settings")

    def __init__(self, participant: str, settings: SharedSubscriberSettings, incarnation: Incarnation) -> None:
        self.participant = participant
        self.settings = settings
        self.incarnation = incarnation
        self.queues: dict[str, SharedReaderQueue] = {}
        self.implicit: dict[str, str] = {}
        """Owner of each implicit reply queue, by the reply queue's name; no configuration declares these."""

    def put_in_order(self, declared: Iterable[SharedReaderQueueSettings]) -> None:
        """Sort the queues in the order of declaration, each followed by its implicit reply queue."""
        replies = {owner: reply for reply, owner in self.implicit.items()}
        names = [name for queue in declared for name in (queue.name, replies.get(queue.name)) if name is not None]
        self.queues = {name: self.queues[name] for name in names}

    def current_settings(self) -> SharedSubscriberSettings:
        """Return the current configuration, without implicit reply queues, which are created with their owners."""
        declared = (queue.settings for name, queue in self.queues.items() if name not in self.implicit)
        return replace(self.settings, queues=tuple(declared))


class Hosting:
    """The shared subscribers and queues of a service.

    Args:
        settings: the initial configuration.
        outbox: shared by all queues.
        journals_everything: whether volatile queues are recorded too.
        replicates: whether replicated queues are recorded, each in the stream of its replication group.
        incarnation: of the service, and of every resource that `incarnations` does not list.
        incarnations: of subscribers and queues, by full name.

    Raises:
        Refused: the configuration contains two queues of one name or topic, or an invalid dead-letter queue.
    """

    __slots__ = (
        "_journals_everything",
        "_outbox",
        "_participants",
        "_replicates",
        "_settings",
        "by_topic",
        "incarnation",
        "queues",
        "subscribers",
    )

    def __init__(
        self,
        settings: ServiceSettings,
        outbox: Outbox,
        *,
        journals_everything: bool,
        replicates: bool = False,
        incarnation: Incarnation,
        incarnations: Mapping[str, Incarnation] = NOTHING_LISTED,
    ) -> None:
        self._settings = settings
        self.incarnation = incarnation
        self._outbox = outbox
        self._journals_everything = journals_everything
        self._replicates = replicates
        self._participants = {participant.name: participant for participant in settings.participants}
        self.subscribers: dict[tuple[str, str], HostedSubscriber] = {}
        self.queues: dict[str, SharedReaderQueue] = {}
        self.by_topic: dict[tuple[str, str], list[SharedReaderQueue]] = {}
        if len(self._participants) < len(settings.participants):
            raise Refused("two domain participants have the same name", remedy="Give each its own.")
        for participant in settings.participants:
            for subscriber in participant.subscribers:
                name = f"{participant.name}/{subscriber.name}"
                self.add_subscriber(participant.name, subscriber, incarnations.get(name, incarnation))
        for name, queue in self.queues.items():
            queue.be(incarnations.get(name, queue.incarnation))

    def incarnations(self) -> dict[str, Incarnation]:
        """Return the incarnations, by full name, that differ from the default.

        The default is the service's for a subscriber, and the subscriber's for a queue (nil for a replicated one).
        """
        listed: dict[str, Incarnation] = {}
        for (participant, name), hosted in self.subscribers.items():
            if hosted.incarnation != self.incarnation:
                listed[f"{participant}/{name}"] = hosted.incarnation
            for queue in hosted.queues.values():
                if queue.incarnation != (NIL_INCARNATION if queue.is_replicated else hosted.incarnation):
                    listed[queue.name] = queue.incarnation
        return listed

    def settings(self) -> ServiceSettings:
        """Return the current configuration."""
        return replace(self._settings, participants=tuple(map(self._current, self._participants.values())))

    def participants(self) -> dict[ResourceIdentifier, DomainParticipantSettings]:
        """Return the current configuration of every domain participant."""
        return {participant_identifier(name): self._current(held) for name, held in self._participants.items()}

    def add_subscriber(
        self, participant: str, settings: SharedSubscriberSettings, incarnation: Incarnation
    ) -> list[SharedReaderQueue]:
        """Add a shared subscriber; return its queues.

        Raises:
            Refused: a subscriber of that name exists, or its queues contradict each other; nothing was changed.
        """
        if (participant, settings.name) in self.subscribers:
            raise Refused(f"shared subscriber {participant}/{settings.name} exists", remedy="Choose another name.")
        hosted = self.subscribers[participant, settings.name] = HostedSubscriber(participant, settings, incarnation)
        added: list[SharedReaderQueue] = []
        try:
            # Dead-letter queues first, for others refer to them; implicit reply queues last, for declared ones win.
            dead_letters_first = sorted(settings.queues, key=lambda queue: not queue.is_dead_letter)
            added += [self._add(hosted, queue, incarnation) for queue in dead_letters_first]
            for queue in settings.queues:
                added += self._add_implicit(hosted, queue, incarnation)
            hosted.put_in_order(settings.queues)
        except Refused:
            self.remove_subscriber(participant, settings.name)
            raise
        return added

    def remove_subscriber(self, participant: str, subscriber: str) -> list[SharedReaderQueue]:
        """Remove a shared subscriber; return the queues that were removed with it."""
        hosted = self.subscribers.pop((participant, subscriber))
        removed = list(hosted.queues.values())
        for queue in removed:
            self._forget(hosted, queue)
        return removed

    def add_queue(
        self, participant: str, subscriber: str, settings: SharedReaderQueueSettings, incarnation: Incarnation
    ) -> list[SharedReaderQueue]:
        """Add a queue and the implicit reply queue that it requires; return both.

        Raises:
            Refused: its name or topic is in use, or its dead-letter queue is invalid; nothing was changed.
        """
        hosted = self.subscribers[participant, subscriber]
        added = [self._add(hosted, settings, incarnation)]
        try:
            added += self._add_implicit(hosted, settings, incarnation)
        except Refused:
            self._forget(hosted, added[0])
            raise
        return added

    def remove_queue(self, participant: str, subscriber: str, name: str) -> list[SharedReaderQueue]:
        """Remove a queue and its implicit reply queue; return both.

        Raises:
            Refused: as `removed_with` does.
        """
        removed = self.removed_with(participant, subscriber, name)
        for queue in removed:
            self._forget(self.subscribers[participant, subscriber], queue)
        return removed

    def check_change(self, participant: str, subscriber: str, settings: SharedReaderQueueSettings) -> None:
        """Check that the queue of this name can be changed to these settings in place.

        Raises:
            Refused: the queue is an implicit reply queue, being deleted, or replicated, or a setting that cannot be
                changed in place differs.
        """
        hosted = self.subscribers[participant, subscriber]
        name, queue = settings.name, hosted.queues[settings.name]
        owner = hosted.implicit.get(name)
        if owner is not None:
            raise Refused(
                f"queue {name!r} is the reply queue of {owner!r}", remedy=f"Change {owner!r}; it has its settings."
            )
        if queue.is_shut:
            raise Refused(f"queue {queue.name} is being deleted", remedy="Create it when it is gone.")
        if queue.is_replicated:
            # Commands are not ordered among the members: for a while each would decide by settings of its own.
            raise Refused(
                f"queue {queue.name} is replicated, and its replicas would not change together",
                remedy=f"{WITHOUT_LOSS}.",
            )
        if fixed := fixed_differences(queue.settings, settings):
            raise Refused(
                f"queue {queue.name}: {', '.join(fixed)} cannot be changed in place", remedy=f"{WITHOUT_LOSS}."
            )

    def change_queue(
        self, now: Nanoseconds, participant: str, subscriber: str, settings: SharedReaderQueueSettings
    ) -> None:
        """Change the settings of a queue and of its implicit reply queue; call `check_change` before."""
        hosted = self.subscribers[participant, subscriber]
        for reply, owner in hosted.implicit.items():
            if owner == settings.name:
                hosted.queues[reply].change(now, implicit_reply_queue(settings))
        hosted.queues[settings.name].change(now, settings)

    def shut(self, participant: str, queue: SharedReaderQueue) -> None:
        """Stop routing samples of its topic to a queue; a second call has no effect."""
        topic = (participant, queue.settings.topic_name)
        takers = self.by_topic.get(topic, [])
        if queue in takers:
            takers.remove(queue)
            if not takers:
                del self.by_topic[topic]

    def removed_with(self, participant: str, subscriber: str, name: str) -> list[SharedReaderQueue]:
        """Return the queues that are removed together with this one, itself first.

        Raises:
            Refused: the queue is an implicit reply queue, or the dead-letter queue of a queue that remains.
        """
        hosted = self.subscribers[participant, subscriber]
        owner = hosted.implicit.get(name)
        if owner is not None:
            raise Refused(
                f"queue {name!r} is the reply queue of {owner!r}",
                remedy=f"Delete {owner!r} instead, which deletes its reply queue too.",
            )
        users = [queue.settings.name for queue in hosted.queues.values() if queue.settings.dead_letter_queue == name]
        if users:
            raise Refused(
                f"queue {name!r} holds the dead letters of {', '.join(users)}", remedy="Delete those queues first."
            )
        names = [name, *(reply for reply, owner in hosted.implicit.items() if owner == name)]
        return [hosted.queues[each] for each in names]

    def dead_letters_of(self, queue: SharedReaderQueue) -> SharedReaderQueue | None:
        """Return the queue that receives a queue's dead letters [QS 2.12]; None: it has none."""
        name = queue.settings.dead_letter_queue
        return self.queues[f"{queue.name.rpartition('/')[0]}/{name}"] if name else None

    def _add(
        self, hosted: HostedSubscriber, settings: SharedReaderQueueSettings, incarnation: Incarnation
    ) -> SharedReaderQueue:
        subscriber = hosted.settings.name
        _check(hosted, settings)
        if self._replicates:
            _check_replication(hosted, settings)
        dead_letters = hosted.queues[settings.dead_letter_queue] if settings.dead_letter_queue else None
        topic = settings.topic_name
        persistent = settings.persistence.kind is PersistenceKind.PERSISTENT
        is_replicated = self._replicates and settings.replication.enabled
        queue = SharedReaderQueue(
            f"{hosted.participant}/{subscriber}/{settings.name}",
            f"{topic}@{subscriber}",
            settings,
            self._outbox,
            incarnation=incarnation,
            journaled=persistent or is_replicated or self._journals_everything,
            dead_letters=dead_letters,
            routes=any(reply_topic(other.settings) == topic for other in hosted.queues.values()),
            is_replicated=is_replicated,
        )
        hosted.queues[settings.name] = queue
        self.queues[queue.name] = queue
        if not settings.is_dead_letter:
            self.by_topic.setdefault((hosted.participant, topic), []).append(queue)
        return queue

    def _add_implicit(
        self, hosted: HostedSubscriber, settings: SharedReaderQueueSettings, incarnation: Incarnation
    ) -> list[SharedReaderQueue]:
        topic = reply_topic(settings)
        if not topic:
            return []
        for queue in hosted.queues.values():
            if queue.settings.topic_name == topic:
                queue.deliveries.groups.start_routing()
                return []
        reply = implicit_reply_queue(settings)
        added = self._add(hosted, reply, incarnation)
        hosted.implicit[reply.name] = settings.name
        return [added]

    def _forget(self, hosted: HostedSubscriber, queue: SharedReaderQueue) -> None:
        del hosted.queues[queue.settings.name]
        del self.queues[queue.name]
        hosted.implicit.pop(queue.settings.name, None)
        self._outbox.agenda.forget(queue)
        self.shut(hosted.participant, queue)

    def _current(self, participant: DomainParticipantSettings) -> DomainParticipantSettings:
        hosted = (each for each in self.subscribers.values() if each.participant == participant.name)
        return replace(participant, subscribers=tuple(each.current_settings() for each in hosted))


def _check(hosted: HostedSubscriber, settings: SharedReaderQueueSettings) -> None:
    """Check a new queue's name, topic and dead-letter queue against the others of its subscriber [QS 2.3, 2.12].

    Raises:
        Refused: the message states the conflict.
    """
    name, siblings, where = settings.name, hosted.queues, f"{hosted.participant}/{hosted.settings.name}"
    if name in siblings:
        raise Refused(f"{where} has a queue {name!r} already", remedy="Choose another name.")
    for sibling in siblings.values():
        if sibling.settings.topic_name == settings.topic_name:
            raise Refused(
                f"{where} has a queue of topic {settings.topic_name!r} already: {sibling.settings.name!r}",
                remedy="A topic names one queue of a subscriber; use another subscriber.",
            )
        if settings.is_dead_letter and sibling.settings.is_dead_letter:
            raise Refused(
                f"{where} has a dead-letter queue already: {sibling.settings.name!r}", remedy="One is allowed."
            )
    if not settings.dead_letter_queue:
        return
    if settings.is_dead_letter:
        raise Refused(
            f"{name!r} is a dead-letter queue, which cannot have a dead-letter queue of its own",
            remedy="Remove its dead_letter_queue.",
        )
    target = siblings.get(settings.dead_letter_queue)
    if target is None or not target.settings.is_dead_letter:
        raise Refused(
            f"{settings.dead_letter_queue!r} is not a dead-letter queue of {where}",
            remedy="Name the subscriber's dead_letter_shared_reader_queue.",
        )
    if target.is_shut:
        raise Refused(f"{settings.dead_letter_queue!r} is being deleted", remedy="Name another, or none.")


def _check_replication(hosted: HostedSubscriber, settings: SharedReaderQueueSettings) -> None:
    """Check that a queue and its dead-letter queue can form one replication group: one log, one master, one quorum.

    Raises:
        Refused: only one of the two is replicated, or their settings of replication differ.
    """
    if not settings.dead_letter_queue:
        return
    target = hosted.queues[settings.dead_letter_queue].settings
    where = f"{hosted.participant}/{hosted.settings.name}"
    own, other = (
        (each.replication.enabled, each.replication.queue_instances, each.persistence.kind)
        for each in (settings, target)
    )
    if (settings.replication.enabled or target.replication.enabled) and own != other:
        raise Refused(
            f"{where}: {settings.name!r} and its dead-letter queue {target.name!r} are not replicated alike",
            remedy="Give both the same <replication><enabled>, queue_instances and <persistence><kind>: a dead letter "
            "moves in one step.",
        )
