"""The records of queues, and of the service's state, as bytes for the stores: MessagePack by msgspec [QS 2.14.2].

Decides: what a body says, and which positions begin and end with it. What usually happens together is one body: a
sample that is enqueued and assigned to a consumer at once, and samples that are removed one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice, zip_longest
from operator import attrgetter
from typing import Final, TypeAlias

import msgspec

from qsctl.core.records import (
    Assigned,
    DeadLetterReason,
    Enqueued,
    Record,
    RemovalCause,
    Removed,
    Returned,
    Undeliverable,
)
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.storage.codec import UNREADABLE, Codec, Encoded, Positions, UnreadableRecord

REMEMBERED_COUNT: Final = 8_192
"""The identities of so many removed samples outlive a restart (as many as a queue remembers)."""


class _EnqueuedMetadata(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """`Enqueued` up to its payload, field for field: it is read back as an `Enqueued` whose payload is empty."""

    queue: str
    position: int
    identity: SampleIdentity
    enqueued_at_ns: Nanoseconds
    expires_at_ns: Nanoseconds
    source_guid: Guid
    related_source_guid: Guid
    related_identity: SampleIdentity
    related_reader_guid: Guid
    flags: int
    dead_letter_from: str
    dead_letter_reason: DeadLetterReason | None
    dead_letter_position: int


class _PlainMetadata(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """The same of a sample that answers nothing, carries no flag and is no dead letter: the rest is left to defaults.

    Most samples are plain, and a restart reads them in little more than half the time.
    """

    queue: str
    position: int
    identity: SampleIdentity
    enqueued_at_ns: Nanoseconds
    expires_at_ns: Nanoseconds
    source_guid: Guid


class _SentMetadata(_PlainMetadata, frozen=True, array_like=True, tag=6, gc=False):
    """The same of one that was assigned to a consumer for the first time right after: two records."""

    consumer_guid: Guid


class _RemovedRun(msgspec.Struct, frozen=True, array_like=True, tag=7, gc=False):
    """Samples that left the queue for the same cause, one after the other: as many records."""

    queue: str
    positions: list[int]
    cause: RemovalCause


_SEVERAL: Final = frozenset({_SentMetadata, _RemovedRun})
"""What is several records."""


class _EnqueuedHead(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    queue: str
    position: int


class _SentHead(msgspec.Struct, frozen=True, array_like=True, tag=6, gc=False):
    queue: str
    position: int


class _RemovedHead(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    queue: str
    position: int


class _RemovedRunHead(msgspec.Struct, frozen=True, array_like=True, tag=7, gc=False):
    queue: str
    positions: list[int]


class _RememberedHead(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    queue: str
    position: int


_ABOUT_A_SAMPLE: Final = frozenset({Enqueued, Assigned, Returned, Undeliverable, Removed})
"""The records that have a sample's position."""

_Metadata: TypeAlias = Record | _SentMetadata | _RemovedRun


_FIELDS: Final = attrgetter(*_EnqueuedMetadata.__struct_fields__)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Metadata).decode
_decode_head = msgspec.msgpack.Decoder(_EnqueuedHead | _SentHead | _RemovedHead | _RememberedHead).decode
_decode_run_head = msgspec.msgpack.Decoder(_RemovedRunHead).decode

_ENQUEUED_TAGS: Final = frozenset({1, 6})
_REMOVED_TAG: Final = 4
_REMOVED_RUN_TAG: Final = 7
_REMEMBERED_TAG: Final = 5
"""What the second byte of a body says it is."""


