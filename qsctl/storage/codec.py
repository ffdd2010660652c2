"""Records as bytes: MessagePack by msgspec, with the user data of a sample apart (manual, section 2.14.2).

Decides: what stands in a metadata body and what in a data body. What usually happens together is one body: a sample
that comes and goes to a consumer at once, and samples that are removed one after the other.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import islice, zip_longest
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

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

POSITION: Final = struct.Struct("<Q")
"""What a data record begins with: the sample's position. The payload follows."""


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


_Metadata: TypeAlias = Record | _SentMetadata | _RemovedRun


class Encoded(NamedTuple):
    """A batch of records as bodies: `positions` and `data` run in step; a body of `metadata` is one record or more."""

    metadata: list[bytes]
    positions: list[int]
    data: list[bytes]
    removed: list[int]


_FIELDS: Final = attrgetter(*_EnqueuedMetadata.__struct_fields__)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Metadata).decode
_decode_head = msgspec.msgpack.Decoder(_EnqueuedHead | _SentHead | _RemovedHead | _RememberedHead).decode
_decode_run_head = msgspec.msgpack.Decoder(_RemovedRunHead).decode

_ENQUEUED_TAGS: Final = frozenset({1, 6})
_REMOVED_TAG: Final = 4
_REMOVED_RUN_TAG: Final = 7
_REMEMBERED_TAG: Final = 5
"""What the second byte of a metadata body says it is."""


class UnreadableRecord(Exception):
    """A metadata body that is no record of this version. Says why."""


UNREADABLE: Final = (msgspec.MsgspecError, ValueError, TypeError, IndexError, RecursionError, OverflowError)
"""What the decoder raises: text that is no UTF-8 is a ValueError, a size that no machine has an OverflowError."""


def decode_metadata(body: bytes) -> Sequence[Record]:
    """The records of a metadata body, in order; the payload of an `Enqueued` is still to be filled in.

    Raises:
        UnreadableRecord: the body cannot be read.
    """
    try:
        found = _decode(body)
    except UNREADABLE as error:
        raise UnreadableRecord(str(error)) from error
    if isinstance(found, _SentMetadata):
        queue, position = found.queue, found.position
        sample = (queue, position, found.identity, found.enqueued_at_ns, found.expires_at_ns, found.source_guid)
        return (Enqueued(*sample), Assigned(queue, position, found.consumer_guid, 1))
    if isinstance(found, _RemovedRun):
        return [Removed(found.queue, position, found.cause) for position in found.positions]
    return (found,)


class Positions:
    """Which samples come and go in the metadata of a store, read without the rest."""

    def __init__(self) -> None:
        self.enqueued: set[int] = set()
        self.removed: set[int] = set()
        self.next_free = 0
        """The first position that was free when the store was compacted."""

    def read(self, body: bytes) -> None:
        """Note the samples of one metadata body.

        Raises:
            UnreadableRecord: the body cannot be read.
        """
        try:
            kind = body[1]
            if kind in _ENQUEUED_TAGS:
                self.enqueued.add(_decode_head(body).position)
            elif kind == _REMOVED_RUN_TAG:
                self.removed.update(_decode_run_head(body).positions)
            elif kind == _REMOVED_TAG:
                self.removed.add(_decode_head(body).position)
            elif kind == _REMEMBERED_TAG:
                self.next_free = max(self.next_free, _decode_head(body).position)
        except UNREADABLE as error:
            raise UnreadableRecord(str(error)) from error


def has_user_data(metadata: bytes) -> bool:
    """Whether a metadata body begins with the record of a sample that came."""
    return metadata[1] in _ENQUEUED_TAGS


fill = msgspec.structs.force_setattr
"""`fill(record, "payload", payload)` completes an `Enqueued` that was just read and that nobody else has seen: a copy
with the payload would take ten times as long."""


def encode(records: Sequence[Record]) -> Encoded:
    """The records as bodies for a store."""
    metadata: list[bytes] = []
    positions: list[int] = []
    data: list[bytes] = []
    removed: list[int] = []
    run: list[int] = []
    told: Record | None = None
    body: _Metadata | _EnqueuedMetadata | _PlainMetadata
    for record, after in zip_longest(records, islice(records, 1, None)):
        if record is told:
            continue
        body = record
        if type(record) is Removed:
            run.append(record.position)
            if type(after) is Removed and after.cause is record.cause and after.queue == record.queue:
                continue
            if len(run) > 1:
                body = _RemovedRun(record.queue, run, record.cause)
            removed += run
            run = []
        elif type(record) is Enqueued:
            position = record.position
            positions.append(position)
            data.append(record.payload)
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
                told = after
            else:
                body = _PlainMetadata(
                    record.queue,
                    position,
                    record.identity,
                    record.enqueued_at_ns,
                    record.expires_at_ns,
                    record.source_guid,
                )
        metadata.append(_encode(body))
    return Encoded(metadata, positions, data, removed)


def position_of(record: Record) -> int | None:
    """The sample that a record is about; None for one that is about a queue or the service."""
    if isinstance(record, Enqueued | Assigned | Returned | Undeliverable | Removed):
        return record.position
    return None


def _is_plain(record: Enqueued) -> bool:
    return (
        record.flags == 0
        and not record.dead_letter_from
        and record.dead_letter_reason is None
        and record.related_identity == NIL_IDENTITY
        and record.related_source_guid == NIL_GUID
        and record.related_reader_guid == NIL_GUID
    )


class Codec(NamedTuple):
    """One kind of records for the stores. All kinds are laid out alike: tag, stream, position; see `Positions`.

    Tag 1 brings user data, tag 4 takes it away, tag 5 says which positions were free; other tags are about a position.
    """

    came: type[Any]
    """The record that brings user data: it has `position` and `payload`."""
    encode: Callable[[Sequence[Any]], Encoded]
    decode: Callable[[bytes], Sequence[Any]]
    """Raises `UnreadableRecord`."""
    position_of: Callable[[Any], int | None]


QUEUE_CODEC: Final = Codec(Enqueued, encode, decode_metadata, position_of)
"""Of the records of a queue, and of the service's own."""
