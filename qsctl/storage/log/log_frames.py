"""The bodies of frames in the write-ahead log: group marks, the table of streams, records [QS 2.14.2].

Decides: the form of the bodies, and how streams are read from them. Each group of records begins with a mark that
records how many frames of the file were durable by then; each file begins with the whole table, so that any suffix of
the log is readable after older files were deleted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, repeat
from typing import Final, NamedTuple

import msgspec

from qsctl.errors import UNREADABLE
from qsctl.storage._frames import FRAME_HEADER, Scan
from qsctl.storage.base import Extent
from qsctl.storage.log.segment_file import HEADER_SIZE_BYTES, SegmentContent

_ENTRY: Final = struct.Struct("<cIQII")
"""Kind, stream number, index of the first record, number of records, size of their body."""
_MARK: Final = struct.Struct("<cQB")
_IS_ENTRY: Final = b"E"[0]
_IS_MARK: Final = b"M"[0]
_IS_TABLE: Final = b"T"[0]

ENTRY_OVERHEAD_BYTES: Final = _ENTRY.size


class Stream(msgspec.Struct, frozen=True, array_like=True):
    """An entry of the table of streams: its records up to `checkpointed` are in its own files, of this `extent`.

    `extent` None: the own files are of an earlier version, or do not exist.
    """

    number: int
    name: str
    checkpointed: int = 0
    extent: Extent | None = None


class Table(msgspec.Struct, frozen=True, array_like=True):
    """The new or changed streams, or all of them where `is_whole`; files before `oldest_file` are not needed."""

    is_whole: bool
    oldest_file: int
    streams: list[Stream]
    forgotten: list[int]


class Place(NamedTuple):
    """The location of a body in the log: first record index, number of records, file, and start and end offsets."""

    first_index: int
    record_count: int
    file: int
    start: int
    end: int

    @property
    def last_index(self) -> int:
        """The index of the last record."""
        return self.first_index + self.record_count - 1


def mark_body(durable_count: int | None) -> bytes:
    """Return the body of a group mark: the number of durable frames of the file; None where nothing is synced."""
    return _MARK.pack(b"M", durable_count or 0, durable_count is not None)


def table_body(table: Table) -> bytes:
    """Return the body of a table frame."""
    return b"T" + msgspec.msgpack.encode(table)


def entry_heads(number: int, first_index: int, counts: Sequence[int], bodies: Sequence[bytes]) -> Iterable[bytes]:
    """Return the header of each body; body and payload follow it in the frame."""
    indexes = accumulate(counts, initial=first_index)
    return map(_ENTRY.pack, repeat(b"E"), repeat(number), indexes, counts, map(len, bodies))


def entry_parts(frame_body: bytes) -> tuple[int, bytes, bytes]:
    """Split an entry into stream number, body and payload.

    Raises:
        ValueError: the frame is not an entry.
    """
    kind = frame_body[0] if frame_body else -1
    if kind != _IS_ENTRY or len(frame_body) < _ENTRY.size:
        raise ValueError("no record of a write-ahead log")
    _, number, _, _, size_bytes = _ENTRY.unpack_from(frame_body)
    start = _ENTRY.size
    return number, frame_body[start : start + size_bytes], frame_body[start + size_bytes :]


class LogContent:
    """The streams and places in a log's files, read oldest first."""

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}
        self.places: dict[int, list[Place]] = {}
        """The records of each stream, in order."""
        self.oldest_file = 0
        self.unreadable: list[tuple[int, int, int]] = []
        """File, start and end of bodies that cannot be read."""

    def read(self, file: int, buffer: bytes, bodies: Iterable[tuple[int, int]]) -> None:
        """Add the frames of the next file."""
        unpack, size = _ENTRY.unpack_from, _ENTRY.size
        places = self.places
        for start, end in bodies:
            kind = buffer[start] if end > start else -1
            if kind == _IS_ENTRY and end - start >= size:
                _, number, index, count, _ = unpack(buffer, start)
            else:
                if kind == _IS_TABLE:
                    self._read_table(file, buffer, start, end)
                elif kind != _IS_MARK and end - start != 1:
                    self.unreadable.append((file, start, end))
                continue
            of_stream = places.get(number)
            if of_stream is None:
                of_stream = places[number] = []
            of_stream.append(Place(index, count, file, start, end))

    def _read_table(self, file: int, buffer: bytes, start: int, end: int) -> None:
        try:
            table = msgspec.msgpack.decode(buffer[start + 1 : end], type=Table)
        except UNREADABLE:
            self.unreadable.append((file, start, end))
            return
        self.oldest_file = max(self.oldest_file, table.oldest_file)
        if table.is_whole:
            self.streams.clear()
        for stream in table.streams:
            self.streams[stream.number] = stream
        for number in table.forgotten:
            self.streams.pop(number, None)
            self.places.pop(number, None)


def without_unfinished_tail(content: SegmentContent) -> SegmentContent:
    """Return the last file of a log without its unsynced end: it is cut at the first gap, if no later mark disagrees.

    A power failure keeps any part of unsynced writes, so a frame may survive where the one before it did not. If a
    later mark records that the frames at the gap were durable, the gap is damage, and the frames behind it are read.
    """
    if content.header is None and not any(content.buffer[:HEADER_SIZE_BYTES]):
        return content._replace(buffer=b"", found=Scan([], [], HEADER_SIZE_BYTES, 0))  # any sync covers the header
    gaps, bodies = content.found.gaps, content.found.bodies
    if not gaps or content.header is None:
        return content
    gap = gaps[0]
    before = [body for body in bodies if body[0] < gap.offset]
    is_tracked = True
    for number, (start, end) in enumerate(bodies):
        if end - start == _MARK.size and content.buffer[start] == _IS_MARK:
            _, durable_count, tracked = _MARK.unpack_from(content.buffer, start)
            is_tracked = bool(tracked)
            if number >= len(before) and (not is_tracked or durable_count > len(before)):
                return content
    if not is_tracked:
        return content
    rest = len(content.buffer) - gap.offset
    found = content.found._replace(
        bodies=before, gaps=[gap._replace(size_bytes=rest, torn=True)], end=gap.offset, next_number=len(before)
    )
    return content._replace(found=found)


def written_last(content: SegmentContent) -> int:
    """Return the offset from which the file may never have been synced, by its last group mark; -1: all was synced.

    Each group is written once the one before is durable, and its mark records the number of those frames.
    """
    bodies = content.found.bodies
    for start, end in reversed(bodies):
        if end - start == _MARK.size and content.buffer[start] == _IS_MARK:
            _, durable_count, is_tracked = _MARK.unpack_from(content.buffer, start)
            is_inside = is_tracked and durable_count < len(bodies)
            return bodies[durable_count][0] - FRAME_HEADER.size if is_inside else -1
    return -1


def entries_at(buffers: dict[int, bytes], places: Iterable[Place]) -> Iterator[tuple[Place, bytes, bytes]]:
    """Yield each place with its body and its payload."""
    for place in places:
        buffer, start = buffers[place.file], place.start
        *_, size_bytes = _ENTRY.unpack_from(buffer, start)
        start += _ENTRY.size
        yield place, buffer[start : start + size_bytes], buffer[start + size_bytes : place.end]
