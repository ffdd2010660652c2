"""The creations of a queue that each service has, and the best of its logs that are left on their disks.

Decides nothing about services. Rules need it, since a queue's name does not identify it: it may have been deleted and
created again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from qsctl.core.high_availability.ballot import NEW_MEMBER, NO_LOG, NO_VOTER
from qsctl.core.records import Enqueued, EpochBegan, Removed
from qsctl.identity import SampleIdentity
from qsctl.sim.world.programs.administrator import WorldAdministrator
from qsctl.sim.world.services.stored import StreamFile

if TYPE_CHECKING:
    from qsctl.sim.world.services.service import SimulatedService

OF_THE_FILE = 0
"""The creation of a queue that a service has from its configuration file."""


class Incarnations:
    """The creation of a queue that each service's replica belongs to.

    Args:
        services: by number.
        administrator: its commands create queues.
    """

    def __init__(self, services: Mapping[int, SimulatedService], administrator: WorldAdministrator) -> None:
        self._services = services
        self._administrator = administrator
        self._known: dict[tuple[str, int], int] = {}

    def of(self, service: int, queue: str) -> int:
        """Return the incarnation of a queue's creation at a service; `queue` is its full name or that of its stream.

        All incarnations seen before the first requested deletion count as one, since no two of them may have a master
        each.
        """
        process = self._services[service].process
        replica = None if process is None else process.replica(queue)
        incarnation = 0 if replica is None else abs(replica.incarnation)
        key = (queue, incarnation)
        if key not in self._known:
            is_of_file = self._administrator.part_at(queue, self._administrator.now)[0] == 0
            self._known[key] = OF_THE_FILE if is_of_file else incarnation
        return self._known[key]


def best_left(logs: Iterable[StreamFile | None], quorum: int) -> StreamFile | None:
    """Return the log with the most recent entry, if fewer than a quorum of logs are left; None if a quorum is left.

    Args:
        logs: the log of each service; None if it has none.
        quorum: number of logs that a group needs.
    """
    left = [(_creation_of(log), log) for log in logs if log is not None and is_log(log)]
    if not left:
        return StreamFile()
    which, count = Counter(which for which, _ in left).most_common(1)[0]
    if count >= quorum:
        return None
    return max((log for each, log in left if each == which), key=_last)


def is_log(log: StreamFile) -> bool:
    """Return whether a stored stream is the log of a replica that has a vote."""
    return log.last_index > 0 and log.hard_state.vote not in {NO_VOTER, NO_LOG, NEW_MEMBER}


def held_in(log: StreamFile) -> frozenset[SampleIdentity]:
    """Return the samples that a log enqueues and does not remove, dead letters excepted."""
    held: dict[tuple[str, int], SampleIdentity] = {}
    dead: set[SampleIdentity] = set()
    for record in log.load():
        if isinstance(record, Enqueued):
            held[record.queue, record.position] = record.identity
            if record.dead_letter_reason is not None:
                dead.add(record.identity)
        elif isinstance(record, Removed):
            held.pop((record.queue, record.position), None)
    return frozenset(held.values()) - dead


def _creation_of(log: StreamFile) -> int:
    if log.hard_state.incarnation:
        return log.hard_state.incarnation
    return next((each.incarnation for each in reversed(log.load()) if isinstance(each, EpochBegan)), 0)


def _last(log: StreamFile) -> tuple[int, int]:
    """Return the sort key of a log: the epoch of its last entry, and its last index."""
    epochs = [record.epoch for record in log.load() if isinstance(record, EpochBegan)]
    return (epochs[-1] if epochs else 0, log.last_index)
