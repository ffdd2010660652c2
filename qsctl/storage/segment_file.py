"""One numbered file of a segment log: a header written twice, then frames (manual, section 2.14.2).

Decides: what the file says of itself, and how it is read, cut and set aside. Which files make a log, and when a new
one begins, is `segment_log`'s.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from qsctl.storage.damage import DamageKind, DamageReport
from qsctl.storage.frames import FRAME_HEADER, Scan, end_mark, frame, scan
from qsctl.storage.names import open_private, refuse_link, sync_directory

FORMAT_VERSION: Final = 1

TEMPORARY: Final = ".tmp"
"""Follows the name of a file that is to replace another one and is not whole yet."""

_HEADER: Final = struct.Struct("<4sBBHIIQ")
_CHECKSUM: Final = struct.Struct("<I")
_COPY_SIZE_BYTES: Final = _HEADER.size + _CHECKSUM.size
_MAGIC: Final = b"QSLG"
_SYNC_AFTER_BYTES: Final = 1 << 20
_BASE: Final = 1
_REUSED: Final = 2

HEADER_SIZE_BYTES: Final = 2 * _COPY_SIZE_BYTES
"""Two copies: one damaged place does not cost the file."""


class SegmentHeader(NamedTuple):
    """What a file says of itself.

    `mark` begins every frame. `is_base`: the files of a lower index are superseded by this one. `size_before_bytes` is
    how long the file before it was when this one was begun: a shorter one has lost its end. `is_reused`: it was another
    file of the log before, whose frames, of another mark, are still there behind its end mark.
    """

    mark: int
    file_index: int
    is_base: bool = False
    size_before_bytes: int = 0
    is_reused: bool = False

    def encode(self) -> bytes:
        """The bytes at the start of the file."""
        flags = _BASE * self.is_base | _REUSED * self.is_reused
        one = _HEADER.pack(_MAGIC, FORMAT_VERSION, flags, 0, self.mark, self.file_index, self.size_before_bytes)
        return (one + _CHECKSUM.pack(crc32(one))) * 2


class SegmentContent(NamedTuple):
    """A file as read: its bytes and where the whole bodies are in them. `header` None: it cannot be read."""

    header: SegmentHeader | None
    buffer: bytes
    found: Scan


def decode_header(buffer: bytes) -> SegmentHeader | None:
    """What either copy says; None when neither can be read."""
    for start in (0, _COPY_SIZE_BYTES):
        one = buffer[start : start + _HEADER.size]
        stored = buffer[start + _HEADER.size : start + _COPY_SIZE_BYTES]
        if len(stored) == _CHECKSUM.size and _CHECKSUM.unpack(stored)[0] == crc32(one):
            magic, version, flags, _, mark, index, size_before_bytes = _HEADER.unpack(one)
            if magic == _MAGIC and version == FORMAT_VERSION:
                return SegmentHeader(mark, index, bool(flags & _BASE), size_before_bytes, bool(flags & _REUSED))
    return None


def read_bytes(path: Path, size_bytes: int = -1) -> bytes:
    """The first `size_bytes` of a file; by default all of it.

    Raises:
        InvalidInput: a link or a device stands there.
        OSError: the disk refuses.
    """
    refuse_link(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(size_bytes)


def read_segment(path: Path, assumed: SegmentHeader) -> SegmentContent:
    """Read and check a whole file. `assumed` is used where both copies of the header are damaged."""
    buffer = read_bytes(path)
    header = decode_header(buffer)
    return SegmentContent(header, buffer, find_bodies(buffer, header or assumed))


def find_bodies(buffer: bytes, header: SegmentHeader) -> Scan:
    """Where the bodies are in a file of this header."""
    return scan(buffer, header.mark, HEADER_SIZE_BYTES, has_end_mark=header.is_reused)


def reports_of(path: Path, content: SegmentContent) -> list[DamageReport]:
    """Every damaged place of a file."""
    size = len(content.buffer)
    if size < HEADER_SIZE_BYTES and content.buffer[:4] == _MAGIC[:size]:
        return [DamageReport(path, 0, size, DamageKind.TORN_TAIL, "the file was begun and never finished")]
    reports = []
    if content.header is None:
        what = "the file's header is damaged, or it is no segment file of this version"
        reports.append(DamageReport(path, 0, 0, DamageKind.UNREADABLE, what))
    elif content.buffer[:_COPY_SIZE_BYTES] != content.buffer[_COPY_SIZE_BYTES:HEADER_SIZE_BYTES]:
        what = "the file's header is damaged; its copy was used"
        reports.append(DamageReport(path, 0, 0, DamageKind.CHECKSUM, what))
    for gap in content.found.gaps:
        if gap.torn:
            kind, what = DamageKind.TORN_TAIL, "the last write was cut short"
        else:
            kind, what = DamageKind.CHECKSUM, "bytes that match no checksum"
        reports.append(DamageReport(path, gap.offset, gap.size_bytes, kind, what))
    return reports


def create_segment(path: Path, header: SegmentHeader) -> int:
    """A new file with its header, open for reading and writing.

    Raises:
        InvalidInput: a link or a device stands there.
        OSError: the disk refuses; the file is gone again.
    """
    descriptor = open_private(path, os.O_RDWR | os.O_TRUNC)
    try:
        write_all(descriptor, header.encode(), 0)
    except OSError:
        os.close(descriptor)
        path.unlink(missing_ok=True)
        raise
    return descriptor


def reuse_segment(spare: Path, path: Path, header: SegmentHeader) -> int:
    """A dead file under a new name, with a new header and nothing behind it; open for reading and writing.

    The name comes first: a crash between the two leaves a file whose header is not its own, which holds nothing.

    Raises:
        InvalidInput: a link or a device stands there.
        OSError: the disk refuses.
    """
    spare.rename(path)
    descriptor = open_private(path, os.O_RDWR)
    try:
        write_all(descriptor, header.encode() + end_mark(header.mark), 0)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def write_all(descriptor: int, data: bytes, offset: int) -> None:
    """Write every byte at `offset`, however often the operating system takes only a part."""
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        offset += written
        view = view[written:]


class Replacement:
    """A file under a temporary name, written in parts, that takes its place once it is whole.

    Raises:
        InvalidInput: a link or a device stands there.
        OSError: the disk refuses.
    """

    def __init__(self, path: Path, header: SegmentHeader) -> None:
        self.header = header
        self.size_bytes = HEADER_SIZE_BYTES
        self._path = path
        self._temporary = path.with_name(path.name + TEMPORARY)
        self._synced_bytes = 0
        self._descriptor = create_segment(self._temporary, header)

    def add(self, bodies: Iterable[bytes]) -> None:
        """Write more. Now and then it is synced, so that the last sync has little to do.

        Raises:
            OSError: the disk refuses; nothing is left of the file.
        """
        try:
            for batch in _batches(bodies):
                data = frame(batch, self.header.mark)
                write_all(self._descriptor, data, self.size_bytes)
                self.size_bytes += len(data)
            if self.size_bytes - self._synced_bytes > _SYNC_AFTER_BYTES:
                os.fdatasync(self._descriptor)
                self._synced_bytes = self.size_bytes
        except BaseException:
            self.abandon()
            raise

    def finish(self) -> int:
        """Take the place of whatever has the name, atomically and durably; gives the size.

        Raises:
            OSError: the disk refuses; what has the name stays.
        """
        try:
            os.fsync(self._descriptor)
            self._temporary.rename(self._path)
        except OSError:
            self.abandon()
            raise
        self._close()
        sync_directory(self._path.parent)
        return self.size_bytes

    def abandon(self) -> None:
        """Leave nothing behind."""
        self._close()
        self._temporary.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def replace_segment(path: Path, header: SegmentHeader, bodies: Iterable[bytes]) -> int:
    """Put a file with these bodies in the place of another one, atomically and durably; gives its size.

    Raises:
        InvalidInput: a link or a device stands there.
        OSError: the disk refuses; the file is as before.
    """
    replacement = Replacement(path, header)
    replacement.add(bodies)
    return replacement.finish()


def read_frame(descriptor: int, offset: int) -> tuple[tuple[int, int, int], bytes]:
    """The frame header at `offset`, and as much of its body as is there."""
    first = os.pread(descriptor, FRAME_HEADER.size + 4096, offset)
    if len(first) < FRAME_HEADER.size:
        return (0, 0, 0), b""
    header = FRAME_HEADER.unpack_from(first)
    body = first[FRAME_HEADER.size :][: header[1]]
    if len(body) < header[1]:
        body += os.pread(descriptor, header[1] - len(body), offset + len(first))
    return header, body


def _batches(bodies: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for body in bodies:
        batch.append(body)
        if len(batch) == 1000:
            yield batch
            batch = []
    if batch:
        yield batch
