"""One stream's use of each file of the write-ahead log: whether a file is needed is known without reading it [QS
2.14.2].

Decides: whether a file has records that are still needed. Those of an ended position are not, once
`RecordCodec.remembered_count` others have ended after it: its identity is not used any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

FILE_BITS: Final = 40
OFFSET_MASK: Final = (1 << FILE_BITS) - 1


class FileUsage:
    """One stream's use of one file of the log: counts of its records and positions."""

    __slots__ = ("body_count", "crossing", "ended_count", "is_touched", "last_index", "live_count", "position_max")

    def __init__(self) -> None:
        self.last_index = 0
        self.body_count = 0
        self.live_count = 0
        """Positions that are held and have their payload here."""
        self.is_touched = False
        """Whether this file has records of positions that are in the stream's own files."""
        self.ended_count = 0
        """Number of the stream's positions that had ended by the end of this file."""
        self.position_max = -1
        self.crossing: list[tuple[int, int, int]] = []
        """Positions that begin here and end in a later file: position, how many had ended by then, and that file."""


class LogUsage:
    """One stream's use of all files of the log, and the location of each payload that only the log has.

    Args:
        remembered_count: see `RecordCodec.remembered_count`.
    """

    def __init__(self, remembered_count: int) -> None:
        self.locations: dict[int, int] = {}
        """File and offset of the frame, in one number, of every held position that is in no file of the stream's own.
        """
        self.files: dict[int, FileUsage] = {}
        self.ended_count = 0
        self.position_max = -1
        self._remembered_count = remembered_count

    @property
    def body_count(self) -> int:
        """Return the number of the stream's bodies in the log."""
        return sum(usage.body_count for usage in self.files.values())

    def of(self, file: int, last_index: int, count: int) -> FileUsage:
        """Count `count` bodies, up to record `last_index`, in the current file, and return its usage."""
        usage = self.files.get(file)
        if usage is None:
            usage = self.files[file] = FileUsage()
        usage.last_index = last_index
        usage.body_count += count
        usage.ended_count = self.ended_count
        return usage

    def begin(self, usage: FileUsage, positions: Sequence[int], locations: Iterable[int]) -> None:
        """Register positions that begin in a file, and the locations of their payloads."""
        count = len(self.locations)
        self.locations.update(zip(positions, locations, strict=False))
        usage.live_count += len(self.locations) - count
        usage.position_max = self.position_max = max(self.position_max, *positions)

    def begin_one(self, usage: FileUsage, position: int, location: int) -> None:
        """Register one position that begins in a file, and the location of its payload."""
        if position not in self.locations:
            usage.live_count += 1
        self.locations[position] = location
        if position > usage.position_max:
            usage.position_max = self.position_max = max(self.position_max, position)

    def end(self, file: int, usage: FileUsage, positions: Sequence[int]) -> list[int]:
        """Register positions that end in a file; return those of them that are in the stream's own files."""
        others: list[int] = []
        pop, files = self.locations.pop, self.files
        here_count = 0
        for ordinal, position in enumerate(positions, self.ended_count + 1):
            location = pop(position, None)
            if location is None:
                others.append(position)
            elif (at := location >> FILE_BITS) == file:
                here_count += 1
            else:
                files[at].live_count -= 1
                files[at].crossing.append((position, ordinal, file))
        usage.live_count -= here_count
        self.ended_count += len(positions)
        usage.ended_count = self.ended_count
        usage.is_touched = usage.is_touched or bool(others)
        return others

    def is_needed(self, file: int) -> bool:
        """Return whether a restart needs a record of the stream that only this file has."""
        usage = self.files[file]
        return (
            usage.live_count > 0
            or usage.is_touched
            or self.is_remembered(usage.ended_count)
            or usage.position_max == self.position_max >= 0
        )

    def is_remembered(self, ordinal: int) -> bool:
        """Return whether the identity of a position is still remembered, given its number in the order of ending."""
        return self.ended_count - ordinal < self._remembered_count

    def clear(self) -> None:
        """Forget all files, because everything is in the stream's own files."""
        self.locations.clear()
        self.files.clear()
