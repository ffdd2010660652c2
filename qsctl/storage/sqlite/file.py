"""A database file: its settings at each opening, the creation of its tables, and its integrity [QS Table 3.9]."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

from qsctl.config.filesystem import FilesystemSettings, Vacuum
from qsctl.storage.damage import DamageKind, DamageReport, set_aside_name
from qsctl.storage.names import open_private, sync_directory
from qsctl.storage.room import is_refused_by_system
from qsctl.storage.sqlite._trace import StatementTrace

FORMAT_VERSION: Final = 3
"""Format of new files. Files of format 1 (qsctl 0.1) are converted to it; format 2 was one of development versions.
"""

EARLIER_FORMAT: Final = 1

WITH_MOVES: Final = 4
"""Format of a file with records of samples that were moved in one step: versions up to 0.2 refuse it."""

CURRENT_FORMATS: Final = frozenset({FORMAT_VERSION, WITH_MOVES})

SIDE_FILES: Final = ("-journal", "-wal", "-shm")
"""Suffixes of the files that the database creates beside its own, depending on the journal mode."""

_FORMAT_VERSION_MAX: Final = 255
"""A larger number is no later version but damage."""

BUSY_TIMEOUT_S: Final = 5.0

FAILURES: Final = (sqlite3.Error, MemoryError)
"""Exceptions of the library for an I/O error or a damaged file: an absurd length in it exhausts memory."""

MAGIC: Final = b"SQLite format 3\0"
"""The first octets of every file of the library."""

_TABLES: Final = (
    "CREATE TABLE batch (number INTEGER PRIMARY KEY AUTOINCREMENT, record_count INTEGER NOT NULL, body BLOB NOT NULL)",
    "CREATE TABLE payload (position INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, body BLOB NOT NULL)",
)
_READ_BYTES: Final = 1 << 20

_SEQUENCE: Final = "CREATE TABLE sqlite_sequence(name,seq)"
"""Table that the library creates beside one that never reuses a number."""
_AUTO_VACUUM: Final = {Vacuum.NONE: 0, Vacuum.FULL: 1}


def connect(path: Path, settings: FilesystemSettings, trace: StatementTrace | None = None) -> sqlite3.Connection:
    """Return a connection with the configured settings; the file itself remembers only `<vacuum>`.

    Raises:
        sqlite3.Error: the file is not a database, is locked, or an I/O error occurs.
    """
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        if trace is not None:
            connection.set_trace_callback(trace.write)
        wanted = _AUTO_VACUUM[settings.vacuum]
        found = connection.execute("PRAGMA auto_vacuum").fetchone()[0]
        if found != wanted:  # to set what is set already takes room on the disk, too
            connection.execute(f"PRAGMA auto_vacuum = {wanted}")  # before the first table, else only VACUUM applies it
            if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
                connection.execute("VACUUM")
        connection.execute(f"PRAGMA journal_mode = {settings.journal_mode}")
        connection.execute(f"PRAGMA synchronous = {settings.synchronization}")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.text_factory = bytes  # what is damaged need not be text
    except FAILURES:
        connection.close()
        raise
    return connection


def create_tables(connection: sqlite3.Connection, stream: int) -> None:
    """Create the tables in a new file, in one transaction, and record its owner, see `sqlite_rows.stream_of`.

    Raises:
        sqlite3.Error: an I/O error occurs.
    """
    connection.execute("BEGIN IMMEDIATE")
    for statement in _TABLES:
        connection.execute(statement)
    claim(connection, stream)
    connection.execute("COMMIT")


def claim(connection: sqlite3.Connection, stream: int) -> None:
    """Record the format and the owner in a file, within a transaction of the caller's."""
    connection.execute(f"PRAGMA application_id = {_signed(stream)}")
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")


def note_moves(connection: sqlite3.Connection, *, has_moves: bool) -> None:
    """Record in a file whether it has moves, within a transaction of the caller's."""
    connection.execute(f"PRAGMA user_version = {WITH_MOVES if has_moves else FORMAT_VERSION}")


def is_foreign(path: Path, stream: int) -> bool:
    """Return whether an intact file records another store as its owner.

    Raises:
        sqlite3.Error: the file is locked, or an I/O error occurs.
    """
    with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        return bool(version in CURRENT_FORMATS and _application_id(connection) != _signed(stream))


