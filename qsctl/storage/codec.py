"""The codec of a store's records, passed in by their owner: the part of a record that a store must read.

Decides: what all kinds of records have in common. A record may carry a payload, under a position that no other record
of the stream has; a later one may end that position, and its payload with it; others concern a position, or none.
Stores use nothing else of a record.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

Record: TypeAlias = Any
"""A record of whatever kind: only its codec knows more of it."""

POSITION: Final = struct.Struct("<Q")
"""The position at the start of a payload's frame; the payload follows. The payload follows."""


class UnreadableRecord(Exception):
    """A body that is not a record of this version; the message gives the reason."""


class Encoded(NamedTuple):
    """A batch of records as bodies: `counts` has the number of records of each body; payloads are separate.

    `positions` and `data` are those of the records that carry a payload, in step; `ended` are the positions that end.
    `carriers` are the indexes of the bodies that these records are in, in step with them: a body may have several. With
    `has_moves` one of them is of a kind that versions up to 0.2 do not read: the file that it is written to must be
    marked with it.
    """

    bodies: list[bytes]
    counts: list[int]
    positions: list[int]
    data: list[bytes]
    ended: list[int]
    carriers: list[int]
    has_moves: bool = False

    @property
    def piece_count(self) -> int:
        """Return how many bodies there would be if none had two payloads."""
        return len(self.bodies) + len(self.positions) - len({*self.carriers})


class Positions:
    """The positions that begin and end in the bodies of a store."""

    def __init__(self) -> None:
        self.begun: set[int] = set()
        self.carrier_count = 0
        """Number of bodies in which positions begin."""
        self.ended: set[int] = set()
        self.next_free = 0
        """The first position that was free when a snapshot was made."""


class RecordCodec(Protocol):
    """One kind of records."""

    @property
    def carrier(self) -> type[Any]:
        """The type of a record that carries a payload: its members `position` and `payload` hold the two."""

    @property
    def remembered_count(self) -> int:
        """Return for how many ended positions, the latest ones, their records are kept."""

    def encode(self, records: Sequence[Record]) -> Encoded:
        """Return the records as bodies."""

    def decode(self, body: bytes) -> Sequence[Record]:
        """Return the records of a body, in order; a payload is still to be filled in, see `fill`.

        Raises:
            UnreadableRecord: the body cannot be read.
        """

    def without_payload(self, record: Record) -> Record | None:
        """Return the record to keep where the payload is gone or damaged; None: it is left out."""

    def moves(self, body: bytes) -> bool:
        """Return whether a body is of a kind that versions up to 0.2 do not read, see `Encoded.has_moves`."""

    def position_of(self, record: Record) -> int | None:
        """Return the position that a record begins, ends or is about; None for one that is about none."""

    def ended_by(self, record: Record) -> int | None:
        """Return the position that ends with a record; None: none does."""

    def decode_all(self, bodies: Sequence[bytes]) -> Sequence[Record]:
        """Return the records of many bodies, which is quicker than one by one.

        Raises:
            UnreadableRecord: one of them cannot be read.
        """

    def read_positions(self, bodies: Iterable[bytes], into: Positions) -> None:
        """Note which positions begin and end in bodies, without decoding the rest.

        Raises:
            UnreadableRecord: one cannot be read; records before it were noted.
        """


def pack_payloads(payloads: Sequence[bytes]) -> bytes:
    """Return the payloads of one body as one: where there are several, their sizes precede them."""
    if len(payloads) == 1:
        return payloads[0]
    return b"".join((struct.pack(f"<{len(payloads)}I", *map(len, payloads)), *payloads))


def unpack_payloads(packed: bytes, count: int) -> Sequence[bytes]:
    """Return the payloads of a body, of the given number.

    Raises:
        UnreadableRecord: the sizes do not match the octets.
    """
    if count == 1:
        return (packed,)
    head = struct.Struct(f"<{count}I")
    if len(packed) < head.size:
        raise UnreadableRecord(f"{len(packed)} bytes are no {count} payloads")
    ends = list(accumulate(head.unpack_from(packed), initial=head.size))
    if ends[-1] != len(packed):
        raise UnreadableRecord(f"{count} payloads end at {ends[-1]} of {len(packed)} bytes")
    return [packed[start:end] for start, end in pairwise(ends)]


fill = msgspec.structs.force_setattr
"""`fill(record, "payload", payload)` completes a record that was just decoded and that nothing else refers to: a copy
with the payload would take ten times as long."""
