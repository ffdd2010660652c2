"""The upgrade of database files of qsctl 0.1 to the current format.

Decides: that a damaged file is kept beside the new one. The upgrade is one transaction: before its end the file is
unchanged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final
from zlib import crc32

from qsctl.storage._frames import constant_marks, frame, scan
from qsctl.storage.damage import DamageKind, DamageReport
from qsctl.storage.sqlite._rows import batch_marks, payload_checksum
from qsctl.storage.sqlite.file import claim, copy_aside

_FORMAT_1_MARK: Final = 0x5153_4442
"""Begins every record of a batch in a file of version 0.1, whose checksums cover the bytes and nothing else."""

_UNREADABLE: Final = -1


def upgrade(
    connection: sqlite3.Connection,
    path: Path,
    stream: int,
    refuse: Callable[[Sequence[DamageReport]], None],
) -> list[DamageReport]:
    """Upgrade a file of version 0.1 to the current format, all rows or none; return the damage found.

    `refuse` is called with the damage before the file changes, and may raise an error.

    Raises:
        OSError, sqlite3.Error: an I/O error occurs.
    """
    connection.execute("BEGIN IMMEDIATE")
    damage = _upgrade(connection, stream)
    claim(connection, stream)
    if not damage:
        connection.execute("COMMIT")
        return []
    connection.execute("ROLLBACK")
    found = [DamageReport(path, 0, 0, DamageKind.CHECKSUM, what) for what in damage]
    refuse(found)
    reports = copy_aside(connection, path, found)
    connection.execute("BEGIN IMMEDIATE")
    _upgrade(connection, stream)
    claim(connection, stream)
    connection.execute("COMMIT")
    return reports


def _upgrade(connection: sqlite3.Connection, stream: int) -> list[str]:
    """Rewrite the rows of a file of version 0.1 in the current format; return the damage found.

    Its batches, which were numbered one by one, become a snapshot. Damaged payloads get a checksum that does not match.
    """
    damage: list[str] = []
    bodies: list[bytes] = []
    gaps: list[bytes] = []
    last, total_count = 0, 0
    for number, count, body in connection.execute("SELECT number, record_count, body FROM batch ORDER BY number"):
        if last and number != last + 1:
            damage.append(f"{number - last - 1} batches from number {last + 1} are missing")
        last, total_count = number, total_count + (count if isinstance(count, int) else 0)
        if not isinstance(body, bytes):
            damage.append(f"batch {number} is damaged")
            continue
        found = scan(body, constant_marks(_FORMAT_1_MARK))
        bodies += [body[start:end] for start, end in found.bodies]
        gaps += [body[each.offset : each.offset + each.size_bytes] for each in found.gaps]
        if found.gaps or not found.bodies:
            damage.append(f"batch {number} is damaged")
    if last:
        snapshot = frame(bodies, batch_marks(stream, last)) + b"".join(gaps)
        connection.execute("DELETE FROM batch")
        connection.execute("INSERT INTO batch VALUES (?, ?, ?)", (last, -total_count, snapshot))
    return [*damage, *_upgrade_payloads(connection, stream)]


def _upgrade_payloads(connection: sqlite3.Connection, stream: int) -> list[str]:
    """Replace the checksums of a version 0.1 file's payloads by those of the current format."""
    damaged_count = 0
    payloads: list[tuple[int, int]] = []
    for position, body, checksum in connection.execute("SELECT position, body, checksum FROM payload"):
        whole = isinstance(body, bytes) and crc32(body) == checksum
        damaged_count += not whole
        payloads.append((payload_checksum(stream, position, body) if whole else _UNREADABLE, position))
    connection.executemany("UPDATE payload SET checksum = ? WHERE position = ?", payloads)
    return [f"{damaged_count} payloads are damaged"] if damaged_count else []
