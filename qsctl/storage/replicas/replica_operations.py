"""The operations that write records of replicas, in parts of bounded size [QS 7.1].

Decides: the size of a part. Other threads go on between two of them, and no length is too large for a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from qsctl.storage.codec import Record
from qsctl.storage.replicas.replica_stream import (
    Appended,
    Operation,
    SnapshotPart,
    SnapshotPut,
    StateSet,
    StoredStream,
)

RECORDS_AT_ONCE: Final = 512
"""Records of one body: the other threads of the process go on in between."""

BODY_BYTES: Final = 1024 * 1024
"""Octets of payloads from which on the next record begins another body."""

IS_OPERATION: Final = b"L"
"""The first octet of an operation's body."""

_encode = msgspec.msgpack.Encoder().encode


class RecordsCodec(NamedTuple):
    """The functions that encode and decode records; `decode` raises one of `codec.UNREADABLE` for invalid octets."""

    encode: Callable[[Sequence[Record]], bytes]
    decode: Callable[[bytes], Sequence[Record]]


def body_of(operation: Operation) -> bytes:
    """Return the body of a frame with an operation."""
    return IS_OPERATION + _encode(operation)


def stream_operations(name: str, stream: StoredStream, records: RecordsCodec) -> Iterator[Operation]:
    """Yield the operations that restore a whole stream."""
    yield StateSet(name, stream.hard_state)
    if stream.snapshot_index:
        yield from snapshot_operations(name, stream.snapshot_index, stream.snapshot_records, records)
    if stream.records:
        yield from append_operations(name, stream.snapshot_index + 1, stream.records, records, truncates=False)


def append_operations(
    name: str, first_index: int, appended: Sequence[Record], records: RecordsCodec, *, truncates: bool
) -> Iterator[Appended]:
    """Yield the operations that append records; with `truncates` they replace those from `first_index` on."""
    for part in _parts(appended):
        yield Appended(name, first_index, len(part), truncates, records.encode(part))
        first_index, truncates = first_index + len(part), False


def snapshot_operations(
    name: str, index: int, snapshot: Sequence[Record], records: RecordsCodec
) -> Iterator[Operation]:
    """Yield the operations that replace a whole stream by a snapshot of the records up to an index."""
    number, last = 0, next(parts := _parts(snapshot))
    for part in parts:
        yield SnapshotPart(name, number, records.encode(last))
        number, last = number + 1, part
    yield SnapshotPut(name, index, True, records.encode(last), number)


def _parts(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """Yield the records in parts of bounded size, at least one; a larger record is alone."""
    first, size_bytes = 0, 0
    for at, record in enumerate(records):
        payload_bytes = len(getattr(record, "payload", b""))
        if at > first and (at - first >= RECORDS_AT_ONCE or size_bytes + payload_bytes > BODY_BYTES):
            yield records[first:at]
            first, size_bytes = at, 0
        size_bytes += payload_bytes
    yield records[first:]
