"""Records as bytes: MessagePack by msgspec, with the user data of a sample apart (manual, section 2.14.2).

Decides: what stands in a metadata record and what in a data record.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

import msgspec

from qsctl.core.records import (
    Assigned,
    DeadLetterReason,
    Enqueued,
    QueueCreated,
    QueueDeleted,
    Record,
    Remembered,
    Removed,
    Returned,
    ServiceStarted,
    SubscriberCreated,
    SubscriberDeleted,
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


class _EnqueuedHead(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    queue: str
    position: int


class _RemovedHead(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    queue: str
    position: int


class _RememberedHead(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    queue: str
    position: int


Metadata: TypeAlias = (
    Enqueued
    | Assigned
    | Returned
    | Removed
    | Remembered
    | ServiceStarted
    | SubscriberCreated
    | SubscriberDeleted
    | QueueCreated
    | QueueDeleted
)


class Encoded(NamedTuple):
    """A batch of records as bodies: `positions` and `data` run in step."""

    metadata: list[bytes]
    positions: list[int]
    data: list[bytes]
    removed: list[int]


_encode = msgspec.msgpack.Encoder().encode
decode_metadata = msgspec.msgpack.Decoder(Metadata).decode
"""Read a metadata record; the payload of an `Enqueued` is still to be filled in.

Raises msgspec.DecodeError or msgspec.ValidationError."""

decode_head = msgspec.msgpack.Decoder(_EnqueuedHead | _RemovedHead | _RememberedHead).decode
"""Read no more than the position of a record with one of the tags below; of `Remembered`, the first free position.

Raises msgspec.DecodeError or msgspec.ValidationError."""

ENQUEUED_TAG: Final = 1
REMOVED_TAG: Final = 4
REMEMBERED_TAG: Final = 5
"""What the second byte of a metadata record says it is."""


def metadata_of(record: Enqueued) -> _EnqueuedMetadata | _PlainMetadata:
    """The record without its payload."""
    if (
        record.flags == 0
        and not record.dead_letter_from
        and record.dead_letter_reason is None
        and record.related_identity == NIL_IDENTITY
        and record.related_source_guid == NIL_GUID
        and record.related_reader_guid == NIL_GUID
    ):
        return _PlainMetadata(
            record.queue,
            record.position,
            record.identity,
            record.enqueued_at_ns,
            record.expires_at_ns,
            record.source_guid,
        )
    return _EnqueuedMetadata(
        record.queue,
        record.position,
        record.identity,
        record.enqueued_at_ns,
        record.expires_at_ns,
        record.source_guid,
        record.related_source_guid,
        record.related_identity,
        record.related_reader_guid,
        record.flags,
        record.dead_letter_from,
        record.dead_letter_reason,
    )


fill = msgspec.structs.force_setattr
"""`fill(record, "payload", payload)` completes an `Enqueued` that was just read and that nobody else has seen: a copy
with the payload would take ten times as long."""


def encode(records: Iterable[Record]) -> Encoded:
    """The records as bodies for a store."""
    metadata: list[bytes] = []
    positions: list[int] = []
    data: list[bytes] = []
    removed: list[int] = []
    for record in records:
        kind = type(record)
        if kind is Enqueued:
            assert isinstance(record, Enqueued)
            metadata.append(_encode(metadata_of(record)))
            positions.append(record.position)
            data.append(record.payload)
        else:
            metadata.append(_encode(record))
            if kind is Removed:
                assert isinstance(record, Removed)
                removed.append(record.position)
    return Encoded(metadata, positions, data, removed)


def removed_position(body: bytes) -> int | None:
    """The position of the sample that a metadata record removes; None for any other record.

    Raises:
        msgspec.MsgspecError: the record cannot be read.
    """
    return decode_head(body).position if body[1] == REMOVED_TAG else None


def position_of(record: Metadata) -> int | None:
    """The sample that a record is about; None for one that is about a queue or the service."""
    if isinstance(record, Enqueued | Assigned | Returned | Removed):
        return record.position
    return None
