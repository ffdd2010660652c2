"""The store of a queue without in-memory state, and of the service state: a database file (manual, section 2.14).

Decides: the tables, what one transaction is, and how `<journal_mode>`, `<synchronization>`, `<vacuum>` and
`<trace_file>` (Table 3.9) reach the database. A damaged file is `sqlite_salvage`'s.

Under journal mode WAL with synchronization NORMAL a commit is not synced: losing power may lose what was acknowledged
last. Journal modes MEMORY and OFF cannot undo a transaction that a crash cut short: the file is damaged then.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from qsctl.config.filesystem import FilesystemSettings, JournalMode
from qsctl.core.records import Enqueued, Record
from qsctl.errors import Damaged, Refused
from qsctl.storage.base import Extent, Sync, WritesThenSyncs
from qsctl.storage.codec import (
    Encoded,
    Positions,
    UnreadableRecord,
    decode_metadata,
    encode,
    fill,
    position_of,
)
from qsctl.storage.damage import DamageKind, DamageReport
from qsctl.storage.frames import frame, scan
from qsctl.storage.names import open_private
from qsctl.storage.room import refusal
from qsctl.storage.sqlite_file import (
    FAILURES,
    FORMAT_VERSION,
    SIDE_FILES,
    begun_and_unfinished,
    claim,
    connect,
    copy_anew,
    copy_aside,
    create_tables,
    format_of,
    is_foreign,
    is_sound,
    set_aside_foreign,
)
from qsctl.storage.sqlite_rows import Payloads, batch_marks, is_whole, payload_checksums, stream_of, upgrade
from qsctl.storage.sqlite_salvage import salvage
from qsctl.storage.sqlite_trace import StatementTrace

DEAD_RECORD_COUNT_MIN: Final = 5_000
"""Below this a file is never worth compacting: reading so many records takes some milliseconds."""


_UNDONE: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
"""Errors after which a transaction is undone, and the next one stands a chance."""

_LAST_NUMBER: Final = (
    "SELECT coalesce(max(number), 0) FROM (SELECT number FROM batch UNION ALL SELECT seq FROM sqlite_sequence)"
    " WHERE typeof(number) = 'integer' AND number BETWEEN 0 AND 1 << 62"
)
"""That of the last batch ever stored; what no batch can have reached is damage."""


class SqliteStorage(WritesThenSyncs):
    """One database file: a row a batch of metadata, a row a payload that is held.

    One append is one transaction. One thread at a time may use it. `known`: how far it reached at least when it was
    last heard of.

    Raises:
        InvalidInput: a link or a device stands in the file's place.
        Damaged: the disk refuses.
        Refused: another program keeps the file locked.
    """

    def __init__(self, path: Path, settings: FilesystemSettings, known: Extent | None = None) -> None:
        self.path = path
        self.settings = settings
        self._stream = stream_of(path)
        self.was_there = False
        self._failed = False
        self.damage: list[DamageReport] = begun_and_unfinished(path)
        self._trace: StatementTrace | None = None
        if settings.trace_file is not None:
            self._trace = StatementTrace(path.parent / settings.trace_file)
        try:
            os.close(open_private(path, os.O_RDWR))
            self._connection = self._open()
            self._count()
        except OSError as error:
            raise refusal(path, error, is_clean=True) from error
        except FAILURES as error:
            raise self._refusal(error) from error
        self._kept_count = 0
        self._compare(known)

    @property
    def extent(self) -> Extent:
        """See `Storage.extent`."""
        return Extent("database", self._next_number - 1)

    def write(self, records: Sequence[Record]) -> Sync | None:
        """See `Storage.write`. The database works and syncs in one go, without the interpreter."""
        return partial(self._store, records) if records else None

    def _store(self, records: Sequence[Record]) -> None:
        self._refuse_after_failure()
        encoded = encode(records)
        with self._transaction():
            self._insert(encoded, len(records))
            removed_count = 0
            if encoded.removed:
                delete = "DELETE FROM payload WHERE position = ?"
                parameters = [(position,) for position in encoded.removed]
                removed_count = self._connection.executemany(delete, parameters).rowcount
        self._record_count += len(records)
        self._held_count += len(encoded.positions) - removed_count

    def load(self) -> Iterator[Record]:
        """See `Storage.load`. Records about a sample that damage took away are left out.

        Raises:
            Damaged: the file became unreadable since it was opened.
        """
        try:
            yield from self._load()
        except FAILURES as error:
            raise self._refusal(error) from error

    def payload(self, position: int) -> bytes:
        """See `Storage.payload`.

        Raises:
            KeyError: no such sample is held.
            Damaged: its bytes do not match their checksum, or the file cannot be read.
        """
        query = "SELECT body, checksum FROM payload WHERE position = ?"
        try:
            row = self._connection.execute(query, (position,)).fetchone()
        except FAILURES as error:
            raise self._refusal(error) from error
        if row is None:
            raise KeyError(position)
        body, checksum = row
        if not is_whole(self._stream, position, body, checksum):
            raise Damaged(
                f"{self.path}: the user data of sample {position} is damaged",
                remedy="Restart the service: it restores what is whole and reports the rest.",
            )
        return bytes(body)

    def worth_compacting(self) -> bool:
        """See `Storage.worth_compacting`."""
        live_count = 2 * self._held_count + self._kept_count
        return self._record_count - live_count > max(live_count, DEAD_RECORD_COUNT_MIN)

    def compact(self, keep: Iterable[Record]) -> None:
        """See `Storage.compact`. One transaction: whatever becomes of it, the old or the new content loads."""
        self._refuse_after_failure()
        records = list(keep)
        if any(report.kept_as is None for report in self.damage):
            self.damage = copy_aside(self._connection, self.path, self.damage)
        encoded = encode(records)
        with self._transaction():
            execute = self._connection.execute
            execute("CREATE TEMPORARY TABLE kept (position INTEGER PRIMARY KEY)")
            self._connection.executemany("INSERT INTO kept VALUES (?)", [(at,) for at in encoded.positions])
            execute("DELETE FROM payload WHERE position NOT IN (SELECT position FROM kept)")
            execute("DROP TABLE kept")
            execute("DELETE FROM batch")
            found = {position for (position,) in execute("SELECT position FROM payload")}
            fresh = [
                (position, data)
                for position, data in zip(encoded.positions, encoded.data, strict=True)
                if position not in found
            ]
            positions = [position for position, _ in fresh]
            self._insert(Encoded(encoded.metadata, positions, [data for _, data in fresh], []), len(records))
        self._record_count = len(records)
        self._held_count = len(encoded.positions)
        self._kept_count = len(records) - len(encoded.positions)

    def renew(self, keep: Iterable[Record]) -> None:
        """See `Storage.renew`. The whole database is copied first: pages of it may be in memory only."""
        try:
            self._connection = copy_anew(self._connection, self.path, self.settings, self._trace)
        except OSError as error:
            raise refusal(self.path, error, is_clean=True) from error
        except FAILURES as error:
            raise self._refusal(error) from error
        self.compact(keep)

    def abandon(self) -> None:
        """See `Storage.abandon`."""
        with suppress(sqlite3.Error):
            self._connection.close()

    def destroy(self) -> None:
        """See `Storage.destroy`."""
        self.close()
        for suffix in ("", *SIDE_FILES):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def close(self) -> None:
        """See `Storage.close`."""
        try:
            self._connection.close()
        except FAILURES as error:
            raise self._refusal(error) from error
        if self._trace is not None:
            self._trace.close()
            self._trace = None

    def _compare(self, known: Extent | None) -> None:
        """Whether the file reaches as far as it did once."""
        if known is not None and known.kind == "database" and self._next_number <= known.index:
            missing = known.index + 1 - self._next_number
            what = f"the file was replaced by an older one, or deleted: {missing} batches of records are missing"
            self._tell(DamageReport(self.path, 0, 0, DamageKind.UNREADABLE, what))

    def _open(self) -> sqlite3.Connection:
        """A connection to a sound file; a damaged one is replaced by what can be read of it."""
        if self.path.stat().st_size and not is_sound(self.path):
            self.damage += salvage(self.path, self.settings)
        version = format_of(self.path)
        self.was_there = version == FORMAT_VERSION
        if version == FORMAT_VERSION and is_foreign(self.path, self._stream):
            self._tell(set_aside_foreign(self.path))
            os.close(open_private(self.path, os.O_RDWR))
            version = 0
        elif version == 0 and self.path.stat().st_size:
            self._report_unfinished()
        if version > FORMAT_VERSION:
            raise Refused(
                f"{self.path} has format {version}; this version reads format {FORMAT_VERSION}",
                remedy="Use the version of qsctl that wrote it.",
            )
        connection = connect(self.path, self.settings, self._trace)
        if version == 0:
            create_tables(connection, self._stream)
        elif version < FORMAT_VERSION:
            self._upgrade(connection)
        return connection

    def _upgrade(self, connection: sqlite3.Connection) -> None:
        """Give a file of version 0.1 the checksums of this one: all its rows, or none."""
        connection.execute("BEGIN IMMEDIATE")
        damaged_count = upgrade(connection, self._stream)
        claim(connection, self._stream)
        if damaged_count:
            connection.execute("ROLLBACK")
            what = f"{damaged_count} rows are damaged"
            report = DamageReport(self.path, 0, 0, DamageKind.CHECKSUM, what)
            self.damage += copy_aside(connection, self.path, [report])
            connection.execute("BEGIN IMMEDIATE")
            upgrade(connection, self._stream)
            claim(connection, self._stream)
        connection.execute("COMMIT")

    def _load(self) -> Iterator[Record]:
        check = bool(self.damage)
        held: set[int] = set()
        payloads = Payloads(self._connection, self._stream)
        removed: frozenset[int] | None = None
        expected: int | None = None
        for number, body in self._connection.execute("SELECT number, body FROM batch ORDER BY number"):
            if expected is not None and number != expected:
                self._report_missing(expected, number)
                check = True
            expected = number + 1
            for record in self._records_of(number, body):
                if isinstance(record, Enqueued):
                    payload = payloads.find(record.position)
                    if payload is None:
                        removed = self._removed_positions() if removed is None else removed
                        if record.position not in removed:
                            self._report_payload(record.position)
                            check = True
                            continue
                        payload = b""
                    held.add(record.position)
                    fill(record, "payload", payload)
                    yield record
                elif not (check or self.damage) or (position := position_of(record)) is None or position in held:
                    yield record
        if (expected or 1) < self._next_number:
            self._report_missing(expected or 1, self._next_number)
        self._report_stray(held)

    def _records_of(self, number: int, body: object) -> Iterator[Record]:
        if not isinstance(body, bytes):
            self._report(number, 0, 0, DamageKind.CHECKSUM, "no octets stand there")
            return
        found = scan(body, batch_marks(self._stream, number))
        for gap in found.gaps:
            self._report(number, gap.offset, gap.size_bytes, DamageKind.CHECKSUM, "bytes that match no checksum")
        for start, end in found.bodies:
            try:
                yield from decode_metadata(body[start:end])
            except UnreadableRecord as error:
                what = f"a record that this version cannot read: {error}"
                self._report(number, start, end - start, DamageKind.UNREADABLE, what)

    def _removed_positions(self) -> frozenset[int]:
        """The samples that some record removes: their payload is gone by right."""
        told = Positions()
        for number, body in self._connection.execute("SELECT number, body FROM batch"):
            bodies = scan(body, batch_marks(self._stream, number)).bodies if isinstance(body, bytes) else ()
            for start, end in bodies:
                with suppress(UnreadableRecord):  # `_records_of` tells of it
                    told.read(body[start:end])
        return frozenset(told.removed)

    def _insert(self, encoded: Encoded, record_count: int) -> None:
        if encoded.positions:
            checksums = payload_checksums(self._stream, encoded.positions, encoded.data)
            rows = zip(encoded.positions, checksums, encoded.data, strict=True)
            self._connection.executemany("INSERT INTO payload VALUES (?, ?, ?)", rows)
        body = frame(encoded.metadata, batch_marks(self._stream, self._next_number))
        self._connection.execute("INSERT INTO batch VALUES (?, ?, ?)", (self._next_number, record_count, body))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing.

        Raises:
            Damaged: the disk refused; nothing of the transaction is kept.
        """
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
            self._next_number += 1
        except FAILURES as error:
            cannot_undo = self.settings.journal_mode in {JournalMode.OFF, JournalMode.MEMORY}
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_NOMEM)
            self._failed = cannot_undo or (code & 0xFF) not in _UNDONE
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise self._refusal(error) from error

    def _count(self) -> None:
        """What the file holds, and the number of the next batch."""
        self._held_count = self._number("SELECT count(*) FROM payload")
        self._record_count = self._number(
            "SELECT total(record_count) FROM batch WHERE typeof(record_count) = 'integer'"
        )
        self._next_number = self._number(_LAST_NUMBER) + 1

    def _number(self, query: str) -> int:
        return int(self._connection.execute(query).fetchone()[0])

    def _report_unfinished(self) -> None:
        """Tell of a file without tables: a crash while it was made, or damage that leaves no trace of them."""
        size_bytes = self.path.stat().st_size
        what = "the file has no tables: begun and never finished"
        self._tell(DamageReport(self.path, 0, size_bytes, DamageKind.TORN_TAIL, what))

    def _report_missing(self, first: int, following: int) -> None:
        """Tell of batches that were stored and are not there."""
        what = f"{following - first} batches from number {first} are missing"
        self._tell(DamageReport(self.path, 0, 0, DamageKind.CHECKSUM, what))

    def _report_stray(self, held: set[int]) -> None:
        """Tell of user data whose metadata is not there."""
        stray = [at for (at,) in self._connection.execute("SELECT position FROM payload") if at not in held]
        if stray:
            what = f"the metadata of {len(stray)} samples is gone; the samples are left out"
            self._tell(DamageReport(self.path, 0, 0, DamageKind.CHECKSUM, what))

    def _report_payload(self, position: int) -> None:
        what = f"the user data of sample {position} is gone or damaged; the sample is left out"
        self._tell(DamageReport(self.path, 0, 0, DamageKind.PAYLOAD_MISSING, what))

    def _report(self, number: int, offset: int, size_bytes: int, kind: DamageKind, what: str) -> None:
        self._tell(DamageReport(self.path, offset, size_bytes, kind, f"in batch {number}: {what}"))

    def _tell(self, report: DamageReport) -> None:
        if report not in self.damage:
            self.damage.append(report)

    def _refuse_after_failure(self) -> None:
        if self._failed:
            raise Damaged(
                f"{self.path}: an earlier transaction could not be undone",
                remedy="Restart the service: it restores what is whole and reports the rest.",
            )

    def _refusal(self, error: sqlite3.Error | MemoryError) -> Damaged | Refused:
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            return Refused(f"{self.path}: another program keeps the file locked", remedy="Stop it, then start again.")
        return refusal(self.path, error, is_clean=not self._failed)
