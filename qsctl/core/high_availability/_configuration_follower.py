"""The special shared reader queue of a cluster: its samples are the commands that change the configuration [QS 7.2.1].

Decides: what a replica's log of commands begins with, and that a command is in it once. Its state is that of what is
committed, at the master too: nothing is carried out that could be taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from qsctl.core.high_availability._followed import UNPLAYABLE, Unplayable
from qsctl.core.high_availability._log import LogSnapshot, ReplicatedLog
from qsctl.core.high_availability.cluster_configuration import ClusterConfiguration, Subscribers, with_members
from qsctl.core.messages import Write
from qsctl.core.records import ConfigurationKnown, Enqueued, EpochBegan, QueueRecord
from qsctl.identity import Guid, Incarnation, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds

if TYPE_CHECKING:
    from qsctl.core.high_availability.replica import Replica


class ConfigurationFollower:
    """The follower of the log of commands; see `Followed`. It is the queue itself, too.

    Args:
        name: of the stream.
        member_count: how many members there are.
        own: gives this member's configuration: the beginning of an empty log.
    """

    acknowledges = True
    follows_commit = True
    sends_payloads = True
    """A member may have read a command's body against another file: only the master's reading counts."""

    def __init__(self, name: str, member_count: int, own: Callable[[], Subscribers]) -> None:
        self.name = name
        self.configuration = ClusterConfiguration(name, member_count)
        self.applied_index = 0
        self.sends_ahead = False
        self.replica: Replica | None = None
        """Whose log it follows; set once."""
        self._member_count = member_count
        self._own = own

    @property
    def queues(self) -> Sequence[ConfigurationFollower]:
        """The queue."""
        return (self,)

    @property
    def names(self) -> frozenset[str]:
        """The names that entries can belong to: the stream alone."""
        return frozenset((self.name,))

    @property
    def held(self) -> ConfigurationFollower:
        """The records that it has."""
        return self

    @property
    def context(self) -> ConfigurationFollower:
        """Return how it answers."""
        return self

    def knows(self, identity: SampleIdentity) -> bool:
        """Return whether a command was carried out lately."""
        return identity in self.configuration.outcomes

    def bar(self, _write: Write) -> None:
        """Accept commands of any size: they were read before."""
        return

    def receive(self, now: Nanoseconds, write: Write) -> None:
        """Order a command, as the master's; one that is ordered already changes nothing."""
        replica = self.replica
        assert replica is not None, "it has a replica"
        if write.identity in self.configuration.outcomes or replica.log.uncommitted_index(self.name, write.identity):
            return
        position, payload = replica.log.last_index + 1, write.payload
        if (members := replica.members_of_creations(now)) is not None:
            payload = with_members(payload, members)
        self.record(now, Enqueued(self.name, position, write.identity, now, INFINITE_NS, payload=payload))

    # What follows a log.

    def record(self, now: Nanoseconds, record: QueueRecord) -> None:
        """Put a record into the master's log."""
        assert self.replica is not None, "it has a replica"
        self.replica.append(now, self.replica.log.last_index + 1, (record,))

    def recorded(self, index: int) -> None:
        """Do nothing: what is not committed changes nothing."""

    def forget(self, _now: Nanoseconds) -> None:
        """Know no configuration any more."""
        self.configuration = ClusterConfiguration(self.name, self._member_count)
        self.applied_index = 0

    def begin(self, now: Nanoseconds, base: LogSnapshot) -> None:
        """Take up a snapshot that reaches further; what is committed is never taken back."""
        if base.index <= self.applied_index:
            return
        self.forget(now)
        try:
            self.configuration.install(base.index, tuple(base.records))
        except UNPLAYABLE as error:
            raise Unplayable(f"{type(error).__name__}: {error}") from error
        self.applied_index = base.index

    def roll_back(self, now: Nanoseconds, log: ReplicatedLog, index: int) -> None:
        """Take up a snapshot that reaches further, and follow the log."""
        self.begin(now, log.base)
        self.follow(log, index)

    def follow(self, log: ReplicatedLog, index: int) -> None:
        """Follow up to an entry, but to none that is not committed."""
        for at in range(self.applied_index + 1, min(index, log.commit_index) + 1):
            try:
                self.configuration.play(at, log.entry(at)[1])
            except UNPLAYABLE as error:
                raise Unplayable(f"entry {at}: {type(error).__name__}: {error}") from error
            self.applied_index = at

    def assigned(self) -> dict[str, dict[int, Guid]]:
        """Return nothing: commands are for all members."""
        return {}

    def take_over(self, now: Nanoseconds, index: int, assigned: dict[str, dict[int, Guid]]) -> None:
        """Begin the log with this member's own configuration, where it has no beginning."""
        del assigned
        replica = self.replica
        assert replica is not None, "it has a replica"
        if self.configuration.origin:
            return
        uncommitted = replica.log.records_from(self.applied_index + 1, len(replica.log))
        if not any(isinstance(record, ConfigurationKnown) for record in uncommitted):
            origin = f"{replica.name} {replica.run} {replica.epoch} {index}"
            self.record(now, ConfigurationKnown(self.name, origin, dict(self._own()), {}))

    def pause(self) -> None:
        """Do nothing: commands are in no hurry."""

    def go_on(self, _now: Nanoseconds) -> None:
        """Do nothing."""

    def step_down(self, _now: Nanoseconds, _log: ReplicatedLog) -> list[tuple[str, Write]]:
        """Return nothing: no command waits outside the log."""
        return []

    def be(self, _incarnation: Incarnation) -> None:
        """Do nothing: the configuration is known by its origin."""

    def snapshot(self, epoch: int, incarnation: int) -> tuple[QueueRecord, ...]:
        """Return the records of the configuration, after an entry of this epoch."""
        began = EpochBegan(self.name, epoch, "", flags_all=False, incarnation=Incarnation(incarnation))
        return (began, *self.configuration.snapshot())

    def held_count(self) -> int:
        """Return how many queues and subscribers commands created."""
        return len(self.configuration.created)
