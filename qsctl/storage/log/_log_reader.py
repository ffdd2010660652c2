"""Reader of the write-ahead log, which returns the records of one stream.

Decides: how much is read at a time: all files for a stream that is opened, one file for a checkpoint. The content is
cached until the next write, for further streams.
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
        log: the opened files.
        content: the streams and places read when the log was opened.
        buffers: the octets of each file at that time, by index.
    """

    def __init__(self, log: SegmentLog, content: LogContent, buffers: dict[int, bytes]) -> None:
        self._log = log
        self._content: _Read | None = (content, buffers)
        self._file_content: _Read = (LogContent(), {})

    def forget(self) -> None:
        """Drop the cached content, because the log is written to."""
        self._content = None

    def records(self, number: int, after: int, file: int | None) -> Iterator[tuple[Place, bytes, bytes]]:
        """Return place, body and payload of a stream's records behind an index, from one file or (None) from all.

        Raises:
            OSError: an I/O error occurs.
        """
        content, buffers = self._read() if file is None else self._read_file(file)
        places = content.places.get(number, [])
        first = after + 1
        return entries_at(buffers, (place for place in places if place.first_index + place.record_count > first))

    def _read(self) -> _Read:
        """Return the current content of the log."""
        if self._content is None:
            self._log.flush()
            content: _Read = (LogContent(), {})
            for index in self._log.sizes:
                self._read_into(content, index)
            self._content = content
        return self._content

    def _read_file(self, index: int) -> _Read:
        """Return the content of a file that is no longer written to, and cache it."""
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
