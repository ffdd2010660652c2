"""The store of a queue with in-memory state: a stream of the write-ahead log, with files of its own (section 2.14.2).

Decides: what of the stream goes from the log to its own files, the checkpoints, and what is read from where. State is
the checkpoints, and behind them the records of the log whose index is higher than what they cover.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from qsctl.config.filesystem import FilesystemSettings
from qsctl.core.records import Assigned, Enqueued, Record, Removed, Returned, Undeliverable
from qsctl.errors import Damaged
from qsctl.storage.base import Extent, Shares, Sync, WritesThenSyncs
from qsctl.storage.codec import Encoded, UnreadableRecord, decode_metadata, encode, fill, has_user_data
from qsctl.storage.compaction import Whole
from qsctl.storage.damage import DamageKind, DamageReport
from qsctl.storage.frames import FRAME_HEADER
from qsctl.storage.log_frames import RECORD_OVERHEAD_BYTES, Place
from qsctl.storage.log_payloads import WithPayloads, with_payloads
from qsctl.storage.log_shares import FILE_BITS, OFFSET_MASK, LogShares
from qsctl.storage.segments import DEAD_BODY_COUNT_MIN, SegmentStorage
from qsctl.storage.write_ahead_log import Part, WriteAheadLog

_OVERHEAD_BYTES: Final = FRAME_HEADER.size + RECORD_OVERHEAD_BYTES
_AT_ONCE: Final = 500
"""So many records are checkpointed in a row, which takes some milliseconds."""


class LoggedStorage(WritesThenSyncs):
    """One stream of records: those that are new in a log that it shares, those that stay in `<stem>_…` files.

    Args:
        stem: what its own files are named after, in the directory of the log.
        log: shared with others; outlives this.
        known: how far its own files reached at least, where the log does not say.

    Raises:
        InvalidInput: a link or a device stands in a file's place.
        Damaged: the disk refuses.
    """

    def __init__(
        self, stem: Path, settings: FilesystemSettings, log: WriteAheadLog, known: Extent | None = None
    ) -> None:
        self.log = log
        self.stem = stem
        self.shares = LogShares()
        self._more_damage: list[DamageReport] = []
        self._removed: set[int] = set()
        """Samples of which the log says that they are gone, and that may be in the own files."""
        entry = log.stream(stem.name)
        self.number = entry.number
        self._next_index = entry.checkpointed + 1
        self._moved_to = entry.checkpointed
        """Up to this record what is needed was written to the own files; the log says so later."""
        self._is_closed = False
        self._first: list[Record] | None = self._replay()
        self._own = SegmentStorage(
            stem,
            settings,
            known,
            until=entry.extent,
            removed=self._removed,
            commit=self._commit,
        )
        self.was_there = self._own.was_there
        if entry.extent is None:
            log.change(replace(entry, extent=self._own.extent))

    @property
    def damage(self) -> Sequence[DamageReport]:
        """What was found broken in its own files, and of its records in the log."""
        return [*self._own.damage, *self._more_damage]

    @property
    def extent(self) -> Extent:
        """See `Storage.extent`: of its own files; the log has another."""
        return self.log.entries[self.number].extent or self._own.extent

    def write(self, records: Sequence[Record]) -> Sync | None:
        """See `Storage.write`."""
        return self._write(records)

    def write_along(self, records: Sequence[Record]) -> Sync | None:
        """See `Storage.write_along`."""
        self._write(records)
        return None

    def _write(self, records: Sequence[Record]) -> Sync | None:
        return write_group(self.log, [(self, records)]) if records else None

    def settle(self) -> None:
        """See `Storage.settle`."""
        self.log.sync()

    def part(self, records: Sequence[Record]) -> tuple[Part, list[int], list[int]]:
        """The records as a part of a group, with the positions that come and those that go."""
        encoded = encode(records)
        data = encoded.data
        if len(data) != len(encoded.metadata):
            payloads = iter(data)
            data = [next(payloads) if has_user_data(body) else b"" for body in encoded.metadata]
        return Part(self.number, self._next_index, encoded.metadata, data), encoded.positions, encoded.removed

    def note(
        self, part: Part, records: Sequence[Record], come: list[int], gone: list[int], file: int, offset: int
    ) -> None:
        """Take note of records that the log has now: in the file, the first frame at the offset."""
        metadata = part.metadata
        self._first = None
        self._next_index += len(metadata)
        share = self.shares.of(file, self._next_index - 1, len(metadata))
        if come:
            sizes = [_OVERHEAD_BYTES + len(each) + len(data) for each, data in zip(metadata, part.data, strict=True)]
            locations: Iterable[int] = accumulate(sizes, initial=file << FILE_BITS | offset)
            if len(come) != len(metadata):
                locations = [at for at, body in zip(locations, metadata, strict=False) if has_user_data(body)]
            self.shares.enqueue(share, come, locations)
        own = self._own.held
        if gone:
            self._removed.update(self.shares.remove(file, share, gone))
            if own:
                self._removed |= own & gone
        if own and not share.is_touched:
            share.is_touched = any(isinstance(each, _MOVES) and each.position in own for each in records)
        self._own.follow(records)

    def load(self) -> Iterator[Record]:
        """See `Storage.load`. Records about samples that are not there are left out."""
        known: set[int] = set()
        locations, removed = self.shares.locations, self._removed
        for record in self._own.load():
            if type(record) is Enqueued:
                known.add(record.position)
                if record.position in removed:
                    record = replace(record, payload=b"")
            elif _is_about_another(record, known):
                continue
            yield record
        from_log, self._first = self._first, None
        for record in self._replay_records() if from_log is None else from_log:
            if type(record) is Enqueued:
                known.add(record.position)
                if record.position not in locations and record.payload:
                    record = replace(record, payload=b"")
            elif _is_about_another(record, known):
                continue
            yield record

    def is_in_log(self, position: int) -> bool:
        """Whether a sample is held whose user data is in the log only."""
        return position in self.shares.locations

    def payload(self, position: int) -> bytes:
        """See `Storage.payload`.

        Raises:
            KeyError: no such sample is held.
            Damaged: its bytes do not match their checksum.
        """
        location = self.shares.locations.get(position)
        if location is None:
            if position in self._removed:
                raise KeyError(position)
            return self._own.payload(position)
        file, offset = location >> FILE_BITS, location & OFFSET_MASK
        try:
            return self.log.payload(file, offset, self.number)
        except (ValueError, OSError) as error:
            raise Damaged(
                f"{self.log.path(file)}: offset {offset}: the user data of sample {position} is damaged: {error}",
                remedy="Restart the service: it restores what is whole and reports the rest.",
            ) from error

    def worth_compacting(self) -> bool:
        """See `Storage.worth_compacting`. What is dead in the log counts, too: it goes with its file."""
        live_count = len(self.shares.locations) + len(self._own.held) - len(self._removed) + self._own.kept_count
        dead_count = self._own.body_count + self.shares.body_count - live_count
        return dead_count > max(live_count, DEAD_BODY_COUNT_MIN)

    @property
    def is_compacting(self) -> bool:
        """Whether a compaction is in progress, which checkpoints wait for."""
        return self._own.is_compacting

    def compact(self, keep: Iterable[Record]) -> None:
        """See `Storage.compact`."""
        for _ in self.compact_in_shares(Whole(keep)):
            pass

    def compact_in_shares(self, kept: Shares) -> Iterator[None]:
        """See `Storage.compact_in_shares`. What is kept goes to its own files; of the log nothing is needed then."""
        return self._own.compact_in_shares(WithPayloads(kept, self))

    def renew(self, keep: Iterable[Record]) -> None:
        """See `Storage.renew`."""
        self._own.renew(with_payloads(keep, self))

    def checkpoint(self, file: int) -> Iterator[None]:
        """Write to its own files what of the log up to the end of this file is needed, a share between two yields.

        Not while a compaction is in progress, which does the same and more. Call `checkpointed` once the last is over.

        Raises:
            Damaged: the disk refuses; it can be tried again.
        """
        covered = [each for each in self.shares.files if each <= file]
        if not any(map(self.shares.is_needed, covered)):
            return
        upto = max(self.shares.files[each].last_index for each in covered)
        found = [each for at in covered for each in self.log.records(self.number, at) if each[0].number <= upto]
        needed = [each for each in self._needed(found, set(covered)) if each.number > self._moved_to]
        for start in range(0, len(needed), _AT_ONCE):
            share = needed[start : start + _AT_ONCE]
            self._move(share)
            self._moved_to = share[-1].number
            yield
            if self._is_closed:
                return
        self._own.sync(critical=True)

    def _needed(self, found: Sequence[tuple[Place, bytes, bytes]], files: set[int]) -> list[_Body]:
        """Which of the bodies in these files the own ones need.

        Of samples that are held all; of samples that went only those whose identity is still asked for.
        """
        bodies = [
            _Body(place.number, metadata, self._decoded(place, metadata, data)) for place, metadata, data in found
        ]
        shares = self.shares
        records = [each for body in bodies for each in body.records]
        came = {each.position for each in records if type(each) is Enqueued}
        gone = [each.position for each in records if type(each) is Removed]
        first = max(shares.files[file].retired_count for file in files) - len(gone) + 1
        dropped = set()
        for ordinal, position in enumerate(gone, first):
            if position in came and not shares.is_remembered(ordinal) and position != shares.position_max:
                dropped.add(position)
        for file in files:
            for position, later, where in shares.files[file].crossing:
                if where in files:
                    continue
                if not shares.is_remembered(later) and position != shares.position_max:
                    dropped.add(position)
                elif where in shares.files:
                    shares.files[where].is_touched = True
        return [kept for body in bodies if (kept := body.without(dropped)).records] if dropped else bodies

    def has_records_to(self, file: int) -> bool:
        """Whether the log has anything of the stream up to the end of this file."""
        return any(each <= file for each in self.shares.files)

    def live_count_to(self, file: int) -> int:
        """How many held samples have their user data in this file of the log, or in one before."""
        return sum(share.live_count for each, share in self.shares.files.items() if each <= file)

    def checkpointed(self, file: int) -> None:
        """Everything up to the end of this file is in its own files: have the log say so with its next commit."""
        covered = [each for each in self.shares.files if each <= file]
        if covered:
            upto = max(self.shares.files.pop(each).last_index for each in covered)
            self.log.change(replace(self.log.entries[self.number], checkpointed=upto, extent=self._own.extent))

    def drop_dead(self) -> None:
        """The commit is durable: delete the files in which nothing is held any more."""
        self._own.drop_dead()

    def abandon(self) -> None:
        """See `Storage.abandon`. The log goes on."""
        self._is_closed = True
        self._own.abandon()

    def destroy(self) -> None:
        """See `Storage.destroy`. The log forgets it first: what is in it is nobody's then."""
        self._is_closed = True
        with suppress(Damaged):  # it is forgotten with the next group that the disk takes
            self.log.forget(self.number)
        self._own.destroy()
        self.shares.clear()

    def close(self) -> None:
        """See `Storage.close`. The log is closed by whoever opened it."""
        self._is_closed = True
        self._own.close()

    def _commit(self, extent: Extent) -> None:
        """A compaction is whole: its base is all there is, and only what comes now is needed of the log."""
        entry = self.log.entries[self.number]
        self.log.commit([replace(entry, checkpointed=self._next_index - 1, extent=extent)])
        self._first = None
        self._own.forget(self._removed)
        self._moved_to = self._next_index - 1
        self.shares.clear()
        self._removed.clear()

    def _move(self, bodies: Sequence[_Body]) -> None:
        """Write bodies to its own files; of samples that went meanwhile without user data."""
        self._first = None
        samples = [body.records[0] for body in bodies if body.records and type(body.records[0]) is Enqueued]
        removed = [each.position for body in bodies for each in body.records if type(each) is Removed]
        locations = self.shares.locations
        held = [each for each in samples if each.position in locations]
        positions = [each.position for each in held]
        data = [each.payload for each in held]
        self._own.put_encoded(Encoded([body.metadata for body in bodies], positions, data, removed))
        for position in positions:
            self.shares.files[locations.pop(position) >> FILE_BITS].live_count -= 1
        self._removed.update({each.position for each in samples}.difference(positions))
        self._removed.difference_update(removed)

    def _replay(self) -> list[Record]:
        """Read the stream in the log, note what is there, and give its records."""
        found: list[Record] = []
        shares, seen = self.shares, set[int]()
        for place, metadata, payload in self.log.records(self.number):
            self._next_index = place.number + 1
            share = shares.of(place.file, place.number, 1)
            records = self._decoded(place, metadata, payload)
            come = [each.position for each in records if type(each) is Enqueued]
            if come:
                seen.update(come)
                shares.enqueue(share, come, [place.file << FILE_BITS | place.start - FRAME_HEADER.size])
            gone = [each.position for each in records if type(each) is Removed]
            if gone:
                self._removed.update(shares.remove(place.file, share, gone))
            elif not share.is_touched:
                share.is_touched = any(isinstance(each, _MOVES) and each.position not in seen for each in records)
            found += records
        return found

    def _replay_records(self) -> Iterator[Record]:
        for place, metadata, payload in self.log.records(self.number):
            yield from self._decoded(place, metadata, payload)

    def _decoded(self, place: Place, metadata: bytes, payload: bytes) -> Sequence[Record]:
        """The records of a body, with their user data."""
        try:
            records = decode_metadata(metadata)
        except UnreadableRecord as error:
            what = f"a record that this version cannot read: {error}"
            report = DamageReport(
                self.log.path(place.file), place.start, place.end - place.start, DamageKind.UNREADABLE, what
            )
            if report not in self._more_damage:
                self._more_damage.append(report)
            return ()
        if type(records[0]) is Enqueued:
            fill(records[0], "payload", payload)
        return records


