"""What a stream has in each file of the write-ahead log, so that a file goes without being read (section 2.14.2).

Decides: whether anything in a file is still needed. A sample that was enqueued and removed is not, once so many were
removed after it that nobody asks for its identity any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

RETIRED_KEPT: Final = 8_192
"""The identities of so many removed samples outlive a restart (as many as a queue remembers)."""

FILE_BITS: Final = 40
OFFSET_MASK: Final = (1 << FILE_BITS) - 1


class FileShare:
    """What a stream has in one file of the log."""

    __slots__ = ("body_count", "crossing", "is_touched", "last_index", "live_count", "position_max", "retired_count")

    def __init__(self) -> None:
        self.last_index = 0
        self.body_count = 0
        self.live_count = 0
        """Samples whose user data is here, and that are held."""
        self.is_touched = False
        """Whether something is said here of samples that are in the stream's own files."""
        self.retired_count = 0
        """How many samples of the stream were removed up to the end of this file."""
        self.position_max = -1
        self.crossing: list[tuple[int, int, int]] = []
        """Samples enqueued here and removed in a later file: position, how many were removed by then, and that file."""


class LogShares:
    """The same of all files, and where the user data of the samples is that are only there."""

    def __init__(self) -> None:
        self.locations: dict[int, int] = {}
        """File and offset of the frame, in one number, of every held sample that is in no file of the stream's own."""
        self.files: dict[int, FileShare] = {}
        self.retired_count = 0
        self.position_max = -1

    @property
    def body_count(self) -> int:
        """How many records, or runs of them, the log has of the stream."""
        return sum(share.body_count for share in self.files.values())

    def of(self, file: int, last_index: int, count: int) -> FileShare:
        """The share of the file that is written to, which has so many records more now, up to `last_index`."""
        share = self.files.get(file)
        if share is None:
            share = self.files[file] = FileShare()
        share.last_index = last_index
        share.body_count += count
        share.retired_count = self.retired_count
        return share

    def enqueue(self, share: FileShare, positions: Sequence[int], locations: Iterable[int]) -> None:
        """Samples came."""
        count = len(self.locations)
        self.locations.update(zip(positions, locations, strict=False))
        share.live_count += len(self.locations) - count
        share.position_max = self.position_max = max(self.position_max, *positions)

    def remove(self, file: int, share: FileShare, positions: Iterable[int]) -> list[int]:
        """Samples went; gives those that are in the stream's own files."""
        others: list[int] = []
        pop, files = self.locations.pop, self.files
        for position in positions:
            self.retired_count += 1
            location = pop(position, None)
            if location is None:
                others.append(position)
                continue
            at = location >> FILE_BITS
            files[at].live_count -= 1
            if at != file:
                files[at].crossing.append((position, self.retired_count, file))
        share.retired_count = self.retired_count
        share.is_touched = share.is_touched or bool(others)
        return others

    def is_needed(self, file: int) -> bool:
        """Whether a restart needs anything that this file says of the stream and no other does."""
        share = self.files[file]
        return (
            share.live_count > 0
            or share.is_touched
            or self.retired_count - share.retired_count < RETIRED_KEPT
            or share.position_max == self.position_max >= 0
        )

    def is_remembered(self, ordinal: int) -> bool:
        """Whether the identity of the sample that was the so many-th to be removed is still asked for."""
        return self.retired_count - ordinal < RETIRED_KEPT

    def clear(self) -> None:
        """Everything is in the stream's own files."""
        self.locations.clear()
        self.files.clear()
