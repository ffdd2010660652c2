"""The compaction of a stream's metadata while records are appended [QS 2.14.2].

Decides: which of the records appended meanwhile are written to the new metadata. The kept records are read in the order
of positions. A record about a position that was already read is written after it; one about a later position is left
out, for a later part will include its effect. So new and old metadata have the same effect in the end, and no append
waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from qsctl.instant import INFINITE_NS
from qsctl.storage.base import Shares
from qsctl.storage.codec import Encoded, Record, RecordCodec
from qsctl.storage.log.segment_file import Replacement

ROOM_FOR_FILES: Final = 4_096
"""Number of files that may be begun while one is written that supersedes them."""

POSITIONS_AT_ONCE: Final = 500
"""Number of positions read at a time, which takes a millisecond."""


class Whole:
    """All kept records as a single part."""

    taken_to = INFINITE_NS

    def __init__(self, records: Iterable[Record]) -> None:
        self._records = iter(records)
        self.is_over = False

    def take(self, _count: int) -> Sequence[Record]:
        """Return all records."""
        self.is_over = True
        return list(self._records)


class Compaction:
    """One compaction in progress.

    Args:
        base: the new metadata file.
        kept: the records to keep.
        codec: the codec of the records.
    """

    def __init__(self, base: Replacement, kept: Shares, codec: RecordCodec) -> None:
        self.base = base
        self.body_count = 0
        self.payload_count = 0
        self.held: set[int] | None = set() if isinstance(kept, Whole) else None
        """The positions that are kept, where some that the store has may not be among them."""
        self._codec = codec
        self._kept = kept

    @property
    def is_over(self) -> bool:
        """Return whether all kept records are written; the base must replace the old files before the next append."""
        return self._kept.is_over

    def take(self) -> Sequence[Record]:
        """Write the next part of the kept records, and return it.

        Raises:
            OSError: an I/O error occurs.
        """
        records = self._kept.take(POSITIONS_AT_ONCE)
        encoded = self._codec.encode(records)
        self._add(encoded)
        self.payload_count += len(encoded.positions)
        if self.held is not None:
            self.held.update(encoded.positions)
        return records

    def follow(self, records: Sequence[Record]) -> None:
        """Write those of the newly stored records that are about positions already read.

        Raises:
            OSError: an I/O error occurs.
        """
        taken_to = self._kept.taken_to
        position_of, singles = self._codec.position_of, self._codec.one_by_one(records)
        late = [each for each in singles if (position := position_of(each)) is not None and position <= taken_to]
        if late:
            self._add(self._codec.encode(late))

    def _add(self, encoded: Encoded) -> None:
        self.base.add(encoded.bodies)
        self.body_count += encoded.piece_count
