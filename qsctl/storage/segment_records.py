"""The records in the files of a queue: metadata and user data put together again (section 2.14.2).

Decides: how they are read in one pass, a file of user data at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import TypeAlias

from qsctl.core.records import Enqueued, Record
from qsctl.storage.codec import POSITION, UnreadableRecord, decode_metadata, fill, position_of
from qsctl.storage.data_files import DataFiles
from qsctl.storage.file_sequence import SEAL
from qsctl.storage.frames import FRAME_HEADER, spans
from qsctl.storage.segment_file import HEADER_SIZE_BYTES, find_bodies, read_bytes
from qsctl.storage.segment_log import SegmentLog

OnUnreadable: TypeAlias = Callable[[int, int, int, UnreadableRecord], None]


def stored_records(
    metadata: SegmentLog, data: DataFiles, missing: Container[int], on_unreadable: OnUnreadable
) -> Iterator[Record]:
    """Every whole record, in order, with its user data; those about a sample that damage took away are left out.

    Args:
        metadata: was opened.
        data: was opened, too.
        missing: samples whose user data damage took.
        on_unreadable: called with the file and place of a record that this version cannot read.
    """
    held: set[int] = set()
    location_of, header_at = data.locations.get, FRAME_HEADER.unpack_from
    file_index, buffer_of_file = -1, b""
    header_size, overhead = FRAME_HEADER.size, FRAME_HEADER.size + POSITION.size
    for record in _metadata_records(metadata, on_unreadable):
        if type(record) is Enqueued:
            location = location_of(record.position)
            if location is not None:
                index, offset = data.place(location)
                if index != file_index:
                    file_index, buffer_of_file = index, read_bytes(data.log.path(index))
                _, length, _ = header_at(buffer_of_file, offset)
                fill(record, "payload", buffer_of_file[offset + overhead : offset + header_size + length])
            elif record.position in missing:
                continue
            held.add(record.position)
            yield record
        elif (position := position_of(record)) is None or position in held:
            yield record


def _metadata_records(metadata: SegmentLog, on_unreadable: OnUnreadable) -> Iterator[Record]:
    for index in list(metadata.sizes):
        buffer = read_bytes(metadata.path(index))[: metadata.sizes[index]]  # no more than was read when it was opened
        if index in metadata.damaged_indexes:
            bodies = find_bodies(buffer, metadata.headers[index]).bodies
        else:
            bodies = spans(buffer, HEADER_SIZE_BYTES, metadata.sizes[index])
        for start, end in bodies:
            if end - start == len(SEAL):
                continue
            try:
                yield from decode_metadata(buffer[start:end])
            except UnreadableRecord as error:
                on_unreadable(index, start, end, error)
