"""The payload files of a stream: the place of each payload, and which files are obsolete [QS 2.14.2].

Decides: when a data file is deleted, and which are worth rewriting. A file is deleted once every sample in it was
removed; one that is more than half obsolete is replaced by a file of the remaining samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, repeat
from typing import Final

from qsctl.errors import Damaged
from qsctl.storage._frames import FRAME_HEADER, is_whole
from qsctl.storage.codec import POSITION, Encoded
from qsctl.storage.log.segment_file import HEADER_SIZE_BYTES
from qsctl.storage.log.segment_log import SegmentLog

OFFSET_BITS: Final = 40
OFFSET_MASK: Final = (1 << OFFSET_BITS) - 1
_OVERHEAD_BYTES: Final = FRAME_HEADER.size + POSITION.size


class DataFiles:
    """The index of the payloads in a log of data files; its owner decides when to sync."""

    def __init__(self, log: SegmentLog) -> None:
        self.log = log
        self.locations: dict[int, int] = {}
        """File index and offset of the frame, in one number, of every sample that is held, by position."""
        self.stray_files: set[int] = set()
        """Files with samples of which there is no metadata; they are worth writing anew."""
        self._live_counts: dict[int, int] = {}
        """Samples held, by file."""
        self._frame_counts: dict[int, int] = {}
        """Samples written, by file."""

    def add_file(self, index: int, locations: dict[int, int], frame_count: int) -> None:
        """Register an existing file by the location of each position's frame."""
        self._frame_counts[index] = frame_count
        self._leave_former_files(locations.keys())
        self._live_counts[index] = len(locations)
        self.locations.update(locations)

    def write(self, encoded: Encoded) -> tuple[int, int]:
        """Append the payloads of a batch; return file and offset. Call `locate` once the metadata is written.

        Raises:
            OSError: an I/O error occurs; the file is as before.
        """
        if not encoded.positions:
            return -1, 0
        pack = POSITION.pack
        bodies = [pack(position) + data for position, data in zip(encoded.positions, encoded.data, strict=True)]
        batch = self.log.write(bodies)
        return batch.file_index, batch.offset

    def locate(self, index: int, offset: int, encoded: Encoded) -> None:
        """Register the payloads of a batch that was written at this place as held."""
        if encoded.positions:
            self._frame_counts[index] = self._frame_counts.get(index, 0) + len(encoded.positions)
            self._live_counts[index] = self._live_counts.get(index, 0) + len(encoded.positions)
        self._leave_former_files(encoded.positions)
        sizes = [_OVERHEAD_BYTES + len(data) for data in encoded.data]
        starts = accumulate(sizes, initial=index << OFFSET_BITS | offset)
        self.locations.update(zip(encoded.positions, starts, strict=False))

    def forget(self, positions: Iterable[int]) -> list[int]:
        """Drop payloads from the index; return the files that have no held payload any more."""
        locations = map(self.locations.pop, positions, repeat(None))
        gone = Counter(location >> OFFSET_BITS for location in locations if location is not None)
        for index, count in gone.items():
            self._live_counts[index] -= count
        return [index for index in gone if not self._live_counts[index] and index != self.log.last_index]

    def drop(self, indexes: Sequence[int]) -> None:
        """Delete files."""
        self.log.drop(indexes)
        for index in indexes:
            self._live_counts.pop(index, None)
            self._frame_counts.pop(index, None)

    def drop_empty(self) -> None:
        """Delete every file without held payloads, except the newest."""
        last = self.log.last_index
        self.drop([index for index, count in self._live_counts.items() if not count and index != last])

    def file_of(self, position: int) -> int:
        """Return the index of the file with a held sample's payload."""
        return self.locations[position] >> OFFSET_BITS

    def is_held_in(self, index: int, position: int) -> bool:
        """Return whether a sample is held and its payload is in this file."""
        location = self.locations.get(position)
        return location is not None and location >> OFFSET_BITS == index

    def is_newest(self, index: int) -> bool:
        """Return whether the file is the newest, which is never deleted."""
        return index == self.log.last_index

    def place(self, location: int) -> tuple[int, int]:
        """Split a location into file index and offset."""
        return location >> OFFSET_BITS, location & OFFSET_MASK

    def payload(self, position: int) -> bytes:
        """Return the payload of a held sample.

        Raises:
            KeyError: no such sample is held.
            Damaged: its bytes do not match their checksum.
            OSError: an I/O error occurs.
        """
        index, offset = self.place(self.locations[position])
        header, body = self.log.read_body(index, offset)
        if not is_whole(header, body, self.log.headers[index].marks) or POSITION.unpack_from(body)[0] != position:
            raise Damaged(
                f"{self.log.path(index)}: offset {offset}: the user data of sample {position} is damaged",
                remedy="Restart the service: it restores what is whole and reports the rest.",
            )
        return body[POSITION.size :]

    def sparse(self) -> set[int]:
        """Return the files worth rewriting: damaged or more than half obsolete, and not open for writing."""
        if self.stray_files:
            self.log.seal()
        written, damaged = self.log.written_index, self.log.damaged_indexes | self.stray_files
        return {
            index
            for index, count in self._live_counts.items()
            if index != written and (2 * count < self._frame_counts[index] or index in damaged)
        }

    def held_in(self, indexes: set[int]) -> dict[int, list[int]]:
        """Return the positions of the samples held in each of some files."""
        inside: dict[int, list[int]] = {index: [] for index in indexes}
        for position, location in self.locations.items() if indexes else ():
            if location >> OFFSET_BITS in indexes:
                inside[location >> OFFSET_BITS].append(position)
        return inside

    def rewrite(self, index: int, positions: Sequence[int]) -> None:
        """Replace a file by one with only these samples, which must be all that it holds.

        Raises:
            Damaged: the bytes of one do not match their checksum.
            OSError: an I/O error occurs; the file is as before.
        """
        data = [self.payload(position) for position in positions]
        self.log.rewrite(index, [POSITION.pack(at) + each for at, each in zip(positions, data, strict=True)])
        self._frame_counts[index] = 0
        self.locate(index, HEADER_SIZE_BYTES, Encoded([], [], list(positions), data, [], []))
        self.stray_files.discard(index)

    def _leave_former_files(self, positions: Iterable[int]) -> None:
        """Subtract positions that are held already from the counts of their former files."""
        for position in self.locations.keys() & positions:
            self._live_counts[self.file_of(position)] -= 1
