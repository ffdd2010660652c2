"""The write-ahead log that all streams of a process share: the records of a turn are one append and one sync.

Decides: the form of a group, when a file begins and when it is deleted. Streams are distinguished by a number; their
names are in a table at the head of each file. Only the streams interpret their records.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.errors import Damaged
from qsctl.storage._frames import FRAME_HEADER, is_whole
from qsctl.storage.base import Extent, Sync
from qsctl.storage.damage import DamageKind, DamageReport, refuse_loss
from qsctl.storage.file_system import HOST, FileSystem
from qsctl.storage.log._log_reader import LogReader
from qsctl.storage.log.file_sequence import shortfall
from qsctl.storage.log.log_frames import (
    LogContent,
    Place,
    Stream,
    Table,
    entry_heads,
    entry_parts,
    mark_body,
    table_body,
    without_unfinished_tail,
    written_last,
)
from qsctl.storage.log.segment_log import SegmentLog
from qsctl.storage.names import open_private
from qsctl.storage.room import refusal

TIMES_FILE_MAX_SIZE: Final = 4
"""Size of a file of the log as a multiple of the largest file of a queue: it has the records of all of them."""

FILES_MAX: Final = 8
"""With more files than these the oldest is to be checkpointed: what is consumed by then never leaves the log."""

_HEAD_FRAMES: Final = 2
"""Number of frames at the head of a file: a mark and the table."""


class Part(NamedTuple):
    """One stream's records in a group: bodies, the number of records and the payload of each (empty: none)."""

    number: int
    first_index: int
    counts: Sequence[int]
    bodies: Sequence[bytes]
    data: Sequence[bytes]


