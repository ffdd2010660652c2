"""The assignment of queues to processes, and the commands that change it [QS 3.3.9 and 5.4].

Decides: the process of a new queue: that of its dead-letter queue, else that of its session, else, in a shared
subscriber that was created at run time, the process with the fewest queues, which gets all of that subscriber's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from qsctl.core.admin.command import Command, CreateSubscriber
from qsctl.core.messages import QueueName
from qsctl.core.records import QueueChanged, QueueCreated, QueueDeleted, Record, SubscriberCreated, SubscriberDeleted
from qsctl.core.settings import ServiceSettings
from qsctl.service.sessions.groups import SessionGroup, SessionKey, part_of

ProcessIndex: TypeAlias = int


class Placement:
    """The process of each queue. Processes are identified by their index in the list of groups."""

    def __init__(self, settings: ServiceSettings, groups: Sequence[SessionGroup]) -> None:
        self._everywhere = tuple(range(len(groups)))
        self._by_session: dict[SessionKey, ProcessIndex] = {
            key: index for index, group in enumerate(groups) for key in group.sessions
        }
        self._by_queue: dict[QueueName, ProcessIndex] = {}
        for index, group in enumerate(groups):
            for participant in part_of(settings, group).participants:
                for subscriber in participant.subscribers:
                    self._put(index, participant.name, subscriber.name, [queue.name for queue in subscriber.queues])

    def holder(self, queue: QueueName) -> ProcessIndex | None:
        """Return the process of a queue, implicit reply queues included, or None."""
        found = self._by_queue.get(queue)
        return self._by_queue.get(queue.removesuffix("Reply")) if found is None else found

    def holders(self) -> set[ProcessIndex]:
        """Return the processes that hold queues."""
        return set(self._by_queue.values())

    def follow(self, command: Command, records: Iterable[Record]) -> dict[ProcessIndex, Command]:
        """Apply a change that was made; return the command for each process concerned."""
        commands: dict[ProcessIndex, Command] = {}
        for record in records:
            match record:
                case QueueCreated(participant, subscriber, settings):
                    index = self._by_queue.get(f"{participant}/{subscriber}/{settings.dead_letter_queue}")
                    if index is None:
                        index = self._by_session.get((participant, subscriber, settings.session), 0)
                    self._put(index, participant, subscriber, [settings.name])
                    commands[index] = command
                case QueueDeleted(participant, subscriber, name):
                    commands[self._by_queue.pop(f"{participant}/{subscriber}/{name}")] = command
                case QueueChanged(participant, subscriber, settings):
                    commands[self._by_queue[f"{participant}/{subscriber}/{settings.name}"]] = command
                case SubscriberCreated(participant, settings):
                    assert isinstance(command, CreateSubscriber)
                    counts = Counter(self._by_queue.values())
                    index = min(self._everywhere, key=lambda each: counts[each])
                    for session in settings.sessions:
                        self._by_session[participant, settings.name, session.name] = index
                    self._put(index, participant, settings.name, [queue.name for queue in settings.queues])
                    empty = CreateSubscriber(command.participant, replace(command.settings, queues=()))
                    commands = {each: command if each == index else empty for each in self._everywhere}
                case SubscriberDeleted(participant, subscriber):
                    inside = f"{participant}/{subscriber}/"
                    self._by_queue = {name: at for name, at in self._by_queue.items() if not name.startswith(inside)}
                    commands = dict.fromkeys(self._everywhere, command)
                case _:
                    pass
        return commands

    def _put(self, index: ProcessIndex, participant: str, subscriber: str, queues: Iterable[str]) -> None:
        self._by_queue.update({f"{participant}/{subscriber}/{queue}": index for queue in queues})
