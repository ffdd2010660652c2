"""The seam to disk: a stream of records, each with an index, of which a store keeps what still matters [QS 2.14].

Decides: the Protocol that every store meets, held by `tests/storage/contract.py`. A store knows its records by their
codec alone (`storage.codec`): it keeps what it was given in order, as durable as configured, and reports the damage
that it finds.

Records are numbered from 1. What a snapshot replaced is no longer there record by record: `load` gives the records of
the snapshot first, whose effect is the same, then those that came later.

A record counts as soon as it was appended: nothing is taken back. The logs of replicas, of which what is not committed
is taken back, are `storage.replicas.replica_log`'s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeAlias

import msgspec

from qsctl.storage.codec import Record
from qsctl.storage.damage import DamageReport

Sync: TypeAlias = Callable[[], None]
"""The sync that makes written records as durable as configured; called once, in any thread.

Raises Damaged: the disk refuses; what was written may or may not be there.
"""


_ALL: Final = 2**62


class Shares(Protocol):
    """The records that a compaction keeps, a part at a time, in the order of positions."""

    @property
    def taken_to(self) -> int:
        """The highest position that was given, or passed over for being gone."""

    @property
    def is_over(self) -> bool:
        """Return whether the last part was given."""

    def take(self, count: int) -> Sequence[Record]:
        """Return the records of the given number of positions, as they are now; of all where few more are left."""


class Extent(msgspec.Struct, frozen=True, array_like=True):
    """The extent of a store: in `kind` of files, the last file or batch, and the bytes in use of it."""

    kind: str
    index: int
    size_bytes: int = 0


class Storage(Protocol):
    """One stream of records."""

    @property
    def extent(self) -> Extent:
        """Return how far it reaches, for the register of the directory: when it is opened again, no less may be
        there.
        """

    @property
    def was_there(self) -> bool:
        """Return whether there were files of this version when it was opened."""

    @property
    def damage(self) -> Sequence[DamageReport]:
        """Damage that was found when the files were opened or read."""

    def append(self, records: Sequence[Record]) -> None:
        """Keep the records, all or none, as durable as configured when it returns.

        A process that dies inside may leave a prefix of the batch, of which nothing was acknowledged.

        Raises:
            Damaged: the disk refused; nothing of the batch will be loaded.
        """

    def write(self, records: Sequence[Record]) -> Sync | None:
        """Do the first half of `append`; return the second, or None where there is nothing left to do.

        Until that is done, nothing of the batch is sure, and no other method but `payload` may be called.

        Raises:
            Damaged: the disk refused; nothing of the batch will be loaded.
        """

    def write_deferred(self, records: Sequence[Record]) -> Sync | None:
        """Write what may wait for the sync of the next batch, or for `sync`: no message rests on it.

        Raises:
            Damaged: the disk refused; nothing of the batch will be loaded.
        """

    def sync(self) -> None:
        """Make as durable as configured what was written deferred.

        Raises:
            Damaged: the disk refuses; what was written may or may not be there.
        """

    def load(self) -> Iterator[Record]:
        """Every whole record, in order, less what `compact` dropped.

        A payload whose position ended since comes back empty: its space may be in use again.
        """

    def payload(self, position: int) -> bytes:
        """Return the payload at a position, for queues that keep it on disk only.

        Raises:
            KeyError: there is none, or the position ended.
        """

    def worth_compacting(self) -> bool:
        """Return whether records that no longer matter take more room than those that do."""

    def compact(self, keep: Iterable[Record]) -> None:
        """Replace the records by the snapshot `keep`, atomically.

        After a crash either the old or the new content loads. A position that is held keeps the payload that the store
        has, whatever `keep` contains: a queue that keeps payloads on disk only has none to give. Files that were found
        damaged are set aside, not deleted.

        Raises:
            Damaged: the disk refused; the old content stays.
        """

    def compact_in_shares(self, kept: Shares) -> Iterator[None]:
        """Do what `compact` does, a part between two yields, while records go on coming.

        Before each part `kept` and what was appended must be one state. It comes to nothing where the store is closed,
        destroyed or compacted meanwhile.

        Raises:
            Damaged: the disk refused; the old content stays.
        """

    def renew(self, keep: Iterable[Record]) -> None:
        """Do what `compact` does, into files that are new: what was written last may not have reached the disk.

        For a store that was opened again after a write or a sync had failed.

        Raises:
            Damaged: the disk refused; it can be tried again once the store was opened again.
        """

    def abandon(self) -> None:
        """Let go of the files as they are, after a write or a sync failed."""

    def destroy(self) -> None:
        """Delete everything, the files too; closes the store."""

    def close(self) -> None:
        """Make everything durable that is configured to be, and let go of the files."""


class WritesThenSyncs(ABC):
    """Base of the stores: a whole append is its two halves."""

    @abstractmethod
    def write(self, records: Sequence[Record]) -> Sync | None:
        """Do the first half of `append`; return the second, or None where there is nothing left to do."""

    def write_deferred(self, records: Sequence[Record]) -> Sync | None:
        """Write what may wait for the sync of the next batch, or for `sync`: no message rests on it.

        Nothing is deferred, unless a store can do so.
        """
        return self.write(records)

    def sync(self) -> None:
        """Make as durable as configured what was written deferred."""
        return

    @abstractmethod
    def compact(self, keep: Iterable[Record]) -> None:
        """Replace the records by the snapshot `keep`, atomically."""

    def compact_in_shares(self, kept: Shares) -> Iterator[None]:
        """Do what `compact` does, a part between two yields, while records go on coming.

        All at once, unless a store can do better.
        """
        records: list[Record] = []
        while not kept.is_over:
            records += kept.take(_ALL)
        self.compact(records)
        yield

    def append(self, records: Sequence[Record]) -> None:
        """Keep the records, all or none, as durable as configured when it returns."""
        sync = self.write(records)
        if sync is not None:
            sync()
