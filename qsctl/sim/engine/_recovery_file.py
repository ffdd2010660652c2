"""Recognition of an integration engine's recovery database by its content, and its readable records.

Decides: whether a file is one; every command uses this, on a copy, so that the file is not changed. Its name and place
are irrelevant: renamed, moved or copied it is the same database. An earlier version's is recognised by its records, a
damaged one by its remains: the first page of all of them is the same, and the log beside it records its own extent.
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
from array import array
from collections import Counter
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from qsctl.config.filesystem import FilesystemSettings, JournalMode, Synchronization
from qsctl.core.integration.database import Database
from qsctl.core.integration.records import STREAM
from qsctl.errors import QsctlError, Refused
from qsctl.sim.engine._peers import DatabaseMade, Peers, PeersChanged, StoredRecord, peers_of_earlier
from qsctl.sim.engine._recovery_codec import RECOVERY_CODEC, DataLost
from qsctl.storage.damage import DamageKind, DamageReport
from qsctl.storage.sqlite.file import FORMAT_VERSION, MAGIC
from qsctl.storage.sqlite.store import SqliteStorage

KIND: Final = crc32(b"qsctl: recovery database of an integration engine")
"""Name used in the header, and in each checksum, of every such file, independent of the file's name."""
FORMAT: Final = 1
"""Of the records; an earlier version's files have none."""
LOG: Final = "-wal"

_QUIET: Final = FilesystemSettings(journal_mode=JournalMode.WAL, synchronization=Synchronization.OFF)
_PAGE_BYTES: Final = 4096
_HEADER_BYTES: Final = 100
_MOST_COPIES: Final = 20
_PAD_BYTES_MAX: Final = 1 << 30
"""A file from which more is missing has a damaged number of pages."""
_OPEN: Final = 2
"""In the header, of a file whose log may have what it has not: `RecoveryStore.close` makes it 1."""
_LOG_HEADER: Final = struct.Struct(">8I")
_FRAME_HEADER: Final = struct.Struct(">6I")
_LOG_MAGIC: Final = 0x377F0682
_LOG_VERSION: Final = 3_007_000


class RecoveryContent(NamedTuple):
    """The content of a recovery database, and the damage found in it."""

    database: Database
    peers: Peers
    made: DatabaseMade | None
    """The identity of the database; None: an earlier version wrote it, or the record is damaged."""
    damage: tuple[DamageReport, ...]
    is_current: bool
    """Whether the file can be written without conversion: it has this version's format and no damage."""
    lacks_log: bool = False
    """Whether its write-ahead log, which existed when the file was last written, is missing."""


def content_of(path: Path, folder: Path) -> RecoveryContent | None:
    """Return the readable content of a file, or None where nothing is readable or it is another kind of file.

    Args:
        path: the file, which is not changed.
        folder: an empty folder for copies.
    """
    copy = _copy(path, folder / "as-it-is")
    log = copy.with_name(copy.name + LOG)
    alone = _header(copy)
    is_ours_alone = alone[:16] == MAGIC and alone[68:72] == KIND.to_bytes(4)
    missing = ""
    if is_ours_alone and alone[18:19] == bytes([_OPEN]) and not log.exists():
        missing = f"its log {log.name} is not beside it: what was written last may be missing"
    elif is_ours_alone and log.exists() and _is_of_another(copy, log, folder):
        missing = f"the log {log.name} beside it is another database's: what was written last may be missing"
        log.unlink()
    damage = [DamageReport(path, 0, 0, DamageKind.UNREADABLE, missing)] if missing else []
    damage += _apply_log(path, copy, log) if log.exists() else []
    header = _header(copy)
    stream, version = int.from_bytes(header[68:72]), int.from_bytes(header[60:64])
    damage += _pad(path, copy, int.from_bytes(header[28:32]))
    if header[:16] == MAGIC and (stream != KIND or version == FORMAT_VERSION):
        content = _read(path, copy, stream)
        if content is not None:
            reports = (*damage, *content.damage)
            is_current = stream == KIND and not reports
            return content._replace(damage=reports, is_current=is_current, lacks_log=bool(missing))
    copy = _copy(path, folder / "first-page-anew")
    log = copy.with_name(copy.name + LOG)
    if copy.stat().st_size <= _PAGE_BYTES and not log.exists():
        return None
    _put_first_page(copy)
    damage = _apply_log(path, copy, log) if log.exists() else []
    content = _read(path, copy, KIND)
    if content is None:
        return None
    report = DamageReport(path, 0, _PAGE_BYTES, DamageKind.CHECKSUM, "the first page was damaged, and is rebuilt")
    return content._replace(damage=(*damage, report, *content.damage))


