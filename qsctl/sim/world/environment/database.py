"""A model of the database files on a simulated disk: the service's state, and queues without in-memory state.

Decides that a batch is durable as a whole once `append` returns, as under synchronization FULL. SQLite opens its files
itself, without the interface of the simulated disk; so neither pages nor damage to them are simulated. Everything else
behaves as `qsctl.storage.sqlite.store`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from qsctl.config.filesystem import FilesystemSettings
from qsctl.sim.world.environment.disk import MountedDisk, SimulatedDisk
from qsctl.storage.base import Extent, Shares, remaining
from qsctl.storage.codec import Record, RecordCodec
from qsctl.storage.damage import DamageKind, DamageReport, refuse_loss
from qsctl.storage.room import refusal

KIND = "database"

DEAD_RECORD_COUNT_MIN = 5_000
"""A database file with fewer records is never worth compacting."""


class DatabaseObserver(Protocol):
    """The receiver of the changes that have become durable, with the file's name."""

    def appended(self, name: str, records: Sequence[Record], /) -> None:
        """Note records that were appended."""

    def replaced(self, name: str, records: Sequence[Record], /) -> None:
        """Note records that replace all before."""


class _Rows:
    """The stored rows of one file."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.last_index = 0


class DatabaseStandIn:
    """The model of a database file that stores one stream of records.

    Args:
        disk: the disk that keeps the records.
        mounted: the same disk as the process accesses it, which fails and takes time.
        observer: notified of what has become durable.
        path: of the file.
        settings: how the file is written.
        codec: of the records.
        known: the extent that was last noted for the file, or None; a file that is missing nevertheless is damage.
        discards_damaged: whether to continue with the intact records where some are lost.

    Raises:
        Damaged: records are lost, or an I/O error occurs.
    """

    def __init__(
        self,
        disk: SimulatedDisk,
        mounted: MountedDisk,
        observer: DatabaseObserver,
        path: Path,
        settings: FilesystemSettings,
        codec: RecordCodec,
        known: Extent | None,
        /,
        *,
        discards_damaged: bool,
    ) -> None:
        self._disk = disk
        self._mounted = mounted
        self._observer = observer
        self._path = path
        self._codec = codec
        self.damage: list[DamageReport] = []
        self.was_there = path.name in disk.databases
        if not self.was_there and known is not None:
            self.damage.append(DamageReport(path, 0, 0, DamageKind.UNREADABLE, "the file is missing"))
            if not discards_damaged:
                refuse_loss(self.damage, settings.synchronization)
        self._reach()
        found = disk.databases.setdefault(path.name, _Rows())
        assert isinstance(found, _Rows)
        self._rows = found

    @property
    def extent(self) -> Extent:
        """Return the file's extent for the directory's register; when the file is reopened, it must not be shorter."""
        return Extent(KIND, self._rows.last_index)

    def append(self, records: Sequence[Record]) -> None:
        """Append records durably."""
        records = list(self._codec.one_by_one(records))
        if records:
            self._reach()
            self._rows.records += records
            self._rows.last_index += len(records)
            self._observer.appended(self._path.name, records)

    def load(self) -> Iterator[Record]:
        """Return every stored record in order, except those that `compact` dropped."""
        return iter(list(self._rows.records))

    def payloads(self, positions: Sequence[int]) -> Sequence[bytes]:
        """Return the payloads of the samples at ascending positions, for queues that keep payloads on disk only."""
        held: dict[int | None, bytes] = {}
        for record in self._rows.records:
            if type(record) is self._codec.carrier:
                held[record.position] = record.payload
            else:
                held.pop(self._codec.ended_by(record), None)
        return [held[each] for each in positions]

    def worth_compacting(self) -> bool:
        """Return whether records that no longer matter take more room than those that do."""
        return len(self._rows.records) > DEAD_RECORD_COUNT_MIN

    def compact(self, keep: Iterable[Record]) -> None:
        """Replace all records by the snapshot `keep`, atomically."""
        carrier, kept = self._codec.carrier, list(keep)
        held = {each.position: each.payload for each in self._rows.records if type(each) is carrier}
        self._reach()
        self._rows.records = [
            replace(each, payload=held[each.position]) if type(each) is carrier and held.get(each.position) else each
            for each in kept
        ]
        self._observer.replaced(self._path.name, self._rows.records)

    def compact_in_shares(self, kept: Shares) -> Iterator[None]:
        """Compact as `compact` does, in a single step."""
        self.compact(remaining(kept))
        yield

    def renew(self, keep: Iterable[Record]) -> None:
        """Replace all records by the snapshot `keep` in new files, as the last writes may not be durable."""
        self.compact(keep)

    def abandon(self) -> None:
        """Close the files as they are, after a write or a sync failed."""

    def destroy(self) -> None:
        """Delete the file with its records, and close the store."""
        self._reach()
        self._disk.databases.pop(self._path.name, None)

    def close(self) -> None:
        """Sync as configured, and close the files."""

    def _reach(self) -> None:
        """Perform one operation on the disk, which may fail or take time.

        Raises:
            Damaged: an I/O error occurs.
        """
        try:
            self._mounted.step()
        except OSError as error:
            raise refusal(self._path, error, is_clean=True) from error
