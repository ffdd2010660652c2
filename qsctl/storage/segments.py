"""The store of a queue with in-memory state: an append-only log of metadata, another of user data (section 2.14.2).

Decides: which bytes go to which log, where a payload is found again, and which files are dead. One append is one write
and, under synchronization FULL, one sync a log, whatever the size of the batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.records import Enqueued, Record
from qsctl.errors import Damaged
from qsctl.storage.base import Shares, Sync, WritesThenSyncs
from qsctl.storage.codec import POSITION, Encoded, Positions, decode_metadata, encode, fill, position_of
from qsctl.storage.compaction import ROOM_FOR_FILES, Compaction, Whole
from qsctl.storage.damage import DamageKind, DamageReport
from qsctl.storage.data_files import DataFiles
from qsctl.storage.frames import FRAME_HEADER, spans
from qsctl.storage.metadata_copies import COPY_POSITION, Redo, UnsyncedMetadata
from qsctl.storage.segment_file import HEADER_SIZE_BYTES, find_bodies
from qsctl.storage.segment_log import SegmentLog

DEAD_BODY_COUNT_MIN: Final = 2_000
"""Below this a log is never worth compacting: reading so much takes some milliseconds."""


class SegmentStorage(WritesThenSyncs):
    """Records of one queue in `<stem>_m<index>.db`, payloads in `<stem>_d<index>.db`.

    A data file is deleted once every sample in it was removed; metadata is reclaimed by `compact`. One thread at a
    time may use it.

    Raises:
        InvalidInput: a link or a device stands in a file's place.
        Damaged: the disk refuses.
    """

    def __init__(self, stem: Path, settings: FilesystemSettings) -> None:
        mark = int.from_bytes(os.urandom(4)) or 1
        size, synchronization = settings.file_max_size_bytes, settings.synchronization
        self._metadata = SegmentLog(
            stem, "m", contiguous=True, mark=mark, file_max_size_bytes=size, synchronization=synchronization
        )
        self._data = DataFiles(
            SegmentLog(
                stem, "d", contiguous=False, mark=mark, file_max_size_bytes=size, synchronization=synchronization
            )
        )
        self._compaction: Compaction | None = None
        self._missing: set[int] = set()
        """Samples whose user data damage took."""
        self._body_count = 0
        self._kept_count = 0
        self._failed = False
        self._is_full = synchronization is Synchronization.FULL
        self._unsynced = UnsyncedMetadata()
        self._more_damage: list[DamageReport] = []
        self._is_damaged = False
        try:
            self._open()
        except OSError as error:
            raise self._refusal(error) from error
        self._is_damaged = bool(self.damage)

    @property
    def damage(self) -> Sequence[DamageReport]:
        """What was found broken, in the order of the files."""
        return [*self._metadata.damage, *self._data.log.damage, *self._more_damage]

    def write(self, records: Sequence[Record]) -> Sync | None:
        """See `Storage.write`."""
        return self._write(records, rides=False)

    def write_along(self, records: Sequence[Record]) -> Sync | None:
        """See `Storage.write_along`."""
        return self._write(records, rides=True)

    def _write(self, records: Sequence[Record], *, rides: bool) -> Sync | None:
        if not records:
            return None
        self._refuse_after_failure()
        encoded = encode(records)
        try:
            has_copy = self._put(encoded)
        except OSError as error:
            raise self._refusal(error) from error
        dead = self._data.forget(encoded.removed) if encoded.removed else []
        if self._compaction is not None and not self._compaction.is_over:
            self._follow(self._compaction, records)
        may_wait = rides or not self._is_full
        return None if may_wait and not dead else partial(self._sync, bool(encoded.positions), has_copy, dead)

    def _put(self, encoded: Encoded) -> bool:
        """Write a batch to both logs, or to neither; whether its metadata stands behind its user data, too."""
        log = self._data.log
        data_before = (log.last_index, log.sizes.get(log.last_index, 0))
        batch = self._metadata.prepare(encoded.metadata)
        has_copy = self._is_full and bool(encoded.positions) and not self._metadata.has_new_file
        index, offset = self._data.write(encoded, [self._unsynced.copy_with(batch)] if has_copy else [])
        try:
            self._metadata.put(batch)
        except OSError:
            if encoded.positions:
                log.cut(index, data_before[1] if index == data_before[0] else HEADER_SIZE_BYTES)
            raise
        if has_copy:
            self._unsynced.clear()
        elif self._is_full:
            self._unsynced.add(batch)
        self._body_count += len(encoded.metadata)
        self._data.locate(index, offset, encoded)
        return has_copy

    def _follow(self, compaction: Compaction, records: Sequence[Record]) -> None:
        if self._metadata.last_index >= compaction.base.header.file_index:
            self._abandon_compaction()  # another will find what this one left
            return
        try:
            compaction.follow(records)
        except OSError as error:
            raise self._refusal(error) from error

    def _abandon_compaction(self) -> None:
        if self._compaction is not None:
            self._compaction.base.abandon()
            self._compaction = None

    def settle(self) -> None:
        """See `Storage.settle`."""
        if self._unsynced:
            self._sync(has_data=False, has_copy=False, dead=[])
        self._data.log.rest()
        self._metadata.rest()

    def _sync(self, has_data: bool, has_copy: bool, dead: list[int]) -> None:
        """Reach the disk, then delete the data files in which nothing is held any more."""
        try:
            if has_data:
                self._data.log.sync()
            if dead or not has_copy:
                self._metadata.sync()
                self._unsynced.clear()
            self._drop_dead(dead)
        except OSError as error:
            self._failed = True
            raise self._refusal(error) from error

    def load(self) -> Iterator[Record]:
        """See `Storage.load`. Records about a sample that damage took away are left out."""
        held: set[int] = set()
        location_of, header_at = self._data.locations.get, FRAME_HEADER.unpack_from
        file_index, buffer_of_file = -1, b""
        header_size, overhead = FRAME_HEADER.size, FRAME_HEADER.size + POSITION.size
        for record in self._metadata_records():
            if type(record) is Enqueued:
                location = location_of(record.position)
                if location is not None:
                    index, offset = self._data.place(location)
                    if index != file_index:
                        file_index, buffer_of_file = index, self._data.log.read_file(index)
                    _, length, _ = header_at(buffer_of_file, offset)
                    fill(record, "payload", buffer_of_file[offset + overhead : offset + header_size + length])
                elif record.position in self._missing:
                    continue
                held.add(record.position)
                yield record
            elif not self._is_damaged or (position := position_of(record)) is None or position in held:
                yield record

    def payload(self, position: int) -> bytes:
        """See `Storage.payload`.

        Raises:
            KeyError: no such sample is held.
            Damaged: its bytes do not match their checksum.
        """
        try:
            return self._data.payload(position)
        except OSError as error:
            raise self._refusal(error) from error

    def worth_compacting(self) -> bool:
        """See `Storage.worth_compacting`."""
        live_count = len(self._data.locations) + self._kept_count
        return self._body_count - live_count > max(live_count, DEAD_BODY_COUNT_MIN)

    def compact(self, keep: Iterable[Record]) -> None:
        """See `Storage.compact`. Rewrites the metadata, and those data files of which more than half is dead."""
        for _ in self.compact_in_shares(Whole(keep)):
            pass

    def compact_in_shares(self, kept: Shares) -> Iterator[None]:
        """See `Storage.compact_in_shares`. First the metadata is rewritten, then one data file a share."""
        self._refuse_after_failure()
        self._abandon_compaction()
        try:
            base = self._metadata.begin_base(self._metadata.last_index + 1 + ROOM_FOR_FILES)
            compaction = self._compaction = Compaction(base, kept)
            for _ in self._shares_of(compaction):
                yield
                if self._compaction is not compaction:
                    return
            self._compaction = None
        except OSError as error:
            self._abandon_compaction()
            raise self._refusal(error) from error

    def _shares_of(self, compaction: Compaction) -> Iterator[None]:
        while not self._goes_over_to(compaction):
            yield
        for index, positions in sorted(self._data.held_in(self._data.sparse()).items()):
            still_held = [each for each in positions if self._data.is_held_in(index, each)]
            if still_held:
                self._data.rewrite(index, still_held)
                yield
        self._data.stray_files.clear()

    def _goes_over_to(self, compaction: Compaction) -> bool:
        """Write the next share of what is kept; with the last one, let it supersede what there is."""
        records = compaction.take()
        fresh = [each for each in records if isinstance(each, Enqueued) and each.position not in self._data.locations]
        if fresh:
            encoded = encode(fresh)
            self._data.locate(*self._data.write(encoded), encoded)
        if not compaction.is_over:
            return False
        self._data.log.sync(critical=True)
        self._metadata.put_base(compaction.base)
        self._unsynced.clear()
        self._body_count = compaction.body_count
        self._kept_count = max(0, compaction.body_count - compaction.sample_count)
        if compaction.held is not None:
            self._drop_dead(self._data.forget(self._data.locations.keys() - compaction.held))
        self._data.drop_empty()
        return True

    def destroy(self) -> None:
        """See `Storage.destroy`."""
        self._abandon_compaction()
        self._metadata.destroy()
        self._data.log.destroy()
        self._data.locations.clear()

    def close(self) -> None:
        """See `Storage.close`."""
        self._abandon_compaction()
        try:
            self._data.log.close()
            self._metadata.close()
        except OSError as error:
            raise self._refusal(error) from error

    def _open(self) -> None:
        position_at = POSITION.unpack_from
        redo = Redo(self._metadata.path)
        for index, content in self._data.log.open():
            frame_count = len(content.found.bodies) - redo.apply(content.buffer, content.found.bodies)
            inside = {
                position_at(content.buffer, start)[0]: start - FRAME_HEADER.size
                for start, end in content.found.bodies
                if end - start >= POSITION.size
            }
            inside.pop(COPY_POSITION, None)
            self._data.take_in(index, inside, frame_count)
        redo.finish()
        self._more_damage += redo.reports()
        told = Positions()
        for index, content in self._metadata.open():
            self._body_count += len(content.found.bodies)
            for start, end in content.found.bodies:
                try:
                    told.read(content.buffer[start:end])
                except msgspec.MsgspecError as error:
                    self._report_unreadable(index, start, end, error)
        next_position = max(told.next_free, *(max(each, default=-1) + 1 for each in (told.enqueued, told.removed)))
        locations = self._data.locations
        stray = locations.keys() - told.enqueued
        self._report_unfinished([position for position in stray if position >= next_position])
        if self.damage:
            self._data.stray_files = {self._data.file_of(position) for position in stray}
        self._drop_dead(self._data.forget(chain(stray, told.removed & locations.keys())))
        self._missing = told.enqueued - told.removed - locations.keys()
        for position in sorted(self._missing):
            what = f"the user data of sample {position} is gone; the sample is left out"
            path = self._metadata.stem.with_name(self._metadata.stem.name + "_d*.db")
            self._more_damage.append(DamageReport(path, 0, 0, DamageKind.PAYLOAD_MISSING, what))

    def _report_unfinished(self, positions: Sequence[int]) -> None:
        """Tell of user data that was written last and whose metadata was not: a crash came between, or cut it off."""
        if positions:
            what = f"{len(positions)} samples were begun and not finished: their metadata is not there"
            path = self._metadata.path(max(self._metadata.last_index, 0))
            self._more_damage.append(DamageReport(path, 0, 0, DamageKind.TORN_TAIL, what))

    def _report_unreadable(self, index: int, start: int, end: int, error: msgspec.MsgspecError) -> None:
        what = f"a record that this version cannot read: {error}"
        report = DamageReport(self._metadata.path(index), start, end - start, DamageKind.UNREADABLE, what)
        if report not in self._metadata.damage:
            self._is_damaged = True
            self._metadata.damage.append(report)
            self._metadata.damaged_indexes.add(index)

    def _metadata_records(self) -> Iterator[Record]:
        for index in list(self._metadata.sizes):
            buffer = self._metadata.read_file(index)
            if index in self._metadata.damaged_indexes:
                bodies = find_bodies(buffer, self._metadata.headers[index]).bodies
            else:
                bodies = spans(buffer, HEADER_SIZE_BYTES, self._metadata.sizes[index])
            for start, end in bodies:
                try:
                    yield from decode_metadata(buffer[start:end])
                except msgspec.MsgspecError as error:
                    self._report_unreadable(index, start, end, error)

    def _drop_dead(self, dead: list[int]) -> None:
        if dead:
            if self._data.log.synchronization is Synchronization.NORMAL:
                self._metadata.sync(critical=True)  # the removals must not be lost after the data
            self._data.drop(dead)

    def _refuse_after_failure(self) -> None:
        if self._failed:
            raise Damaged(
                f"{self._metadata.stem.name}: an earlier write may not have reached the disk",
                remedy="Restart the service: it restores what did.",
            )

    def _refusal(self, error: OSError) -> Damaged:
        where = error.filename or self._metadata.stem
        return Damaged(f"{where}: {error.strerror}", remedy="Free space on the disk or mend it, then start again.")