def make_database(path: Path, records: Iterable[StoredRecord]) -> None:
    """Create a database file with these records, and sync it; `path` must not exist.

    Raises:
        Damaged: an I/O error occurs.
    """
    settings = FilesystemSettings(journal_mode=JournalMode.DELETE, synchronization=Synchronization.FULL)
    with closing(SqliteStorage(path, settings, RECOVERY_CODEC, stream=KIND)) as storage:
        storage.append(list(records))


def _read(path: Path, copy: Path, stream: int) -> RecoveryContent | None:
    """Read the copy as a file of the stream kind `stream`, or return None where it has no record of an engine."""
    database, peers = Database(), Peers()
    made: DatabaseMade | None = None
    count = foreign_count = 0
    unreadable: list[int] = []
    try:
        with closing(SqliteStorage(copy, _QUIET, RECOVERY_CODEC, stream=stream)) as storage:
            for record in storage.load():
                if isinstance(record, DataLost):
                    unreadable.append(record.stored.position)
                    record = record.stored
                if record.stream != STREAM:
                    return None
                count += 1
                if isinstance(record, DatabaseMade):
                    made = record
                elif isinstance(record, PeersChanged):
                    foreign_count += made is not None and record.incarnation != made.incarnation
                    peers.apply(record)
                else:
                    database.apply(record)
            damage = [_placed(each, path) for each in storage.damage]
    except (QsctlError, sqlite3.Error, OSError):
        return None
    if not count:
        return None
    if made is None and stream == KIND:
        what = "the record of what the database is, and whose, is damaged"
        damage.append(DamageReport(path, 0, 0, DamageKind.CHECKSUM, what))
    if foreign_count:
        what = f"{foreign_count} transactions are another database's: the log beside it is not its own"
        damage.append(DamageReport(path, 0, 0, DamageKind.CHECKSUM, what))
    database.fail_unreadable(unreadable)
    if not peers.is_known:
        peers = peers_of_earlier(database)
    return RecoveryContent(database, peers, made, tuple(damage), False)


def _placed(report: DamageReport, path: Path) -> DamageReport:
    """Return the damage report of a copy with the path of the original file."""
    return DamageReport(path, report.offset, report.size_bytes, report.kind, report.what)


