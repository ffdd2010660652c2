"""The store of a queue without in-memory state, and of the service's state: a database file [QS 2.14].

Decides: the content of one transaction, and how `<journal_mode>`, `<synchronization>`, `<vacuum>` and `<trace_file>`
[QS Table 3.9] are applied to the database. `salvage` reads a damaged file, `rows` a row.

Under journal mode WAL with synchronization NORMAL a commit is not synced: a power failure may lose the latest
acknowledged records. Journal modes MEMORY and OFF cannot undo a transaction that a crash interrupted: the file is
damaged then.

Compared with the log and its checkpoints (`logged`), which can also read payloads from the disk, a database costs more
in small groups, and less memory. `tests/benchmarks/test_kinds_of_store.py` measured both behind a queue without
in-memory state, alternately, with journal mode DELETE, synchronization FULL and payloads of 256 octets, on two
processors that other programs used, too. The 99th percentile of a confirmed write, with a consumer that acknowledges at
once, in two rounds of 6 s each, and the octets written per sample:

===========  ================  ===============  ================  ===========
samples/s    p99: database     p99: log         octets: database  octets: log
===========  ================  ===============  ================  ===========
2,000        55 ms, 20 ms      21 ms, 11 ms     5,700 to 7,700    420 to 740
6,000        102 ms, 120 ms    21 ms, 28 ms     1,200 to 1,800    320 to 410
13,000       145 ms, 185 ms    11 ms, 519 ms    830 to 1,110      280 to 310
25,000       219 ms, 1,750 ms  43 ms, 143 ms    680 to 760        280
===========  ================  ===============  ================  ===========

10^6 samples in groups of 1,000:

=====================================  ==================  ===================
measured                               database            log
=====================================  ==================  ===================
filled: CPU time and octets a sample   14.7 µs, 375        16.7 µs, 518
consumed: CPU time and octets          16.6 µs, 812        19.7 µs, 111
restart of 10^6 held: CPU time         10.1 s              11.0 s
restart after 10^6 consumed            0.01 s              0.03 s
memory that this restart takes         618 MiB             789 MiB
size on the disk of 10^6 held          300 MB              280 MB
=====================================  ==================  ===================

So neither replaces the other. The log writes 2 to 14 times fewer octets and answers sooner, but for one of the eight
measurements. It takes some 180 octets more of memory a sample, for queues that are configured to keep no state there,
and no less time for a restart. Were all queues in the log, databases would still be needed for the service's state and
for the files of earlier versions.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from qsctl.config.filesystem import FilesystemSettings, JournalMode
from qsctl.errors import Damaged, Refused
from qsctl.storage.base import Extent, Shares, remaining
from qsctl.storage.codec import Record, RecordCodec, fill
from qsctl.storage.damage import DamageKind, DamageReport, refuse_loss
from qsctl.storage.names import open_private, unshare
from qsctl.storage.room import DiskFailed, is_refused_by_system, refusal
from qsctl.storage.sqlite._rows import Payloads, stream_of
from qsctl.storage.sqlite._salvage import salvage
from qsctl.storage.sqlite._tables import BATCHES, Tables, end_of
from qsctl.storage.sqlite._trace import StatementTrace
from qsctl.storage.sqlite._upgrade import upgrade
from qsctl.storage.sqlite.file import (
    CURRENT_FORMATS,
    EARLIER_FORMAT,
    FAILURES,
    FORMAT_VERSION,
    SIDE_FILES,
    WITH_MOVES,
    begun_and_unfinished,
    connect,
    copy_anew,
    copy_aside,
    create_tables,
    foreign,
    format_of,
    is_damaged,
    is_foreign,
    note_moves,
    set_aside_foreign,
)

DEAD_RECORD_COUNT_MIN: Final = 5_000
"""Bound below which a file is not compacted: reading this number of records takes some milliseconds."""

_UNDONE: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
"""Errors after which a transaction is undone, and the next one may succeed."""


class SqliteStorage:
    """The store in one database file: a row for each batch of records, a row for each held payload.

    One append is one transaction. One thread at a time may use it.

    Args:
        path: of the file.
        settings: the configured journal mode, synchronization, vacuum and trace file.
        codec: the codec of the records.
        known: its least extent, from the register.
        stream: the owner of the file, in 32 bits; None: derived from its name, see `sqlite_rows.stream_of`.
        discards_damaged: whether to continue with the intact records after a loss; else a loss is an error, and no file
            changes.

    Raises:
        InvalidInput: a link or a device is in the file's place.
        Damaged: records are lost, or an I/O error occurs.
        Refused: another program keeps the file locked.
    """

    def __init__(
        self,
        path: Path,
        settings: FilesystemSettings,
        codec: RecordCodec,
        known: Extent | None = None,
        *,
        stream: int | None = None,
        discards_damaged: bool = True,
    ) -> None:
        self.path = path
        self._discards_damaged = discards_damaged
        self._codec = codec
        self.settings = settings
        self._stream = stream_of(path) if stream is None else stream
        self.was_there = False
        self._failed = False
        self.damage: list[DamageReport] = begun_and_unfinished(path)
        self._refuse_missing(known)
        self._trace: StatementTrace | None = None
        if settings.trace_file is not None:
            self._trace = StatementTrace(path.parent / settings.trace_file)
        try:
            for suffix in ("", *SIDE_FILES):
                unshare(path.with_name(path.name + suffix))
            os.close(open_private(path, os.O_RDWR))
            self._use(self._open())
        except OSError as error:
            raise refusal(path, error, is_clean=True) from error
        except FAILURES as error:
            raise self._refusal(error) from error
        self._kept_count = 0
        self._compare(known)
        try:
            self._refuse_loss(self.damage)
        except Damaged:
            self.abandon()
            raise

    @property
    def extent(self) -> Extent:
        """Return the store's extent for the directory's register: less at the next opening means lost records."""
        return Extent("database", self.last_index)

    @property
    def last_index(self) -> int:
        """The index of the last record."""
        return self._tables.next_index - 1

    def append(self, records: Sequence[Record]) -> None:
        """Append the records, all or none; they are as durable as configured on return."""
        if not records:
            return
        tables, encoded = self._tables, self._codec.encode(records)
        count = sum(encoded.counts)
        with self._transaction():
            tables.insert_payloads(encoded.positions, encoded.data)
            tables.insert_batch(tables.next_index, count, encoded)
            gone_count = tables.delete_payloads(encoded.ended)
            if encoded.has_moves and not self._has_moves:
                note_moves(self._connection, has_moves=True)
        self._has_moves |= encoded.has_moves
        tables.next_index += count
        tables.record_count += count
        tables.held_count += len(encoded.positions) - gone_count

    def load(self) -> Iterator[Record]:
        """Yield every intact record in order, except those that `compact` dropped.

        Records about a sample that is lost through damage are left out.

        Raises:
            Damaged: the file became unreadable since it was opened.
        """
        return self._reading(self._load())

    def _reading(self, records: Iterator[Record]) -> Iterator[Record]:
        try:
            yield from records
        except FAILURES as error:
            raise self._refusal(error) from error

    def payloads(self, positions: Sequence[int]) -> Sequence[bytes]:
        """Return the payloads at ascending positions, for a queue that keeps payloads on disk only.

        Raises:
            KeyError: one of the samples is not held.
            Damaged: bytes do not match their checksum, or the file cannot be read.
        """
        try:
            return self._tables.payloads(positions)
        except ValueError as error:
            raise Damaged(
                f"{self.path}: {error}",
                remedy="Restart the service: it restores what is whole and reports the rest.",
            ) from error
        except FAILURES as error:
            raise self._refusal(error) from error

    def worth_compacting(self) -> bool:
        """Return whether obsolete records use more space than needed ones."""
        live_count = 2 * self._tables.held_count + self._kept_count
        return self._tables.record_count - live_count > max(live_count, DEAD_RECORD_COUNT_MIN)

    def compact(self, keep: Iterable[Record]) -> None:
        """Replace all records by the snapshot `keep`, atomically.

        It is one transaction: after a crash either the old or the new content loads.
        """
        self._refuse_after_failure()
        records = list(keep)
        if any(report.kept_as is None for report in self.damage):
            self.damage = copy_aside(self._connection, self.path, self.damage)
        with self._transaction():
            self._tables.replace(records)
            note_moves(self._connection, has_moves=False)
        self._has_moves = False
        self._tables.count()
        self._kept_count = sum(type(each) is not self._codec.carrier for each in records)

    def compact_in_shares(self, kept: Shares) -> Iterator[None]:
        """Compact as `compact` does, in a single step."""
        self.compact(remaining(kept))
        yield

    def renew(self, keep: Iterable[Record]) -> None:
        """Compact as `compact` does, into new files: the last writes to the old ones may not have reached the disk.

        The whole database is copied first, because some of its pages may be in memory only.
        """
        try:
            self._use(copy_anew(self._connection, self.path, self.settings, self._trace))
        except OSError as error:
            raise refusal(self.path, error, is_clean=True) from error
        except FAILURES as error:
            raise self._refusal(error) from error
        self.compact(keep)

    def abandon(self) -> None:
        """Close the files without a sync, after a write or a sync failed."""
        with suppress(sqlite3.Error):
            self._connection.close()

    def destroy(self) -> None:
        """Close the store and delete its files."""
        self.close()
        for suffix in ("", *SIDE_FILES):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def close(self) -> None:
        """Sync as configured, and close the files."""
        try:
            self._connection.close()
        except FAILURES as error:
            raise self._refusal(error) from error
        if self._trace is not None:
            self._trace.close()
            self._trace = None

    def _use(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._tables = Tables(connection, self._stream, self._codec, self._report_row)

    def _compare(self, known: Extent | None) -> None:
        """Report records that are missing compared with the known extent."""
        if known is not None and known.kind == "database" and self.last_index < known.index:
            missing = known.index - self.last_index
            what = f"the file was replaced by an older one, or deleted: {missing} records are missing"
            self._report(DamageReport(self.path, 0, 0, DamageKind.UNREADABLE, what))

    def _open(self) -> sqlite3.Connection:
        """Return a connection to a sound file; a damaged one is replaced by one with its readable rows."""
        if size_bytes := self.path.stat().st_size:
            if is_damaged(self.path):
                what = "the database file is damaged, or it is none"
                self._refuse_loss([DamageReport(self.path, 0, size_bytes, DamageKind.CHECKSUM, what)])
                self.damage += salvage(self.path, self.settings, self._stream)
            else:
                self.damage += begun_and_unfinished(self.path)  # the check has undone what a crash interrupted
        version = format_of(self.path)
        self.was_there = version in CURRENT_FORMATS
        self._has_moves = version == WITH_MOVES
        if self.was_there and is_foreign(self.path, self._stream):
            self._refuse_loss([foreign(self.path)])
            self._report(set_aside_foreign(self.path))
            os.close(open_private(self.path, os.O_RDWR))
            version = 0
        elif version == 0 and self.path.stat().st_size:
            self._report_unfinished()
        if version not in (0, EARLIER_FORMAT, *CURRENT_FORMATS):
            raise Refused(
                f"{self.path} has format {version}; this version reads formats {EARLIER_FORMAT}, {FORMAT_VERSION} "
                f"and {WITH_MOVES}",
                remedy="Use the version of qsctl that wrote it.",
            )
        connection = connect(self.path, self.settings, self._trace)
        if version == 0:
            create_tables(connection, self._stream)
        elif version == EARLIER_FORMAT:
            try:
                self.damage += upgrade(connection, self.path, self._stream, self._refuse_loss)
            except BaseException:
                connection.close()
                raise
        return connection

    def _refuse_missing(self, known: Extent | None) -> None:
        """Refuse to continue with a missing or emptied file that is known to have had records."""
        if known is None or known.kind != "database" or not known.index:
            return
        if not self.path.exists() or self.damage:
            what = f"the file is {'empty' if self.damage else 'missing'}, and every record in it"
            self._refuse_loss([DamageReport(self.path, 0, 0, DamageKind.UNREADABLE, what)])

    def _refuse_loss(self, reports: Sequence[DamageReport]) -> None:
        if not self._discards_damaged:
            refuse_loss(reports, self.settings.synchronization)

    def _load(self) -> Iterator[Record]:
        check = bool(self.damage)
        held: set[int] = set()
        carrier, position_of = self._codec.carrier, self._codec.position_of
        payloads = Payloads(self._connection, self._stream)
        removed: frozenset[int] | None = None
        expected: int | None = None
        for number, count, body in self._connection.execute(BATCHES, (0,)):
            if expected is not None and number != expected:
                self._report_missing(expected, number)
                check = True
            expected = end_of(number, count)
            found_count = 0
            for record in self._tables.records_of(number, body):
                found_count += 1
                if isinstance(record, carrier):
                    payload = payloads.find(record.position)
                    if payload is None:
                        removed = self._tables.ended_positions() if removed is None else removed
                        if record.position not in removed:
                            check = True
                            substitute = self._codec.without_payload(record)
                            self._report_payload(record.position, is_left_out=substitute is None)
                            if substitute is not None:
                                held.add(record.position)
                                yield substitute
                            continue
                        payload = b""
                    held.add(record.position)
                    fill(record, "payload", payload)
                    yield record
                elif not (check or self.damage) or (position := position_of(record)) is None or position in held:
                    yield record
            if isinstance(count, int) and abs(count) != found_count:
                self._report_row(number, 0, 0, DamageKind.CHECKSUM, f"{found_count} records are there of {abs(count)}")
        if (expected or 1) < self._tables.next_index:
            self._report_missing(expected or 1, self._tables.next_index)
        self._report_stray(held)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run the block in a transaction, which is committed whole or not at all.

        Raises:
            Damaged: an I/O error occurred; nothing of the transaction is kept.
        """
        self._refuse_after_failure()
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except FAILURES as error:
            cannot_undo = self.settings.journal_mode in {JournalMode.OFF, JournalMode.MEMORY}
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_NOMEM)
            self._failed = cannot_undo or (code & 0xFF) not in _UNDONE
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise self._refusal(error) from error

    def _report_unfinished(self) -> None:
        """Report a file without tables: a crash interrupted its creation, or damage erased them."""
        size_bytes = self.path.stat().st_size
        what = "the file has no tables: begun and never finished"
        self._report(DamageReport(self.path, 0, size_bytes, DamageKind.TORN_TAIL, what))

    def _report_missing(self, first: int, following: int) -> None:
        """Report records that were stored and are missing."""
        what = f"{following - first} records from index {first} are missing"
        self._report(DamageReport(self.path, 0, 0, DamageKind.CHECKSUM, what))

    def _report_stray(self, held: set[int]) -> None:
        """Report payloads whose metadata is missing."""
        stray = [at for (at,) in self._connection.execute("SELECT position FROM payload") if at not in held]
        if stray:
            what = f"the metadata of {len(stray)} samples is gone; the samples are left out"
            self._report(DamageReport(self.path, 0, 0, DamageKind.CHECKSUM, what))

    def _report_payload(self, position: int, *, is_left_out: bool) -> None:
        fate = "left out" if is_left_out else "kept without it"
        what = f"the user data of sample {position} is gone or damaged; the sample is {fate}"
        self._report(DamageReport(self.path, 0, 0, DamageKind.PAYLOAD_MISSING, what))

    def _report_row(self, number: int, offset: int, size_bytes: int, kind: DamageKind, what: str) -> None:
        self._report(DamageReport(self.path, offset, size_bytes, kind, f"in the batch of record {number}: {what}"))

    def _report(self, report: DamageReport) -> None:
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
        if not is_refused_by_system(error):
            try:
                if not is_damaged(self.path):
                    return DiskFailed(f"{self.path}: {error}, at first", remedy="Mend the disk.")
            except OSError as failure:
                return refusal(self.path, failure, is_clean=False)
            except FAILURES:
                pass
        return refusal(self.path, error, is_clean=not self._failed)
