"""How often a world came to a state in which mistakes show: which seeds are worth more is seen by these counts.

What steers the drawing of schedules is finer than the counts: see `Moments.features`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from qsctl.core.high_availability.roles import Role, RoleChanged
from qsctl.core.messages import Write
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
    ELECTED_WITH_OLDER_ENTRIES = "a master with entries of older epochs that are not committed"
    ELECTED_WITH_CHANGED_MEMBERS = "a master while a change of the members is not committed"
    ELECTED_AMONG_VERSIONS = "a master of members of several versions"
    TWO_MASTERS = "a master beside one of an older epoch"
    RESTARTED_IN_ELECTION = "a member that starts during an election"
    RESTARTED_AFTER_VOTE = "a member that starts in an epoch whose master it does not know"
    RESTARTED_AHEAD = "a member that starts with entries of an epoch that no other has"
    OLDER_AT_QUORUM = "entries of an older epoch at a quorum before one of the master's own"
    CHANGE_IN_PROGRESS = "a master with a change of the members that is not committed"
    REFUSED = "a refusal by all members"


_NAMES: re.Pattern[str] = re.compile(r"[\w-]*\d[\w-]*")
"""Names and numbers in the reason for a change of role."""


class Moments(Observer):
    """Counts, as things happen.

    Args:
        world: whose.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._roles: dict[tuple[int, str], Role] = {}
        self.counts: Counter[Moment] = Counter()
        self._pending: dict[tuple[int, str], Moment | None] = {}
        """What waits for a quorum at each master."""
        self._latest = ""
        self._passages: set[str] = set()

    @property
    def features(self) -> set[str]:
        """What distinguishes this history from others: which moment followed which, the orders of magnitude of their
        counts, and the reasons for which roles changed.
        """
        return self._passages | {f"{moment} 2^{count.bit_length()}" for moment, count in self.counts.items()}

    def _meet(self, moment: Moment) -> None:
        self.counts[moment] += 1
        self._passages.add(f"{self._latest} > {moment}")
        self._latest = moment

    def changed(self, service: int, change: RoleChanged) -> None:
        """Look at a change of role."""
        key = (service, change.stream)
        former, self._roles[key] = self._roles.get(key), change.role
        self._passages.add(f"{former} > {change.role}: {_NAMES.sub('*', change.reason)}")
        if change.role is former:
            return
        if change.role is Role.MASTER:
            self._elected(service, change.stream)
        elif former is Role.MASTER:
            replica = self._world.services[service].replicas.get(change.stream)
            if replica is not None and replica.log.last_index > replica.log.commit_index:
                self._meet(Moment.DEPOSED_AT_WORK)
        elif former is Role.LEARNER and change.role is Role.SLAVE:
            self._meet(Moment.VOTE_REGAINED)
            if not change.master and any(not each.is_up for each in self._world.services.values()):
                self._meet(Moment.FORMED_WITHOUT_ONE)

    def _elected(self, service: int, stream: str) -> None:
        services = self._world.services
        hosting = [each.replicas[stream] for each in services.values() if stream in each.replicas]
        if len({each.log.last_index for each in hosting}) > 1:
            self._meet(Moment.UNEVEN_LOGS)
        if sum(each.is_master for each in hosting) > 1:
            self._meet(Moment.TWO_MASTERS)
        if self._world.incarnations.of(service, stream) != OF_THE_FILE:
            self._meet(Moment.ELECTED_AFTER_CREATION)
        if len({each.version for each in services.values() if each.is_up}) > 1:
            self._meet(Moment.ELECTED_AMONG_VERSIONS)
        replica = services[service].replicas.get(stream)
        if replica is not None and replica.log.commit_index < replica.clients.own_epoch_index - 1:
            self._meet(Moment.ELECTED_WITH_OLDER_ENTRIES)
        if replica is not None and replica.log.commit_index < replica.log.members_index:
            self._meet(Moment.ELECTED_WITH_CHANGED_MEMBERS)

    def started(self, service: int) -> None:
        """Look what a service comes back with."""
        for key in [key for key in self._roles if key[0] == service]:
            del self._roles[key]
        if Role.CANDIDATE in self._roles.values():
            self._meet(Moment.RESTARTED_IN_ELECTION)
        for stream, replica in self._world.services[service].replicas.items():
            last, state = replica.log.last, replica.ballot.state
            if state.epoch > last.epoch and not replica.ballot.is_learner and state.vote:
                self._meet(Moment.RESTARTED_AFTER_VOTE)
            hosting = [each.replicas[stream] for each in self._world.services.values() if stream in each.replicas]
            epochs = [each.log.last.epoch for each in hosting if each is not replica]
            if epochs and max(epochs) < last.epoch:
                self._meet(Moment.RESTARTED_AHEAD)
        for queue in self._world.services[service].hosted:
            own = self._world.incarnations.of(service, queue)
            creations = [self._world.incarnations.of(each, queue) for each in self._world.services if each != service]
            if creations and all(each != own for each in creations):
                self._meet(Moment.RETURNED_STALE)

    def stepped(self, service: int) -> None:
        """Look what waits for a quorum at a master."""
        for stream, replica in self._world.services[service].replicas.items():
            moment = None
            if (mastery := replica.mastery) is not None:
                log = replica.log
                if log.commit_index < log.members_index:
                    moment = Moment.CHANGE_IN_PROGRESS
                elif log.commit_index < replica.clients.own_epoch_index - 1:
                    index = mastery.progress.quorum_index(replica.outgoing.durable_index)
                    if log.commit_index < index < replica.clients.own_epoch_index:
                        moment = Moment.OLDER_AT_QUORUM
            if moment is not self._pending.get((service, stream)):
                self._pending[service, stream] = moment
                if moment is not None:
                    self._meet(moment)

    def stored(self, service: int, operations: Sequence[Operation]) -> None:
        """Look at what is done to logs."""
        for operation in operations:
            if isinstance(operation, Truncate):
                self._meet(Moment.TRUNCATION)
            elif isinstance(operation, Install):
                self._meet(Moment.INSTALLATION)

    def lost_majority(self, queue: str, held: object) -> None:
        """Count it."""
        self._meet(Moment.LOST_MAJORITY)

    def refused(self, queue: str, write: Write) -> None:
        """Count it."""
        self._meet(Moment.REFUSED)