_MOVES: Final = (Assigned, Returned, Undeliverable)


def write_group(log: WriteAheadLog, streams: Sequence[tuple[LoggedStorage, Sequence[Record]]]) -> Sync | None:
    """Append records of several streams as one group; gives what is left to do until they are durable.

    Raises:
        Damaged: the disk refuses; nothing of them will be loaded.
    """
    parts = [stream.part(records) for stream, records in streams]
    file, offsets = log.write([part for part, _, _ in parts])
    for (stream, records), (part, come, gone), offset in zip(streams, parts, offsets, strict=True):
        stream.note(part, records, come, gone, file, offset)
    return log.pending_sync()


class _Body(NamedTuple):
    """What stands in one body of the log: a record, a sample and its first consumer, or removals in a row."""

    number: int
    metadata: bytes
    records: Sequence[Record]

    def without(self, positions: set[int]) -> _Body:
        """The same without what is said of some samples."""
        kept = [each for each in self.records if getattr(each, "position", None) not in positions]
        if len(kept) == len(self.records):
            return self
        return _Body(self.number, encode(kept).metadata[0] if kept else b"", kept)


def _is_about_another(record: Record, known: set[int]) -> bool:
    """Whether a record is about a sample that is not among those that are known."""
    return isinstance(record, Assigned | Returned | Undeliverable | Removed) and record.position not in known
