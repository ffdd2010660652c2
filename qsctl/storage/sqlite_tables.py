"""The tables of a database file: batches of records, and payloads that are held.

Decides: what is read and written in them. When a transaction begins and what becomes of one that fails is `sqlite`'s.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from qsctl.errors import UNREADABLE
from qsctl.storage.base import StoredHardState
from qsctl.storage.codec import Encoded, Positions, Record, RecordCodec, UnreadableRecord, fill
from qsctl.storage.damage import DamageKind
from qsctl.storage.frames import frame, scan
from qsctl.storage.sqlite_rows import HARD_STATE_NUMBER, Payloads, batch_marks, is_whole, payload_checksums

ReportRow = Callable[[int, int, int, DamageKind, str], None]
"""Called with the number of a batch, offset and size in its body, and what is wrong there."""

_LAST_NUMBER: Final = (
    "SELECT coalesce(max(number), 0) FROM (SELECT number + max(record_count, 1) - 1 AS number FROM batch"
    " WHERE typeof(record_count) = 'integer' UNION ALL SELECT number FROM batch"
    " UNION ALL SELECT seq FROM sqlite_sequence) WHERE typeof(number) = 'integer' AND number BETWEEN 0 AND 1 << 62"
)
"""The index of the last record that was ever stored; what none can have reached is damage."""

BATCHES: Final = "SELECT number, record_count, body FROM batch WHERE number >= ? ORDER BY number"


class Tables:
    """The tables behind one connection.

    Args:
        connection: to a file of this format.
        stream: whose file it is, see `sqlite_rows.stream_of`.
        codec: that of the records.
        report: called with damage.
    """

    def __init__(self, connection: sqlite3.Connection, stream: int, codec: RecordCodec, report: ReportRow) -> None:
        self.connection = connection
        self.stream = stream
        self.codec = codec
        self._report = report
        self.hard_state = self._read_hard_state()
        self.count()

    def count(self) -> None:
        """Note what the file holds, and the index of the next record."""
        self.held_count = self._number("SELECT count(*) FROM payload")
        self.record_count = self._number(
            "SELECT total(abs(record_count)) FROM batch WHERE typeof(record_count) = 'integer'"
        )
        self.next_index = self._number(_LAST_NUMBER) + 1
        snapshots = "SELECT coalesce(max(number), 0) FROM batch WHERE number > 0 AND record_count <= 0"
        self.snapshot_index = self._number(f"{snapshots} AND typeof(record_count) = 'integer'")

    def _number(self, query: str) -> int:
        return int(self.connection.execute(query).fetchone()[0])

    def _read_hard_state(self) -> StoredHardState:
        for number, _, body in self.connection.execute(f"{BATCHES} LIMIT 1", (HARD_STATE_NUMBER,)):
            if number != HARD_STATE_NUMBER:
                break
            for start, end in scan(body, batch_marks(self.stream, number)).bodies if isinstance(body, bytes) else ():
                with suppress(*UNREADABLE):
                    return msgspec.msgpack.decode(body[start:end], type=StoredHardState)
            self._report(number, 0, 0, DamageKind.CHECKSUM, "the hard state cannot be read")
        return StoredHardState()

    def set_hard_state(self, state: StoredHardState) -> None:
        """Keep a replica's hard state."""
        body = frame([msgspec.msgpack.encode(state)], batch_marks(self.stream, HARD_STATE_NUMBER))
        self.connection.execute("INSERT OR REPLACE INTO batch VALUES (?, 0, ?)", (HARD_STATE_NUMBER, body))

    def payload(self, position: int) -> bytes:
        """Return the payload at a position.

        Raises:
            KeyError: there is none.
            ValueError: it does not match its checksum.
        """
        query = "SELECT body, checksum FROM payload WHERE position = ?"
        row = self.connection.execute(query, (position,)).fetchone()
        if row is None:
            raise KeyError(position)
        body, checksum = row
        if not is_whole(self.stream, position, body, checksum):
            raise ValueError("it does not match its checksum")
        return bytes(body)

    def truncate(self, from_index: int) -> None:
        """Delete the records from this index on, and the payloads that they carry."""
        execute, carrier = self.connection.execute, self.codec.carrier
        begun = [each.position for each in self.load_from(from_index) if isinstance(each, carrier)]
        for number, count, body in execute(BATCHES, (self.snapshot_index + 1,)).fetchall():
            if number < from_index < end_of(number, count):  # one batch, of which some records stay
                kept = list(self.records_of(number, body))[: from_index - number]
                execute("DELETE FROM batch WHERE number = ?", (number,))
                self.insert_batch(number, len(kept), self.codec.encode(kept))
        execute("DELETE FROM batch WHERE number >= ?", (from_index,))
        execute("UPDATE sqlite_sequence SET seq = ?", (from_index - 1,))
        self.delete_payloads(begun)

    def replace(self, index: int, kept: Sequence[Record], left: Sequence[Record]) -> None:
        """Put a snapshot of the records up to an index in the place of all batches, and those behind it after it."""
        execute = self.connection.execute
        encoded, behind = self.codec.encode(kept), self.codec.encode(left)
        execute("CREATE TEMPORARY TABLE kept (position INTEGER PRIMARY KEY)")
        positions = [(at,) for at in {*encoded.positions, *behind.positions}]
        self.connection.executemany("INSERT INTO kept VALUES (?)", positions)
        execute("DELETE FROM payload WHERE position NOT IN (SELECT position FROM kept)")
        execute("DROP TABLE kept")
        execute("DELETE FROM batch WHERE number <> ?", (HARD_STATE_NUMBER,))
        found = {position for (position,) in execute("SELECT position FROM payload")}
        fresh = {at: data for at, data in zip(encoded.positions, encoded.data, strict=True) if at not in found}
        self.insert_payloads(list(fresh), list(fresh.values()))
        self.insert_batch(index, -len(kept), encoded)
        if left:
            self.insert_batch(index + 1, len(left), behind)

    def load_from(self, index: int) -> Iterator[Record]:
        """Return the records from this index on, which are behind the snapshot."""
        payloads = Payloads(self.connection, self.stream)
        for number, _, body in self.connection.execute(BATCHES, (self.snapshot_index + 1,)):
            for at, record in enumerate(self.records_of(number, body), number):
                if at >= index:
                    if isinstance(record, self.codec.carrier):
                        fill(record, "payload", payloads.find(record.position) or b"")
                    yield record

    def records_of(self, number: int, body: object) -> Iterator[Record]:
        """Return the records of one batch."""
        if not isinstance(body, bytes):
            self._report(number, 0, 0, DamageKind.CHECKSUM, "no octets stand there")
            return
        found = scan(body, batch_marks(self.stream, number))
        for gap in found.gaps:
            self._report(number, gap.offset, gap.size_bytes, DamageKind.CHECKSUM, "bytes that match no checksum")
        for start, end in found.bodies:
            try:
                yield from self.codec.decode(body[start:end])
            except UnreadableRecord as error:
                what = f"a record that this version cannot read: {error}"
                self._report(number, start, end - start, DamageKind.UNREADABLE, what)

    def ended_positions(self) -> frozenset[int]:
        """Return the positions that some record ends: their payload is gone by right."""
        found = Positions()
        for number, _, body in self.connection.execute(BATCHES, (0,)):
            bodies = scan(body, batch_marks(self.stream, number)).bodies if isinstance(body, bytes) else ()
            for start, end in bodies:
                with suppress(UnreadableRecord):  # `records_of` reports it
                    self.codec.read_positions([body[start:end]], found)
        return frozenset(found.ended)

    def insert_payloads(self, positions: Sequence[int], data: Sequence[bytes]) -> None:
        """Keep payloads."""
        if positions:
            rows = zip(positions, payload_checksums(self.stream, positions, data), data, strict=True)
            self.connection.executemany("INSERT INTO payload VALUES (?, ?, ?)", rows)

    def insert_batch(self, number: int, record_count: int, encoded: Encoded) -> None:
        """Keep a batch of records, without payloads."""
        body = frame(encoded.bodies, batch_marks(self.stream, number))
        self.connection.execute("INSERT INTO batch VALUES (?, ?, ?)", (number, record_count, body))

    def delete_payloads(self, positions: Sequence[int]) -> int:
        """Return how many of them were there."""
        if not positions:
            return 0
        delete = "DELETE FROM payload WHERE position = ?"
        return self.connection.executemany(delete, [(position,) for position in positions]).rowcount


def end_of(number: int, count: object) -> int:
    """Return the index behind the records of a row."""
    return number + (max(count, 1) if isinstance(count, int) else 1)
