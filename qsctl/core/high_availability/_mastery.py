"""A master's work: it gives its log to the other replicas and finds out what they hold.

Decides: what is sent to which replica, how much of it at once, and when; and when a learner is given its vote back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import structs

from qsctl.core.high_availability._log import ReplicatedLog, entry_count
from qsctl.core.high_availability._members import GroupMembers
from qsctl.core.high_availability._octets_behind import OctetsBehind
from qsctl.core.high_availability._progress import (
    ENTRIES_MAX,
    UNCONFIRMED_BYTES_MAX,
    UNCONFIRMED_MAX,
    Peer,
    Progress,
    entries_that_fit,
)
from qsctl.core.high_availability._snapshot_pieces import SnapshotTransfer
from qsctl.core.high_availability._staging import without_payloads
from qsctl.core.high_availability.frames import (
    Confirmed,
    Entries,
    Entry,
    Heartbeat,
    Snapshot,
    SnapshotPiece,
    for_witness,
)
from qsctl.core.high_availability.outgoing import Outgoing
from qsctl.core.high_availability.versions import HEARTBEATS, RUNS, SNAPSHOT_PIECES, Versions
from qsctl.core.records import QueueStreamRecord, one_by_one
from qsctl.instant import Nanoseconds

HEARTBEATS_PER_TIMEOUT = 5
"""Number of frames that must be lost in a row before a replica considers its master lost."""


class Mastery:
    """One replica's work as the master of one epoch.

    Args:
        stream: the group's.
        members: of the group.
        epoch: of its election.
        log: its log, which ends with the first entry of this epoch.
        outgoing: where frames go.
        now: the instant of the election.
        master_timeout_ns: how long the others wait for a sign of it.
        sends_payloads: whether the others get every payload from here, though they had one from the producer.
        incarnation: gives that of the group, as frames carry it.
        versions: those of the members.
    """

    def __init__(
        self,
        stream: str,
        members: GroupMembers,
        epoch: int,
        log: ReplicatedLog,
        outgoing: Outgoing,
        now: Nanoseconds,
        master_timeout_ns: Nanoseconds,
        *,
        sends_payloads: bool = False,
        incarnation: Callable[[], int] = lambda: 0,
        versions: Versions,
    ) -> None:
        self._stream = stream
        self._members = members
        self._name = members.name
        self._epoch = epoch
        self._log = log
        self._outgoing = outgoing
        self._heartbeat_ns = max(1, master_timeout_ns // HEARTBEATS_PER_TIMEOUT)
        self._master_timeout_ns = master_timeout_ns
        self._sends_payloads = sends_payloads
        self._incarnation = incarnation
        self._versions = versions
        self._transfers: dict[str, SnapshotTransfer] = {}
        """The snapshots that are being sent in pieces, by recipient."""
        self._sent: tuple[tuple[object, ...], Entries, int] | None = None
        """What the last frame was made of, that frame, and its octets of payloads: replicas mostly lack the same."""
        self.octets = OctetsBehind(log)
        self.progress = Progress(members, log.last_index, now)
        self.heartbeat_at_ns = now
        self._leads_until_ns: Nanoseconds | None = None
        """Until when it goes on without a quorum; None: it has not lacked one yet."""

    def may_lead(self, now: Nanoseconds) -> bool:
        """Return whether it may go on: a quorum confirmed what was sent to it, or none can have done so yet.

        An election makes the queues anew and syncs an entry before the first sign of the master leaves. Where that took
        longer than `master_timeout`, the others have as long again.
        """
        if self.has_quorum(now):
            return True
        if self._leads_until_ns is None:
            is_confirmed = any(peer.has_confirmed for peer in self.progress)
            self._leads_until_ns = 0 if is_confirmed else now + self._master_timeout_ns
        return now <= self._leads_until_ns

    def has_quorum(self, now: Nanoseconds) -> bool:
        """Return whether a quorum confirmed what was sent to it within `master_timeout`.

        As long as it did there is no other master: none of these votes for one before its own `master_timeout` is over.
        """
        return now - self.progress.quorum_heard_at_ns() <= self._master_timeout_ns

    def present(self, now: Nanoseconds) -> list[Peer]:
        """Return the other replicas from which a frame arrived within `master_timeout`."""
        return [peer for peer in self.progress if now - peer.heard_at_ns <= self._master_timeout_ns]

    def committable(self) -> int:
        """Return how far the log is committed now."""
        return self.progress.committable(self._log, self._outgoing.durable_index, self._epoch)

    def beat(self, now: Nanoseconds) -> None:
        """Give a sign to every replica, with what it lacks."""
        self.heartbeat_at_ns = now + self._heartbeat_ns
        for peer in self.progress:
            has_sent = self._replicate(now, peer)
            has_heartbeats = self._versions.of(peer.name) >= HEARTBEATS
            is_level = peer.is_level and not has_sent and peer.match_index >= self._log.base.index
            if has_heartbeats:
                self._send_heartbeat(now, peer, peer.match_index if is_level else 0)
            if not has_sent and not (has_heartbeats and is_level):
                self._send(now, peer, 0)  # behind what was sent before: the replica reports what it lacks of that

    def follow_members(self, now: Nanoseconds) -> None:
        """Replicate to the members that the log lists now; those that were removed are sent the commit of that."""
        for peer in self.progress.follow_members(self._log.last_index + 1):
            if not self._replicate(now, peer):
                self._send(now, peer, 0)
            self._transfers.pop(peer.name, None)

    def replicate(self, now: Nanoseconds) -> None:
        """Send what became durable."""
        for peer in self.progress:
            if not peer.is_probed:
                self._replicate(now, peer)

    def misfit(self, now: Nanoseconds, confirmed: Confirmed) -> str:
        """Return why a replica cannot have confirmed this of the master's log, for people; empty: it can have."""
        if confirmed.agreed and confirmed.match_index > self._log.last_index:
            return f"it confirms entry {confirmed.match_index}, and the master's log ends with {self._log.last_index}"
        if confirmed.sent_at_ns > now:
            return "it confirms what is not sent yet by this master's clock"
        return ""

    def receive(self, now: Nanoseconds, confirmed: Confirmed) -> Peer | None:
        """Note what a replica holds, and send it what it lacks; return a learner that holds all that is committed."""
        peer = self.progress[confirmed.sender]
        peer.heard_at_ns = max(peer.heard_at_ns, confirmed.sent_at_ns)
        peer.has_confirmed = True
        if confirmed.is_learner and (not peer.is_learner or confirmed.run != peer.run):
            # What it confirmed before it lost its log was true then, and may have committed something: it is one of the
            # faults that a quorum survives. But its missing entries must be sent again. No clock orders the two
            # processes.
            peer.begin_again(confirmed.run)
            self._transfers.pop(peer.name, None)
        peer.run = confirmed.run
        peer.is_learner = confirmed.is_learner
        if confirmed.snapshot_mark:
            transfer = self._transfers.get(peer.name)
            if transfer is not None and transfer.mark == confirmed.snapshot_mark:
                count, sent_at_ns = confirmed.snapshot_count, confirmed.sent_at_ns
                transfer.confirm(now, count, sent_at_ns, has_gap=not confirmed.agreed)
                self._replicate(now, peer)
            return None
        if confirmed.agreed:
            peer.match_index = max(peer.match_index, confirmed.match_index)
            peer.note_level(now, self._log.commit_index)
            if peer.is_probed and confirmed.match_index < peer.next_index - 1:
                return None  # no answer to the probe
            peer.is_probed = False
            peer.next_index = max(peer.next_index, peer.match_index + 1)
            if confirmed.lacks_payload and peer.wants_payloads_to <= peer.match_index:
                # It was not there when the producers wrote: it lacks the payloads of all that was written since, too.
                peer.wants_payloads_to = max(peer.match_index + ENTRIES_MAX, self._log.last_index)
                peer.rewind(now, peer.match_index + 1)
        elif confirmed.sent_at_ns < peer.rewound_at_ns:
            return None
        else:
            next_index = max(peer.match_index, min(confirmed.match_index, self._log.last_index)) + 1
            if peer.is_probed and next_index >= peer.next_index:
                return None  # a copy, or the answer to an earlier frame: to answer each would never end
            peer.rewind(now, next_index)
            peer.is_probed = True
        if peer.next_index <= self._outgoing.durable_index:
            self._replicate(now, peer)
        if peer.rejoins_at_index <= self._log.base.index:
            peer.rejoins_at_index = 0  # it may have got a snapshot in the place of that entry
        is_due = peer.is_learner and not peer.rejoins_at_index and peer.match_index >= self._log.commit_index
        return peer if is_due else None

    def _replicate(self, now: Nanoseconds, peer: Peer) -> bool:
        """Send a replica what it lacks, as much as may be unconfirmed; whether anything was sent.

        Only what is durable here: a master that crashes must not have given away what it then knows nothing of.
        """
        log, last_index = self._log, self._outgoing.durable_index
        if not self._members.is_served(peer.name):
            return False
        if self._members.is_witness(peer.name):
            # It votes for none that has less than itself: where it had more than the other members with payloads, none
            # of these could be elected once this one is gone.
            held_index = self.progress.held_index(now, self._master_timeout_ns // 2)
            last_index = last_index if held_index is None else min(last_index, held_index)
        if peer.next_index <= log.base.index:
            return self._send_snapshot(now, peer)
        self._transfers.pop(peer.name, None)
        has_sent = False
        while (
            peer.next_index <= last_index
            and peer.next_index - peer.match_index <= UNCONFIRMED_MAX
            and peer.unconfirmed_bytes() < UNCONFIRMED_BYTES_MAX
        ):
            count, payload_bytes = self._send(now, peer, min(ENTRIES_MAX, last_index - peer.next_index + 1))
            has_sent = True
            if peer.is_probed:
                break
            peer.note_sent(count, payload_bytes)
        return has_sent

    def _send(self, now: Nanoseconds, peer: Peer, count_max: int) -> tuple[int, int]:
        """Send one frame; return how many entries it contains, and the octets of their payloads."""
        log, first_index = self._log, peer.next_index
        lacks_payloads = not self._sends_payloads and first_index > peer.wants_payloads_to
        is_witness = self._members.is_witness(peer.name)
        understands_runs = self._versions.of(peer.name) >= RUNS
        made_of = (
            first_index, count_max, lacks_payloads, is_witness, understands_runs, log.commit_index, now,
            self._incarnation(), peer.is_probed,
        )  # fmt: skip
        if self._sent is None or self._sent[0] != made_of:
            records: Sequence[QueueStreamRecord] = log.records_from(first_index, count_max) if count_max else ()
            if not understands_runs:
                records = list(one_by_one(records))
            if is_witness:
                entries: Sequence[Entry] = for_witness(records)
            else:
                entries = without_payloads(records) if lacks_payloads else records
            entries, payload_bytes = entries_that_fit(entries, is_probe=peer.is_probed)
            previous_index = max(first_index - 1, log.base.index)
            frame = Entries(
                self._stream,
                self._name,
                self._epoch,
                previous_index,
                log.epoch_at(previous_index),
                tuple(entries),
                log.commit_index,
                now,
                lacks_payloads,
                self._incarnation(),
            )
            self._sent = made_of, frame, payload_bytes
        _, frame, payload_bytes = self._sent
        self._outgoing.send(peer.name, frame, rests_on_writes=False)
        return entry_count(frame.records), payload_bytes

    def _send_heartbeat(self, now: Nanoseconds, peer: Peer, index: int) -> None:
        log = self._log
        frame = Heartbeat(
            self._stream,
            self._name,
            self._epoch,
            index,
            log.epoch_at(index) if index else 0,
            log.commit_index,
            now,
            self._incarnation(),
        )
        self._outgoing.send(peer.name, frame, rests_on_writes=False)

    def _send_snapshot(self, now: Nanoseconds, peer: Peer) -> bool:
        """Send what may be unconfirmed of a snapshot; return whether anything was sent."""
        if self._versions.of(peer.name) < SNAPSHOT_PIECES:
            return self._send_whole_snapshot(now, peer)
        transfer = self._transfers.get(peer.name)
        if transfer is None or transfer.base.index < peer.next_index:
            base = self._log.base
            if self._members.is_witness(peer.name):
                base = structs.replace(base, records=for_witness(base.records))
            transfer = self._transfers[peer.name] = SnapshotTransfer(base, self._master_timeout_ns)
        base, has_sent = transfer.base, False
        for first, records in transfer.pieces(now):
            frame = SnapshotPiece(
                self._stream,
                self._name,
                self._epoch,
                base.index,
                base.epoch,
                len(base.records),
                transfer.mark,
                first,
                tuple(records),
                now,
                self._incarnation(),
            )
            self._outgoing.send(peer.name, frame, rests_on_writes=False)
            has_sent = True
        return has_sent

    def _send_whole_snapshot(self, now: Nanoseconds, peer: Peer) -> bool:
        if peer.snapshot_sent_at_ns >= 0 and now - peer.snapshot_sent_at_ns < self._master_timeout_ns:
            return False
        peer.snapshot_sent_at_ns = now
        base = self._log.base
        frame = Snapshot(
            self._stream, self._name, self._epoch, base.index, base.epoch, tuple(base.records), now, self._incarnation()
        )
        self._outgoing.send(peer.name, frame, rests_on_writes=False)
        return True
