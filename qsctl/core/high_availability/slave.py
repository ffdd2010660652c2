"""How a replica follows its master's log.

Decides: what of a master's frame goes into the log, what of the log is taken back for it, and what is confirmed. A
confirmation leaves once the entries are durable, with their payloads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qsctl.core.high_availability.frames import Confirmed, Entries, Snapshot
from qsctl.core.high_availability.log import LogSnapshot
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

    def extend(self, now: Nanoseconds, entries: Entries) -> None:
        """Make the log agree with the master's, as far as it was sent and its payloads are here."""
        replica = self._replica
        log, first_index = replica.log, entries.previous_index + 1
        if not log.agrees(entries.previous_index, entries.previous_epoch):
            self.confirm(entries, log.last_before(entries.previous_index), agreed=False)
            return
        conflict = log.first_conflict(first_index, entries.records, entries.previous_epoch)
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
        self._commit(now, min(entries.commit_index, matched))
        lacks_payload = len(records) < len(lacking)
        self.confirm(entries, max(matched, log.commit_index), agreed=True, lacks_payload=lacks_payload)

    def install(self, now: Nanoseconds, frame: Snapshot) -> None:
        """Begin again from the master's snapshot, if it reaches further."""
        replica = self._replica
        if frame.index <= replica.log.last_index and replica.log.agrees(frame.index, frame.index_epoch):
            self._commit(now, frame.index)  # what is behind it was confirmed, perhaps, and must stay
        elif frame.index > replica.log.commit_index:
            replica.log.install(LogSnapshot(frame.index, frame.index_epoch, frame.records))
            replica.clients.forget_from(0)
            replica.outgoing.write_snapshot(frame.index, frame.records, installs=True)
            replica.follower.roll_back(now, replica.log)
        self.confirm(frame, replica.log.commit_index, agreed=True)

    def confirm(
        self, frame: Entries | Snapshot, match_index: int, *, agreed: bool, lacks_payload: bool = False
    ) -> None:
        """Report how far the log is durable and agrees, or where it may."""
        replica = self._replica
        confirmed = Confirmed(
            replica.stream,
            replica.name,
            replica.epoch,
            replica.incarnation,
            match_index,
            frame.sent_at_ns,
            agreed,
            lacks_payload,
            replica.ballot.is_learner,
        )
        replica.outgoing.send(frame.sender, confirmed, rests_on_writes=True)

    def _commit(self, now: Nanoseconds, index: int) -> None:
        """Let the queues follow to what the master says is committed."""
        replica = self._replica
        log = replica.log
        if index <= log.commit_index:
            return
        records = log.commit(index)
        replica.follower.follow(log, index)
        replica.clients.commit(index)
        for record in [each for each in records if type(each) is ReplicaRejoined]:
            if record.replica == replica.name:
                replica.rejoin(now, record)
        replica.compaction.compact(index)
