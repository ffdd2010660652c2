"""The files of a queue with in-memory state: an append-only log of metadata, another of user data (section 2.14.2).

Decides: which bytes go to which log, where a payload is found again, and which files are dead. `logged` writes them
behind, as checkpoints of the write-ahead log; they are a whole store by themselves, too, as those of qsctl 0.1 were.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, KeysView, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.records import Enqueued, Record
from qsctl.errors import Damaged
from qsctl.storage.base import Extent, Shares, Sync, WritesThenSyncs
from qsctl.storage.codec import (
    POSITION,
    Encoded,
    Positions,
    UnreadableRecord,
    encode,
)
from qsctl.storage.compaction import ROOM_FOR_FILES, Compaction, Whole
from qsctl.storage.damage import DamageKind, DamageReport
from qsctl.storage.data_files import DataFiles
from qsctl.storage.file_sequence import shortfall
from qsctl.storage.frames import FRAME_HEADER
from qsctl.storage.metadata_copies import COPY_POSITION, Redo
from qsctl.storage.room import refusal
from qsctl.storage.segment_file import HEADER_SIZE_BYTES
from qsctl.storage.segment_log import SegmentLog
from qsctl.storage.segment_records import stored_records

DEAD_BODY_COUNT_MIN: Final = 2_000
"""Below this a log is never worth compacting: reading so much takes some milliseconds."""


class SegmentStorage(WritesThenSyncs):
    """Records of one queue in `<stem>_m<index>.db`, payloads in `<stem>_d<index>.db`.

    A data file is deleted once every sample in it was removed; metadata is reclaimed by `compact`. One thread at a
    time may use it. `known`: how far it reached at least when it was last heard of.

    As checkpoints: `until` is how far they were finished; the rest is cut. `removed` are samples that were removed
    since, of which nothing need be there. `commit` makes durable how far they reach; then only, what is dead goes.

    Raises:
        InvalidInput: a link or a device stands in a file's place.
        Damaged: the disk refuses.
    """

    def __init__(
        self,
        stem: Path,
        settings: FilesystemSettings,
        known: Extent | None = None,
        *,
        until: Extent | None = None,
        removed: Collection[int] = (),
        commit: Callable[[Extent], None] = lambda _: None,
    ) -> None:
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
        self.body_count = 0
        self.kept_count = 0
        self._failed = False
        self._is_full = synchronization is Synchronization.FULL
        self._commit = commit
        self._dead: list[int] = []
        """Data files in which nothing is held, to go once that is durable."""
        self._more_damage: list[DamageReport] = []
        try:
            self._open(until, removed)
            self.was_there = self._metadata.last_index >= 0
            path = self._metadata.path
            self._more_damage += shortfall(path, known if until is None else until, self.extent, self.damage)
            if not self._metadata.sizes:
                self._metadata.write(())  # an empty log can be told from one that was deleted
        except OSError as error:
            raise self._refusal(error) from error

    @property
    def damage(self) -> Sequence[DamageReport]:
        """What was found broken, in the order of the files."""
        return [*self._metadata.damage, *self._data.log.damage, *self._more_damage]

    @property
    def is_compacting(self) -> bool:
        """Whether a compaction is in progress."""
        return self._compaction is not None

    @property
    def held(self) -> KeysView[int]:
        """The positions of the samples in the files."""
        return self._data.locations.keys()

    @property
    def extent(self) -> Extent:
        """See `Storage.extent`: the last file of metadata, for user data without it is no sample."""
        index = self._metadata.last_index
        return Extent("segments", index, self._metadata.sizes.get(index, 0))

    def write(self, records: Sequence[Record]) -> Sync | None:
        """See `Storage.write`."""
        return self._write(records, rides=False)

    def write_along(self, records: Sequence[Record]) -> Sync | None:
        """See `Storage.write_along`."""
        return self._write(records, rides=True)

    def _write(self, records: Sequence[Record], *, rides: bool) -> Sync | None:
        if not records:
            return None
        has_data = self.put(records)
        may_wait = rides or not self._is_full
        return None if may_wait and not self._dead else partial(self.sync, has_data=has_data)

    def put(self, records: Sequence[Record]) -> bool:
        """Append records. Whether there was user data.

        Raises:
            Damaged: the disk refuses; nothing of them will be loaded.
        """
        encoded = encode(records)
        self.put_encoded(encoded)
        self.follow(records)
        return bool(encoded.positions)

    def put_encoded(self, encoded: Encoded) -> None:
        """Append records; a sample whose position is not among them has no user data.

        Raises:
            Damaged: the disk refuses; nothing of them will be loaded.
        """
        self._refuse_after_failure()
        try:
            self._put(encoded)
        except OSError as error:
            raise self._refusal(error) from error
        if encoded.removed:
            self._dead += self._data.forget(encoded.removed)

    def _put(self, encoded: Encoded) -> None:
        """Write a batch to both logs, or to neither."""
        log = self._data.log
        data_before = (log.last_index, log.sizes.get(log.last_index, 0), log.next_number)
        batch = self._metadata.prepare(encoded.metadata)
        index, offset = self._data.write(encoded)
        try:
            self._metadata.put(batch)
        except OSError:
            if encoded.positions:
                before = data_before[1:] if index == data_before[0] else (HEADER_SIZE_BYTES, 0)
                log.cut(index, *before)
            raise
        self.body_count += len(encoded.metadata)
        self._data.locate(index, offset, encoded)

    def follow(self, records: Sequence[Record]) -> None:
        """Let a compaction in progress know of records that were stored, here or elsewhere.

        Raises:
            Damaged: the disk refuses.
        """
        if self._compaction is not None and not self._compaction.is_over:
            self._follow(self._compaction, records)

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
        self.sync(has_data=False)

    def sync(self, *, has_data: bool = True, critical: bool = False) -> None:
        """Reach the disk, then delete the data files in which nothing is held any more.

        Raises:
            Damaged: the disk refuses; what was written may or may not be there.
        """
        try:
            if has_data:
                self._data.log.sync(critical=critical)
            self._metadata.sync(critical=critical)
            if not critical:
                self.drop_dead()
        except OSError as error:
            self._failed = True
            raise self._refusal(error) from error

    def load(self) -> Iterator[Record]:
        """See `Storage.load`. Records about a sample that damage took away are left out."""
        return stored_records(self._metadata, self._data, self._missing, self._report_unreadable)

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
        live_count = len(self._data.locations) + self.kept_count
        return self.body_count - live_count > max(live_count, DEAD_BODY_COUNT_MIN)

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
        self._metadata.put_base(compaction.base, self._commit)
        self.body_count = compaction.body_count
        self.kept_count = max(0, compaction.body_count - compaction.sample_count)
        if compaction.held is not None:
            self._dead += self._data.forget(self._data.locations.keys() - compaction.held)
        self.drop_dead()
        self._data.drop_empty()
        return True

    def renew(self, keep: Iterable[Record]) -> None:
        """See `Storage.renew`. Only the newest file of user data can hold what was not synced."""
        self._data.stray_files |= {self._data.log.last_index} - {-1}
        self.compact(keep)

    def abandon(self) -> None:
        """See `Storage.abandon`."""
        self._abandon_compaction()
        for log in (self._data.log, self._metadata):
            log.abandon()

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

    def _open(self, until: Extent | None, removed: Collection[int]) -> None:
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
        for index, content in self._metadata.open(until):
            self.body_count += len(content.found.bodies)
            for start, end in content.found.bodies:
                try:
                    told.read(content.buffer[start:end])
                except UnreadableRecord as error:
                    self._report_unreadable(index, start, end, error)
        next_position = max(told.next_free, *(max(each, default=-1) + 1 for each in (told.enqueued, told.removed)))
        locations = self._data.locations
        stray = locations.keys() - told.enqueued
        if until is None:
            self._report_unfinished([position for position in stray if position >= next_position])
        if self.damage:
            self._data.stray_files = {self._data.file_of(position) for position in stray}
        self._dead += self._data.forget(chain(stray, told.removed & locations.keys()))
        self.drop_dead()
        self._missing = told.enqueued - told.removed - locations.keys() - set(removed)
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

    def _report_unreadable(self, index: int, start: int, end: int, error: UnreadableRecord) -> None:
        what = f"a record that this version cannot read: {error}"
        report = DamageReport(self._metadata.path(index), start, end - start, DamageKind.UNREADABLE, what)
        if report not in self._metadata.damage:
            self._metadata.damage.append(report)
            self._metadata.damaged_indexes.add(index)

    def forget(self, positions: Iterable[int]) -> None:
        """Hold samples no more of which another file says that they were removed."""
        self._dead += self._data.forget(positions)

    def drop_dead(self) -> None:
        """Delete the data files in which nothing is held; that must be durable, and is made so under NORMAL."""
        if self._dead:
            dead, self._dead = [each for each in self._dead if each in self._data.log.sizes], []
            if self._data.log.synchronization is Synchronization.NORMAL:
                self._metadata.sync(critical=True)  # the removals must not be lost after the data
            self._data.drop(dead)

    def _refuse_after_failure(self) -> None:
        if self._has_failed:
            raise Damaged(
                f"{self._metadata.stem.name}: an earlier write may not have reached the disk",
                remedy="Restart the service: it restores what did.",
            )

    def _refusal(self, error: OSError) -> Damaged:
        return refusal(self._metadata.stem, error, is_clean=not self._has_failed)

    @property
    def _has_failed(self) -> bool:
        return self._failed or self._data.log.has_failed or self._metadata.has_failed
