"""Direct I/O: octets appended between two syncs are written past the page cache at the next sync [QS 2.14.2].

Decides: the size of the writes. A sync of the page cache writes whole pages, 4,096 octets for a record of 300; direct
I/O writes only the sectors with new octets.
"""

from __future__ import annotations

import errno
import mmap
import os
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final

from qsctl.storage.file_system import HOST, FileSystem
from qsctl.storage.names import write_all

SECTORS_BYTES: Final = (512, 4096)
"""Sizes of a disk's sectors: the smaller where the disk accepts it."""

_PIECE_BYTES: Final = 1 << 20
_NO_DIRECT: Final = frozenset({errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS})
"""Errors of a file system without direct writes, or without those of this size."""


class DirectTail:
    """The buffered end of an append-only file. One thread appends, another one may flush.

    Where the file system does not support direct I/O, it writes through the page cache.

    Args:
        path: of the file, which is not a link.
        descriptor: of the same file, open for reading and writing; the caller closes it.
        size_bytes: octets in use; the rest of the file reads as zeros.
        disk: the file's file system.
    """

    def __init__(self, path: Path, descriptor: int, size_bytes: int, disk: FileSystem = HOST) -> None:
        self._path = path
        self._disk = disk
        self._descriptor = descriptor
        self._direct = -1
        self._sectors = list(SECTORS_BYTES)
        self._buffer: mmap.mmap | None = None
        self._lock = Lock()
        self._pending: list[bytes] = []
        self._written_bytes = size_bytes
        self._sector: bytes | None = None
        """The last octets that were written: those of the sector that is not full; None: to be read from the file."""

    def append(self, data: bytes) -> None:
        """Buffer octets in memory until `flush`."""
        with self._lock:
            self._pending.append(data)

    def cut(self, size_bytes: int) -> None:
        """Drop octets beyond the new end; the caller truncates the file."""
        with self._lock:
            kept = b"".join(self._pending)[: max(0, size_bytes - self._written_bytes)]
            self._pending = [kept] if kept else []
            if size_bytes < self._written_bytes:
                self._written_bytes, self._sector = size_bytes, None

    def flush(self) -> None:
        """Write the buffered octets; they are durable after `fdatasync`.

        Raises:
            OSError: an I/O error occurs; any part may have been written.
        """
        with self._lock:
            if not self._pending:
                return
            data = b"".join(self._pending)
            while self._sectors and not self._is_written_directly(data):
                self._sectors.pop(0)
                self._sector = None
            if not self._sectors:
                write_all(self._descriptor, data, self._written_bytes, disk=self._disk)
            self._pending.clear()
            self._written_bytes += len(data)
            self._remember(data)

    def close(self) -> None:
        """Close the direct descriptor and drop octets that were not flushed."""
        self._pending.clear()
        if self._direct >= 0:
            self._disk.close(self._direct)
            self._direct = -1
        self._buffer = None

    def _is_written_directly(self, data: bytes) -> bool:
        """Write whole sectors, the first one with its former octets; return False where this sector size fails."""
        size = self._sectors[0]
        start = self._written_bytes // size * size
        try:
            if self._direct < 0:
                self._direct = self._opened()
            if self._direct < 0:
                return False
            if self._sector is None:
                self._sector = self._disk.read_at(self._descriptor, self._written_bytes - start, start)
            left = memoryview(self._sector + data)
            while left:
                piece, left = left[:_PIECE_BYTES], left[_PIECE_BYTES:]
                write_all(self._direct, self._aligned(piece, size), start, size, disk=self._disk)
                start += len(piece)
        except OSError as error:
            if error.errno in _NO_DIRECT:
                return False
            raise
        return True

    def _opened(self) -> int:
        """Open the file again for direct I/O; return -1 where this fails, or the path is of another file."""
        with suppress(OSError):
            descriptor = self._disk.open(self._path, os.O_WRONLY | os.O_DIRECT | os.O_CLOEXEC | os.O_NOFOLLOW)
            if self._disk.status(descriptor).is_same(self._disk.status(self._descriptor)):
                return descriptor
            self._disk.close(descriptor)
        return -1

    def _aligned(self, piece: memoryview, size: int) -> memoryview:
        """Copy the piece into aligned memory, padded with zeros to whole sectors."""
        whole = -(-len(piece) // size) * size
        if self._buffer is None or len(self._buffer) < whole:
            self._buffer = mmap.mmap(-1, max(mmap.PAGESIZE * 16, 1 << (whole - 1).bit_length()))
        self._buffer[: len(piece)] = piece
        self._buffer[len(piece) : whole] = bytes(whole - len(piece))
        return memoryview(self._buffer)[:whole]

    def _remember(self, data: bytes) -> None:
        if self._sector is not None:
            count = self._written_bytes % self._sectors[0]
            self._sector = (self._sector + data[-self._sectors[0] :])[-count:] if count else b""
