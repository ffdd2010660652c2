"""The rows of a database file, each with a checksum that covers whose file it is and which row (manual, section 2.14).

Decides: what is checked. A row of another file, or one that stands in another one's place, is damage; so is a value of
a type that is never written, for a database takes any.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final
from zlib import crc32

from qsctl.storage.codec import POSITION
from qsctl.storage.frames import Marks, constant_marks, frame, numbered_marks, scan

_FORMAT_1_MARK: Final = 0x5153_4442
"""Begins every record of a batch in a file of version 0.1, whose checksums cover the bytes and nothing else."""

_UNREADABLE: Final = -1
_UNSIGNED: Final = 2**64 - 1


def stream_of(path: Path) -> int:
    """Whose file it is that has this name, in 32 bits."""
    return crc32(path.name.encode())


def batch_marks(stream: int, number: int) -> Marks:
    """What begins the frames in a batch."""
    return numbered_marks(crc32(POSITION.pack(number & _UNSIGNED), stream))


def payload_checksums(stream: int, positions: Sequence[int], data: Sequence[bytes]) -> list[int]:
    """The checksums of payloads, each in its place."""
    pack = POSITION.pack
    return [crc32(body, crc32(pack(position), stream)) for position, body in zip(positions, data, strict=True)]


def is_whole(stream: int, position: int, body: object, checksum: object) -> bool:
    """Whether a payload is what was written in this place of this file."""
    return isinstance(body, bytes) and checksum == _checksum(stream, position, body)


def _checksum(stream: int, position: int, body: bytes) -> int:
    return crc32(body, crc32(POSITION.pack(position & _UNSIGNED), stream))  # a damaged position may be negative


class Payloads:
    """Payloads asked for in the order of their positions, mostly: one pass over the table serves them."""

    def __init__(self, connection: sqlite3.Connection, stream: int) -> None:
        self._connection = connection
        self._stream = stream
        self._rows = connection.execute("SELECT position, body, checksum FROM payload ORDER BY position")
        self._next: tuple[int, object, object] | None = self._rows.fetchone()
        self._last_position = -1

    def find(self, position: int) -> bytes | None:
        """The payload; None when there is none, or it is damaged."""
        row: tuple[object, object] | None
        if position <= self._last_position:
            query = "SELECT body, checksum FROM payload WHERE position = ?"
            row = self._connection.execute(query, (position,)).fetchone()
        else:
            self._last_position = position
            while self._next is not None and self._next[0] < position:
                self._next = self._rows.fetchone()
            row = self._next[1:] if self._next is not None and self._next[0] == position else None
        if row is None or not is_whole(self._stream, position, *row):
            return None
        body = row[0]
        assert isinstance(body, bytes)
        return body


def upgrade(connection: sqlite3.Connection, stream: int) -> int:
    """Give the rows of a file of version 0.1 the checksums of this one, within a transaction of the caller's.

    Gives the number of rows that were damaged: they stay what they are, and no checksum fits them.

    Raises:
        sqlite3.Error: the disk refuses.
    """
    damaged_count = 0
    batches: list[tuple[bytes, int]] = []
    for number, body in connection.execute("SELECT number, body FROM batch"):
        found = scan(body, constant_marks(_FORMAT_1_MARK)) if isinstance(body, bytes) else None
        if found is None or found.gaps:
            damaged_count += 1
        if found is not None:
            bodies: Iterable[bytes] = (body[start:end] for start, end in found.bodies)
            gap = b"".join(body[each.offset : each.offset + each.size_bytes] for each in found.gaps)
            batches.append((frame(bodies, batch_marks(stream, number)) + gap, number))
    connection.executemany("UPDATE batch SET body = ? WHERE number = ?", batches)
    payloads: list[tuple[int, int]] = []
    for position, body, checksum in connection.execute("SELECT position, body, checksum FROM payload"):
        whole = isinstance(body, bytes) and crc32(body) == checksum
        damaged_count += not whole
        payloads.append((_checksum(stream, position, body) if whole else _UNREADABLE, position))
    connection.executemany("UPDATE payload SET checksum = ? WHERE position = ?", payloads)
    return damaged_count
