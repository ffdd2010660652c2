"""The salvage of a damaged database file: readable rows are copied to a new one; the damaged file is kept beside it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from qsctl.config.filesystem import FilesystemSettings, JournalMode, Synchronization
from qsctl.storage.damage import DamageKind, DamageReport, set_aside_name
from qsctl.storage.names import open_private, sync_directory
from qsctl.storage.room import is_refused_by_system
from qsctl.storage.sqlite.file import EARLIER_FORMAT, FAILURES, SIDE_FILES, WITH_MOVES, connect, create_tables

_BATCHES = "SELECT * FROM batch ORDER BY 1"
_PAYLOADS = "SELECT * FROM payload ORDER BY 1"
_HEADER_SIZE_BYTES = 100
_USER_VERSION = slice(60, 64)
"""Offset of the format in the header of a database file."""


def salvage(path: Path, settings: FilesystemSettings, stream: int) -> list[DamageReport]:
    """Replace a damaged file by one with every readable row; each table is read from both ends.

    The new file, owned by `stream`, replaces the old one atomically; the old one stays as `<name>.damaged`.

    Raises:
        OSError, sqlite3.Error: an I/O error occurs; the damaged file stays in place.
    """
    size_bytes, version = path.stat().st_size, _other_format(path)
    batches, batches_whole = _rows_from_both_ends(path, _BATCHES)
    payloads, payloads_whole = _rows_from_both_ends(path, _PAYLOADS)
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)
    os.close(open_private(temporary, os.O_RDWR))
    quick = FilesystemSettings(
        journal_mode=JournalMode.OFF, synchronization=Synchronization.FULL, vacuum=settings.vacuum
    )
    with closing(connect(temporary, quick)) as connection:
        create_tables(connection, stream)
        if version:
            connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO batch VALUES (?, ?, ?)", batches)
        connection.executemany("INSERT INTO payload VALUES (?, ?, ?)", payloads)
        connection.execute("COMMIT")
    kept = set_aside_name(path)
    os.link(path, kept)
    for suffix in SIDE_FILES:
        beside = path.with_name(path.name + suffix)
        if beside.exists():
            beside.rename(kept.with_name(kept.name + suffix))
    temporary.rename(path)
    sync_directory(path.parent)
    missing = _missing(batches)
    what = f"the database file is damaged: {len(batches)} batches and {len(payloads)} payloads were read"
    if missing or not (batches_whole and payloads_whole):
        what += f", {missing} records between them and an unknown number after them were not"
    return [DamageReport(path, 0, size_bytes, DamageKind.CHECKSUM, what, kept)]


def _rows_from_both_ends(path: Path, query: str) -> tuple[list[tuple[int, int, bytes]], bool]:
    """Return the readable rows by key, and whether the table could be read to its end."""
    rows: dict[int, tuple[int, int, bytes]] = {}
    whole = _read_rows(path, query, rows)
    if not whole:
        _read_rows(path, f"{query} DESC", rows)
    return [rows[key] for key in sorted(rows)], whole


def _read_rows(path: Path, query: str, rows: dict[int, tuple[int, int, bytes]]) -> bool:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.text_factory = bytes  # what is damaged need not be text
    try:
        for first, second, body in connection.execute(query):
            if isinstance(first, int) and isinstance(second, int) and isinstance(body, bytes):
                rows[first] = (first, second, body)
    except (*FAILURES, OverflowError, UnicodeDecodeError) as error:
        if is_refused_by_system(error):
            raise
        return False
    finally:
        connection.close()
    return True


def _other_format(path: Path) -> int:
    """Return the format of the rows where it is not the current one, else 0; a damaged format counts as the current
    one.
    """
    with path.open("rb") as file:
        header = file.read(_HEADER_SIZE_BYTES)
    version = int.from_bytes(header[_USER_VERSION])
    return version if version in (EARLIER_FORMAT, WITH_MOVES) else 0


def _missing(batches: list[tuple[int, int, bytes]]) -> int:
    """Return the number of records missing between the batches that were read."""
    ends = [number + max(count, 1) for number, count, _ in batches]
    return sum(max(0, number - end) for end, (number, _, _) in zip(ends, batches[1:], strict=False))
