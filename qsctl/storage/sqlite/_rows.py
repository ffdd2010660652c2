"""The rows of a database file, with checksums that cover the file's owner and the row's number [QS 2.14].

A row of the table `batch` is a batch of records: `number` is the index of the first, `record_count` their number. A
snapshot is a row, too: `number` is the last index that it covers, and the count is negated.

Decides: the checks. A row of another file, or one in another row's place, is damage; so is a value of another type than
is written, for a database accepts any.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from zlib import crc32

from qsctl.storage._frames import Marks, numbered_marks
from qsctl.storage.codec import POSITION

_UNSIGNED: Final = 2**64 - 1


def stream_of(path: Path) -> int:
    """Return the owner of a file as 32 bits, derived from its name."""
    return crc32(path.name.encode())


def batch_marks(stream: int, number: int) -> Marks:
    """Return the magic numbers of the frames in a batch."""
    return numbered_marks(crc32(POSITION.pack(number & _UNSIGNED), stream))


def payload_checksums(stream: int, positions: Sequence[int], data: Sequence[bytes]) -> list[int]:
    """Return the checksums of payloads, each of which covers the file's owner and the position."""
    pack = POSITION.pack
    return [crc32(body, crc32(pack(position), stream)) for position, body in zip(positions, data, strict=True)]


def is_whole(stream: int, position: int, body: object, checksum: object) -> bool:
    """Return whether a payload is the one that was written for this position of this file."""
    return isinstance(body, bytes) and checksum == payload_checksum(stream, position, body)


def payload_checksum(stream: int, position: int, body: bytes) -> int:
    """Return the checksum of a payload, which covers the file's owner and the position."""
    return crc32(body, crc32(POSITION.pack(position & _UNSIGNED), stream))  # a damaged position may be negative


class Payloads:
    """A reader of payloads in mostly ascending order of positions, for which one pass over the table suffices."""

    def __init__(self, connection: sqlite3.Connection, stream: int) -> None:
        self._connection = connection
        self._stream = stream
        self._rows = connection.execute("SELECT position, body, checksum FROM payload ORDER BY position")
        self._next: tuple[int, object, object] | None = self._rows.fetchone()
        self._last_position = -1

    def find(self, position: int) -> bytes | None:
        """Return the payload at a position; None where it is missing or damaged."""
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
