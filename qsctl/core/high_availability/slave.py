"""How a replica follows its master's log.

Decides: what of a master's frame goes into the log, what of the log is taken back for it, and what is confirmed. A
confirmation leaves once the entries are durable, with their payloads. What cannot be of this group's log is refused
before anything changes; where an entry that is said to be committed cannot be played, this replica alone falls back: it
has no vote until a master has given it everything anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qsctl.core.high_availability.followed import Unplayable
from qsctl.core.high_availability.frames import Confirmed, Entries, Snapshot
from qsctl.core.high_availability.log import EMPTY, LogSnapshot
from qsctl.core.records import ReplicaRejoined
from qsctl.instant import Nanoseconds

if TYPE_CHECKING:
    from qsctl.core.high_availability.replica import Replica


class Slave:
    """One replica's log as that of a slave.

    Args:
        replica: whose log it is.
    """

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def extend(self, now: Nanoseconds, entries: Entries) -> str:
        """Make the log agree with the master's, as far as it was sent and its payloads are here.

        Returns:
            Why these cannot be entries of this group's log, for people; empty: they can.
        """
        replica = self._replica
        log, first_index = replica.log, entries.previous_index + 1
        if foreign := {record.queue for record in entries.records} - replica.follower.names:
            return f"its entries are of {min(foreign)!r}, which is not in this replication group"
        if replica.ballot.awaits_beginning:
            if entries.previous_index:
                self.confirm(entries, 0, agreed=False)
                return ""
            self._begin(now, EMPTY)
        if not log.agrees(entries.previous_index, entries.previous_epoch):
            self.confirm(entries, log.last_before(entries.previous_index), agreed=False)
            return ""
        conflict = log.first_conflict(first_index, entries.records, entries.previous_epoch)
        if conflict <= log.commit_index:
            return f"its entry {conflict} contradicts the one that is committed"
        lacking = entries.records[conflict - first_index :]
        records, passed_on = replica.producers.staging.take(lacking)
        if records:
            truncates = conflict <= log.last_index
            if truncates:
                log.truncate(conflict)
                replica.clients.forget_from(conflict)
            log.append(records)
            replica.outgoing.write_records(conflict, records, truncates=truncates)
            for place in passed_on:
                replica.producers.accept(records[place], conflict + place)
        matched = conflict - 1 + len(records)
        if not self._commit(now, min(entries.commit_index, matched)):
            self.confirm(entries, 0, agreed=False)
            return ""
        lacks_payload = len(records) < len(lacking)
        self.confirm(entries, max(matched, log.commit_index), agreed=True, lacks_payload=lacks_payload)
        return ""

    def install(self, now: Nanoseconds, frame: Snapshot) -> str:
        """Begin again from the master's snapshot, if it reaches further.

        Returns:
            Why it cannot be a snapshot of this group's log, for people; empty: it can.
        """
        replica = self._replica
        log, base = replica.log, LogSnapshot(frame.index, frame.index_epoch, frame.records)
        if foreign := {record.queue for record in frame.records} - replica.follower.names:
            return f"its snapshot is of {min(foreign)!r}, which is not in this replication group"
        is_held = frame.index <= log.last_index and log.agrees(frame.index, frame.index_epoch)
        if is_held and not replica.ballot.awaits_beginning:
            if not self._commit(now, frame.index):  # what is behind it was confirmed, perhaps, and must stay
                self.confirm(frame, 0, agreed=False)
                return ""
        elif frame.index > log.commit_index or replica.ballot.awaits_beginning:
            applied_index = replica.follower.applied_index
            try:
                self._begin(now, base)
            except Unplayable as error:
                replica.rebuild(now, applied_index)
                return f"its snapshot does not fit: {error}"
        self.confirm(frame, log.commit_index, agreed=True)
        return ""

    def _begin(self, now: Nanoseconds, base: LogSnapshot) -> None:
        replica = self._replica
        awaits_beginning = replica.ballot.awaits_beginning
        if awaits_beginning:
            replica.follower.forget(now)
        replica.follower.begin(now, base)
        replica.log.install(base)
        replica.clients.forget_from(0)
        replica.outgoing.write_snapshot(base.index, base.records, installs=True)
        if awaits_beginning:
            replica.ballot.lose_vote()
            replica.outgoing.write_hard_state(replica.ballot.state)

    def confirm(
        self, frame: Entries | Snapshot, match_index: int, *, agreed: bool, lacks_payload: bool = False
    ) -> None:
        """Report how far the log is durable and agrees, or where it may."""
        replica = self._replica
        confirmed = Confirmed(
            replica.stream,
            replica.name,
            replica.epoch,
            replica.run,
            match_index,
            frame.sent_at_ns,
            agreed,
            lacks_payload,
            replica.ballot.is_learner,
            replica.incarnation,
        )
        replica.outgoing.send(frame.sender, confirmed, rests_on_writes=True)

    def _commit(self, now: Nanoseconds, index: int) -> bool:
        """Let the queues follow to what the master says is committed; false: they cannot, and the log is void."""
        replica = self._replica
        log = replica.log
        if index <= log.commit_index:
            return True
        records = log.commit(index)
        replica.agree()
        try:
            replica.follower.follow(log, index)
        except Unplayable as error:
            replica.fall_back(now, str(error))
            return False
        replica.clients.commit(index)
        for record in [each for each in records if type(each) is ReplicaRejoined]:
            if record.replica == replica.name:
                replica.rejoin(now, record)
        replica.compaction.compact(index)
        return True
