"""What stands in the write-ahead log: group marks, the table of streams, records (section 2.14.2).

Decides: the bodies of its frames, and what they say together when they are read. Each group of records begins with a
mark that says how much of the file was durable by then; each file begins with the whole table, so that any suffix of
the log is read without what was dropped before it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, repeat
from typing import Final, NamedTuple

import msgspec

from qsctl.storage.base import Extent
from qsctl.storage.segment_file import SegmentContent

_RECORD: Final = struct.Struct("<cIQI")
_MARK: Final = struct.Struct("<cQB")
_IS_RECORD: Final = b"R"[0]
_IS_MARK: Final = b"M"[0]
_IS_TABLE: Final = b"T"[0]

RECORD_OVERHEAD_BYTES: Final = _RECORD.size


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A stream in the table: its records up to `checkpointed` are in its own files, which reach as far as `extent`.

    `extent` None: they are what an earlier version left, or nothing.
    """

    number: int
    name: str
    checkpointed: int = 0
    extent: Extent | None = None


class Table(msgspec.Struct, frozen=True, array_like=True):
    """Entries that are new or changed, all of them where `is_whole`; `oldest_file`: those before are not needed."""

    is_whole: bool
    oldest_file: int
    entries: list[Entry]
    forgotten: list[int]


class Place(NamedTuple):
    """A record in the log: its number in the stream, the file and the offset of the frame's body, and its end."""

    number: int
    file: int
    start: int
    end: int


def mark_body(durable_count: int | None) -> bytes:
    """How many frames of the file were durable when the group was written; None: nobody waits for syncs."""
    return _MARK.pack(b"M", durable_count or 0, durable_count is not None)


def table_body(table: Table) -> bytes:
    """A table, or a change of it."""
    return b"T" + msgspec.msgpack.encode(table)


def record_heads(number: int, first_index: int, metadata: Sequence[bytes]) -> Iterable[bytes]:
    """What stands before the metadata of each record; its user data stands behind."""
    return map(_RECORD.pack, repeat(b"R"), repeat(number), count(first_index), map(len, metadata))


def record_parts(body: bytes) -> tuple[int, int, bytes, bytes]:
    """Stream number, index, metadata and user data of a record's body.

    Raises:
        ValueError: it is none.
    """
    if len(body) < _RECORD.size or body[0] != _IS_RECORD:
        raise ValueError("no record of a write-ahead log")
    _, number, index, size_bytes = _RECORD.unpack_from(body)
    split = _RECORD.size + size_bytes
    return number, index, body[_RECORD.size : split], body[split:]


class LogContent:
    """What the files of a log say, read oldest first."""

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.places: dict[int, list[Place]] = {}
        """The records of each stream, in order."""
        self.oldest_file = 0
        self.unreadable: list[tuple[int, int, int]] = []
        """File, start and end of bodies that cannot be read."""

    def read(self, file: int, buffer: bytes, bodies: Iterable[tuple[int, int]]) -> None:
        """Take one file more."""
        unpack, size = _RECORD.unpack_from, _RECORD.size
        places = self.places
        for start, end in bodies:
            kind = buffer[start] if end > start else -1
            if kind == _IS_RECORD and end - start >= size:
                _, number, index, _ = unpack(buffer, start)
                of_stream = places.get(number)
                if of_stream is None:
                    of_stream = places[number] = []
                of_stream.append(Place(index, file, start, end))
            elif kind == _IS_TABLE:
                try:
                    self._change(msgspec.msgpack.decode(buffer[start + 1 : end], type=Table))
                except (msgspec.MsgspecError, ValueError):
                    self.unreadable.append((file, start, end))
            elif kind != _IS_MARK and end - start != 1:
                self.unreadable.append((file, start, end))

    def _change(self, table: Table) -> None:
        self.oldest_file = max(self.oldest_file, table.oldest_file)
        if table.is_whole:
            self.entries.clear()
        for entry in table.entries:
            self.entries[entry.number] = entry
        for number in table.forgotten:
            self.entries.pop(number, None)
            self.places.pop(number, None)


def without_unfinished_tail(content: SegmentContent) -> SegmentContent:
    """The last file of a log less what was never synced: from the first gap on, unless a later mark says otherwise.

    A power failure leaves any part of what was not synced: a frame may be there, and not the one before it. What comes
    behind a gap that a later mark calls durable was damaged, and is read on.
    """
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


def metadata_of(buffers: dict[int, bytes], places: Iterable[Place]) -> Iterator[tuple[Place, bytes, bytes]]:
    """Each place with its metadata and its user data."""
    unpack, size = _RECORD.unpack_from, _RECORD.size
    for place in places:
        buffer, start = buffers[place.file], place.start
        split = start + size + unpack(buffer, start)[3]
        yield place, buffer[start + size : split], buffer[split : place.end]
