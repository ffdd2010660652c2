"""The tables of a database file: batches of records, and payloads that are held.

Decides: the queries and statements. `store` begins transactions, and handles their failures.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from qsctl.storage._frames import frame, scan
from qsctl.storage.codec import Encoded, Positions, Record, RecordCodec, UnreadableRecord
from qsctl.storage.damage import DamageKind
from qsctl.storage.sqlite._rows import batch_marks, is_whole, payload_checksums

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
    """The tables of the file behind one connection.

    Args:
        connection: to a file of this format.
        stream: the owner of the file, see `sqlite_rows.stream_of`.
        codec: the codec of the records.
        report: called with each damaged place.
    """

    def __init__(self, connection: sqlite3.Connection, stream: int, codec: RecordCodec, report: ReportRow) -> None:
        self.connection = connection
        self.stream = stream
        self.codec = codec
        self._report = report
        self.count()

    def count(self) -> None:
        """Update the counts of payloads and records, and the index of the next record."""
        self.held_count = self._number("SELECT count(*) FROM payload")
        self.record_count = self._number(
            "SELECT total(abs(record_count)) FROM batch WHERE typeof(record_count) = 'integer'"
        )
        self.next_index = self._number(_LAST_NUMBER) + 1

    def _number(self, query: str) -> int:
        return int(self.connection.execute(query).fetchone()[0])

    def payloads(self, positions: Sequence[int]) -> list[bytes]:
        """Return the payloads at ascending positions.

        Raises:
            KeyError: the file lacks one.
            ValueError: one does not match its checksum.
        """
        query = "SELECT position, body, checksum FROM payload WHERE position BETWEEN ? AND ?"
        rows = {at: row for at, *row in self.connection.execute(query, (positions[0], positions[-1]))}
        found: list[bytes] = []
        for position in positions:
            body, checksum = rows[position]
            if not is_whole(self.stream, position, body, checksum):
                raise ValueError(f"the user data of sample {position} is damaged")
            found.append(bytes(body))
        return found

    def replace(self, kept: Sequence[Record]) -> None:
        """Replace all batches by a snapshot."""
        execute = self.connection.execute
        encoded = self.codec.encode(kept)
        execute("CREATE TEMPORARY TABLE kept (position INTEGER PRIMARY KEY)")
        self.connection.executemany("INSERT INTO kept VALUES (?)", [(at,) for at in set(encoded.positions)])
        execute("DELETE FROM payload WHERE position NOT IN (SELECT position FROM kept)")
        execute("DROP TABLE kept")
        execute("DELETE FROM batch")
        found = {position for (position,) in execute("SELECT position FROM payload")}
        fresh = {at: data for at, data in zip(encoded.positions, encoded.data, strict=True) if at not in found}
        self.insert_payloads(list(fresh), list(fresh.values()))
        self.insert_batch(self.next_index - 1, -len(kept), encoded)

    def records_of(self, number: int, body: object) -> Iterator[Record]:
        """Return the records of one batch."""
        if not isinstance(body, bytes):
            self._report(number, 0, 0, DamageKind.CHECKSUM, "the column has no octets")
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
        """Return the positions that some record ends, whose payloads are rightly absent."""
        found = Positions()
        for number, _, body in self.connection.execute(BATCHES, (0,)):
            bodies = scan(body, batch_marks(self.stream, number)).bodies if isinstance(body, bytes) else ()
            for start, end in bodies:
                with suppress(UnreadableRecord):  # `records_of` reports it
                    self.codec.read_positions([body[start:end]], found)
        return frozenset(found.ended)

    def insert_payloads(self, positions: Sequence[int], data: Sequence[bytes]) -> None:
        """Insert payloads."""
        if positions:
            rows = zip(positions, payload_checksums(self.stream, positions, data), data, strict=True)
            self.connection.executemany("INSERT INTO payload VALUES (?, ?, ?)", rows)

    def insert_batch(self, number: int, record_count: int, encoded: Encoded) -> None:
        """Insert a batch of records, without payloads."""
        body = frame(encoded.bodies, batch_marks(self.stream, number))
        self.connection.execute("INSERT INTO batch VALUES (?, ?, ?)", (number, record_count, body))

    def delete_payloads(self, positions: Sequence[int]) -> int:
        """Delete the payloads at these positions; return the number deleted."""
        if not positions:
            return 0
        delete = "DELETE FROM payload WHERE position = ?"
        return self.connection.executemany(delete, [(position,) for position in positions]).rowcount


def end_of(number: int, count: object) -> int:
    """Return the index after the last record of a row."""
    return number + (max(count, 1) if isinstance(count, int) else 1)
