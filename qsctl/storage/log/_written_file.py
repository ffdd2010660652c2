"""The file of a log that is written to: space allocated ahead, octets that wait for a sync, cuts [QS 2.14.2].

Decides: when octets reach the operating system. Where a turn waits for each sync, with it; else at once.
"""

from __future__ import annotations

from pathlib import Path

from qsctl.storage.file_system import FileSystem
from qsctl.storage.log._direct_tail import SECTORS_BYTES, DirectTail
from qsctl.storage.log.segment_file import allocate, is_same_file, read_frame, reserved_until
from qsctl.storage.names import write_all


class WrittenFile:
    """One file, open for appending; it is the log's until `close`.

    Args:
        path: its name.
        descriptor: it is open for reading and writing, and closed by this object.
        length_bytes: how long it is; behind its content it reads as zeros.
        expected_bytes: how long it is expected to become; 0: that is unknown, and no room is allocated ahead.
        in_sectors: what is appended waits for `flush`, see `direct_tail`; else it is written at once.
        disk: where it is.
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
        """Return whether it is still the file that has its name."""
        return is_same_file(self._descriptor, self.path, self._disk)

    def append(self, data: bytes, offset: int) -> None:
        """Write at its end, which is at `offset`; where there may be no room for it later, at once.

        Raises:
            OSError: the disk refuses; the caller must cut the file.
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
        """Write where something was written before, while nothing waits to be flushed."""
        write_all(self._descriptor, data, offset, disk=self._disk)

    def cut(self, size_bytes: int) -> None:
        """Let it end there.

        Raises:
            OSError: the disk refuses.
        """
        if self._tail is not None:
            self._tail.cut(size_bytes)
        self._disk.cut(self._descriptor, size_bytes)
        self._length_bytes = size_bytes

    def trim(self, size_bytes: int) -> None:
        """Give back the room behind its content."""
        if self._length_bytes > size_bytes or self._tail is not None:
            self.cut(size_bytes)

    def flush(self) -> None:
        """Hand to the operating system what waits.

        Raises:
            OSError: the disk refuses; any part of it may be there.
        """
        if self._tail is not None:
            self._tail.flush()

    def sync(self) -> None:
        """Make it durable.

        Raises:
            OSError: the disk refuses; what was written since the last sync may or may not be there.
        """
        self.flush()
        self._disk.sync(self._descriptor)

    def read_frame(self, offset: int) -> tuple[tuple[int, int, int], bytes]:
        """Return the frame header at `offset`, and as much of its body as is there.

        Raises:
            OSError: the disk refuses.
        """
        return read_frame(self._descriptor, offset, self._disk)

    def close(self) -> None:
        """Let go of it; what was not flushed is forgotten."""
        if self._tail is not None:
            self._tail.close()
        self._disk.close(self._descriptor)

    def _reserve(self, size_bytes: int) -> None:
        """Allocate room ahead: a sync then has no block to allocate. Nothing is written for it."""
        if not self._expected_bytes or size_bytes <= self._length_bytes:
            return
        until = reserved_until(self._length_bytes, size_bytes, self._expected_bytes)
        until += -until % SECTORS_BYTES[-1]
        if allocate(self._descriptor, self._length_bytes, until - self._length_bytes, self._disk):
            self._length_bytes = until
