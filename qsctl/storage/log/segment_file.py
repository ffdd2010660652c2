"""One numbered file of a segment log: a header written twice, then frames [QS 2.14.2].

Decides: the header, and how a file is created, read, checked and replaced. `segment_log` decides which files form a
log, and when a new one begins.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, Never
from zlib import crc32

from qsctl.errors import Refused
from qsctl.storage._frames import FRAME_HEADER, Marks, Scan, constant_marks, frame, numbered_marks, scan
from qsctl.storage.damage import DamageKind, DamageReport
from qsctl.storage.file_system import FileSystem
from qsctl.storage.names import open_private, read_whole, refuse_link, write_all

FORMAT_VERSION: Final = 2
"""The format of new files. Files of format 1 (qsctl 0.1) are read: they do not name their stream, and do not number
frames.
"""

TEMPORARY: Final = ".tmp"
"""Follows the name of a file that is to replace another one and is not whole yet."""

_HEADER: Final = struct.Struct("<4sBBHIIQ")
_CHECKSUM: Final = struct.Struct("<I")
_COPY_SIZE_BYTES: Final = _HEADER.size + _CHECKSUM.size
_MAGIC: Final = b"QSLG"
_SYNC_AFTER_BYTES: Final = 1 << 20
_MARK_STEP: Final = 0x9E3779B1
"""From the mark of one file to that of the next: what a file held in its earlier life has another mark."""

_FORMAT_1: Final = 1
_STREAM_MASK: Final = 0xFFFF
_BASE: Final = 1
_MOVES: Final = 16
"""Flags of a header. A version refuses a file with a flag that it does not know, as those up to 0.2 do for the second.
Development versions had another one, 2."""

_RESERVE_BYTES_MIN: Final = 64 * 1024
_RESERVE_BYTES_MAX: Final = 1024 * 1024
"""Bound on the bytes allocated ahead at a time: a queue that is hardly used reserves little of the disk."""

_NOT_AHEAD: Final = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of a file system that cannot allocate ahead, or not as much: files grow with each append then."""

_LAST_BATCH: Final = 1 / 16
"""Expected excess of a file's last batch over the maximum size, as a fraction of it."""

HEADER_SIZE_BYTES: Final = 2 * _COPY_SIZE_BYTES
"""Two copies: one damaged place does not cost the file."""


class SegmentHeader(NamedTuple):
    """The header of a file.

    `mark` is random: the magic number of every frame is derived from it and from `stream`, the owner of the file, see
    `stream_of`. `is_base`: this file supersedes all files of a lower index. `size_before_bytes` is the size of the file
    before it when this one was begun, or that of a base itself when it was finished: if it is shorter now, it has lost
    its end. `has_moves`: the file has records of samples that were moved in one step, which versions up to 0.2 cannot
    read. `unknown_flags`: flags of other versions.
    """

    mark: int
    file_index: int
    stream: int
    is_base: bool = False
    size_before_bytes: int = 0
    has_moves: bool = False
    unknown_flags: int = 0
    version: int = FORMAT_VERSION

    @property
    def marks(self) -> Marks:
        """The magic numbers of the file's frames."""
        return constant_marks(self.mark) if self.version == _FORMAT_1 else numbered_marks(self.mark ^ self.stream)

    def encode(self) -> bytes:
        """Return the header as octets."""
        flags = _BASE * self.is_base | _MOVES * self.has_moves | self.unknown_flags
        whose = 0 if self.version == _FORMAT_1 else self.stream & _STREAM_MASK
        one = _HEADER.pack(_MAGIC, self.version, flags, whose, self.mark, self.file_index, self.size_before_bytes)
        return (one + _CHECKSUM.pack(crc32(one))) * 2


def begun_header(log_mark: int, index: int, stream: int) -> SegmentHeader:
    """Return the header of a new file, in a log whose magic numbers are derived from `log_mark`."""
    return SegmentHeader((log_mark + index * _MARK_STEP) % 2**32 or 1, index, stream)


def first_mark(header: SegmentHeader) -> int:
    """Return the random number of the log that this file's magic numbers are derived from."""
    return (header.mark - header.file_index * _MARK_STEP) % 2**32


class SegmentContent(NamedTuple):
    """The octets of a file, and the offsets of the intact bodies in them; `header` is None where it is unreadable."""

    header: SegmentHeader | None
    buffer: bytes
    found: Scan


def refuse_unknown_forms(headers: Mapping[Path, SegmentHeader]) -> None:
    """Refuse to open files of which one has a flag that this version does not support.

    Raises:
        Refused: a file has such a flag.
    """
    for path, header in headers.items():
        if header.unknown_flags:
            refuse_form(path)


def refuse_form(path: Path) -> Never:
    """Refuse a file whose form only another version supports.

    Raises:
        Refused: always.
    """
    raise Refused(
        f"{path} has a form that this version does not read",
        remedy="Consume what is in it with the version that wrote it, then delete it; or move it away.",
    )


