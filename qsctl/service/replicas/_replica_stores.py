"""From what replicas ask to be stored to the log of the process, and back at the start [QS 7.1].

Decides: how a `LogWrite` of a replica is written, and which replica has lost its log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from qsctl.core.high_availability.ballot import HardState
from qsctl.core.high_availability.member import Member
from qsctl.core.high_availability.outgoing import LogWrite
from qsctl.core.high_availability.replica import Replica
from qsctl.core.high_availability.roles import StoredLog
from qsctl.core.records import QueueRecord
from qsctl.storage.replicas.replica_log import RecordsCodec, ReplicaLog
from qsctl.storage.replicas.replica_stream import Operation, StateSet, StoredHardState, StoredStream

RECORDS: Final = RecordsCodec(msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(list[QueueRecord]).decode)
"""Whole records, as replicas send them to each other: a replica keeps all payloads in memory."""


def restore(member: Member, log: ReplicaLog) -> dict[str, StoredStream]:
    """Give every persistent replica its stored records, before the member starts; return the other streams.

    A replica without records, in a log that has lost nothing, is new: it has no vote until a group forms, or a master
    has sent it the others' records. In a log that is damaged, or shorter than it was when it was closed in order, none
    has a vote until it has caught up: the others may know its earlier votes.
    """
    found = log.pop_found()
    for stream, replica in member.replicas.items():
        if replica.is_persistent:
            stored = found.pop(stream, None)
            left = StoredLog() if stored is None else stored_log(stored)
            is_new = not (left.records or left.snapshot_index or left.hard_state.epoch or left.hard_state.vote)
            is_new = is_new and not left.hard_state.incarnation
            member.restore(stream, left, is_lost=log.is_damaged, is_new=is_new)
    return {stream: stored for stream, stored in found.items() if member.rest(stream, stored_log(stored))}


def operations(log: ReplicaLog, writes: Iterable[LogWrite]) -> Iterator[Operation]:
    """Give what the writes do to the log, in their order."""
    for write in writes:
        if write.hard_state is not None:
            yield StateSet(write.stream, _stored_state(write.hard_state))
        if write.snapshot is not None:
            snapshot = write.snapshot
            yield log.snapshot(write.stream, snapshot.index, snapshot.records, installs=snapshot.installs)
        if write.records or write.truncate_from:
            yield log.append(write.stream, write.first_index, write.records, truncates=write.truncate_from > 0)


def present(replicas: Iterable[Replica]) -> dict[str, StoredStream]:
    """Return the content that the log must have, for replicas whose writes were all handed over."""
    return {each.stream: _written(each) for each in replicas if each.is_persistent and not each.is_failed}


def _written(replica: Replica) -> StoredStream:
    log = replica.log
    records = list(log.records_from(log.base.index + 1, len(log)))
    return StoredStream(_stored_state(replica.ballot.state), log.base.index, log.base.records, records)


def _stored_state(state: HardState) -> StoredHardState:
    return StoredHardState(*msgspec.structs.astuple(state))


def stored_log(stored: StoredStream) -> StoredLog:
    """Return what a replica takes up of a stream."""
    state = HardState(*msgspec.structs.astuple(stored.hard_state))
    return StoredLog(state, stored.snapshot_index, stored.snapshot_records, stored.records)
