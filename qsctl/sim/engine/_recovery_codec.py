"""The encoding of the integration engine's records for the stores that queues use [CLOVERLEAF].

The data of a message is stored separately from its metadata, as with a sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from qsctl.core.integration.message import Message
from qsctl.core.integration.records import CopyRemoved, Started, Stored
from qsctl.errors import UNREADABLE
from qsctl.sim.engine._peers import DatabaseMade, PeersChanged, StoredRecord
from qsctl.storage.codec import Encoded, Positions, RecordCodec, UnreadableRecord


class _StoredMetadata(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """`Stored` up to its payload: it is read back as a `Stored` whose payload is empty."""

    stream: str
    position: int
    message: Message


class DataLost(NamedTuple):
    """A stored message whose data is missing or damaged; results from loading only, and is never stored."""

    stored: Stored


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(StoredRecord).decode


class _RecoveryCodec:
    """The records of an integration engine as octets."""

    carrier = Stored
    remembered_count = 0

    def encode(self, records: Sequence[StoredRecord]) -> Encoded:
        """Return the records as bodies."""
        bodies: list[bytes] = []
        positions: list[int] = []
        data: list[bytes] = []
        ended: list[int] = []
        carriers: list[int] = []
        for record in records:
            if isinstance(record, Stored):
                carriers.append(len(bodies))
                bodies.append(_encode(_StoredMetadata(record.stream, record.position, record.message)))
                positions.append(record.position)
                data.append(record.payload)
                continue
            if isinstance(record, CopyRemoved):
                ended.append(record.position)
            bodies.append(_encode(record))
        return Encoded(bodies, [1] * len(bodies), positions, data, ended, carriers)

    def one_by_one(self, records: Iterable[StoredRecord]) -> Iterable[StoredRecord]:
        """Return the records."""
        return records

    def without_payload(self, record: Stored) -> DataLost:
        """Return the message as one without its data, for the error database; see `RecordCodec.without_payload`."""
        return DataLost(record)

    def moves(self, _body: bytes) -> bool:
        """Return whether versions up to 0.2 cannot read a body of this kind, see `Encoded.has_moves`."""
        return False

    def decode(self, body: bytes) -> Sequence[StoredRecord]:
        """Return the records of a body, in order; payloads are still empty, see `fill`."""
        try:
            return (_decode(body),)
        except UNREADABLE as error:
            raise UnreadableRecord(str(error)) from error

    def position_of(self, record: StoredRecord) -> int | None:
        """Return the position that a record begins, ends or concerns; None if it concerns none."""
        return None if isinstance(record, Started | PeersChanged | DatabaseMade) else record.position

    def ended_by(self, record: StoredRecord) -> int | None:
        """Return the position that ends with a record, or None."""
        return record.position if isinstance(record, CopyRemoved) else None

    def decode_all(self, bodies: Sequence[bytes]) -> Sequence[StoredRecord]:
        """Return the records of several bodies, faster than one by one."""
        return [record for body in bodies for record in self.decode(body)]

    def read_positions(self, bodies: Iterable[bytes], into: Positions) -> None:
        """Record which positions begin and end in bodies, without decoding the rest."""
        for body in bodies:
            (record,) = self.decode(body)
            if isinstance(record, Stored):
                into.begun.add(record.position)
            elif isinstance(record, CopyRemoved):
                into.ended.add(record.position)
            elif isinstance(record, Started):
                into.next_free = max(into.next_free, record.position)


RECOVERY_CODEC: Final[RecordCodec] = _RecoveryCodec()
"""Of the records of a recovery database."""
