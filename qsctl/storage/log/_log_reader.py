"""The records of a write-ahead log by stream, read from its files on request of a stream.

Decides: how much is read at a time. All of it for a stream that is opened; one file for streams that checkpoint it. The
records are kept until something is written, for the next stream that asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from qsctl.storage._frames import spans
from qsctl.storage.log.log_frames import LogContent, Place, entries_at
from qsctl.storage.log.segment_file import HEADER_SIZE_BYTES, find_bodies
from qsctl.storage.log.segment_log import SegmentLog
from qsctl.storage.names import read_whole

_Read: TypeAlias = tuple[LogContent, dict[int, bytes]]
"""The content of files, and their bytes."""


class LogReader:
    """A reader of one log.

    Args:
        log: its files, which were opened.
        content: their content at that time.
        buffers: their bytes at that time.
    """

    def __init__(self, log: SegmentLog, content: LogContent, buffers: dict[int, bytes]) -> None:
        self._log = log
        self._content: _Read | None = (content, buffers)
        self._file_content: _Read = (LogContent(), {})

    def forget(self) -> None:
        """Read the log anew: something is written to it."""
        self._content = None

    def records(self, number: int, after: int, file: int | None) -> Iterator[tuple[Place, bytes, bytes]]:
        """Return place, body and payload of what a stream has behind an index; of one file, or (None) of all.

        Raises:
            OSError: the disk refuses.
        """
        content, buffers = self._read() if file is None else self._read_file(file)
        places = content.places.get(number, [])
        first = after + 1
        return entries_at(buffers, (place for place in places if place.first_index + place.record_count > first))

    def _read(self) -> _Read:
        """Return what is in the log now."""
        if self._content is None:
            self._log.flush()
            content: _Read = (LogContent(), {})
            for index in self._log.sizes:
                self._read_into(content, index)
            self._content = content
        return self._content

    def _read_file(self, index: int) -> _Read:
        """Return what is in a file to which nothing is written any more; kept for the next stream that asks."""
        if index not in self._file_content[1]:
            self._file_content = (LogContent(), {})
            self._read_into(self._file_content, index)
        return self._file_content

    def _read_into(self, content: _Read, index: int) -> None:
        buffer = read_whole(self._log.path(index), self._log.disk)[: self._log.sizes[index]]
        if index in self._log.damaged_indexes:
            bodies = find_bodies(buffer, self._log.headers[index]).bodies
        else:
            bodies = spans(buffer, HEADER_SIZE_BYTES, len(buffer))
        content[0].read(index, buffer, bodies)
        content[1][index] = buffer