class WriteAheadLog:
    """The files `<stem>_w<index>.db`. One thread at a time may use it, except that a sync may run in another.

    Args:
        stem: directory and beginning of the files' names.
        settings: the configured synchronization and file size.
        known: its last recorded extent, which it must still reach.
        discards_damaged: whether to continue with the intact records after a loss; else a loss is an error, and no file
            changes.
        disk: the file system of its files and of its streams' files.

    Raises:
        InvalidInput: a link or a device is in a file's place.
        Damaged: records are lost, or an I/O error occurs.
    """

    def __init__(
        self,
        stem: Path,
        settings: FilesystemSettings,
        known: Extent | None = None,
        *,
        discards_damaged: bool = True,
        disk: FileSystem = HOST,
    ) -> None:
        self.stem = stem
        self.disk = disk
        self.settings = settings
        self.streams: dict[int, Stream] = {}
        """The table, by number."""
        self._numbers: dict[str, int] = {}
        self._oldest_file = self._noted_oldest_file = 0
        self._changed: set[int] = set()
        self._forgotten: list[int] = []
        """Entries of the table that are not in the log yet."""
        self._durable = (-1, 0, 0)
        """File, bytes and frames that a sync covered; where nothing waits for syncs, all that was written."""
        self._synced = (-1, 0, 0)
        """The same, of a sync in any case; under OFF there is none."""
        self._known = known
        self._discards_damaged = discards_damaged
        self._damage: list[DamageReport] = []
        try:
            self._log = self._open()
        except OSError as error:
            raise refusal(stem, error, is_clean=True) from error
        self.was_there = self._log.last_index >= 0
        missing = self._missing_of(self._log)
        self._damage += missing
        if missing:
            index, size_bytes, _ = self._log.reached
            self._known = Extent("log", index, size_bytes)  # reported once
        if not discards_damaged:
            try:
                refuse_loss(self.damage, settings.synchronization)
            except Damaged:
                self.abandon()
                raise

    def _missing_of(self, log: SegmentLog) -> list[DamageReport]:
        """Return reports of the files, or ends of files, that were known to exist and are missing."""
        index, size_bytes, _ = log.reached
        return shortfall(log.path, self._known, Extent("log", index, size_bytes), log.damage)

    def _refuse_loss(self, log: SegmentLog) -> None:
        """Raise an error where records are lost, so that the files stay unchanged."""
        if not self._discards_damaged:
            refuse_loss([*log.damage, *self._missing_of(log)], self.settings.synchronization)

    @property
    def damage(self) -> Sequence[DamageReport]:
        """Damage that was found in the files."""
        return [*self._log.damage, *self._damage]

    @property
    def extent(self) -> Extent:
        """Return the durable extent, for the register; under OFF, the extent at the last open, commit or close."""
        if self.settings.synchronization is Synchronization.OFF:
            index, size_bytes, _ = self._durable
            return Extent("log", index, size_bytes)
        index, size_bytes, _ = self._synced
        if self._known is not None and (self._known.index, self._known.size_bytes) > (index, size_bytes):
            return self._known
        return Extent("log", index, size_bytes)

    @property
    def files(self) -> Sequence[int]:
        """The indexes of the files, oldest first."""
        return list(self._log.sizes)

    @property
    def last_file(self) -> int:
        """The index of the newest file, or -1."""
        return self._log.last_index

    @property
    def has_failed(self) -> bool:
        """Return whether a sync has failed: the content of the disk is unknown then."""
        return self._log.has_failed

    def keeps(self, place: tuple[int, int]) -> bool:
        """Return whether `mend` keeps what was written at this offset of a file, because a sync covered it."""
        return place < self._durable[:2]

    @property
    def has_records(self) -> bool:
        """Return whether a group was written to the newest file after its head."""
        return self._log.next_number > _HEAD_FRAMES

    @property
    def is_to_mend(self) -> bool:
        """Return whether a sync has failed, or the open file no longer exists under its name."""
        return self.has_failed or not self._log.is_there

    def stream(self, name: str) -> Stream:
        """Return a stream's entry in the table; add one where it is missing."""
        number = self._numbers.get(name)
        if number is None:
            number = max(self.streams, default=0) + 1
            self.change(Stream(number, name))
        return self.streams[number]

    def names(self) -> Sequence[str]:
        """Return the names of the streams in the table."""
        return list(self._numbers)

    def records(self, number: int, file: int | None = None) -> Iterator[tuple[Place, bytes, bytes]]:
        """Return the records of a stream that are not in its own files: place, body and payload.

        Args:
            number: the stream's number.
            file: the only file to read, which is not the last; None: all.

        Raises:
            Damaged: an I/O error occurs.
        """
        try:
            return self._reader.records(number, self.streams[number].checkpointed, file)
        except OSError as error:
            raise refusal(self.stem, error, is_clean=True) from error

    def write(self, parts: Sequence[Part], *, has_moves: bool = False) -> tuple[int, list[int]]:
        """Append a group, all or nothing; return its file, and the offset of each part's first frame.

        Args:
            parts: the streams' records.
            has_moves: see `Encoded.has_moves`.

        Raises:
            Damaged: an I/O error occurs; nothing of the group will be loaded.
        """
        self._reader.forget()
        if has_moves:
            self._log.expect_moves()
        heads = self._heads()
        frames = list(heads)
        sizes: list[int] = []
        before = sum(map(len, heads)) + FRAME_HEADER.size * len(heads)
        for number, first_index, counts, bodies, data in parts:
            sizes.append(before)
            heads_of_part = entry_heads(number, first_index, counts, bodies)
            of_part = list(map(b"".join, zip(heads_of_part, bodies, data, strict=True)))
            before += sum(map(len, of_part)) + FRAME_HEADER.size * len(of_part)
            frames += of_part
        file, offset = self._put(frames)
        return file, [offset + size for size in sizes]

    def sync(self, *, critical: bool = False) -> None:
        """Sync the written groups as configured.

        Raises:
            Damaged: an I/O error occurs; it is unknown which writes since the last sync are durable.
        """
        reached = self._log.reached
        if reached == self._durable and not critical:
            return
        try:
            self._log.sync(critical=critical)
        except OSError as error:
            raise refusal(self.stem, error, is_clean=False) from error
        if critical or self.settings.synchronization is Synchronization.FULL:
            self._durable = self._synced = reached

    def seal(self) -> None:
        """Write no more to the newest file: the next group begins another.

        Raises:
            Damaged: an I/O error occurs.
        """
        try:
            self._log.seal()
        except OSError as error:
            raise refusal(self.stem, error, is_clean=False) from error

    def pending_sync(self) -> Sync | None:
        """Return the sync that makes the written groups durable; None where the configuration syncs nothing."""
        return partial(self.sync) if self.settings.synchronization is Synchronization.FULL else None

    def commit(self, streams: Iterable[Stream], oldest_file: int | None = None) -> None:
        """Record changed entries of streams durably, then delete the files before `oldest_file`.

        Raises:
            Damaged: an I/O error occurs.
        """
        for stream in streams:
            self.change(stream)
        if oldest_file is not None:
            self._oldest_file = oldest_file
        self._reader.forget()
        self._put(self._heads())
        self.sync(critical=True)
        self.drop_old()

    def drop_old(self) -> None:
        """Delete the files that are not needed."""
        self._log.drop([index for index in self._log.sizes if index < min(self._oldest_file, self._log.last_index)])

    def forget(self, number: int) -> None:
        """Remove a stream from the table durably; its records in the log are ignored from then on.

        Raises:
            Damaged: an I/O error occurs.
        """
        del self._numbers[self.streams.pop(number).name]
        self._changed.discard(number)
        self._forgotten.append(number)
        self.commit(())

    def entry(self, file: int, offset: int, number: int) -> tuple[bytes, bytes]:
        """Return body and payload of the frame at an offset of a file.

        Raises:
            ValueError: it is another stream's, or does not match its checksum.
            OSError: an I/O error occurs.
        """
        header, body = self._log.read_body(file, offset)
        if not is_whole(header, body, self._log.headers[file].marks):
            raise ValueError("it does not match its checksum")
        found, records, payload = entry_parts(body)
        if found != number:
            raise ValueError("it is another stream's")
        return records, payload

    def path(self, file: int) -> Path:
        """Return the path of the file with the given index."""
        return self._log.path(file)

    def mend(self) -> None:
        """Cut the writes that are not durable and continue in another file, after a failed sync or a lost directory.

        Raises:
            Damaged: the disk still refuses.
        """
        index, size_bytes, _ = self._durable
        self._log.abandon()
        try:
            for file in [each for each in self._log.sizes if each >= index]:
                if file > index:
                    self.disk.unlink(self._log.path(file))
                    continue
                descriptor = open_private(self._log.path(file), os.O_RDWR, self.disk)
                try:
                    self.disk.cut(descriptor, size_bytes)
                finally:
                    self.disk.close(descriptor)
            self._changed.update(self.streams)
            log = self._open()
            log.seal()
        except OSError as error:
            raise refusal(self.stem, error, is_clean=False) from error
        log.damage[:0] = self._log.damage
        self._log = log

    def abandon(self) -> None:
        """Close the files without a sync."""
        self._log.abandon()

    def close(self) -> None:
        """Sync the log, record in it that it is durable, and close it.

        Raises:
            Damaged: an I/O error occurs.
        """
        try:
            if not self.has_failed and self._log.last_index >= 0:
                if self._log.written_index >= 0 or self._changed:
                    self._log.sync(critical=True)
                    self._durable = self._synced = self._log.reached
                    self._put(self._heads())
                self._log.close()
                self._durable = self._synced = self._log.reached
            else:
                self._log.abandon()
        except OSError as error:
            raise refusal(self.stem, error, is_clean=True) from error

    def destroy(self, *, keeps_damaged: bool = False) -> None:
        """Delete every file, damaged ones too; with `keeps_damaged` these are renamed instead."""
        self._log.destroy(keeps_damaged=keeps_damaged)

    def _open(self) -> SegmentLog:
        log = SegmentLog(
            self.stem,
            "w",
            contiguous=True,
            mark=int.from_bytes(self.disk.draw(4)) or 1,
            file_max_size_bytes=TIMES_FILE_MAX_SIZE * self.settings.file_max_size_bytes,
            synchronization=self.settings.synchronization,
            begins_anywhere=True,
            judge=without_unfinished_tail,
            on_read=self._refuse_loss,
            unsure_from=written_last,
            in_sectors=True,
            disk=self.disk,
        )
        content, buffers = LogContent(), dict[int, bytes]()
        for index, found in log.open():
            content.read(index, found.buffer, found.found.bodies)
            buffers[index] = found.buffer
        for file, start, end in content.unreadable:
            what = "a frame that this version cannot read"
            log.damage.append(DamageReport(log.path(file), start, end - start, DamageKind.UNREADABLE, what))
        files = list(log.sizes)
        if files and files[0] > content.oldest_file:
            what = "the file is missing, and every record in it"
            log.damage.append(DamageReport(log.path(files[0] - 1), 0, 0, DamageKind.UNREADABLE, what))
        # The loss was reported: from the next group on the log records that the missing files are not needed.
        self._oldest_file = max([content.oldest_file, *files[:1]])
        for stream in content.streams.values():
            if stream.number not in self._changed:
                self.streams[stream.number] = stream
                self._numbers[stream.name] = stream.number
        self._reader = LogReader(log, content, buffers)
        self._durable = log.reached
        if self.settings.synchronization is Synchronization.FULL:
            self._synced = log.reached  # it was synced when it was opened
        return log

    def change(self, stream: Stream) -> None:
        """Write a changed entry of the table with the next group."""
        self.streams[stream.number] = stream
        self._numbers[stream.name] = stream.number
        self._changed.add(stream.number)

    def _heads(self) -> list[bytes]:
        """Return the frames that begin a group: its mark, and changes of the table; in a new file the whole table."""
        begins_file = self._log.is_full
        is_synced = self.settings.synchronization is not Synchronization.OFF
        file, _, durable_count = self._synced
        known_count = durable_count if file == self._log.last_index and not begins_file else 0
        heads = [mark_body(known_count if is_synced else None)]
        is_changed = self._changed or self._forgotten or self._oldest_file > self._noted_oldest_file
        if begins_file or is_changed:
            numbers = self.streams if begins_file else self._changed
            streams = [self.streams[number] for number in numbers]
            table = Table(begins_file, self._oldest_file, streams, self._forgotten)
            heads.append(table_body(table))
        return heads

    def _put(self, bodies: Sequence[bytes]) -> tuple[int, int]:
        if self.has_failed:
            raise Damaged(
                f"{self.stem.name}: an earlier write may not have reached the disk",
                remedy="Restart the service: it restores what did.",
            )
        try:
            batch = self._log.write(bodies)
        except OSError as error:
            raise refusal(self.stem, error, is_clean=not self.has_failed) from error
        self._changed.clear()
        self._forgotten = []
        self._noted_oldest_file = self._oldest_file
        if self.settings.synchronization is not Synchronization.FULL:
            self._durable = self._log.reached
        return batch.file_index, batch.offset
