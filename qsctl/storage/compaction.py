"""A store's metadata written anew while records go on coming (manual, section 2.14.2).

Decides: what of the records that come meanwhile goes into the new metadata. Samples are taken in the order of their
positions. What concerns one that was taken follows behind it; what concerns one that was not is left out, for it will
be in what is taken. So the new metadata says at its end exactly what the old says, and nobody has waited for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from qsctl.core.records import Record
from qsctl.instant import INFINITE_NS
from qsctl.storage.base import Shares
from qsctl.storage.codec import encode, position_of
from qsctl.storage.segment_file import Replacement

ROOM_FOR_FILES: Final = 4_096
"""How many files may be begun while one is written that supersedes them."""

SAMPLES_AT_ONCE: Final = 500
"""So many are taken in a share, which takes a millisecond."""


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
    """One under way.

    Args:
        base: what the new metadata is written to.
        kept: what goes there.
    """

    def __init__(self, base: Replacement, kept: Shares) -> None:
        self.base = base
        self.body_count = 0
        self.sample_count = 0
        self.held: set[int] | None = set() if isinstance(kept, Whole) else None
        """The samples that are kept, where some that the store has may not be among them."""
        self._kept = kept

    @property
    def is_over(self) -> bool:
        """Whether everything is there; it must be used before another record comes."""
        return self._kept.is_over

    def take(self) -> Sequence[Record]:
        """Write the next share, and give it.

        Raises:
            OSError: the disk refuses.
        """
        records = self._kept.take(SAMPLES_AT_ONCE)
        encoded = encode(records)
        self._add(encoded.metadata)
        self.sample_count += len(encoded.positions)
        if self.held is not None:
            self.held.update(encoded.positions)
        return records

    def follow(self, records: Sequence[Record]) -> None:
        """Take from records that were stored what concerns samples that were taken.

        Raises:
            OSError: the disk refuses.
        """
        taken_to = self._kept.taken_to
        late = [each for each in records if (position := position_of(each)) is not None and position <= taken_to]
        if late:
            self._add(encode(late).metadata)

    def _add(self, bodies: Sequence[bytes]) -> None:
        self.base.add(bodies)
        self.body_count += len(bodies)