def stream_of(path: Path) -> int:
    """Return the owner of a file as 32 bits, derived from its name without the index."""
    return crc32(path.name.removesuffix(".db").rstrip("0123456789").encode())


class FrameBatch(NamedTuple):
    """Encoded frames and their place in a log."""

    file_index: int
    offset: int
    frames: bytes
    frame_count: int


def reserved_until(reserved_bytes: int, size_bytes: int, file_max_size_bytes: int) -> int:
    """Return the size to allocate ahead for a file that has the given number of bytes now."""
    ahead = min(max(reserved_bytes, _RESERVE_BYTES_MIN), _RESERVE_BYTES_MAX)
    return size_bytes + max(0, min(ahead, int(file_max_size_bytes * (1 + _LAST_BATCH)) - size_bytes))


def decode_header(buffer: bytes, stream: int) -> SegmentHeader | None:
    """Return the header from either copy; None where both are unreadable, or the file is of another stream."""
    return next((header for header, is_ours in _headers(buffer, stream) if is_ours), None)


def is_foreign(buffer: bytes, stream: int) -> bool:
    """Return whether a readable header names another stream."""
    return any(not is_ours for _, is_ours in _headers(buffer, stream))


def _headers(buffer: bytes, stream: int) -> Iterator[tuple[SegmentHeader, bool]]:
    """Yield the readable copies of the header, and whether each is of this stream."""
    for start in (0, _COPY_SIZE_BYTES):
        one = buffer[start : start + _HEADER.size]
        stored = buffer[start + _HEADER.size : start + _COPY_SIZE_BYTES]
        if len(stored) == _CHECKSUM.size and _CHECKSUM.unpack(stored)[0] == crc32(one):
            magic, version, flags, whose, mark, index, size_before_bytes = _HEADER.unpack(one)
            if magic == _MAGIC and version in (_FORMAT_1, FORMAT_VERSION):
                header = SegmentHeader(
                    mark,
                    index,
                    stream,
                    bool(flags & _BASE),
                    size_before_bytes,
                    bool(flags & _MOVES),
                    flags & ~(_BASE | _MOVES),
                    version,
                )
                yield header, version == _FORMAT_1 or whose == stream & _STREAM_MASK


def read_segment(path: Path, assumed: SegmentHeader, size_bytes: int, disk: FileSystem) -> SegmentContent:
    """Read and check the first octets of a file, -1: all. `assumed` is used if both copies of the header are
    damaged.
    """
    buffer = read_whole(path, disk, size_bytes)
    header = decode_header(buffer, assumed.stream)
    return SegmentContent(header, buffer, find_bodies(buffer, header or assumed))


def find_bodies(buffer: bytes, header: SegmentHeader) -> Scan:
    """Return the places of the bodies in a file with this header."""
    return scan(buffer, header.marks, HEADER_SIZE_BYTES)


def is_unfinished(content: SegmentContent) -> bool:
    """Return whether the file was never synced: its header, which any sync covers, is truncated or zeros."""
    buffer, size = content.buffer, len(content.buffer)
    if size < HEADER_SIZE_BYTES and buffer[:4] == _MAGIC[:size]:
        return True
    return content.header is None and not any(buffer[:HEADER_SIZE_BYTES]) and not content.found.bodies


def reports_of(path: Path, content: SegmentContent) -> list[DamageReport]:
    """Return a report for each damaged place of a file."""
    size = len(content.buffer)
    if is_unfinished(content):
        return [DamageReport(path, 0, size, DamageKind.TORN_TAIL, "the file was begun and never finished")]
    reports = []
    if content.header is None:
        kind, what = DamageKind.UNREADABLE, "the file's header is damaged, or it is not a segment file of this version"
        stream = stream_of(path)
        if is_foreign(content.buffer, stream):
            kind = DamageKind.FOREIGN
            what = "the file is of another store: it was renamed, or exchanged with another one"
        elif (renamed := decode_header(content.buffer, stream)) is not None:
            what = f"the file was written with the index {renamed.file_index}: it was renamed"
        reports.append(DamageReport(path, 0, 0, kind, what))
    elif content.buffer[:_COPY_SIZE_BYTES] != content.buffer[_COPY_SIZE_BYTES:HEADER_SIZE_BYTES]:
        what = "the file's header is damaged; its copy was used"
        reports.append(DamageReport(path, 0, 0, DamageKind.MENDED, what))
    for gap in content.found.gaps:
        if gap.torn:
            kind, what = DamageKind.TORN_TAIL, "the last write was cut short"
        elif not gap.size_bytes:
            kind, what = DamageKind.CHECKSUM, "records that were written here are missing"
        else:
            kind, what = DamageKind.CHECKSUM, "bytes that match no checksum"
        reports.append(DamageReport(path, gap.offset, gap.size_bytes, kind, what))
    return reports


