"""A log over numbered files: append, roll to the next file, read back, replace [QS 2.14.2, Table 3.9].

Decides: when a new file begins, when a file is synced, and how a damaged file is skipped, cut or renamed. The owner of
the log interprets the bodies.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from qsctl.config.filesystem import Synchronization
from qsctl.storage._frames import frame
from qsctl.storage.base import Extent
from qsctl.storage.damage import DamageKind, DamageReport, set_aside_name
from qsctl.storage.file_system import HOST, FileSystem
from qsctl.storage.log._written_file import WrittenFile
from qsctl.storage.log.file_sequence import SEAL, FileSequence, existing_indexes
from qsctl.storage.log.segment_file import (
    FORMAT_VERSION,
    HEADER_SIZE_BYTES,
    FrameBatch,
    Replacement,
    SegmentContent,
    SegmentHeader,
    begun_header,
    create_segment,
    decode_header,
    first_mark,
    read_frame_of,
    read_segment,
    refuse_unknown_forms,
    replace_segment,
    stream_of,
)
from qsctl.storage.names import open_private, read_whole, unshare
from qsctl.storage.streams.deletions import Deletions


class SegmentLog:
    """A log in the files `<stem>_<letter><index>.db`; the first append creates the first file.

    Args:
        stem: directory and the part of the name that all files share.
        contiguous: whether every index from the base on must exist; else some may have been dropped.
        letter: `d` for data, `m` for metadata.
        mark: a random number that the files' magic numbers are derived from; an existing file keeps its own.
        file_max_size_bytes: a file at least this long is followed by a new one; a batch is never split.
        begins_anywhere: whether the oldest files may have been dropped; else there is a base that records it.
        judge: returns the content of the last file without an end that may never have been synced.
        on_read: called by `open` after all files were read, before an unfinished tail is cut; it may raise.
        unsure_from: returns the offset from which the octets of the last file may never have been synced; -1: none.
            They are written again when the log is opened, for no later sync repairs one that failed in an earlier
            process.
        in_sectors: whether, under FULL, appended octets are written at the next sync, see `direct_tail`; else at once.
        disk: where the files are.
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
        begins_anywhere: bool = False,
        judge: Callable[[SegmentContent], SegmentContent] = lambda content: content,
        on_read: Callable[[SegmentLog], None] = lambda _: None,
        unsure_from: Callable[[SegmentContent], int] = lambda _: -1,
        in_sectors: bool = False,
        disk: FileSystem = HOST,
    ) -> None:
        self.stem = stem
        self.disk = disk
        self.letter = letter
        self.contiguous = contiguous
        self.mark = mark
        self.file_max_size_bytes = file_max_size_bytes
        self.synchronization = synchronization
        self.damage: list[DamageReport] = []
        self.damaged_indexes: set[int] = set()
        """Files that are kept under another name where they would be deleted: damaged ones, and those that the owner
        adds since it cannot use what they contain."""
        self.kept: list[Path] = []
        """The other names under which files are kept; the owner may forget them."""
        self.sizes: dict[int, int] = {}
        """Bytes in use of every file, by index, ascending."""
        self.headers: dict[int, SegmentHeader] = {}
        """The header of every file."""
        self.next_number = 0
        """That of the next frame in the file that is written to."""
        self.has_failed = False
        """Whether what is on the disk is unknown: it must be opened again."""
        self._begins_anywhere = begins_anywhere
        self._expects_moves = False
        self._judge = judge
        self._on_read = on_read
        self._unsure_from = unsure_from
        self._in_sectors = in_sectors and synchronization is Synchronization.FULL
        self._stream = stream_of(self.path(0))
        self._written: WrittenFile | None = None
        self._needs_directory_sync = False
        self._deletions = Deletions(disk)

    def path(self, index: int) -> Path:
        """Return the path of the file with the given index."""
        return self.stem.with_name(f"{self.stem.name}_{self.letter}{index}.db")

    def open(self, until: Extent | None = None) -> Iterator[tuple[int, SegmentContent]]:
        """Read and check every file, oldest first; exhaust the generator before any other call.

        The unfinished tail of the last file is cut. Damage is reported and stays until `drop` or `rewrite` renames the
        file; further writes begin a new file. Content beyond `until` was never committed, and is deleted.

        Raises:
            InvalidInput: a link or a device is in a file's place.
            Refused: a file has a form that only another version reads.
            OSError: an I/O error occurs.
        """
        indexes = existing_indexes(self.stem, self.letter, self.disk)
        for index in [each for each in indexes if until is not None and each > until.index]:
            indexes.remove(index)
            self.disk.unlink(self.path(index))
        found = ((index, read_whole(self.path(index), self.disk, HEADER_SIZE_BYTES)) for index in indexes)
        headers = {index: decode_header(start, self._stream) for index, start in found}
        known = {index: header for index, header in headers.items() if header is not None}
        refuse_unknown_forms({self.path(index): header for index, header in known.items()})
        self.mark = next((first_mark(header) for header in known.values()), self.mark)
        version = min((header.version for header in known.values()), default=FORMAT_VERSION)
        base = max((at for at, header in known.items() if header.is_base and header.file_index == at), default=0)
        self.drop(index for index in indexes if index < base)
        indexes = [index for index in indexes if index >= base]
        first = indexes[0] if self._begins_anywhere and indexes else base
        files = FileSequence(self.path, contiguous=self.contiguous, first_index=first)
        for index in indexes:
            assumed = self._new_header(index)._replace(version=version)
            size_bytes = until.size_bytes if until is not None and index == until.index else -1
            content = files.own(index, read_segment(self.path(index), assumed, size_bytes, self.disk), assumed)
            if index == indexes[-1]:
                content = self._judge(content)
            self.headers[index] = content.header or assumed
            for damaged, report in files.reports(index, content, is_last=index == indexes[-1]):
                self._report(damaged, report)
            self.sizes[index] = files.add(index, content)
            self.next_number = content.found.next_number
            yield index, content
        for missing, report in files.end():
            self._report(missing, report)
            self.damaged_indexes.add(indexes[-1])  # what comes next begins a file of its own
        self._on_read(self)
        self._resume(content if indexes else None)
        if until is not None and self.last_index == until.index and self._written is not None:
            self.cut(until.index, self.sizes[until.index], self.next_number)

    def write(self, bodies: Iterable[bytes]) -> FrameBatch:
        """Append a batch by `prepare` and `put`, and return it. Call `sync` afterwards."""
        batch = self.prepare(bodies)
        self.put(batch)
        return batch

    def expect_moves(self) -> None:
        """Write the next records to a file flagged `has_moves`; begin a new one where the current file lacks the
        flag.
        """
        self._expects_moves = True

    def prepare(self, bodies: Iterable[bytes]) -> FrameBatch:
        """Encode the batch that `put` will append, after beginning a new file where the current one is full.

        Raises:
            OSError: an I/O error occurs; nothing is changed.
            OverflowError: a body is too long.
        """
        if self.is_full:
            self._roll()
        self._expects_moves = False
        index, bodies = self.last_index, list(bodies)
        frames = frame(bodies, self.headers[index].marks, self.next_number)
        return FrameBatch(index, self.sizes[index], frames, len(bodies))

    def put(self, batch: FrameBatch) -> None:
        """Append the batch that was prepared last.

        Raises:
            OSError: an I/O error occurs; the file is as before.
        """
        index, offset, frames, count = batch
        assert self._written is not None, "it was prepared"
        try:
            self._written.append(frames, offset)
        except OSError:
            self.cut(index, offset, self.next_number)
            raise
        self.sizes[index], self.next_number = offset + len(frames), self.next_number + count

    def cut(self, index: int, size_bytes: int, next_number: int) -> None:
        """Truncate the last file to `size_bytes`, where frame `next_number` began."""
        assert index == self.last_index and self._written is not None, "only the last file is written to"
        with self._failing():
            self._written.cut(size_bytes)
        self.sizes[index], self.next_number = size_bytes, next_number

    def sync(self, *, critical: bool = False) -> None:
        """Sync the current file as configured: always under FULL, at critical moments under NORMAL, never under OFF.

        Raises:
            OSError: an I/O error occurs; it is unknown which writes since the last sync are durable.
        """
        if self._written is None or self.synchronization is Synchronization.OFF:
            return
        if critical or self.synchronization is Synchronization.FULL:
            with self._failing():
                self._written.sync()
                if self._needs_directory_sync:
                    self.disk.sync_directory(self.stem.parent)
                    self._needs_directory_sync = False

    def flush(self) -> None:
        """Write the buffered octets to the operating system, without a sync.

        Raises:
            OSError: an I/O error occurs; it is unknown which writes since the last sync are durable.
        """
        if self._written is not None:
            with self._failing():
                self._written.flush()

    @property
    def last_index(self) -> int:
        """The index of the newest file, or -1."""
        return next(reversed(self.sizes), -1)

    @property
    def reached(self) -> tuple[int, int, int]:
        """The index of the newest file, its written octets, and its number of frames."""
        return self.last_index, self.sizes.get(self.last_index, 0), self.next_number

    @property
    def is_full(self) -> bool:
        """Return whether the next append begins a new file."""
        last = self.last_index
        return (
            self._written is None
            or self.sizes[last] >= self.file_max_size_bytes
            or (self._expects_moves and not self.headers[last].has_moves)
        )

    @property
    def written_index(self) -> int:
        """The index of the file that is open for writing; -1 where the next append begins a new one."""
        return -1 if self._written is None else self.last_index

    @property
    def is_there(self) -> bool:
        """Return whether the file that is open for writing still exists under its name."""
        return self._written is None or self._written.is_there

    def seal(self) -> None:
        """Finish the newest file: sync it, release the blocks allocated ahead, and write to a new file from now on."""
        if self._written is not None:
            self.sync(critical=True)
            with self._failing():
                self._written.trim(self.sizes[self.last_index])
        self._release()

    def read_body(self, index: int, offset: int) -> tuple[tuple[int, int, int], bytes]:
        """Return the frame header at `offset` of a file and its body, which is shorter where the file ends.

        Raises:
            OSError: the file is missing, or an I/O error occurs.
        """
        if index == self.last_index and self._written is not None:
            self.flush()
            return self._written.read_frame(offset)
        return read_frame_of(self.path(index), offset, self.disk)

    def rewrite(self, index: int, bodies: Iterable[bytes]) -> None:
        """Replace a file by one with only these bodies, atomically and durably.

        Raises:
            OSError: an I/O error occurs; the file is as before.
        """
        assert index != self.written_index, "the file is being written to"
        self._keep_beside(index)
        header = self._new_header(index)
        self.sizes[index] = replace_segment(self.path(index), header, bodies, self.disk)
        self.headers[index] = header

    def make_place(self) -> int:
        """Begin two files, and write to the second from now on; return the index of the first, for a base.

        The log is whole with and without the base, which supersedes what was written until now.

        Raises:
            OSError: an I/O error occurs; the log has what it had.
        """
        self._roll()
        self._roll()
        return self.last_index - 1

    def begin_base(self, index: int) -> Replacement:
        """Begin a file that will supersede those of a lower index.

        Its index is one of `make_place`, or exceeds those in use when it is finished. It may be written in another
        thread.
        """
        return Replacement(self.path(index), self._new_header(index)._replace(is_base=True), self.disk)

    def put_base(self, base: Replacement, commit: Callable[[Extent], None]) -> None:
        """Finish the base, which then supersedes the files of a lower index atomically and durably, and delete those.

        `commit` is called with the base's extent before the other files are deleted.

        Raises:
            OSError: an I/O error occurs; the log is as before.
        """
        index = base.header.file_index
        is_last = index > self.last_index
        old = [each for each in self.sizes if each < index]
        for each in old:  # before the base is valid: after a crash the files before it are deleted
            self._keep_beside(each)
        size_bytes = base.finish()
        self.headers[index] = base.header
        self.sizes[index] = size_bytes
        if is_last:
            self._release()
            self._write_to(index, open_private(self.path(index), os.O_RDWR, self.disk), size_bytes)
            self.next_number = base.frame_count
        commit(Extent("segments", index, size_bytes))
        self.drop(old)

    def drop(self, indexes: Iterable[int]) -> None:
        """Delete files; a damaged one is renamed instead, so that it can be examined."""
        for index in list(indexes):
            if index in self.damaged_indexes and self.disk.status_at(self.path(index)) is not None:
                self.disk.rename(self.path(index), self._keep_damaged(index))
            else:
                self._deletions.add(self.path(index))
            self.sizes.pop(index, None)
            self.headers.pop(index, None)

    def abandon(self) -> None:
        """Close the files without a sync."""
        self._release()
        self._deletions.finish()

    def destroy(self, *, keeps_damaged: bool = False) -> None:
        """Delete every file, damaged ones too; with `keeps_damaged` these are renamed instead."""
        self._release()
        if not keeps_damaged:
            self.damaged_indexes.clear()
        self.drop(list(self.sizes))
        self._deletions.finish()

    def close(self) -> None:
        """Seal the current file and wait for deletions in progress."""
        self.seal()
        self._deletions.finish()

    def _keep_beside(self, index: int) -> None:
        """Give a damaged file its other name, too."""
        if index in self.damaged_indexes and self.disk.status_at(self.path(index)) is not None:
            self.disk.link(self.path(index), self._keep_damaged(index))

    def _keep_damaged(self, index: int) -> Path:
        """Return a new name for a damaged file, and enter it in the file's reports."""
        path = self.path(index)
        kept = set_aside_name(path, self.disk)
        self.kept.append(kept)
        self.damaged_indexes.discard(index)
        self.damage = [replace(each, kept_as=kept) if each.file == path else each for each in self.damage]
        return kept

    def _report(self, index: int, report: DamageReport) -> None:
        self.damage.append(report)
        if report.kind is not DamageKind.TORN_TAIL:
            self.damaged_indexes.add(index)

    def _resume(self, content: SegmentContent | None) -> None:
        """Open the last file for writing, unless it is damaged or of an earlier form: then `write` begins another."""
        if (index := self.last_index) < 0 or index in self.damaged_indexes:
            return
        unshare(self.path(index), self.disk)
        torn = [report for report in self.damage if report.file == self.path(index)]
        descriptor = open_private(self.path(index), os.O_RDWR, self.disk)
        written = self._write_to(index, descriptor, self.disk.status(descriptor).size_bytes)
        if torn and torn[0].offset < HEADER_SIZE_BYTES:
            self.headers[index] = self._new_header(index)
            written.overwrite(self.headers[index].encode())
            self.cut(index, HEADER_SIZE_BYTES, 0)
        elif torn:
            self.cut(index, torn[0].offset, self.next_number)
        unsure_from = self._unsure_from(content) if content is not None else -1
        if content is not None and 0 <= unsure_from < self.sizes[index]:
            written.overwrite(content.buffer[unsure_from : self.sizes[index]], unsure_from)
        # A process that was killed may have written it and not lived to sync it: what comes next rests on it.
        self._needs_directory_sync = True
        self.sync()
        header = self.headers[index]
        if header.version != FORMAT_VERSION or header.file_index != index:
            self._release()

    def _write_to(self, index: int, descriptor: int, length_bytes: int) -> WrittenFile:
        """Append to this open file from now on."""
        expected_bytes = self.file_max_size_bytes if self.synchronization is Synchronization.FULL else 0
        self._written = WrittenFile(
            self.path(index),
            descriptor,
            length_bytes,
            expected_bytes=expected_bytes,
            in_sectors=self._in_sectors,
            disk=self.disk,
        )
        return self._written

    def _roll(self) -> None:
        """Begin the next file, then seal the one before: a seal proves that a next file existed."""
        self.sync(critical=True)  # the name of the next may be durable before the content of this one
        index = self.last_index + 1
        size_before_bytes = self.sizes.get(index - 1, 0)
        header = self._new_header(index)._replace(size_before_bytes=size_before_bytes, has_moves=self._expects_moves)
        descriptor = create_segment(self.path(index), header, self.disk)
        try:
            self._seal()
            self.seal()
        except OSError:
            self.disk.close(descriptor)
            self.disk.unlink(self.path(index))
            raise
        self._write_to(index, descriptor, HEADER_SIZE_BYTES)
        self.sizes[index] = HEADER_SIZE_BYTES
        self.headers[index] = header
        self.next_number = 0
        self._needs_directory_sync = True

    def _seal(self) -> None:
        """Append the seal to the current file, because another one follows; without free space it is left out."""
        if not self.contiguous or self._written is None:
            return
        if self.synchronization is not Synchronization.OFF:
            self.disk.sync_directory(self.stem.parent)  # the seal must not outlive the name of its file
        seal = frame([SEAL], self.headers[index := self.last_index].marks, self.next_number)
        with contextlib.suppress(OSError):
            self.put(FrameBatch(index, self.sizes[index], seal, 1))

    def _new_header(self, index: int) -> SegmentHeader:
        """Return the header of a new file."""
        return begun_header(self.mark, index, self._stream)

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """Mark the log as failed if the block raises an error, since the disk's content is unknown then."""
        try:
            yield
        except OSError:
            self.has_failed = True
            raise

    def _release(self) -> None:
        if self._written is not None:
            self._written.close()
            self._written = None
