"""A model of database files on a simulated disk: the service's state, and queues without in-memory state.

Decides: that a batch is durable as a whole once `append` returns, as under synchronization FULL. The library of such
files opens them itself, without the interface of the simulated disk: so its pages are not simulated, and neither is
damage to them. Everything else is that of `qsctl.storage.sqlite.store`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from qsctl.config.filesystem import FilesystemSettings
from qsctl.sim.world.environment.disk import MountedDisk, SimulatedDisk
from qsctl.storage.base import Extent, Sync, WritesThenSyncs
from qsctl.storage.codec import Record, RecordCodec
from qsctl.storage.damage import DamageKind, DamageReport, refuse_loss
from qsctl.storage.room import refusal

KIND = "database"

DEAD_RECORD_COUNT_MIN = 5_000
"""Below this it is never worth compacting, as a database file."""


class _Rows:
    """The stored rows of one file."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.last_index = 0


class DatabaseStandIn(WritesThenSyncs):
    """One stream of records.

    Args:
        disk: where it is.
        mounted: the same, as the process reaches it.
        on_append: called with the name and what is durable now.
        path: of the file.
        settings: how it is written.
        codec: that of the records.
        known: how far it reached at least when that was last noted.
        discards_damaged: whether to go on with what is whole where something is lost.

    Raises:
        Damaged: something is lost, or the disk refuses.
    """

    def __init__(
        self,
        disk: SimulatedDisk,
        mounted: MountedDisk,
        on_append: Callable[[str, Sequence[Record]], None],
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
        self._on_append = on_append
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
        """Return how far it reaches, for the register of the directory: when it is opened again, no less may be
        there.
        """
        return Extent(KIND, self._rows.last_index)

    def write(self, records: Sequence[Record]) -> Sync | None:
        """Do the first half of `append`; return the second, or None where there is nothing left to do."""
        if records:
            self._reach()
            self._rows.records += records
            self._rows.last_index += len(records)
            self._on_append(self._path.name, records)
        return None

    def load(self) -> Iterator[Record]:
        """Every whole record, in order, less what `compact` dropped."""
        return iter(list(self._rows.records))

    def payload(self, position: int) -> bytes:
        """Return the payload at a position, for queues that keep it on disk only."""
        payload: bytes | None = None
        for record in self._rows.records:
            if type(record) is self._codec.carrier and record.position == position:
                payload = record.payload
            elif self._codec.ended_by(record) == position:
                payload = None
        if payload is None:
            raise KeyError(position)
        return payload

    def worth_compacting(self) -> bool:
        """Return whether records that no longer matter take more room than those that do."""
        return len(self._rows.records) > DEAD_RECORD_COUNT_MIN

    def compact(self, keep: Iterable[Record]) -> None:
        """Replace the records by the snapshot `keep`, atomically."""
        carrier, kept = self._codec.carrier, list(keep)
        held = {each.position: each.payload for each in self._rows.records if type(each) is carrier}
        self._reach()
        self._rows.records = [
            replace(each, payload=held[each.position]) if type(each) is carrier and held.get(each.position) else each
            for each in kept
        ]

    def renew(self, keep: Iterable[Record]) -> None:
        """Do what `compact` does, into files that are new: what was written last may not have reached the disk."""
        self.compact(keep)

    def abandon(self) -> None:
        """Let go of the files as they are, after a write or a sync failed."""

    def destroy(self) -> None:
        """Delete everything, the files too; closes the store."""
        self._reach()
        self._disk.databases.pop(self._path.name, None)

    def close(self) -> None:
        """Make everything durable that is configured to be, and let go of the files."""

    def _reach(self) -> None:
        """Reach the disk once.

        Raises:
            Damaged: it refuses.
        """
        try:
            self._mounted.step()
        except OSError as error:
            raise refusal(self._path, error, is_clean=True) from error
