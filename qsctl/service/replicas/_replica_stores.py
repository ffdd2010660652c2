"""The mapping between the writes of replicas and the operations of their common log [QS 7.1].

Decides: which operations a replica's `LogWrite` becomes, and which replica has lost its log.
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
from qsctl.core.records import QueueRecord, one_by_one
from qsctl.storage.replicas.replica_log import ReplicaLog
from qsctl.storage.replicas.replica_operations import RecordsCodec
from qsctl.storage.replicas.replica_stream import Operation, StateSet, StoredHardState, StoredStream

RECORDS: Final = RecordsCodec(msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(list[QueueRecord]).decode)
"""Whole single records: a replica keeps all payloads in memory. Every version reads them."""


RECORD_BYTES: Final = 48
"""Octets of a short record in the log."""


def restore(member: Member, log: ReplicaLog) -> dict[str, StoredStream]:
    """Pass every persistent replica its stored records, before the member starts; return the other streams.

    A replica without records in an intact log is new: it does not vote until a group forms, or a master has sent it the
    group's records. If the log is damaged, or shorter than when it was closed properly, no replica votes until it has
    caught up: the other members may know earlier votes of it.
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
    """Yield the operations of the writes, in their order."""
    for write in writes:
        if write.hard_state is not None:
            yield StateSet(write.stream, _stored_state(write.hard_state))
        if write.snapshot is not None:
            snapshot = write.snapshot
            yield from log.snapshot(write.stream, snapshot.index, snapshot.records)
        if write.records or write.truncate_from:
            records = list(one_by_one(write.records))
            yield from log.append(write.stream, write.first_index, records, truncates=write.truncate_from > 0)


def present(replicas: Iterable[Replica]) -> dict[str, StoredStream]:
    """Return the streams that the log must contain, for replicas without pending writes."""
    return {each.stream: _written(each) for each in replicas if each.is_persistent and not each.is_failed}


def live_bytes(replicas: Iterable[Replica]) -> int:
    """Return the octets that these replicas need in the log, not counting what records have beside payloads beyond
    `RECORD_BYTES`.
    """
    return sum(
        each.log.payload_bytes + RECORD_BYTES * (len(each.log) + len(each.log.base.records))
        for each in replicas
        if each.is_persistent and not each.is_failed
    )


def _written(replica: Replica) -> StoredStream:
    log = replica.log
    records = list(one_by_one(log.records_from(log.base.index + 1, len(log))))
    return StoredStream(_stored_state(replica.ballot.state), log.base.index, log.base.records, records)


def _stored_state(state: HardState) -> StoredHardState:
    return StoredHardState(*msgspec.structs.astuple(state))


def stored_log(stored: StoredStream) -> StoredLog:
    """Return a stored stream in the form that a replica restores."""
    state = HardState(*msgspec.structs.astuple(stored.hard_state))
    return StoredLog(state, stored.snapshot_index, stored.snapshot_records, stored.records)
