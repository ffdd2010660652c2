"""Elections: the master of each replicated queue, and the samples refused while there is none [QS 7.1.2].

Decides: a write counts as refused once the last replica that it was sent to has answered 0, and as refused before the
first master if that answer was sent before one was elected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from qsctl.core.high_availability.roles import Role, RoleChanged
from qsctl.core.messages import AckResponse, Outbound, Write, WriteAcknowledgment
from qsctl.eventlog.run_folder import ReplicatedQueue
from qsctl.identity import SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.model import Event
from qsctl.sim.world.services.configuration import instance_name
from qsctl.sim.world.services.history import Observer

_Attempt: TypeAlias = tuple[str, SampleIdentity, int]


@dataclass(slots=True)
class _Group:
    """The masters of one replicated stream, and since when it has had none."""

    since_ns: Nanoseconds | None
    """Since when the stream has had no master; None while it has one."""
    masters: set[int] = field(default_factory=set)
    """The present masters; of several, all but one are deposed and have not learned it yet."""
    first_ns: Nanoseconds | None = None
    first_master: str = ""
    elected_count: int = 0
    longest_ns: Nanoseconds = 0


@dataclass(slots=True)
class _Answers:
    """Counts of the answers to the producers of one queue."""

    refused_before: int = 0
    refused_later: int = 0
    first_accepted_ns: Nanoseconds | None = None


class Elections(Observer):
    """A counter of elections and refusals of each replicated queue.

    Args:
        clock: returns the present instant.
        note: called with each election, the elected instance, and the nanoseconds without a master before it.
    """

    def __init__(self, clock: Callable[[], Nanoseconds], note: Callable[[Event, int, int], None]) -> None:
        self._clock = clock
        self._note = note
        self._streams: dict[str, str] = {}
        self._groups: dict[str, _Group] = {}
        self._answers: dict[str, _Answers] = {}
        self._refused_ns: dict[_Attempt, Nanoseconds] = {}
        """The instant at which the latest answer of 0 to this attempt was sent."""

    def watch(self, queue: str, stream: str) -> None:
        """Begin to count for a replicated queue, whose replicas share this stream."""
        self._streams[queue] = stream
        self._answers[queue] = _Answers()
        self._groups.setdefault(stream, _Group(self._clock()))

    def changed(self, service: int, change: RoleChanged) -> None:
        """Count an election, or the loss of a master."""
        group = self._groups.get(change.stream)
        if group is None:
            return
        if change.role is not Role.MASTER:
            self._lose(service, group)
            return
        without_ns = self._end_interval(group)
        group.masters.add(service)
        group.elected_count += 1
        if group.first_ns is None:
            group.first_ns = self._clock()
            group.first_master = instance_name(service)
        self._note(Event.MASTER_ELECTED, service, without_ns)

    def ended(self, service: int) -> None:
        """Remove an ended service from the masters."""
        for group in self._groups.values():
            self._lose(service, group)

    def released(self, service: int, message: Outbound) -> None:
        """Note the instant of an acknowledgment that a replica sends."""
        if not isinstance(message, WriteAcknowledgment):
            return
        answers = self._answers.get(message.queue)
        if answers is None:
            return
        if message.response == AckResponse.REJECTED:
            self._refused_ns[message.queue, message.identity, message.attempt] = self._clock()
        elif answers.first_accepted_ns is None:
            answers.first_accepted_ns = self._clock()

    def refused(self, queue: str, write: Write) -> None:
        """Count an attempt that every replica has answered with 0, before or after the first master."""
        answers = self._answers.get(queue)
        if answers is None:
            return
        first_ns = self._groups[self._streams[queue]].first_ns
        left_ns = self._refused_ns.pop((queue, write.identity, write.attempt))
        if first_ns is None or left_ns < first_ns:
            answers.refused_before += 1
        else:
            answers.refused_later += 1

    def figures(self, replica_count: int, names: Mapping[str, str]) -> tuple[ReplicatedQueue, ...]:
        """Return one row of counts per replicated queue, in the order of `watch`.

        Args:
            replica_count: number of replicas of each queue.
            names: the queues' names in the run's other tables, by their full names.
        """
        rows = []
        for queue, stream in self._streams.items():
            group, answers = self._groups[stream], self._answers[queue]
            open_ns = 0 if group.since_ns is None or group.first_ns is None else self._clock() - group.since_ns
            rows.append(
                ReplicatedQueue(
                    queue=names[queue],
                    replicas=replica_count,
                    first_master=group.first_master,
                    first_master_ns=group.first_ns,
                    refused_before=answers.refused_before,
                    first_accepted_ns=answers.first_accepted_ns,
                    refused_later=answers.refused_later,
                    elected=group.elected_count,
                    longest_without_master_ns=max(group.longest_ns, open_ns),
                )
            )
        return tuple(rows)

    def _end_interval(self, group: _Group) -> Nanoseconds:
        """End the interval without a master; return its length, 0 if there was a master."""
        if group.since_ns is None:
            return 0
        without_ns = self._clock() - group.since_ns
        group.since_ns = None
        if group.first_ns is not None:
            group.longest_ns = max(group.longest_ns, without_ns)
        return without_ns

    def _lose(self, service: int, group: _Group) -> None:
        if service in group.masters:
            group.masters.discard(service)
            if not group.masters:
                group.since_ns = self._clock()
