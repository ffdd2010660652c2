"""The interface of a record codec, through which a store reads the parts of records that it needs.

Decides: the common properties of all kinds of records. A record may carry a payload, under a position that is unique in
the stream; a later one may end that position, and its payload with it; others concern a position, or none. Stores use
nothing else of a record. The owner of the records passes the codec in.
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
"""The position at the start of a payload's frame; the payload follows."""


class UnreadableRecord(Exception):
    """A body that is not a record of this version; the message gives the reason."""


class Encoded(NamedTuple):
    """A batch of encoded records: bodies, each of one or more records, and the payloads apart from them.

    `counts` has the number of records of each body. `positions` and `data` are the positions and payloads of the
    records that carry one, and `carriers` the indexes of the bodies that contain these records; the three run in
    parallel. `ended` are the positions that end. `has_moves`: a record is of a kind that versions up to 0.2 cannot
    read, so the file that it is written to must be flagged.
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
        """Return the number of bodies that there would be if each had at most one payload."""
        return len(self.bodies) + len(self.positions) - len({*self.carriers})


class Positions:
    """The positions that begin and end in the bodies of a store, collected by `RecordCodec.read_positions`."""

    def __init__(self) -> None:
        self.begun: set[int] = set()
        self.carrier_count = 0
        """Number of bodies in which positions begin."""
        self.ended: set[int] = set()
        self.next_free = 0
        """The first position that was free when a snapshot was made."""


class RecordCodec(Protocol):
    """The codec of one kind of records."""

    @property
    def carrier(self) -> type[Any]:
        """The type of the records that carry a payload, in their members `position` and `payload`."""

    @property
    def remembered_count(self) -> int:
        """Return the number of latest ended positions whose records must be kept."""

    def encode(self, records: Sequence[Record]) -> Encoded:
        """Return records in their stored form: bodies, and the payloads apart from them."""

    def one_by_one(self, records: Iterable[Record]) -> Iterable[Record]:
        """Return records as `decode` would: what is encoded may have several records in one object."""

    def decode(self, body: bytes) -> Sequence[Record]:
        """Return the records of a body, in order; payloads are absent, the caller fills them in with `fill`.

        Raises:
            UnreadableRecord: the body cannot be read.
        """

    def without_payload(self, record: Record) -> Record | None:
        """Return the record to keep in place of one whose payload is lost or damaged; None to leave it out."""

    def moves(self, body: bytes) -> bool:
        """Return whether a body is of a kind that versions up to 0.2 cannot read, see `Encoded.has_moves`."""

    def position_of(self, record: Record) -> int | None:
        """Return the position that a record begins, ends or concerns; None where it concerns none."""

    def ended_by(self, record: Record) -> int | None:
        """Return the position that a record ends, or None."""

    def decode_all(self, bodies: Sequence[bytes]) -> Sequence[Record]:
        """Return the records of many bodies, which is quicker than one by one.

        Raises:
            UnreadableRecord: one of them cannot be read.
        """

    def read_positions(self, bodies: Iterable[bytes], into: Positions) -> None:
        """Add the positions that begin and end in bodies to `into`, without decoding the rest.

        Raises:
            UnreadableRecord: a body cannot be read; the positions before it were added.
        """


def pack_payloads(payloads: Sequence[bytes]) -> bytes:
    """Return the payloads of one body as one string of octets: where there are several, their sizes precede them."""
    if len(payloads) == 1:
        return payloads[0]
    return b"".join((struct.pack(f"<{len(payloads)}I", *map(len, payloads)), *payloads))


def unpack_payloads(packed: bytes, count: int) -> Sequence[bytes]:
    """Split the packed payloads of a body into the given number.

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