def _put_first_page(copy: Path) -> None:
    """Replace the first page of a copy by the page with which all recovery databases begin."""
    octets = copy.read_bytes()
    octets += bytes(-len(octets) % _PAGE_BYTES)  # it may be cut inside a page
    model = copy.with_name("model")
    make_database(model, ())
    first = bytearray(model.read_bytes()[:_PAGE_BYTES])
    first[28:32] = (len(octets) // _PAGE_BYTES).to_bytes(4)
    copy.write_bytes(bytes(first) + octets[_PAGE_BYTES:])


def _copy(path: Path, folder: Path) -> Path:
    """Copy a database with its log; repeat where the log was reset meanwhile, so that the copies are consistent.

    Raises:
        Refused: the log is reset during each attempt.
    """
    folder.mkdir()
    for _ in range(_MOST_COPIES):
        before = _log_generation(path)
        for suffix in ("", LOG, "-journal"):
            copied = folder / (path.name + suffix)
            copied.unlink(missing_ok=True)
            with suppress(FileNotFoundError):  # the log comes and goes
                shutil.copyfile(path.with_name(path.name + suffix), copied)
        if _log_generation(path) == before:
            return folder / path.name
    raise Refused(f"{path} changes too fast to be read", remedy="Try again, or stop the engine that uses it.")


def _log_generation(path: Path) -> bytes:
    """Return the header of the log, whose salts change whenever the log is reset; empty without a log."""
    try:
        with path.with_name(path.name + LOG).open("rb") as log:
            return log.read(_LOG_HEADER.size)
    except FileNotFoundError:
        return b""


def _is_of_another(copy: Path, log: Path, folder: Path) -> bool:
    """Return whether a log belongs to another database: applied to the copy, it changes the incarnation."""
    own = _incarnation_of(copy, folder / "alone")
    with_log = _incarnation_of(copy, folder / "with-log", log)
    return own is not None and with_log is not None and own != with_log


def _incarnation_of(copy: Path, folder: Path, log: Path | None = None) -> int | None:
    """Return the incarnation in the first record of a file, read with `log` or without; None: it is unreadable."""
    folder.mkdir()
    file = folder / copy.name
    shutil.copyfile(copy, file)
    if log is not None:
        shutil.copyfile(log, folder / log.name)
    with suppress(QsctlError, sqlite3.Error):
        storage = SqliteStorage(file, _QUIET, RECOVERY_CODEC, stream=KIND)
        with closing(storage):
            first = next(iter(storage.load()), None)
        return first.incarnation if isinstance(first, DatabaseMade) else None
    return None


def _pad(path: Path, copy: Path, page_count: int) -> list[DamageReport]:
    """Pad the copy of a truncated file, which SQLite refuses to read; return a report of the missing part."""
    size_bytes = copy.stat().st_size
    missing = page_count * _PAGE_BYTES - size_bytes
    if not 0 < missing < max(size_bytes, _PAD_BYTES_MAX):
        return []
    with copy.open("r+b") as file:
        file.truncate(page_count * _PAGE_BYTES)
    return [DamageReport(path, size_bytes, missing, DamageKind.CHECKSUM, "the file was cut")]


def _header(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(_HEADER_BYTES)


def _apply_log(path: Path, copy: Path, log: Path) -> list[DamageReport]:
    """Apply a log to the copy of a database, including frames after a damaged one; return a report of the damage.

    SQLite stops at the first frame whose checksum is wrong. A commit after that frame shows damage; without one, a
    crash interrupted the write.
    """
    octets = bytearray(log.read_bytes())
    size = _FRAME_HEADER.size + _PAGE_BYTES
    frames = [_FRAME_HEADER.unpack_from(octets, at) for at in range(_LOG_HEADER.size, len(octets) - size + 1, size)]
    if not frames:
        return []
    ((salts, _),) = Counter([_LOG_HEADER.unpack_from(octets)[4:6], *(each[2:4] for each in frames[:2])]).most_common(1)
    last = max((at for at, each in enumerate(frames, 1) if each[2:4] == salts and each[1]), default=0)
    if _applied_count(copy) >= last:
        return []
    header = (_LOG_MAGIC, _LOG_VERSION, _PAGE_BYTES, _LOG_HEADER.unpack_from(octets)[3], *salts)
    sums = _sums(struct.pack(">6I", *header), 0, 0)
    _LOG_HEADER.pack_into(octets, 0, *header, *sums)
    for at in range(last):
        start = _LOG_HEADER.size + at * size
        struct.pack_into(">2I", octets, start + 8, *salts)
        sums = _sums(octets[start : start + 8], *sums)
        sums = _sums(octets[start + _FRAME_HEADER.size : start + size], *sums)
        struct.pack_into(">2I", octets, start + 16, *sums)
    log.write_bytes(octets)
    _applied_count(copy)
    what = f"the log beside it is damaged, and was read on behind that: {last} pages"
    return [DamageReport(path.with_name(path.name + LOG), 0, 0, DamageKind.CHECKSUM, what)]


def _applied_count(copy: Path) -> int:
    """Let SQLite apply the log to the copy of a database; return the number of pages that it applied."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        return int(connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1])
    return 0


def _sums(octets: bytes | bytearray, first: int, second: int) -> tuple[int, int]:
    """Return the two running checksums of a write-ahead log over octets, read as little-endian words."""
    words = array("I", bytes(octets))
    for at in range(0, len(words), 2):
        first = (first + words[at] + second) & 0xFFFFFFFF
        second = (second + words[at + 1] + first) & 0xFFFFFFFF
    return first, second
