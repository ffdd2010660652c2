"""Which sessions can be worked on side by side [QS 3.3.9].

Decides: what must stay together. A sample goes to its dead letters in one step, and a reply topic declared as a queue
stands in for the implicit reply queue, so the sessions of such queues are one group. Everything else is independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from qsctl.core.queue.hosting import reply_topic
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import ServiceSettings, SharedSubscriberSettings

SessionKey: TypeAlias = tuple[str, str, str]
"""Domain participant, shared subscriber, session."""


@dataclass(frozen=True)
class SessionGroup:
    """Sessions that share a process."""

    sessions: frozenset[SessionKey]

    @property
    def name(self) -> str:
        """For people: the sessions as `participant/subscriber/session`."""
        return " + ".join("/".join(key) for key in sorted(self.sessions))


def session_groups(settings: ServiceSettings) -> tuple[SessionGroup, ...]:
    """The groups of a configuration, in its order."""
    group_of: dict[SessionKey, set[SessionKey]] = {}
    for participant in settings.participants:
        for subscriber in participant.subscribers:
            key = _keys(participant.name, subscriber.name)
            for session in subscriber.sessions:
                group_of[key(session.name)] = {key(session.name)}
            for queue in subscriber.queues:
                group_of.setdefault(key(queue.session), {key(queue.session)})
            for one, other in _tied(subscriber.queues):
                joined = group_of[key(one.session)] | group_of[key(other.session)]
                group_of.update(dict.fromkeys(joined, joined))
    return tuple(SessionGroup(each) for each in dict.fromkeys(map(frozenset, group_of.values())))


def part_of(settings: ServiceSettings, group: SessionGroup) -> ServiceSettings:
    """The configuration with the queues of one group only; participants and subscribers all stay."""

    def subscriber_part(participant: str, subscriber: SharedSubscriberSettings) -> SharedSubscriberSettings:
        key = _keys(participant, subscriber.name)
        return replace(
            subscriber, queues=tuple(queue for queue in subscriber.queues if key(queue.session) in group.sessions)
        )

    return replace(
        settings,
        participants=tuple(
            replace(
                participant,
                subscribers=tuple(subscriber_part(participant.name, each) for each in participant.subscribers),
            )
            for participant in settings.participants
        ),
    )


def _keys(participant: str, subscriber: str) -> Callable[[str], SessionKey]:
    return lambda session: (participant, subscriber, session)


def _tied(
    queues: Iterable[SharedReaderQueueSettings],
) -> Iterator[tuple[SharedReaderQueueSettings, SharedReaderQueueSettings]]:
    """Pairs of queues that must be in one process."""
    by_name = {queue.name: queue for queue in queues}
    by_topic = {queue.topic_name: queue for queue in by_name.values()}
    for queue in by_name.values():
        if queue.dead_letter_queue in by_name:
            yield queue, by_name[queue.dead_letter_queue]
        replies = reply_topic(queue)
        if replies and replies in by_topic:
            yield queue, by_topic[replies]
