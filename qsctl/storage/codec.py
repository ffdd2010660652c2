"""What a store must know of the records that it keeps: a codec, handed in by the owner of the records.

Decides: what all kinds of records have in common. A record may carry a payload, under a position that no other record
of the stream has; a later one may end that position, and its payload with it; others are about a position, or about
none. What a record means beyond that, no store asks.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

Record: TypeAlias = Any
"""A record of whatever kind: only its codec knows more of it."""

POSITION: Final = struct.Struct("<Q")
"""What a payload's frame begins with. The payload follows."""


UNREADABLE: Final = (msgspec.MsgspecError, ValueError, TypeError, IndexError, RecursionError, OverflowError)
"""What a decoder raises: text that is no UTF-8 is a ValueError, a size that no machine has an OverflowError."""


class UnreadableRecord(Exception):
    """A body that is no record of this version. Says why."""


class Encoded(NamedTuple):
    """A batch of records as bodies: `counts` says how many records each body is; payloads stand apart.

    `positions` and `data` are those of the records that carry a payload, in step; `ended` are the positions that end.
    `carriers` are the indexes of the bodies that begin with such a record, in step with them.
    """

    bodies: list[bytes]
    counts: list[int]
    positions: list[int]
    data: list[bytes]
    ended: list[int]
    carriers: list[int]


class Positions:
    """Which positions begin and end in the bodies of a store."""

    def __init__(self) -> None:
        self.begun: set[int] = set()
        self.ended: set[int] = set()
        self.next_free = 0
        """The first position that was free when a snapshot was made."""


class Codec(Protocol):
    """One kind of records."""

    @property
    def carrier(self) -> type[Any]:
        """The type of a record that carries a payload: its members `position` and `payload` say where and which."""

    @property
    def remembered_count(self) -> int:
        """What was recorded of so many positions is kept after they ended, the latest ones."""

    def encode(self, records: Sequence[Record]) -> Encoded:
        """The records as bodies."""

    def decode(self, body: bytes) -> Sequence[Record]:
        """The records of a body, in order; a payload is still to be filled in, see `fill`.

        Raises:
            UnreadableRecord: the body cannot be read.
        """

    def position_of(self, record: Record) -> int | None:
        """The position that a record begins, ends or is about; None for one that is about none."""

    def ended_by(self, record: Record) -> int | None:
        """The position that ends with a record; None: none does."""

    def decode_all(self, bodies: Sequence[bytes]) -> Sequence[Record]:
        """The records of many bodies, which is quicker than one by one.

        Raises:
            UnreadableRecord: one of them cannot be read.
        """

    def read_positions(self, bodies: Iterable[bytes], into: Positions) -> None:
        """Note which positions begin and end in bodies, without decoding the rest.

        Raises:
            UnreadableRecord: one cannot be read; what is said before it was noted.
        """


fill = msgspec.structs.force_setattr
"""`fill(record, "payload", payload)` completes a record that was just decoded and that nothing else refers to: a copy
with the payload would take ten times as long."""
