"""The writes of replicas to their log, with one sync in progress while the service works on [QS 7.1].

Decides: when the log is written, synced and compacted, and in which thread: a large write is encoded, written and
synced part by part in another one, so that no step of the loop takes longer than the encoding of
`WRITTEN_AT_ONCE_BYTES`; a compaction goes on beside the writes. Queues that are not replicated have other files and
another sync: neither waits for the other.
A failed write or sync is not repeated: the replicas send nothing until the process is restarted.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from qsctl.core.high_availability.member import OF_NO_REPLICA, WRITES_MAX, Member
from qsctl.core.high_availability.outgoing import LogWrite
from qsctl.core.high_availability.replica import Replica
from qsctl.core.high_availability.roles import StoredLog
from qsctl.core.records import payload_bytes_of
from qsctl.errors import Damaged
from qsctl.instant import Nanoseconds
from qsctl.service.replicas import _replica_stores as replica_stores
from qsctl.service.replicas._log_compactions import LogCompactions
from qsctl.service.run.environment import OpenSyncs, Syncs
from qsctl.service.stores.sync_thread import SyncThread
from qsctl.storage.base import Sync
from qsctl.storage.replicas.replica_log import ReplicaLog
from qsctl.storage.replicas.replica_stream import (
    Dropped,
    MembersKnown,
    Operation,
    StateSet,
    StoredHardState,
    StoredStream,
)

WRITTEN_AT_ONCE_BYTES: Final = 8 * 1024 * 1024
"""Octets of payloads above which writes are encoded, written and synced in another thread, part by part: the loop
sends heartbeats meanwhile."""

ReportFailure: TypeAlias = Callable[[Damaged], None]


class ReplicaWrites:
    """The log of a member's replicas, and the write in progress.

    Args:
        member: the member with the replicas.
        log: the replicas' log.
        resting: streams in the log whose queues are not hosted now; they are kept.
        clock: the wall clock.
        on_synced: called in another thread when a sync is over; must not block.
        quick_sync_s: a faster sync runs in the calling thread; 0: none does.
        open_syncs: returns a runner of syncs: one for short writes, one for large ones, and one for compactions.
    """

    def __init__(
        self,
        member: Member,
        log: ReplicaLog,
        resting: dict[str, StoredStream],
        clock: Callable[[], Nanoseconds],
        *,
        on_synced: Callable[[], object],
        quick_sync_s: float,
        open_syncs: OpenSyncs = SyncThread,
    ) -> None:
        self._member = member
        self._log = log
        self._clock = clock
        self._syncs = open_syncs(on_synced, quick_sync_s=quick_sync_s)
        self._large_writes = open_syncs(on_synced, quick_sync_s=0)
        self.compactions = LogCompactions(log, open_syncs(on_synced, quick_sync_s=0))
        self._in_progress: Syncs | None = None
        self._numbers: dict[str, int] = {}
        """The last write of each stream in what is in progress."""
        self._dropped: list[str] = []
        """The logs of deleted queues that what is in progress drops."""
        self._resting = resting
        self._streams = {
            stream: each.outgoing.number // WRITES_MAX for stream, each in member.replicas.items() if each.is_persistent
        }
        """Streams that the log may have, with the replica of that name that writes each."""
        self._streams |= dict.fromkeys(member.outlived, OF_NO_REPLICA)
        member.stored_before = self._stored_before
        self._members: list[str] | None = None
        self._hosted: Mapping[str, Replica] | None = None
        """The replicas when it was last looked which of the streams are still there."""
        self._progress_count = 0
        self._was_written = False
        """Whether it was not looked since whether the log is worth compacting."""
        self.report_failure: ReportFailure = lambda _: None

    def keep_members(self, names: list[str]) -> None:
        """Store the names of the cluster's members with the next write, if a replica is persistent."""
        self._members = names

    def go_on(self, *, waits: bool = False) -> bool:
        """Report finished writes to the member and begin the next ones; return whether something was reported."""
        has_reported = False
        while True:
            if self._in_progress is not None:
                if not waits and not self._in_progress.is_done:
                    self._note_progress()
                    return has_reported
                syncs, self._in_progress = self._in_progress, None
                try:
                    syncs.end()
                except Damaged as error:
                    self._fail(error)
                    return True
                has_reported = self._report() or has_reported
            try:
                sync, syncs = self._next()
                if sync is not None and not syncs.begin(sync):
                    self._in_progress = syncs
                    continue
            except Damaged as error:
                self._fail(error)
                return True
            if sync is None and not (self._numbers or self._dropped):
                return has_reported
            has_reported = self._report() or has_reported

    def close(self) -> None:
        """Finish the requested writes, and close the log.

        Raises:
            Damaged: an I/O error occurs.
        """
        self.go_on(waits=True)
        self._syncs.close()
        self._large_writes.close()
        self.compactions.close()
        self._log.close()

    def _note_progress(self) -> None:
        """Report that a long write goes on: the disk does not hang while others wait for it."""
        if self._log.progress_count != self._progress_count:
            self._progress_count = self._log.progress_count
            self._member.disk_progressed()

    def _next(self) -> tuple[Sync | None, Syncs]:
        """Write all pending operations, or go on with a compaction; return the sync, or None, and its runner."""
        if (step := self.compactions.next_step()) is not None:
            return step, self._syncs
        writes, hosted = self._member.pop_writes(), self._member.replicas
        if not writes and hosted is self._hosted and self._members is None and not self._was_written:
            return None, self._syncs
        self._hosted, self._was_written = hosted, False
        present = {stream for stream, each in self._member.replicas.items() if each.is_persistent}
        gone = sorted(self._streams.keys() - present)
        operations: list[Iterable[Operation]] = [tuple(self._end(stream)) for stream in gone]
        self._dropped += gone
        self._streams = {stream: which for stream, which in self._streams.items() if stream in present}
        self._numbers = {write.stream: write.number for write in writes}
        for write in writes:
            if write.stream not in present:
                continue
            which = write.number // WRITES_MAX
            if self._streams.setdefault(write.stream, which) != which:
                operations.append((Dropped(write.stream),))  # deleted, and created again before the log was written
                self._dropped.append(write.stream)
            self._streams[write.stream] = which
            self._resting.pop(write.stream, None)
            operations.append(replica_stores.operations(self._log, (write,)))
        if self._members is not None and present:
            operations.append((MembersKnown(self._members),))
            self._members = None
        sync, syncs = None, self._syncs
        if operations and sum(map(_payload_bytes, writes)) > WRITTEN_AT_ONCE_BYTES:
            sync, syncs = self._log.store(itertools.chain.from_iterable(operations)), self._large_writes
        elif operations:
            sync = self._log.write(itertools.chain.from_iterable(operations))
        self._was_written = bool(operations)
        replicas = self._member.replicas.values()
        if self.compactions.is_due(lambda: replica_stores.live_bytes(replicas)):
            # The replicas' logs are what the files contain once these operations are durable, but for entries that
            # snapshots have superseded.
            present_streams = replica_stores.present(replicas)
            self.compactions.begin({**self._resting, **present_streams})
        return sync, syncs

    def _end(self, stream: str) -> Iterator[Operation]:
        """Yield the operations that drop a stream, except the list of its former groups: one of them may return."""
        yield Dropped(stream)
        state = self._member.ended.get(stream)
        if state is not None and (left := state.leaving(state.incarnation)):
            self._resting[stream] = StoredStream(StoredHardState(left=left))
            yield StateSet(stream, StoredHardState(left=left))

    def _stored_before(self, stream: str) -> StoredLog:
        return replica_stores.stored_log(self._resting.get(stream, StoredStream()))

    def _report(self) -> bool:
        numbers, self._numbers = self._numbers, {}
        dropped, self._dropped = self._dropped, []
        for stream in dropped:
            self._member.log_dropped(stream)
        for stream, number in numbers.items():
            self._member.stored(self._clock(), stream, number)
        return bool(numbers)

    def _fail(self, error: Damaged) -> None:
        self._numbers, self._dropped = {}, []
        for stream, replica in self._member.replicas.items():
            if replica.is_persistent and not replica.is_failed:
                self._member.store_failed(self._clock(), stream)
        self.report_failure(error)


def _payload_bytes(write: LogWrite) -> int:
    return payload_bytes_of(write.records) + (0 if write.snapshot is None else payload_bytes_of(write.snapshot.records))
