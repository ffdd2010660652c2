"""How often a world came to a state in which mistakes show: which seeds are worth more is seen by these counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from qsctl.core.high_availability.roles import Role, RoleChanged
from qsctl.sim.world.services.history import Observer
from qsctl.sim.world.services.incarnations import OF_THE_FILE
from qsctl.sim.world.services.stored import Install, Operation, Truncate

if TYPE_CHECKING:
    from qsctl.sim.world._world import World


class Moment(StrEnum):
    """A state that is counted."""

    UNEVEN_LOGS = "uneven logs at an election"
    DEPOSED_AT_WORK = "a deposed master with entries in progress"
    TRUNCATION = "a truncation"
    INSTALLATION = "a snapshot in the place of a log"
    VOTE_REGAINED = "a learner that votes again"
    FORMED_WITHOUT_ONE = "a group that forms while a member is down"
    RETURNED_STALE = "a member that returns with a deleted queue"
    LOST_MAJORITY = "a group with less than a quorum of its logs"
    ELECTED_AFTER_CREATION = "a master of a queue that was created by a command"


class Moments(Observer):
    """Counts, as things happen.

    Args:
        world: whose.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._roles: dict[tuple[int, str], Role] = {}
        self.counts: Counter[Moment] = Counter()

    def changed(self, service: int, change: RoleChanged) -> None:
        """Look at a change of role."""
        key = (service, change.stream)
        former, self._roles[key] = self._roles.get(key), change.role
        if change.role is former:
            return
        if change.role is Role.MASTER:
            self.counts[Moment.UNEVEN_LOGS] += len(set(self._lengths(change.stream))) > 1
            which = self._world.incarnations.of(service, change.stream)
            self.counts[Moment.ELECTED_AFTER_CREATION] += which != OF_THE_FILE
        elif former is Role.MASTER:
            replica = self._world.services[service].replicas.get(change.stream)
            if replica is not None and replica.log.last_index > replica.log.commit_index:
                self.counts[Moment.DEPOSED_AT_WORK] += 1
        elif former is Role.LEARNER and change.role is Role.SLAVE:
            self.counts[Moment.VOTE_REGAINED] += 1
            if not change.master and any(not each.is_up for each in self._world.services.values()):
                self.counts[Moment.FORMED_WITHOUT_ONE] += 1

    def started(self, service: int) -> None:
        """Look what a service comes back with."""
        for key in [key for key in self._roles if key[0] == service]:
            del self._roles[key]
        for queue in self._world.services[service].hosted:
            own = self._world.incarnations.of(service, queue)
            others = [self._world.incarnations.of(each, queue) for each in self._world.services if each != service]
            if others and all(each != own for each in others):
                self.counts[Moment.RETURNED_STALE] += 1

    def stored(self, service: int, operations: Sequence[Operation]) -> None:
        """Look at what is done to logs."""
        for operation in operations:
            if isinstance(operation, Truncate):
                self.counts[Moment.TRUNCATION] += 1
            elif isinstance(operation, Install):
                self.counts[Moment.INSTALLATION] += 1

    def lost_majority(self, queue: str, held: object) -> None:
        """Count it."""
        self.counts[Moment.LOST_MAJORITY] += 1

    def _lengths(self, stream: str) -> list[int]:
        hosting = [each.replicas for each in self._world.services.values()]
        return [replicas[stream].log.last_index for replicas in hosting if stream in replicas]