def create_segment(path: Path, header: SegmentHeader, disk: FileSystem) -> int:
    """Create a file with its header; return a descriptor for reading and writing.

    Raises:
        InvalidInput: a symbolic link or a device is at the path.
        OSError: an I/O error occurs; the file was deleted again.
    """
    descriptor = open_private(path, os.O_RDWR | os.O_TRUNC, disk)
    try:
        write_all(descriptor, header.encode(), 0, disk=disk)
    except OSError:
        disk.close(descriptor)
        disk.unlink(path)
        raise
    return descriptor


def is_same_file(descriptor: int, path: Path, disk: FileSystem) -> bool:
    """Return whether the open file is the one at `path`."""
    try:
        return disk.status(descriptor).is_same(disk.status_at(path))
    except OSError:
        return False


def allocate(descriptor: int, offset: int, size_bytes: int, disk: FileSystem) -> bool:
    """Allocate disk blocks, which read as zeros; return False where the file system cannot, or has too few.

    Raises:
        OSError: an I/O error occurs.
    """
    try:
        disk.allocate(descriptor, offset, size_bytes)
    except OSError as error:
        if error.errno in _NOT_AHEAD:
            return False
        raise
    return True


class Replacement:
    """A file that is written in parts under a temporary name, and renamed to its name once it is complete.

    Raises:
        InvalidInput: a symbolic link or a device is at the path.
        OSError: an I/O error occurs.
    """

    def __init__(self, path: Path, header: SegmentHeader, disk: FileSystem) -> None:
        self.header = header
        self._disk = disk
        self.size_bytes = HEADER_SIZE_BYTES
        self.frame_count = 0
        self._path = path
        self._temporary = path.with_name(path.name + TEMPORARY)
        self._synced_bytes = 0
        self._descriptor = create_segment(self._temporary, header, disk)

    def add(self, bodies: Iterable[bytes]) -> None:
        """Append bodies; the file is synced at intervals, so that the last sync is short.

        Raises:
            OSError: an I/O error occurs; the temporary file was deleted.
        """
        try:
            for batch in _batches(bodies):
                data = frame(batch, self.header.marks, self.frame_count)
                write_all(self._descriptor, data, self.size_bytes, disk=self._disk)
                self.size_bytes += len(data)
                self.frame_count += len(batch)
            if self.size_bytes - self._synced_bytes > _SYNC_AFTER_BYTES:
                self._disk.sync(self._descriptor)
                self._synced_bytes = self.size_bytes
        except BaseException:
            self.abandon()
            raise

    def finish(self) -> int:
        """Rename the file to its name, atomically and durably, replacing an older one; return its size.

        Raises:
            OSError: an I/O error occurs; the older file stays.
        """
        try:
            if self.header.is_base:
                self.header = self.header._replace(size_before_bytes=self.size_bytes)
                write_all(self._descriptor, self.header.encode(), 0, disk=self._disk)
            self._disk.sync_all(self._descriptor)
            self._disk.rename(self._temporary, self._path)
        except OSError:
            self.abandon()
            raise
        self._close()
        self._disk.sync_directory(self._path.parent)
        return self.size_bytes

    def abandon(self) -> None:
        """Delete the temporary file."""
        self._close()
        self._disk.unlink(self._temporary)

    def _close(self) -> None:
        if self._descriptor >= 0:
            self._disk.close(self._descriptor)
            self._descriptor = -1


def replace_segment(path: Path, header: SegmentHeader, bodies: Iterable[bytes], disk: FileSystem) -> int:
    """Replace a file by one with these bodies, atomically and durably; return its size.

    Raises:
        InvalidInput: a symbolic link or a device is at the path.
        OSError: an I/O error occurs; the file is as before.
    """
    replacement = Replacement(path, header, disk)
    replacement.add(bodies)
    return replacement.finish()


def read_frame(descriptor: int, offset: int, disk: FileSystem) -> tuple[tuple[int, int, int], bytes]:
    """Return the frame header at `offset` and its body, which is shorter where the file ends."""
    first = disk.read_at(descriptor, FRAME_HEADER.size + 4096, offset)
    if len(first) < FRAME_HEADER.size:
        return (0, 0, 0), b""
    header = FRAME_HEADER.unpack_from(first)
    body = first[FRAME_HEADER.size :][: header[1]]
    if len(body) < header[1]:
        body += disk.read_at(descriptor, header[1] - len(body), offset + len(first))
    return header, body


def read_frame_of(path: Path, offset: int, disk: FileSystem) -> tuple[tuple[int, int, int], bytes]:
    """Return the header fields and the body of a frame in a file that is not open.

    Raises:
        InvalidInput: a symbolic link or a device is at the path.
        OSError: the file is missing, or an I/O error occurs.
    """
    refuse_link(path, disk)
    descriptor = disk.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        return read_frame(descriptor, offset, disk)
    finally:
        disk.close(descriptor)


def _batches(bodies: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for body in bodies:
        batch.append(body)
        if len(batch) == 1000:
            yield batch
            batch = []
    if batch:
        yield batch
