"""A log over numbered files: append, roll to the next file, read back, replace (manual, section 2.14.2, Table 3.9).

Decides: when a new file begins, what is synced when, and how a damaged file is stepped over, cut or set aside. What
the bodies mean is `segments`'s.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from qsctl.config.filesystem import Synchronization
from qsctl.storage.damage import DamageKind, DamageReport, set_aside_name
from qsctl.storage.dead_files import DeadFiles
from qsctl.storage.frames import end_mark, frame
from qsctl.storage.names import open_private, refuse_link, sync_directory
from qsctl.storage.segment_file import (
    HEADER_SIZE_BYTES,
    TEMPORARY,
    Replacement,
    SegmentContent,
    SegmentHeader,
    create_segment,
    decode_header,
    read_bytes,
    read_frame,
    read_segment,
    replace_segment,
    reports_of,
    reuse_segment,
    write_all,
)

_RESERVE_BYTES_MIN: Final = 64 * 1024
_RESERVE_BYTES_MAX: Final = 256 * 1024
"""More at a time would be fewer syncs that note a length, and a longer wait for those whose batch it falls to."""

_LAST_BATCH: Final = 1 / 16
"""How far the last batch of a file is expected to go past its maximum, as a part of it."""

_MARK_STEP: Final = 0x9E3779B1
"""From the mark of one file to that of the next: what a file held in its earlier life has another mark."""


class Batch(NamedTuple):
    """Frames and their place in a log."""

    file_index: int
    offset: int
    frames: bytes


class SegmentLog:
    """The files `<stem>_<letter><index>.db`. Nothing is created before the first append.

    Args:
        stem: directory and the part of the name that all files share.
        contiguous: every index from the base on must be there; else files in between may have been dropped.
        letter: `d` for data, `m` for metadata.
        mark: a random number that those at the head of the files follow from; a file that exists keeps its own.
        file_max_size_bytes: a file at least this long is followed by a new one; a batch is never split.
    """

    def __init__(
        self,
        stem: Path,
        letter: str,
        *,
        contiguous: bool,
        mark: int,
        file_max_size_bytes: int,
        synchronization: Synchronization,
    ) -> None:
        self.stem = stem
        self.letter = letter
        self.contiguous = contiguous
        self.mark = mark
        self.file_max_size_bytes = file_max_size_bytes
        self.synchronization = synchronization
        self.damage: list[DamageReport] = []
        self.damaged_indexes: set[int] = set()
        self.sizes: dict[int, int] = {}
        """Bytes in use of every file, by index, ascending."""
        self.headers: dict[int, SegmentHeader] = {}
        """What every file says of itself."""
        self._descriptor = -1
        self._reserved_bytes = 0
        """How long the file being written is, with the zeros made ready after its content."""
        self._needs_directory_sync = False
        self._dead_files = DeadFiles(keeps=synchronization is Synchronization.FULL)

    def path(self, index: int) -> Path:
        """The file of this index."""
        return self.stem.with_name(f"{self.stem.name}_{self.letter}{index}.db")

    def open(self) -> Iterator[tuple[int, SegmentContent]]:
        """Read and check every file, oldest first; run it to its end before anything else.

        The unfinished tail of the last file is cut. Damage stays where it is, reported, until `drop` or `rewrite`
        sets the file aside; writing goes on in a new file.

        Raises:
            InvalidInput: a link or a device stands in a file's place.
            OSError: the disk refuses.
        """
        indexes = self._existing()
        headers = {index: decode_header(read_bytes(self.path(index), HEADER_SIZE_BYTES)) for index in indexes}
        known = {index: header for index, header in headers.items() if header is not None}
        self.mark = next((_first_mark(header) for header in known.values()), self.mark)
        base = max(
            (index for index, header in known.items() if header.is_base and header.file_index == index), default=0
        )
        if indexes and (last := known.get(indexes[-1])) and last.file_index != indexes[-1]:
            # A dead file that was about to be written again: it holds nothing, and its name is the next one's.
            self.path(indexes.pop()).unlink()
        self.drop(index for index in indexes if index < base)
        indexes = [index for index in indexes if index >= base]
        before, size_before = base - 1, 0
        for index in indexes:
            assumed = self._new_header(index)
            content = read_segment(self.path(index), assumed)
            self.headers[index] = content.header or assumed
            if self.contiguous:
                self._check_sequence(before, size_before, index, content.header)
            for report in reports_of(self.path(index), content):
                if report.kind is DamageKind.TORN_TAIL and index != indexes[-1]:
                    report = replace(report, kind=DamageKind.CHECKSUM, what="the file ends inside a record")
                self._report(index, report)
            before, size_before = index, max(content.found.end, HEADER_SIZE_BYTES)
            self.sizes[index] = size_before
            yield index, content
        self._resume()

    def write(self, bodies: Iterable[bytes]) -> Batch:
        """Append a batch, and give it. Call `sync` after.

        Raises:
            OSError: the disk refuses; the file is as before.
            OverflowError: a body is too long.
        """
        batch = self.prepare(bodies)
        self.put(batch)
        return batch

    def prepare(self, bodies: Iterable[bytes]) -> Batch:
        """What `put` will append next; a full file is followed by a new one now.

        Raises:
            OSError: the disk refuses; nothing is changed.
            OverflowError: a body is too long.
        """
        if self._descriptor < 0 or self.sizes[self.last_index] >= self.file_max_size_bytes:
            self._roll()
        index = self.last_index
        return Batch(index, self.sizes[index], frame(bodies, self.headers[index].mark))

    def put(self, batch: Batch) -> None:
        """Append what was prepared last.

        Raises:
            OSError: the disk refuses; the file is as before.
        """
        index, offset, frames = batch
        content = frames + _end_mark(self.headers[index])
        try:
            self._reserve(offset + len(content))
            write_all(self._descriptor, content, offset)
        except OSError:
            self.cut(index, offset)
            raise
        self.sizes[index] = offset + len(frames)

    def cut(self, index: int, size_bytes: int) -> None:
        """Take back what was written to the last file past `size_bytes`."""
        assert index == self.last_index, "only the last file is written to"
        os.ftruncate(self._descriptor, size_bytes)
        self.sizes[index] = self._reserved_bytes = size_bytes

    def sync(self, *, critical: bool = False) -> None:
        """Reach the physical disk, where the configuration asks for it: always (FULL), at critical moments (NORMAL).

        Raises:
            OSError: the disk refuses; what was written since the last sync may or may not be there.
        """
        if self._descriptor < 0 or self.synchronization is Synchronization.OFF:
            return
        if critical or self.synchronization is Synchronization.FULL:
            os.fdatasync(self._descriptor)
            if self._needs_directory_sync:
                sync_directory(self.stem.parent)
                self._needs_directory_sync = False

    @property
    def last_index(self) -> int:
        """The newest file; -1 when there is none yet."""
        return next(reversed(self.sizes), -1)

    @property
    def has_new_file(self) -> bool:
        """Whether the file that is written to is one of which the disk may know nothing yet."""
        return self._needs_directory_sync

    @property
    def written_index(self) -> int:
        """The file that is open for writing; -1 when the next append begins a new one."""
        return self.last_index if self._descriptor >= 0 else -1

    def seal(self) -> None:
        """Write no more to the newest file: the next append begins another."""
        self.sync(critical=True)
        self._trim()
        self._release()

    def read_file(self, index: int) -> bytes:
        """A whole file's bytes."""
        return read_bytes(self.path(index))

    def read_body(self, index: int, offset: int) -> tuple[tuple[int, int, int], bytes]:
        """The frame header at `offset` of a file, and as much of its body as is there.

        Raises:
            OSError: the file is gone or the disk refuses.
        """
        if index == self.last_index and self._descriptor >= 0:
            return read_frame(self._descriptor, offset)
        refuse_link(self.path(index))
        descriptor = os.open(self.path(index), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            return read_frame(descriptor, offset)
        finally:
            os.close(descriptor)

    def rewrite(self, index: int, bodies: Iterable[bytes]) -> None:
        """Replace a file by one that holds only these bodies, atomically and durably.

        Raises:
            OSError: the disk refuses; the file is as before.
        """
        assert index != self.written_index, "the file is being written to"
        if index in self.damaged_indexes:
            os.link(self.path(index), self._keep_damaged(index))
        header = self._new_header(index)
        self.sizes[index] = replace_segment(self.path(index), header, bodies)
        self.headers[index] = header

    def begin_base(self, index: int) -> Replacement:
        """Begin a file that will supersede all others; its index is beyond those that will be there then."""
        return Replacement(self.path(index), self._new_header(index)._replace(is_base=True))

    def put_base(self, base: Replacement) -> None:
        """Let the base, which is whole, supersede the other files, atomically and durably, and drop those.

        Raises:
            OSError: the disk refuses; the log is as before.
        """
        index = base.header.file_index
        assert index > self.last_index, "a base supersedes the files of a lower index"
        size_bytes = base.finish()
        old = list(self.sizes)
        self._release()
        self._descriptor = open_private(self.path(index), os.O_RDWR)
        self.headers[index] = base.header
        self.sizes[index] = self._reserved_bytes = size_bytes
        self.drop(old)

    def drop(self, indexes: Iterable[int]) -> None:
        """Give up files; a damaged one is set aside under another name, for whoever wants to look."""
        for index in list(indexes):
            if index in self.damaged_indexes and self.path(index).exists():
                self.path(index).rename(self._keep_damaged(index))
            else:
                self._dead_files.add(self.path(index))
            self.sizes.pop(index, None)
            self.headers.pop(index, None)

    def rest(self) -> None:
        """There is nothing to do: give back what was made ready and not used for long."""
        self._dead_files.rest()

    def destroy(self) -> None:
        """Delete every file, damaged ones too."""
        self._release()
        self.damaged_indexes.clear()
        self.drop(list(self.sizes))
        self._dead_files.finish()

    def close(self) -> None:
        """Sync as a critical moment, and let go of the file."""
        self.sync(critical=True)
        self._trim()
        self._release()
        self._dead_files.finish()

    def _existing(self) -> list[int]:
        """The indexes of the files that are there, ascending; what a crashed replacement left is deleted."""
        name = re.escape(f"{self.stem.name}_{self.letter}")
        pattern = re.compile(rf"{name}(0|[1-9]\d*)\.db({re.escape(TEMPORARY)})?")
        found = []
        for path in self.stem.parent.iterdir() if self.stem.parent.is_dir() else ():
            match = pattern.fullmatch(path.name)
            if match and match[2]:
                path.unlink(missing_ok=True)
            elif match:
                found.append(int(match[1]))
        return sorted(found)

    def _keep_damaged(self, index: int) -> Path:
        """The name a damaged file is kept under from now on; its reports say so."""
        path = self.path(index)
        kept = set_aside_name(path)
        self.damaged_indexes.discard(index)
        self.damage = [replace(each, kept_as=kept) if each.file == path else each for each in self.damage]
        return kept

    def _report(self, index: int, report: DamageReport) -> None:
        self.damage.append(report)
        if report.kind is not DamageKind.TORN_TAIL:
            self.damaged_indexes.add(index)

    def _check_sequence(self, before: int, size_before: int, index: int, header: SegmentHeader | None) -> None:
        """Whether this file is the one that was begun when the file before it was full."""
        for missing in range(before + 1, index):
            self._report(missing, DamageReport(self.path(missing), 0, 0, DamageKind.UNREADABLE, "the file is missing"))
        if header and before == index - 1 in self.sizes and header.size_before_bytes > size_before:
            lost = header.size_before_bytes - size_before
            what = "the end of the file is missing"
            self._report(before, DamageReport(self.path(before), size_before, lost, DamageKind.CHECKSUM, what))

    def _resume(self) -> None:
        """Go on writing to the last file, unless it is damaged: then `write` begins a new one."""
        index = self.last_index
        if index < 0 or index in self.damaged_indexes:
            return
        self._reserved_bytes = self.path(index).stat().st_size
        torn = [report for report in self.damage if report.file == self.path(index)]
        self._descriptor = open_private(self.path(index), os.O_RDWR)
        if torn and torn[0].offset < HEADER_SIZE_BYTES:
            write_all(self._descriptor, self.headers[index].encode(), 0)
            self.cut(index, HEADER_SIZE_BYTES)
        elif torn:
            self.cut(index, torn[0].offset)
        # A process that was killed may have written it and not lived to sync it: what comes next rests on it.
        self._needs_directory_sync = True
        self.sync()

    def _reserve(self, size_bytes: int) -> None:
        """Under FULL, write zeros ahead: a sync that need not note a new length of the file takes half as long."""
        if self.synchronization is not Synchronization.FULL or size_bytes <= self._reserved_bytes:
            return
        ahead = min(max(self._reserved_bytes, _RESERVE_BYTES_MIN), _RESERVE_BYTES_MAX)
        ahead = max(0, min(ahead, int(self.file_max_size_bytes * (1 + _LAST_BATCH)) - size_bytes))
        write_all(self._descriptor, bytes(size_bytes + ahead - self._reserved_bytes), self._reserved_bytes)
        self._reserved_bytes = size_bytes + ahead

    def _roll(self) -> None:
        self.sync(critical=True)
        index = self.last_index + 1
        dead_file = self._dead_files.take()
        size_before_bytes, is_reused = self.sizes.get(index - 1, 0), dead_file is not None
        header = self._new_header(index)._replace(size_before_bytes=size_before_bytes, is_reused=is_reused)
        if dead_file is not None:
            descriptor = reuse_segment(dead_file, self.path(index), header)
        else:
            descriptor = create_segment(self.path(index), header)
        self._release()
        self._descriptor = descriptor
        self.sizes[index] = HEADER_SIZE_BYTES
        self.headers[index] = header
        self._reserved_bytes = os.fstat(descriptor).st_size
        self._needs_directory_sync = True

    def _new_header(self, index: int) -> SegmentHeader:
        """Of a file that is begun now."""
        return SegmentHeader((self.mark + index * _MARK_STEP) % 2**32 or 1, index)

    def _trim(self) -> None:
        """Give back the room behind the content."""
        if self._descriptor >= 0 and self._reserved_bytes > self.sizes[self.last_index]:
            self.cut(self.last_index, self.sizes[self.last_index])

    def _release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _end_mark(header: SegmentHeader) -> bytes:
    """What the content of a file ends with: something where it was another file before."""
    return end_mark(header.mark) if header.is_reused else b""


def _first_mark(header: SegmentHeader) -> int:
    """The number that the marks of a log follow from, told by one of its files."""
    return (header.mark - header.file_index * _MARK_STEP) % 2**32
