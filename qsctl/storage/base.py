"""The interface of a store: one stream of indexed records, of which it keeps those that are still needed [QS 2.14].

Decides: the Protocol that every store implements; `tests/storage/contract.py` tests each store by it. A store reads its
records through their codec alone (`storage.codec`): it keeps them in the order of appending, as durable as configured,
and reports the damage that it finds.

Records are numbered from 1. A snapshot replaces records by fewer ones with the same effect: `load` returns the records
of the snapshot first, then those that were appended later.

An appended record is never taken back. `storage.replicas.replica_log` stores the logs of replicas, whose uncommitted
records can be taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeAlias

import msgspec

from qsctl.storage.codec import Record
from qsctl.storage.damage import DamageReport

Sync: TypeAlias = Callable[[], None]
"""The sync that makes written records as durable as configured; called once, in any thread.

Raises Damaged: an I/O error occurs; what was written may or may not be there.
"""


_ALL: Final = 2**62


class Shares(Protocol):
    """The records that a compaction keeps, read in parts in the order of positions."""

    @property
    def taken_to(self) -> int:
        """The highest position that was returned, or skipped because it is no longer held."""

    @property
    def is_over(self) -> bool:
        """Return whether the last part was returned."""

    def take(self, count: int) -> Sequence[Record]:
        """Return the current records of the next `count` positions; of all remaining ones where few more are left."""


class Extent(msgspec.Struct, frozen=True, array_like=True):
    """The extent of a store: the kind of its files, the index of its last file or batch, and the octets in use of
    that.
    """

    kind: str
    index: int
    size_bytes: int = 0


class Storage(Protocol):
    """One stream of records."""

    @property
    def extent(self) -> Extent:
        """Return the store's extent for the directory's register: less at the next opening means lost records."""

    @property
    def was_there(self) -> bool:
        """Return whether files of this version existed when the store was opened."""

    @property
    def damage(self) -> Sequence[DamageReport]:
        """Damage that was found when the files were opened or read."""

    def load(self) -> Iterator[Record]:
        """Yield every intact record in order, except those that `compact` dropped.

        The payload of a position that has ended is empty: its space may have been reused.
        """

    def payloads(self, positions: Sequence[int]) -> Sequence[bytes]:
        """Return the payloads at ascending positions, for a queue that keeps payloads on disk only.

        Raises:
            KeyError: a position has no payload, or has ended.
        """

    def worth_compacting(self) -> bool:
        """Return whether obsolete records use more space than needed ones."""

    def compact(self, keep: Iterable[Record]) -> None:
        """Replace all records by the snapshot `keep`, atomically.

        After a crash either the old or the new content loads. A held position keeps its stored payload even where the
        record in `keep` has none: a queue that keeps payloads on disk only cannot pass them. Damaged files are renamed,
        not deleted.

        Raises:
            Damaged: an I/O error occurred; the old content stays.
        """

    def compact_in_shares(self, kept: Shares) -> Iterator[None]:
        """Compact as `compact` does, one step between two yields, while the caller appends records between the steps.

        Before each step `kept` must include the effect of every record that was appended. Closing, destroying or
        compacting the store meanwhile cancels the compaction.

        Raises:
            Damaged: an I/O error occurred; the old content stays.
        """

    def renew(self, keep: Iterable[Record]) -> None:
        """Compact as `compact` does, into new files: the last writes to the old ones may not have reached the disk.

        For a store that was reopened after a failed write or sync.

        Raises:
            Damaged: an I/O error occurred; the call can be repeated after the store was reopened.
        """

    def abandon(self) -> None:
        """Close the files without a sync, after a write or a sync failed."""

    def destroy(self) -> None:
        """Close the store and delete its files."""

    def close(self) -> None:
        """Sync as configured, and close the files."""


class DatabaseStorage(Storage, Protocol):
    """A store that is written to by itself: one append is one transaction.

    The streams of a log are written together, see `storage.streams.logged.write_group`.
    """

    def append(self, records: Sequence[Record]) -> None:
        """Append the records, all or none; they are as durable as configured on return.

        If the process dies during the call, a prefix of the batch may remain; none of it was acknowledged.

        Raises:
            Damaged: an I/O error occurred; nothing of the batch will be loaded.
        """


def remaining(kept: Shares) -> Iterator[Record]:
    """Yield the records of all remaining parts."""
    while not kept.is_over:
        yield from kept.take(_ALL)
