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
from qsctl.storage import base
from qsctl.storage.replica_log import RecordsCodec, ReplicaLog
from qsctl.storage.replica_stream import Operation, StateSet, StoredStream

RECORDS: Final = RecordsCodec(msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(list[QueueRecord]).decode)
"""Whole records, as replicas send them to each other: a replica keeps all payloads in memory."""


def restore(member: Member, log: ReplicaLog) -> dict[str, StoredStream]:
    """Give every persistent replica what was stored, before the member starts; return the other streams.

    One of which nothing is found has no vote until it has caught up, and neither has any of a log that is damaged: it
    may be the first start, or the disk may be another one, and the others may know it from before.
    """
    found = log.pop_found()
    for stream, replica in member.replicas.items():
        if replica.is_persistent:
            stored = found.pop(stream, None)
            is_lost = stored is None or log.is_damaged
            member.restore(stream, StoredLog() if stored is None else stored_log(stored), is_lost=is_lost)
    return found


def operations(log: ReplicaLog, writes: Iterable[LogWrite]) -> Iterator[Operation]:
    """Give what the writes do to the log, in their order."""
    for write in writes:
        if write.hard_state is not None:
            yield StateSet(write.stream, base.HardState(write.hard_state.epoch, write.hard_state.vote))
        if write.snapshot is not None:
            snapshot = write.snapshot
            yield log.snapshot(write.stream, snapshot.index, snapshot.records, installs=snapshot.installs)
        if write.records or write.truncate_from:
            yield log.append(write.stream, write.first_index, write.records, truncates=write.truncate_from > 0)


def present(replicas: Iterable[Replica]) -> dict[str, StoredStream]:
    """Return what the log is to hold, of replicas whose writes were all handed over."""
    return {each.stream: _written(each) for each in replicas if each.is_persistent and not each.is_failed}


def _written(replica: Replica) -> StoredStream:
    log, state = replica.log, replica.ballot.state
    records = list(log.records_from(log.base.index + 1, len(log)))
    return StoredStream(base.HardState(state.epoch, state.vote), log.base.index, log.base.records, records)


def stored_log(stored: StoredStream) -> StoredLog:
    """Return what a replica takes up of a stream."""
    state = HardState(stored.hard_state.epoch, stored.hard_state.vote)
    return StoredLog(state, stored.snapshot_index, stored.snapshot_records, stored.records)
