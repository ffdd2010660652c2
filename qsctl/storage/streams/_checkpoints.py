"""The checkpoint files of a stream: an append-only log of metadata, and another of payloads [QS 2.14.2].

Decides: which bytes are written to which log, where a payload is found again, and which files are not needed any more.
`logged` copies records from the write-ahead log to them; in qsctl 0.1, which had no write-ahead log, they were the
store.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, KeysView, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.errors import Damaged
from qsctl.storage._frames import FRAME_HEADER, spans
from qsctl.storage.base import Extent, Shares
from qsctl.storage.codec import POSITION, Encoded, Positions, Record, RecordCodec, UnreadableRecord, fill
from qsctl.storage.damage import DamageKind, DamageReport, refuse_loss
from qsctl.storage.file_system import HOST, FileSystem
from qsctl.storage.log.file_sequence import SEAL, shortfall
from qsctl.storage.log.segment_file import HEADER_SIZE_BYTES, find_bodies, refuse_form
from qsctl.storage.log.segment_log import SegmentLog
from qsctl.storage.names import read_whole
from qsctl.storage.room import refusal
from qsctl.storage.streams._compaction import ROOM_FOR_FILES, Compaction, Whole
from qsctl.storage.streams._data_files import OFFSET_BITS, DataFiles

_COPY_POSITION: Final = 2**64 - 1
"""Offset of a position in a file that has redo copies of metadata: such files may be needed, and are not written any
more.
"""


class Checkpoints:
    """Records of one stream in `<stem>_m<index>.db`, and their payloads in `<stem>_d<index>.db`.

    A data file is deleted once every position in it has ended; a compaction reclaims metadata. One thread at a
    time may use it.

    Args:
        stem: beginning of the files' names.
        settings: the configured synchronization and file size.
        codec: the codec of the records.
        known: their last recorded extent, which they must still reach, if `until` is None.
        until: the extent that the log committed; the rest is cut. None: all that is intact.
        ended: positions that ended since, whose payloads may be absent.
        commit: records their extent durably after a compaction; superseded files are deleted afterwards.
        discards_damaged: whether to continue with the intact records after a loss; else a loss is an error, and no file
            changes.
        disk: the files' file system.

    Raises:
        InvalidInput: a link or a device is in a file's place.
        Refused: a file has a form that only another version reads.
        Damaged: records are lost, or an I/O error occurs.
    """

    def __init__(
        self,
        stem: Path,
        settings: FilesystemSettings,
        codec: RecordCodec,
        known: Extent | None = None,
        *,
        until: Extent | None = None,
        ended: Collection[int] = (),
        commit: Callable[[Extent], None] = lambda _: None,
        discards_damaged: bool = True,
        disk: FileSystem = HOST,
    ) -> None:
        magic = int.from_bytes(disk.draw(4)) or 1
        size, synchronization = settings.file_max_size_bytes, settings.synchronization
        self._metadata, data = (
            SegmentLog(
                stem,
                letter,
                contiguous=letter == "m",
                mark=magic,
                file_max_size_bytes=size,
                synchronization=synchronization,
                disk=disk,
            )
            for letter in "md"
        )
        self._data = DataFiles(data)
        self._codec = codec
        self._compaction: Compaction | None = None
        self._missing: set[int] = set()
        """Positions whose payload damage took."""
        self.body_count = 0
        self.kept_count = 0
        self._failed = False
        self._commit = commit
        self._dead: list[int] = []
        """Data files in which nothing is held, to be deleted once that is durable."""
        self._more_damage: list[DamageReport] = []
        try:
            self._open(until, ended)
            self.was_there = self._metadata.last_index >= 0
            path = self._metadata.path
            self._more_damage += shortfall(path, known if until is None else until, self.extent, self.damage)
            if not discards_damaged:
                refuse_loss(self.damage, settings.synchronization)
            self.drop_dead()
            if not self._metadata.sizes:
                self._metadata.write(())  # an empty log differs from one that was deleted
                self._metadata.sync(critical=True)  # what is noted of it is durable
        except OSError as error:
            raise self._refusal(error) from error
        except Damaged:
            self.abandon()
            raise

    @property
    def damage(self) -> Sequence[DamageReport]:
        """Damage that was found, in the order of the files."""
        return [*self._metadata.damage, *self._data.log.damage, *self._more_damage]

    @property
    def is_compacting(self) -> bool:
        """Return whether a compaction is in progress."""
        return self._compaction is not None

    @property
    def held(self) -> KeysView[int]:
        """The positions whose payload is in the files."""
        return self._data.locations.keys()

    @property
    def extent(self) -> Extent:
        """Return the store's extent for the directory's register: less at the next opening means lost records.

        It is that of the metadata, since a payload without metadata is ignored.
        """
        index = self._metadata.last_index
        return Extent("segments", index, self._metadata.sizes.get(index, 0))

    def put(self, encoded: Encoded) -> None:
        """Append records; a payload is absent where its position is not among the encoded ones.

        Raises:
            Damaged: an I/O error occurs; nothing of them will be loaded.
        """
        self._refuse_after_failure()
        try:
            self._put(encoded)
        except OSError as error:
            raise self._refusal(error) from error
        if encoded.ended:
            self._dead += self._data.forget(encoded.ended)

    def _put(self, encoded: Encoded) -> None:
        """Write a batch to both logs, or to neither."""
        log = self._data.log
        data_before = (log.last_index, log.sizes.get(log.last_index, 0), log.next_number)
        if encoded.has_moves:
            self._metadata.expect_moves()
        batch = self._metadata.prepare(encoded.bodies)
        index, offset = self._data.write(encoded)
        try:
            self._metadata.put(batch)
        except OSError:
            if encoded.positions:
                before = data_before[1:] if index == data_before[0] else (HEADER_SIZE_BYTES, 0)
                log.cut(index, *before)
            raise
        self.body_count += encoded.piece_count
        self._data.locate(index, offset, encoded)

    def follow(self, records: Sequence[Record]) -> None:
        """Pass records stored since its start, here or in the log, to a compaction in progress.

        Raises:
            Damaged: an I/O error occurs.
        """
        compaction = self._compaction
        if compaction is None or compaction.is_over:
            return
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

    def sync(self) -> None:
        """Sync the metadata and the payloads.

        Raises:
            Damaged: an I/O error occurs; it is unknown whether the writes are durable.
        """
        try:
            self._data.log.sync(critical=True)
            self._metadata.sync(critical=True)
        except OSError as error:
            self._failed = True
            raise self._refusal(error) from error

    def load(self, known: set[int] | None = None) -> Iterator[Record]:
        """Yield every intact record in order, with its payload; records of lost payloads are left out.

        It is one pass, which reads one file of payloads at a time. The positions that begin are added to `known`.
        """
        carrier, position_of = self._codec.carrier, self._codec.position_of
        location_of, header_at = self._data.locations.get, FRAME_HEADER.unpack_from
        buffer = b""
        first, end = 0, 0  # the locations of the file that was read
        header_size, overhead = FRAME_HEADER.size, FRAME_HEADER.size + POSITION.size
        known = set() if known is None else known
        begin = known.add
        for records in self._metadata_records():
            for record in records:
                if type(record) is carrier:
                    position = record.position
                    location = location_of(position)
                    if location is not None:
                        if not first <= location < end:
                            index = location >> OFFSET_BITS
                            first, end = index << OFFSET_BITS, (index + 1) << OFFSET_BITS
                            buffer = read_whole(self._data.log.path(index), self._data.log.disk)
                        at = location - first
                        _, length, _ = header_at(buffer, at)
                        fill(record, "payload", buffer[at + overhead : at + header_size + length])
                    elif position in self._missing:
                        continue
                    begin(position)
                elif (position := position_of(record)) is not None and position not in known:
                    continue
                yield record

    def _metadata_records(self) -> Iterator[Sequence[Record]]:
        """Yield the records in the files of metadata, a file at a time."""
        log, codec = self._metadata, self._codec
        for index in list(log.sizes):
            buffer = read_whole(log.path(index), log.disk)[
                : log.sizes[index]
            ]  # no more than was read when it was opened
            if index in log.damaged_indexes:
                places = find_bodies(buffer, log.headers[index]).bodies
            else:
                places = spans(buffer, HEADER_SIZE_BYTES, log.sizes[index])
            if places and places[-1][1] - places[-1][0] == len(SEAL):
                places.pop()
            try:
                yield codec.decode_all([buffer[start:end] for start, end in places])
            except UnreadableRecord:
                for start, end in places:
                    try:
                        yield codec.decode(buffer[start:end])
                    except UnreadableRecord as error:
                        self._report_unreadable(index, start, end, error)

    def payload(self, position: int) -> bytes:
        """Return the payload at a position, for a queue that keeps payloads on disk only.

        Raises:
            KeyError: these files have none at this position.
            Damaged: its bytes do not match their checksum.
        """
        try:
            return self._data.payload(position)
        except OSError as error:
            raise self._refusal(error) from error

    def compact_in_shares(self, kept: Shares) -> Iterator[None]:
        """Compact as `compact` does, one step between two yields, while the caller appends records between the steps.

        The metadata is rewritten first, then the data files that are more than half obsolete, one at a time.
        """
        self._refuse_after_failure()
        self._abandon_compaction()
        try:
            base = self._metadata.begin_base(self._metadata.last_index + 1 + ROOM_FOR_FILES)
            compaction = self._compaction = Compaction(base, kept, self._codec)
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
            if still_held or self._data.is_newest(index):  # any other one in which nothing is held is deleted
                self._data.rewrite(index, still_held)
                yield
        self._data.stray_files.clear()

    def _goes_over_to(self, compaction: Compaction) -> bool:
        """Write the next kept records; after the last ones, replace the old metadata. Return whether that is done."""
        records, carrier, held = compaction.take(), self._codec.carrier, self.held
        fresh = [each for each in records if type(each) is carrier and each.position not in held]
        if fresh:
            encoded = self._codec.encode(fresh)
            self._data.locate(*self._data.write(encoded), encoded)
        if not compaction.is_over:
            return False
        self._data.log.sync(critical=True)
        self._metadata.put_base(compaction.base, self._commit)
        self.body_count = compaction.body_count
        self.kept_count = max(0, compaction.body_count - compaction.payload_count)
        if compaction.held is not None:
            self._dead += self._data.forget(self._data.locations.keys() - compaction.held)
        self.drop_dead()
        self._data.drop_empty()
        return True

    def renew(self, keep: Iterable[Record]) -> None:
        """Compact as `compact` does, into new files: the last writes to the old ones may not have reached the disk.

        Only the newest file of payloads can have octets that were not synced.
        """
        self._data.stray_files |= {self._data.log.last_index} - {-1}
        for _ in self.compact_in_shares(Whole(keep)):
            pass

    def abandon(self) -> None:
        """Close the files without a sync, after a write or a sync failed."""
        self._abandon_compaction()
        for log in (self._data.log, self._metadata):
            log.abandon()

    def destroy(self) -> None:
        """Close the store and delete its files."""
        self._abandon_compaction()
        self._metadata.destroy()
        self._data.log.destroy()
        self._data.locations.clear()

    def close(self) -> None:
        """Sync as configured, and close the files."""
        self._abandon_compaction()
        try:
            self._data.log.close()
            self._metadata.close()
        except OSError as error:
            raise self._refusal(error) from error

    def _open(self, until: Extent | None, ended: Collection[int]) -> None:
        position_at = POSITION.unpack_from
        for index, content in self._data.log.open():
            buffer, first = content.buffer, (index << OFFSET_BITS) - FRAME_HEADER.size
            inside = {
                position_at(buffer, start)[0]: first + start
                for start, end in content.found.bodies
                if end - start >= POSITION.size
            }
            if _COPY_POSITION in inside:
                refuse_form(self._data.log.path(index))
            self._data.add_file(index, inside, len(content.found.bodies))
        found = Positions()
        for index, content in self._metadata.open(until):
            self.body_count += len(content.found.bodies)
            bodies = [content.buffer[start:end] for start, end in content.found.bodies]
            try:
                self._codec.read_positions(bodies, found)
            except UnreadableRecord:
                for (start, end), body in zip(content.found.bodies, bodies, strict=True):
                    try:
                        self._codec.read_positions([body], found)
                    except UnreadableRecord as error:
                        self._report_unreadable(index, start, end, error)
        self.body_count += len(found.begun) - found.carrier_count
        next_position = max(found.next_free, *(max(each, default=-1) + 1 for each in (found.begun, found.ended)))
        locations = self._data.locations
        stray = locations.keys() - found.begun
        if until is None:
            self._report_unfinished([position for position in stray if position >= next_position])
        if self.damage:
            self._data.stray_files = {self._data.file_of(position) for position in stray}
        self._dead += self._data.forget(chain(stray, found.ended & locations.keys()))
        self._missing = found.begun - found.ended - locations.keys() - set(ended)
        if until is not None and not self._missing:
            # A crash cut a checkpoint short: the log has all that is broken here.
            log = self._data.log
            log.damage = [dataclasses.replace(each, kind=DamageKind.TORN_TAIL) for each in log.damage]
        for position in sorted(self._missing):
            what = f"the user data of sample {position} is gone; the sample is left out"
            path = self._metadata.stem.with_name(self._metadata.stem.name + "_d*.db")
            self._more_damage.append(DamageReport(path, 0, 0, DamageKind.PAYLOAD_MISSING, what))

    def _report_unfinished(self, positions: Sequence[int]) -> None:
        """Report payloads written last whose metadata is missing, because a crash came between the writes."""
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
        """Drop the payloads of positions that ended according to the log."""
        self._dead += self._data.forget(positions)

    def drop_dead(self) -> None:
        """Delete the data files without held payloads; the ends of these must be durable, so under NORMAL they are
        synced first.
        """
        if self._dead:
            dead, self._dead = [each for each in self._dead if each in self._data.log.sizes], []
            if self._data.log.synchronization is Synchronization.NORMAL:
                self._metadata.sync(critical=True)  # what ended must not be lost after the data
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
