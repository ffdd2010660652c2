"""The integration engine's records as bytes, for the same stores as a queue's [CLOVERLEAF].

Decides: that the data of a message is separate from its metadata, as with a sample.
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
    """A message that was stored and whose data is gone or damaged. Only loading gives it; it is never stored."""

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

    def without_payload(self, record: Stored) -> DataLost:
        """Return the message without its data: it belongs in the error database; see `RecordCodec.without_payload`."""
        return DataLost(record)

    def moves(self, _body: bytes) -> bool:
        """Return whether a body is of a kind that versions up to 0.2 do not read, see `Encoded.has_moves`."""
        return False

    def decode(self, body: bytes) -> Sequence[StoredRecord]:
        """Return the records of a body, in order; a payload is still to be filled in, see `fill`."""
        try:
            return (_decode(body),)
        except UNREADABLE as error:
            raise UnreadableRecord(str(error)) from error

    def position_of(self, record: StoredRecord) -> int | None:
        """Return the position that a record begins, ends or is about; None for one that is about none."""
        return None if isinstance(record, Started | PeersChanged | DatabaseMade) else record.position

    def ended_by(self, record: StoredRecord) -> int | None:
        """Return the position that ends with a record; None: none does."""
        return record.position if isinstance(record, CopyRemoved) else None

    def decode_all(self, bodies: Sequence[bytes]) -> Sequence[StoredRecord]:
        """Return the records of many bodies, which is quicker than one by one."""
        return [record for body in bodies for record in self.decode(body)]

    def read_positions(self, bodies: Iterable[bytes], into: Positions) -> None:
        """Note which positions begin and end in bodies, without decoding the rest."""
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
