"""A stream of the write-ahead log, with files of its own: the store of a queue with in-memory state [QS 2.14.2].

Decides: which records are copied from the log to the stream's own files, the checkpoints, and from where each record is
read. The state is that of the checkpoints, followed by the records of the log that have higher indexes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from qsctl.config.filesystem import FilesystemSettings
from qsctl.errors import Damaged
from qsctl.storage.base import Extent, Shares, Sync
from qsctl.storage.codec import Encoded, Record, RecordCodec
from qsctl.storage.damage import DamageReport
from qsctl.storage.log.log_payloads import WithPayloads, with_payloads
from qsctl.storage.log.log_stream import Body, LogStream
from qsctl.storage.log.write_ahead_log import WriteAheadLog
from qsctl.storage.room import refusal
from qsctl.storage.streams._checkpoints import Checkpoints
from qsctl.storage.streams._compaction import Whole

DEAD_BODY_COUNT_MIN: Final = 2_000
"""Below this a stream is never worth compacting: reading so much takes some milliseconds."""

_AT_ONCE: Final = 500
"""Number of records checkpointed in a row, which takes some milliseconds."""


class LoggedStorage:
    """One stream of records: new ones in a log shared with other streams, lasting ones in files `<stem>_…` of its own.

    Args:
        stem: beginning of the names of its own files, in the directory of the log.
        settings: the configured synchronization and file size.
        log: the shared log, which the caller closes after this store.
        codec: the codec of the records.
        known: the least extent of its own files, where the log does not record it.
        discards_damaged: whether to continue with the intact records after a loss; else a loss is an error, and no file
            changes.

    Raises:
        InvalidInput: a link or a device is in a file's place.
        Damaged: records are lost, or an I/O error occurs.
    """

    def __init__(
        self,
        stem: Path,
        settings: FilesystemSettings,
        log: WriteAheadLog,
        codec: RecordCodec,
        known: Extent | None = None,
        *,
        discards_damaged: bool = True,
    ) -> None:
        self.log = log
        self.stem = stem
        self.codec = codec
        self.in_log = LogStream(log, stem.name, codec)
        entry = self.in_log.entry
        self._moved_to = entry.checkpointed
        """Index up to which needed records were written to the own files; the log records it later."""
        self._is_closed = False
        self._own = Checkpoints(
            stem,
            settings,
            codec,
            known,
            until=entry.extent,
            ended=self.in_log.ended,
            commit=self._commit_snapshot,
            discards_damaged=discards_damaged,
            disk=log.disk,
        )
        self.was_there = self._own.was_there
        if entry.extent is None:
            log.change(replace(entry, extent=self._own.extent))

    @property
    def damage(self) -> Sequence[DamageReport]:
        """Damage that was found in its own files, and in its records in the log."""
        return [*self._own.damage, *self.in_log.damage]

    @property
    def extent(self) -> Extent:
        """Return the store's extent for the directory's register: less at the next opening means lost records.

        It is that of its own files; the log's is separate.
        """
        return self.in_log.entry.extent or self._own.extent

    def load(self) -> Iterator[Record]:
        """Yield every intact record in order, except those that `compact` dropped.

        Records about positions that are missing are left out.
        """
        known: set[int] = set()
        in_log, carrier, position_of = self.in_log, self.codec.carrier, self.codec.position_of
        yield from map(in_log.without_ended, self._own.load(known)) if in_log.ended else self._own.load(known)
        replayed, in_log.replayed = in_log.replayed, None
        for record in in_log.load() if replayed is None else map(in_log.held, replayed):
            if type(record) is carrier:
                known.add(record.position)
            elif (position := position_of(record)) is not None and position not in known:
                continue
            yield record

    def is_in_log(self, position: int) -> bool:
        """Return whether a position is held whose payload is in the log only."""
        return position in self.in_log.usage.locations

    def payload(self, position: int) -> bytes:
        """Return the payload at a position.

        Raises:
            KeyError: there is none, or the position ended.
            Damaged: its bytes do not match their checksum, or an I/O error occurs.
        """
        try:
            found = self.in_log.payload(position)
        except OSError as error:
            raise refusal(self.stem, error, is_clean=True) from error
        except ValueError as error:
            raise Damaged(
                f"{self.in_log.place_of(position)}: the user data of sample {position} is damaged: {error}",
                remedy="Restart the service: it restores what is whole and reports the rest.",
            ) from error
        if found is not None:
            return found
        if position in self.in_log.ended:
            raise KeyError(position)
        return self._own.payload(position)

    def payloads(self, positions: Sequence[int]) -> Sequence[bytes]:
        """Return the payloads at ascending positions, for a queue that keeps payloads on disk only, see `payload`."""
        return list(map(self.payload, positions))

    def worth_compacting(self) -> bool:
        """Return whether obsolete records use more space than needed ones.

        Obsolete records in the log count, too: they are deleted with its files.
        """
        usage, own = self.in_log.usage, self._own
        live_count = len(usage.locations) + len(own.held) - len(self.in_log.ended) + own.kept_count
        return own.body_count + usage.body_count - live_count > max(live_count, DEAD_BODY_COUNT_MIN)

    @property
    def is_compacting(self) -> bool:
        """Return whether a compaction is in progress; checkpoints wait for it."""
        return self._own.is_compacting

    def compact(self, keep: Iterable[Record]) -> None:
        """Replace all records by the snapshot `keep`, atomically."""
        for _ in self.compact_in_shares(Whole(keep)):
            pass

    def compact_in_shares(self, kept: Shares) -> Iterator[None]:
        """Compact as `compact` does, one step between two yields, while the caller appends records between the steps.

        The kept records are written to its own files; older ones in the log are not needed afterwards.
        """
        return self._own.compact_in_shares(WithPayloads(kept, self))

    def renew(self, keep: Iterable[Record]) -> None:
        """Compact as `compact` does, into new files: the last writes to the old ones may not have reached the disk."""
        self._own.renew(with_payloads(keep, self))

    def checkpoint(self, file: int) -> Iterator[None]:
        """Copy the needed records of the log, up to the end of `file`, to its own files, one step between two yields.

        Not allowed during a compaction, which copies more. Call `checkpointed` after the last step.

        Raises:
            Damaged: an I/O error occurs; the call can be repeated.
        """
        usage = self.in_log.usage
        covered = {each for each in usage.files if each <= file}
        if not any(map(usage.is_needed, covered)):
            return
        needed = [each for each in self.in_log.needed(covered) if each.first_index > self._moved_to]
        for start in range(0, len(needed), _AT_ONCE):
            part = needed[start : start + _AT_ONCE]
            self._move(part)
            self._moved_to = part[-1].first_index
            yield
            if self._is_closed:
                return
        self._own.sync()

    def has_records_to(self, file: int) -> bool:
        """Return whether the log has records of the stream up to the end of this file."""
        return any(each <= file for each in self.in_log.usage.files)

    def live_count_to(self, file: int) -> int:
        """Return the number of held positions whose payload is in this file of the log or an earlier one."""
        return sum(usage.live_count for each, usage in self.in_log.usage.files.items() if each <= file)

    def checkpointed(self, file: int) -> None:
        """Register that its own files cover the log up to the end of this file; the log records it with its next
        commit.
        """
        files = self.in_log.usage.files
        covered = [each for each in files if each <= file]
        if covered:
            upto = max(files.pop(each).last_index for each in covered)
            self.log.change(replace(self.in_log.entry, checkpointed=upto, extent=self._own.extent))

    def drop_dead(self) -> None:
        """Delete its data files without held payloads, once the log's commit is durable."""
        self._own.drop_dead()

    def abandon(self) -> None:
        """Close its own files without a sync, after a write or a sync failed; the log stays open."""
        self._is_closed = True
        self._own.abandon()

    def destroy(self) -> None:
        """Close the store and delete its files.

        The log drops the stream first, so that its records are ignored even if deleting the files fails.
        """
        self._is_closed = True
        with suppress(Damaged):  # it is forgotten with the next group that the disk takes
            self.log.forget(self.in_log.number)
        self._own.destroy()
        self.in_log.usage.clear()

    def close(self) -> None:
        """Sync as configured, and close the files.

        The log stays open; the caller closes it.
        """
        self._is_closed = True
        self._own.close()

    def follow(self, records: Sequence[Record]) -> None:
        """Pass records written to the log to a compaction in progress."""
        self._own.follow(records)

    @property
    def checkpointed_positions(self) -> KeysView[int]:
        """The positions whose payload is in its own files."""
        return self._own.held

    def _commit_snapshot(self, extent: Extent) -> None:
        """Commit a finished compaction: the log is needed for later records only."""
        self._moved_to = self.in_log.last_index
        self.log.commit([replace(self.in_log.entry, checkpointed=self._moved_to, extent=extent)])
        self._own.forget(self.in_log.ended)
        self.in_log.forget()

    def _move(self, bodies: Sequence[Body]) -> None:
        """Copy bodies to its own files, without the payloads of positions that have ended meanwhile."""
        codec, in_log = self.codec, self.in_log
        in_log.replayed = None
        metadata: list[bytes] = []
        counts: list[int] = []
        positions: list[int] = []
        data: list[bytes] = []
        carriers: list[int] = []
        begun: set[int] = set()
        ended: list[int] = []
        for body in bodies:
            first = len(metadata)
            if body.body is None:
                anew = codec.encode(body.records)
                metadata += anew.bodies
                counts += anew.counts
            else:
                metadata.append(body.body)
                counts.append(len(body.records))
            for record in body.records:
                if type(record) is codec.carrier:
                    begun.add(record.position)
                    if self.is_in_log(record.position):
                        positions.append(record.position)
                        data.append(record.payload)
                        carriers.append(first)
                elif (position := codec.ended_by(record)) is not None:
                    ended.append(position)
        has_moves = any(map(codec.moves, metadata))
        self._own.put(Encoded(metadata, counts, positions, data, ended, carriers, has_moves))
        in_log.forget_payloads(positions)
        in_log.ended.update(begun.difference(positions))
        in_log.ended.difference_update(ended)


def write_group(log: WriteAheadLog, streams: Sequence[tuple[LoggedStorage, Sequence[Record]]]) -> Sync | None:
    """Append records of several streams as one group; return the pending sync, or None where no sync is needed.

    Raises:
        Damaged: an I/O error occurs; nothing of them will be loaded.
    """
    encoded = [stream.codec.encode(records) for stream, records in streams]
    parts = [stream.in_log.part(each) for (stream, _), each in zip(streams, encoded, strict=True)]
    file, offsets = log.write(parts, has_moves=any(each.has_moves for each in encoded))
    for (stream, records), part, each, offset in zip(streams, parts, encoded, offsets, strict=True):
        stream.in_log.note(part, records, each, (file, offset), stream.checkpointed_positions)
        stream.follow(records)
    return log.pending_sync()
