"""The compaction of a group's log: when the state of its queues replaces the entries that led to it.

Decides: how many entries are kept in memory, and which state. A slave's queues are in the committed state; a master's
are ahead of it, so that their state is captured and used once the log is committed up to there, and the present
replicas need nothing before it: a snapshot of everything costs more than the entries that a replica is behind. Nothing
is written then: the files contain the entries until they are compacted for their own length, to what is in memory.
"""

from __future__ import annotations

from typing import Final

from qsctl.core.high_availability._followed import Followed
from qsctl.core.high_availability._log import LogSnapshot, ReplicatedLog

COMPACTED_OVER_COUNT: Final = 16_384
"""Entries that a log keeps before it is compacted, or twice what the queues hold if that is more."""

COMPACTED_OVER_BYTES: Final = 64 * 1024 * 1024
"""Bound on the payload octets of kept entries: all of them are in memory."""

KEPT_FOR_OTHERS_TIMES: Final = 4
"""Multiple of the kept entries for the sake of a replica that is present and behind."""


class ReplicaCompaction:
    """The compaction of one replica's log.

    Args:
        log: what is compacted.
        follower: the queues.
        over_count: entries that are kept.
    """

    def __init__(self, log: ReplicatedLog, follower: Followed, over_count: int) -> None:
        self._log = log
        self._follower = follower
        self._over_count = over_count
        self._over_bytes = COMPACTED_OVER_BYTES
        """Octets of payload, as the log counts them, with which it is compacted next."""
        self._capture: LogSnapshot | None = None

    def compact(self, index: int) -> None:
        """Compact the log up to a committed entry, in whose state the queues are, if that is worth it."""
        if self._is_worth_it(index):
            self._replace(self._snapshot(index))

    def capture(self) -> None:
        """Keep the state of a master's queues, which is that of the last entry."""
        if self._capture is None and self._is_worth_it(self._log.last_index):
            self._capture = self._snapshot(self._log.last_index)

    def use_capture(self, needed_index: int) -> None:
        """Compact the log up to the captured state, if it is committed and no entry before `needed_index` is needed."""
        if self._capture is None or self._capture.index > self._log.commit_index:
            return
        if self._capture.index < needed_index or len(self._log) > KEPT_FOR_OTHERS_TIMES * self._over_count:
            self._replace(self._capture)
            self._capture = None

    def forget_capture(self) -> None:
        """Drop the captured state: the replica is not the master any more, and it may never be committed."""
        self._capture = None

    def _is_worth_it(self, index: int) -> bool:
        count = index - self._log.base.index
        is_long = count > self._over_count or self._log.appended_bytes > self._over_bytes
        return is_long and count > 2 * self._follower.held_count()

    def _snapshot(self, index: int) -> LogSnapshot:
        epoch = self._log.epoch_at(index)
        self._over_bytes = self._log.appended_bytes + COMPACTED_OVER_BYTES
        began, *others = self._follower.snapshot(epoch, self._log.incarnation_at(index))
        members = self._log.members_at(index)
        return LogSnapshot(index, epoch, (began, *others) if members is None else (began, members, *others))

    def _replace(self, snapshot: LogSnapshot) -> None:
        self._log.compact(snapshot.index, snapshot.records)
