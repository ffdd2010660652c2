"""The log file that is open for writing: blocks allocated ahead, buffered octets, truncation [QS 2.14.2].

Decides: when octets are written to the operating system: where each turn waits for a sync, together with that; else at
once.
"""

from __future__ import annotations

from pathlib import Path

from qsctl.storage.file_system import FileSystem
from qsctl.storage.log._direct_tail import SECTORS_BYTES, DirectTail
from qsctl.storage.log.segment_file import allocate, is_same_file, read_frame, reserved_until
from qsctl.storage.names import write_all


class WrittenFile:
    """One file, open for appending.

    Args:
        path: its path.
        descriptor: open for reading and writing; this object closes it.
        length_bytes: the file's size; behind its content it reads as zeros.
        expected_bytes: the size that it is expected to reach; 0: unknown, and no blocks are allocated ahead.
        in_sectors: whether appended octets wait for `flush`, see `direct_tail`; else they are written at once.
        disk: the file's file system.
    """

    def __init__(
        self,
        path: Path,
        descriptor: int,
        length_bytes: int,
        *,
        expected_bytes: int,
        in_sectors: bool,
        disk: FileSystem,
    ) -> None:
        self.path = path
        self._disk = disk
        self._descriptor = descriptor
        self._length_bytes = length_bytes
        self._expected_bytes = expected_bytes
        self._in_sectors = in_sectors
        self._tail: DirectTail | None = None

    @property
    def is_there(self) -> bool:
        """Return whether the open file still exists under its name."""
        return is_same_file(self._descriptor, self.path, self._disk)

    def append(self, data: bytes, offset: int) -> None:
        """Append at the end, which is at `offset`; write at once where the disk may have no space for it later.

        Raises:
            OSError: an I/O error occurs; the caller must cut the file.
        """
        end = offset + len(data)
        self._reserve(end)
        if not self._in_sectors:
            write_all(self._descriptor, data, offset, disk=self._disk)
            return
        if self._tail is None:
            self._tail = DirectTail(self.path, self._descriptor, offset, self._disk)
        self._tail.append(data)
        if end > self._length_bytes:
            self._tail.flush()

    def overwrite(self, data: bytes, offset: int = 0) -> None:
        """Overwrite octets at an offset; no buffered octets may be waiting."""
        write_all(self._descriptor, data, offset, disk=self._disk)

    def cut(self, size_bytes: int) -> None:
        """Truncate the file.

        Raises:
            OSError: an I/O error occurs.
        """
        if self._tail is not None:
            self._tail.cut(size_bytes)
        self._disk.cut(self._descriptor, size_bytes)
        self._length_bytes = size_bytes

    def trim(self, size_bytes: int) -> None:
        """Release the blocks allocated behind the content."""
        if self._length_bytes > size_bytes or self._tail is not None:
            self.cut(size_bytes)

    def flush(self) -> None:
        """Write the buffered octets to the operating system, without a sync.

        Raises:
            OSError: an I/O error occurs; any part may have been written.
        """
        if self._tail is not None:
            self._tail.flush()

    def sync(self) -> None:
        """Write the buffered octets and make the file durable.

        Raises:
            OSError: an I/O error occurs; it is unknown which writes since the last sync are durable.
        """
        self.flush()
        self._disk.sync(self._descriptor)

    def read_frame(self, offset: int) -> tuple[tuple[int, int, int], bytes]:
        """Return the frame header at `offset` and its body, which is shorter where the file ends.

        Raises:
            OSError: an I/O error occurs.
        """
        return read_frame(self._descriptor, offset, self._disk)

    def close(self) -> None:
        """Close the file and drop octets that were not flushed."""
        if self._tail is not None:
            self._tail.close()
        self._disk.close(self._descriptor)

    def _reserve(self, size_bytes: int) -> None:
        """Allocate blocks ahead, so that a sync need not allocate any; nothing is written to them."""
        if not self._expected_bytes or size_bytes <= self._length_bytes:
            return
        until = reserved_until(self._length_bytes, size_bytes, self._expected_bytes)
        until += -until % SECTORS_BYTES[-1]
        if allocate(self._descriptor, self._length_bytes, until - self._length_bytes, self._disk):
            self._length_bytes = until
