"""The store of a queue with in-memory state: an append-only log of metadata, another of user data (section 2.14.2).

Decides: which bytes go to which log, where a payload is found again, and which files are dead. One append is one write
and, under synchronization FULL, one sync a log, whatever the size of the batch.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, repeat
from pathlib import Path
from typing import Final

import msgspec

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.records import Enqueued, Record
from qsctl.errors import Damaged
from qsctl.storage.base import Sync, WritesThenSyncs
from qsctl.storage.codec import (
    POSITION,
    Encoded,
    Positions,
    decode_metadata,
    encode,
    fill,
    position_of,
)
from qsctl.storage.damage import DamageKind, DamageReport
from qsctl.storage.frames import FRAME_HEADER, is_whole, spans
from qsctl.storage.metadata_copies import COPY_POSITION, Redo, UnsyncedMetadata
from qsctl.storage.segment_file import HEADER_SIZE_BYTES, find_bodies
from qsctl.storage.segment_log import SegmentLog

DEAD_BODY_COUNT_MIN: Final = 2_000
"""Below this a log is never worth compacting: reading so much takes some milliseconds."""

_OFFSET_BITS: Final = 40
_OFFSET_MASK: Final = (1 << _OFFSET_BITS) - 1


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
        self._data = SegmentLog(
            stem, "d", contiguous=False, mark=mark, file_max_size_bytes=size, synchronization=synchronization
        )
        self._locations: dict[int, int] = {}
        """File index and offset of the frame, in one number, of every sample that is held, by position."""
        self._live_counts: dict[int, int] = {}
        """Samples held, by data file."""
        self._frame_counts: dict[int, int] = {}
        """Samples written, by data file."""
        self._missing: set[int] = set()
        """Samples whose user data damage took."""
        self._stray_files: set[int] = set()
        """Data files with samples of which there is no metadata; the next `compact` rewrites them."""
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
        return [*self._metadata.damage, *self._data.damage, *self._more_damage]

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
        dead = self._forget(encoded.removed) if encoded.removed else []
        may_wait = rides or not self._is_full
        return None if may_wait and not dead else partial(self._sync, bool(encoded.positions), has_copy, dead)

    def _put(self, encoded: Encoded) -> bool:
        """Write a batch to both logs, or to neither; whether its metadata stands behind its user data, too."""
        data_before = (self._data.last_index, self._data.sizes.get(self._data.last_index, 0))
        batch = self._metadata.prepare(encoded.metadata)
        has_copy = self._is_full and bool(encoded.positions) and not self._metadata.has_new_file
        index, offset = self._write_data(encoded, [self._unsynced.copy_with(batch)] if has_copy else [])
        try:
            self._metadata.put(batch)
        except OSError:
            if encoded.positions:
                self._data.cut(index, data_before[1] if index == data_before[0] else HEADER_SIZE_BYTES)
            raise
        if has_copy:
            self._unsynced.clear()
        elif self._is_full:
            self._unsynced.add(batch)
        self._body_count += len(encoded.metadata)
        self._locate(index, offset, encoded)
        return has_copy

    def settle(self) -> None:
        """See `Storage.settle`."""
        if self._unsynced:
            self._sync(has_data=False, has_copy=False, dead=[])
        self._data.rest()
        self._metadata.rest()

    def _sync(self, has_data: bool, has_copy: bool, dead: list[int]) -> None:
        """Reach the disk, then delete the data files in which nothing is held any more."""
        try:
            if has_data:
                self._data.sync()
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
        location_of, header_at = self._locations.get, FRAME_HEADER.unpack_from
        file_index, buffer_of_file = -1, b""
        header_size, overhead = FRAME_HEADER.size, FRAME_HEADER.size + POSITION.size
        for record in self._metadata_records():
            if type(record) is Enqueued:
                location = location_of(record.position)
                if location is not None:
                    if location >> _OFFSET_BITS != file_index:
                        file_index = location >> _OFFSET_BITS
                        buffer_of_file = self._data.read_file(file_index)
                    offset = location & _OFFSET_MASK
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
        location = self._locations[position]
        index, offset = location >> _OFFSET_BITS, location & _OFFSET_MASK
        try:
            header, body = self._data.read_body(index, offset)
        except OSError as error:
            raise self._refusal(error) from error
        if not is_whole(header, body, self._data.headers[index].mark) or POSITION.unpack_from(body)[0] != position:
            raise Damaged(
                f"{self._data.path(index)}: offset {offset}: the user data of sample {position} is damaged",
                remedy="Restart the service: it restores what is whole and reports the rest.",
            )
        return body[POSITION.size :]

    def worth_compacting(self) -> bool:
        """See `Storage.worth_compacting`."""
        live_count = len(self._locations) + self._kept_count
        return self._body_count - live_count > max(live_count, DEAD_BODY_COUNT_MIN)

    def compact(self, keep: Iterable[Record]) -> None:
        """See `Storage.compact`. Rewrites the metadata, and those data files of which more than half is dead."""
        self._refuse_after_failure()
        records = list(keep)
        fresh = [each for each in records if isinstance(each, Enqueued) and each.position not in self._locations]
        try:
            if fresh:
                encoded = encode(fresh)
                index, offset = self._write_data(encoded)
                self._locate(index, offset, encoded)
            self._data.sync(critical=True)
            metadata = encode(records).metadata
            self._metadata.write_base(metadata)
            self._unsynced.clear()
            kept = {each.position for each in records if isinstance(each, Enqueued)}
            self._body_count = len(metadata)
            self._kept_count = max(0, len(metadata) - len(kept))
            self._drop_dead(self._forget([position for position in self._locations if position not in kept]))
            self._rewrite_sparse_files()
        except OSError as error:
            raise self._refusal(error) from error

    def destroy(self) -> None:
        """See `Storage.destroy`."""
        self._metadata.destroy()
        self._data.destroy()
        self._locations.clear()

    def close(self) -> None:
        """See `Storage.close`."""
        try:
            self._data.close()
            self._metadata.close()
        except OSError as error:
            raise self._refusal(error) from error

    def _open(self) -> None:
        position_at = POSITION.unpack_from
        redo = Redo(self._metadata.path)
        for index, content in self._data.open():
            self._frame_counts[index] = len(content.found.bodies) - redo.apply(content.buffer, content.found.bodies)
            start_of_file = (index << _OFFSET_BITS) - FRAME_HEADER.size
            inside = {
                position_at(content.buffer, start)[0]: start_of_file + start
                for start, end in content.found.bodies
                if end - start >= POSITION.size
            }
            inside.pop(COPY_POSITION, None)
            for position in self._locations.keys() & inside.keys():
                self._live_counts[self._locations[position] >> _OFFSET_BITS] -= 1
            self._live_counts[index] = len(inside)
            self._locations.update(inside)
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
        stray = self._locations.keys() - told.enqueued
        self._report_unfinished([position for position in stray if position >= next_position])
        if self.damage:
            self._stray_files = {self._locations[position] >> _OFFSET_BITS for position in stray}
        self._drop_dead(self._forget(chain(stray, told.removed & self._locations.keys())))
        self._missing = told.enqueued - told.removed - self._locations.keys()
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

    def _write_data(self, encoded: Encoded, copies: Iterable[bytes] = ()) -> tuple[int, int]:
        if not encoded.positions:
            return -1, 0
        pack = POSITION.pack
        bodies = [pack(position) + data for position, data in zip(encoded.positions, encoded.data, strict=True)]
        batch = self._data.write(chain(bodies, copies))
        return batch.file_index, batch.offset

    def _locate(self, index: int, offset: int, encoded: Encoded) -> None:
        overhead = FRAME_HEADER.size + POSITION.size
        if encoded.positions:
            self._frame_counts[index] = self._frame_counts.get(index, 0) + len(encoded.positions)
            self._live_counts[index] = self._live_counts.get(index, 0) + len(encoded.positions)
        for position in self._locations.keys() & encoded.positions:
            self._live_counts[self._locations[position] >> _OFFSET_BITS] -= 1
        sizes = [overhead + len(data) for data in encoded.data]
        starts = accumulate(sizes, initial=index << _OFFSET_BITS | offset)
        self._locations.update(zip(encoded.positions, starts, strict=False))

    def _forget(self, positions: Iterable[int]) -> list[int]:
        """Hold samples no more; give the data files in which nothing is held now."""
        locations = map(self._locations.pop, positions, repeat(None))
        gone = Counter(location >> _OFFSET_BITS for location in locations if location is not None)
        for index, count in gone.items():
            self._live_counts[index] -= count
        return [index for index in gone if not self._live_counts[index] and index != self._data.last_index]

    def _drop_dead(self, dead: list[int]) -> None:
        if dead:
            if self._data.synchronization is Synchronization.NORMAL:
                self._metadata.sync(critical=True)  # the removals must not be lost after the data
            self._drop_data(dead)

    def _drop_data(self, indexes: list[int]) -> None:
        self._data.drop(indexes)
        for index in indexes:
            self._live_counts.pop(index, None)
            self._frame_counts.pop(index, None)

    def _rewrite_sparse_files(self) -> None:
        if self._stray_files:
            self._data.seal()
        written = self._data.written_index
        damaged = self._data.damaged_indexes
        last = self._data.last_index
        self._drop_data([index for index, count in self._live_counts.items() if not count and index != last])
        sparse = {
            index
            for index, count in self._live_counts.items()
            if index != written and (2 * count < self._frame_counts[index] or index in damaged | self._stray_files)
        }
        inside: dict[int, list[int]] = {index: [] for index in sparse}
        for position, location in self._locations.items():
            if location >> _OFFSET_BITS in sparse:
                inside[location >> _OFFSET_BITS].append(position)
        for index, positions in sorted(inside.items()):
            data = [self.payload(position) for position in positions]
            encoded = Encoded([], positions, data, [])
            self._data.rewrite(index, [POSITION.pack(at) + each for at, each in zip(positions, data, strict=True)])
            self._frame_counts[index] = 0
            self._locate(index, HEADER_SIZE_BYTES, encoded)
        self._stray_files.clear()

    def _refuse_after_failure(self) -> None:
        if self._failed:
            raise Damaged(
                f"{self._metadata.stem.name}: an earlier write may not have reached the disk",
                remedy="Restart the service: it restores what did.",
            )

    def _refusal(self, error: OSError) -> Damaged:
        where = error.filename or self._metadata.stem
        return Damaged(f"{where}: {error.strerror}", remedy="Free space on the disk or mend it, then start again.")
