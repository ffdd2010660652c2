"""The integration engine's records as bytes, for the same stores as a queue's (seed 001).

Decides: that the data of a message stands apart from what is known of it, as a sample's does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from qsctl.core.integration.message import Message
from qsctl.core.integration.records import Record, Removed, Started, Stored
from qsctl.storage.codec import UNREADABLE, Codec, Encoded, UnreadableRecord


class _StoredMetadata(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """`Stored` up to its payload: it is read back as a `Stored` whose payload is empty."""

    stream: str
    position: int
    message: Message


_encode_one = msgspec.msgpack.Encoder().encode
_decode_one = msgspec.msgpack.Decoder(Record).decode


def encode(records: Sequence[Record]) -> Encoded:
    """The records as bodies for a store."""
    metadata: list[bytes] = []
    positions: list[int] = []
    data: list[bytes] = []
    removed: list[int] = []
    for record in records:
        if isinstance(record, Stored):
            metadata.append(_encode_one(_StoredMetadata(record.stream, record.position, record.message)))
            positions.append(record.position)
            data.append(record.payload)
            continue
        if isinstance(record, Removed):
            removed.append(record.position)
        metadata.append(_encode_one(record))
    return Encoded(metadata, positions, data, removed)


def decode(body: bytes) -> Sequence[Record]:
    """The record of a metadata body; the payload of a `Stored` is still to be filled in.

    Raises:
        UnreadableRecord: the body cannot be read.
    """
    try:
        return (_decode_one(body),)
    except UNREADABLE as error:
        raise UnreadableRecord(str(error)) from error


def position_of(record: Any) -> int | None:
    """The copy that a record is about; None for one that is about the engine."""
    return None if isinstance(record, Started) else int(record.position)


INTEGRATION_CODEC: Final = Codec(Stored, encode, decode, position_of)