def set_aside_foreign(path: Path) -> DamageReport:
    """Rename a file of another store, together with the database's side files.

    Raises:
        OSError: an I/O error occurs.
    """
    size_bytes, kept = path.stat().st_size, set_aside_name(path)
    for suffix in SIDE_FILES:
        beside = path.with_name(path.name + suffix)
        if beside.exists():
            beside.rename(kept.with_name(kept.name + suffix))
    path.rename(kept)
    return replace(foreign(path), size_bytes=size_bytes, kept_as=kept)


def foreign(path: Path) -> DamageReport:
    """Return the report of a file of another store."""
    what = "the file is of another store: it was renamed, or exchanged with another one"
    return DamageReport(path, 0, 0, DamageKind.FOREIGN, what)


def is_sound(path: Path) -> bool:
    """Check the integrity of the file, after completing or undoing what a crash interrupted.

    Raises:
        OSError, sqlite3.Error: the file is locked, or an I/O error occurs.
    """
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    connection.text_factory = bytes  # what is damaged need not be text
    try:
        rows = connection.execute("PRAGMA quick_check(1)").fetchall()
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema")}
    except (*FAILURES, UnicodeDecodeError) as error:  # the latter from a message that quotes what is damaged
        if is_refused_by_system(error):
            raise
        return False
    finally:
        connection.close()
    with path.open("rb") as file:  # now: the first page may have been on its way when the power failed
        head = file.read(20)
    if head and (head[:16] != MAGIC or not {*head[18:20]} <= {1, 2}):  # the latter: formats to be written and read
        return False
    if tables and _SEQUENCE.encode() not in tables:
        return False
    if version in CURRENT_FORMATS and tables not in (set(), {each.encode() for each in (*_TABLES, _SEQUENCE)}):
        return False
    return rows == [(b"ok",)] and (0 < version <= _FORMAT_VERSION_MAX if tables else version == 0)


def is_damaged(path: Path) -> bool:
    """Return whether a file is not sound, for another reason than a failure of the disk to read it.

    SQLite reports pages that the disk fails to read (EIO) like damaged pages.

    Raises:
        OSError, sqlite3.Error: the file is locked, or an I/O error occurs.
    """
    if is_sound(path):
        return False
    for suffix in ("", *SIDE_FILES):
        with contextlib.suppress(FileNotFoundError), path.with_name(path.name + suffix).open("rb") as file:
            while file.read(_READ_BYTES):
                pass
    return not is_sound(path)


def format_of(path: Path) -> int:
    """Return the format version of an intact file; 0 where nothing was written yet.

    Raises:
        sqlite3.Error: the file is locked, or an I/O error occurs.
    """
    with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def begun_and_unfinished(path: Path) -> list[DamageReport]:
    """Return the report of an empty file, which a crash during the store's creation leaves, or damage."""
    if path.is_file() and not path.is_symlink() and path.stat().st_size == 0:
        return [DamageReport(path, 0, 0, DamageKind.TORN_TAIL, "the file is empty: begun and never finished")]
    return []


def copy_anew(
    connection: sqlite3.Connection, path: Path, settings: FilesystemSettings, trace: StatementTrace | None
) -> sqlite3.Connection:
    """Replace a database by a copy that is fully synced; return the connection to the copy.

    Raises:
        OSError, sqlite3.Error: an I/O error occurs; the file is as before, and `connection` may be closed.
    """
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)
    descriptor = open_private(temporary, os.O_RDWR)
    try:
        with closing(sqlite3.connect(temporary)) as copy:
            connection.backup(copy)
        os.fsync(descriptor)
        connection.close()
        for suffix in SIDE_FILES:
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        temporary.rename(path)
        sync_directory(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    return connect(path, settings, trace)


def _application_id(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA application_id").fetchone()[0])


def _signed(stream: int) -> int:
    """Return 32 bits as a signed integer, as the database stores them."""
    return stream - (stream >> 31 << 32)


def copy_aside(connection: sqlite3.Connection, path: Path, damage: Sequence[DamageReport]) -> list[DamageReport]:
    """Copy a file in which damage was found; return the reports with the copy's name.

    Raises:
        OSError, sqlite3.Error: an I/O error occurs.
    """
    kept = set_aside_name(path)
    os.close(open_private(kept, os.O_RDWR))
    with closing(sqlite3.connect(kept)) as copy:
        connection.backup(copy)
    return [each if each.kept_as else replace(each, kept_as=kept) for each in damage]
