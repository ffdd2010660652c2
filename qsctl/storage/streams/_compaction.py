"""The compaction of a store's metadata while records are appended [QS 2.14.2].

Decides: which of the records appended meanwhile are written to the new metadata. The kept records are read in the order
of positions. A record about a position that was read follows behind it; one about a position that was not is left out,
for it will be in a later part. So the new metadata ends equal to the old, and no append waits.
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
    """Everything at once."""

    taken_to = INFINITE_NS

    def __init__(self, records: Iterable[Record]) -> None:
        self._records = iter(records)
        self.is_over = False

    def take(self, _count: int) -> Sequence[Record]:
        """All of it."""
        self.is_over = True
        return list(self._records)


class Compaction:
    """One in progress.

    Args:
        base: what the new metadata is written to.
        kept: what goes there.
        codec: that of the records.
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
        """Return whether everything is there; it must be used before another record comes."""
        return self._kept.is_over

    def take(self) -> Sequence[Record]:
        """Write the next part, and return it.

        Raises:
            OSError: the disk refuses.
        """
        records = self._kept.take(POSITIONS_AT_ONCE)
        encoded = self._codec.encode(records)
        self._add(encoded)
        self.payload_count += len(encoded.positions)
        if self.held is not None:
            self.held.update(encoded.positions)
        return records

    def follow(self, records: Sequence[Record]) -> None:
        """Write what of these records, which were stored meanwhile, is about positions that were read.

        Raises:
            OSError: the disk refuses.
        """
        taken_to = self._kept.taken_to
        position_of = self._codec.position_of
        late = [each for each in records if (position := position_of(each)) is not None and position <= taken_to]
        if late:
            self._add(self._codec.encode(late))

    def _add(self, encoded: Encoded) -> None:
        self.base.add(encoded.bodies)
        self.body_count += encoded.piece_count
