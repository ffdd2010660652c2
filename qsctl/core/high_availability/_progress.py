"""A master's record of the other replicas of its group, and of the entries that a quorum has.

Decides: how far the log is committed: only an entry of the master's own epoch commits by counting, and those before it
with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from qsctl.core.high_availability._log import ReplicatedLog
from qsctl.instant import Nanoseconds

ENTRIES_MAX: Final = 512
"""Entries of one frame."""

UNCONFIRMED_MAX: Final = 8 * ENTRIES_MAX
"""Entries that are sent ahead of a replica's confirmations."""


def quorum_of(replica_count: int) -> int:
    """Return how many replicas are a quorum: the lowest number higher than half [QS 7.1.1.2]."""
    return replica_count // 2 + 1


class Peer:
    """One other replica, as the master knows it."""

    __slots__ = (
        "heard_at_ns",
        "is_learner",
        "is_probed",
        "match_index",
        "name",
        "next_index",
        "rejoins_at_index",
        "run",
        "snapshot_sent_at_ns",
        "wants_payloads_to",
    )

    def __init__(self, name: str, next_index: int, now: Nanoseconds) -> None:
        self.name = name
        self.match_index = 0
        """It holds the log durably up to here."""
        self.next_index = next_index
        self.is_probed = True
        """Whether it is not known yet where the logs agree: one frame at a time."""
        self.heard_at_ns = now
        """When the latest frame was sent that it confirmed: since then it waits for another sign of the master."""
        self.run = 0
        self.is_learner = False
        self.rejoins_at_index = 0
        """The entry that gives a learner its vote back; 0: not appended."""
        self.wants_payloads_to = 0
        """Entries up to here go to it with their payloads."""
        self.snapshot_sent_at_ns: Nanoseconds = -1

    def begin_again(self, run: int) -> None:
        """Know nothing of it: it lost its log."""
        self.run = run
        self.is_learner = True
        self.match_index = self.rejoins_at_index = self.wants_payloads_to = 0
        self.next_index = 1
        self.is_probed = True
        self.snapshot_sent_at_ns = -1


class Progress:
    """The other replicas of a master.

    Args:
        names: of the others.
        quorum: how many replicas, the master among them, commit an entry.
        next_index: the master's first own entry.
        now: the instant of its election.
    """

    def __init__(self, names: Iterable[str], quorum: int, next_index: int, now: Nanoseconds) -> None:
        self._peers = {name: Peer(name, next_index, now) for name in names}
        self._quorum = quorum

    def __iter__(self) -> Iterator[Peer]:
        return iter(self._peers.values())

    def __getitem__(self, name: str) -> Peer:
        return self._peers[name]

    def quorum_index(self, own_index: int) -> int:
        """Return the highest index that a quorum of voters holds; `own_index` is durable at the master."""
        held = sorted([own_index, *(each.match_index for each in self if not each.is_learner)], reverse=True)
        return held[self._quorum - 1] if len(held) >= self._quorum else 0

    def committable(self, log: ReplicatedLog, own_index: int, epoch: int) -> int:
        """Return how far the log is committed now."""
        index = self.quorum_index(own_index)
        # An entry of an older epoch at a quorum may still be replaced; one of this epoch above it commits both.
        return index if index > log.commit_index and log.epoch_at(index) == epoch else log.commit_index

    def quorum_heard_at_ns(self) -> Nanoseconds:
        """Return the latest instant since which a quorum confirmed something, the master itself being one."""
        heard = sorted((each.heard_at_ns for each in self if not each.is_learner), reverse=True)
        wanted = self._quorum - 1
        if not wanted:
            return 2**62
        return heard[wanted - 1] if len(heard) >= wanted else -1
