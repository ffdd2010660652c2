"""The division of sessions into groups that can run in parallel [QS 3.3.9].

Decides: which sessions must share a process. A sample is dead-lettered in one step, and a reply topic declared as a
queue replaces the implicit reply queue, so the sessions of such queues are one group. All others are independent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from qsctl.core.queue.hosting import tied_queues
from qsctl.core.settings import ServiceSettings, with_queues

SessionKey: TypeAlias = tuple[str, str, str]
"""Domain participant, shared subscriber, session."""


@dataclass(frozen=True)
class SessionGroup:
    """Sessions that share a process."""

    sessions: frozenset[SessionKey]

    @property
    def name(self) -> str:
        """The name for people: the sessions as `participant/subscriber/session`."""
        return " + ".join("/".join(key) for key in sorted(self.sessions))


def session_groups(settings: ServiceSettings) -> tuple[SessionGroup, ...]:
    """Return the groups of a configuration, in its order."""
    group_of: dict[SessionKey, set[SessionKey]] = {}
    for participant in settings.participants:
        for subscriber in participant.subscribers:
            key = _keys(participant.name, subscriber.name)
            for session in subscriber.sessions:
                group_of[key(session.name)] = {key(session.name)}
            for queue in subscriber.queues:
                group_of.setdefault(key(queue.session), {key(queue.session)})
            for one, other in tied_queues(subscriber.queues):
                joined = group_of[key(one.session)] | group_of[key(other.session)]
                group_of.update(dict.fromkeys(joined, joined))
    return tuple(SessionGroup(each) for each in dict.fromkeys(map(frozenset, group_of.values())))


def part_of(settings: ServiceSettings, group: SessionGroup) -> ServiceSettings:
    """Return the configuration with the queues of one group only; all participants and subscribers are kept."""
    return with_queues(
        settings,
        lambda participant, subscriber, queue: (
            queue if (participant.name, subscriber.name, queue.session) in group.sessions else None
        ),
    )


def _keys(participant: str, subscriber: str) -> Callable[[str], SessionKey]:
    return lambda session: (participant, subscriber, session)