class _QueueCodec:
    """See `Codec`."""

    carrier = Enqueued
    remembered_count = REMEMBERED_COUNT

    def decode(self, body: bytes) -> Sequence[Record]:
        """See `Codec.decode`."""
        try:
            found = _decode(body)
        except UNREADABLE as error:
            raise UnreadableRecord(str(error)) from error
        return _parts(found) if type(found) in _SEVERAL else (found,)

    def decode_all(self, bodies: Sequence[bytes]) -> Sequence[Record]:
        """See `Codec.decode_all`."""
        try:
            found = list(map(_decode, bodies))
        except UNREADABLE as error:
            raise UnreadableRecord(str(error)) from error
        if _SEVERAL.isdisjoint(map(type, found)):
            return found
        return [record for each in found for record in (_parts(each) if type(each) in _SEVERAL else (each,))]

    def read_positions(self, bodies: Iterable[bytes], into: Positions) -> None:
        """See `Codec.read_positions`."""
        begin, end = into.begun.add, into.ended.add
        try:
            for body in bodies:
                kind = body[1]
                if kind in _ENQUEUED_TAGS:
                    begin(_decode_head(body).position)
                elif kind == _REMOVED_RUN_TAG:
                    into.ended.update(_decode_run_head(body).positions)
                elif kind == _REMOVED_TAG:
                    end(_decode_head(body).position)
                elif kind == _REMEMBERED_TAG:
                    into.next_free = max(into.next_free, _decode_head(body).position)
        except UNREADABLE as error:
            raise UnreadableRecord(str(error)) from error

    def position_of(self, record: Record) -> int | None:
        """See `Codec.position_of`."""
        return record.position if type(record) in _ABOUT_A_SAMPLE else None  # type: ignore[union-attr]

    def ended_by(self, record: Record) -> int | None:
        """See `Codec.ended_by`."""
        return record.position if type(record) is Removed else None

    def encode(self, records: Sequence[Record]) -> Encoded:
        """See `Codec.encode`."""
        bodies: list[bytes] = []
        counts: list[int] = []
        positions: list[int] = []
        data: list[bytes] = []
        ended: list[int] = []
        carriers: list[int] = []
        run: list[int] = []
        included: Record | None = None
        body: _Metadata | _EnqueuedMetadata | _PlainMetadata
        count = 1
        for record, after in zip_longest(records, islice(records, 1, None)):
            if record is included:
                continue
            body = record
            if type(record) is Removed:
                run.append(record.position)
                if type(after) is Removed and after.cause is record.cause and after.queue == record.queue:
                    continue
                if (count := len(run)) > 1:
                    body = _RemovedRun(record.queue, run, record.cause)
                ended += run
                run = []
            elif type(record) is Enqueued:
                position = record.position
                positions.append(position)
                data.append(record.payload)
                carriers.append(len(bodies))
                if not _is_plain(record):
                    body = _EnqueuedMetadata(*_FIELDS(record))
                elif type(after) is Assigned and after.position == position and after.attempt == 1:
                    body = _SentMetadata(
                        record.queue,
                        position,
                        record.identity,
                        record.enqueued_at_ns,
                        record.expires_at_ns,
                        record.source_guid,
                        after.consumer_guid,
                    )
                    included, count = after, 2
                else:
                    body = _PlainMetadata(
                        record.queue,
                        position,
                        record.identity,
                        record.enqueued_at_ns,
                        record.expires_at_ns,
                        record.source_guid,
                    )
            bodies.append(_encode(body))
            counts.append(count)
            count = 1
        return Encoded(bodies, counts, positions, data, ended, carriers)


def _parts(found: _Metadata) -> Sequence[Record]:
    """Return the records of a body that is several."""
    if isinstance(found, _SentMetadata):
        queue, position = found.queue, found.position
        sample = (queue, position, found.identity, found.enqueued_at_ns, found.expires_at_ns, found.source_guid)
        return (Enqueued(*sample), Assigned(queue, position, found.consumer_guid, 1))
    assert isinstance(found, _RemovedRun)
    return [Removed(found.queue, position, found.cause) for position in found.positions]


def _is_plain(record: Enqueued) -> bool:
    return (
        record.flags == 0
        and not record.dead_letter_from
        and record.dead_letter_reason is None
        and record.related_identity == NIL_IDENTITY
        and record.related_source_guid == NIL_GUID
        and record.related_reader_guid == NIL_GUID
    )


QUEUE_CODEC: Final[Codec] = _QueueCodec()
"""Of the records of a queue, and of the service's own."""
