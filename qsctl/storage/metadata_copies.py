"""Copies of metadata in the data files of early stores, which made one sync of two (manual, section 2.14.2).

Decides: when a copy is used. A batch's metadata was written where it belongs and, once more, behind the batch's user
data; only that file was synced. What a power failure took from the metadata is written again before it is read.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from qsctl.storage.codec import POSITION
from qsctl.storage.damage import DamageKind, DamageReport
from qsctl.storage.frames import FRAME_HEADER, Marks, is_whole
from qsctl.storage.names import open_private
from qsctl.storage.segment_file import decode_header, read_bytes, stream_of, write_all

COPY_POSITION: Final = 2**64 - 1
"""Stands where the position of a sample stands in other data bodies; no sample ever has it."""

_SIGN: Final = POSITION.pack(COPY_POSITION)
_PLACE: Final = struct.Struct("<QQ")
_OVERHEAD: Final = len(_SIGN) + _PLACE.size


class Redo:
    """Writes what copies tell to the metadata files that lack it. `path`: where the metadata file of an index is."""

    def __init__(self, path: Callable[[int], Path]) -> None:
        self._path = path
        self._files: dict[int, tuple[bytes, Marks] | None] = {}
        """Content and marks of the files that were looked at; None: it is not there, or not that file any more."""
        self._told: set[int] = set()
        self._mended: dict[int, tuple[int, int]] = {}
        """Where a file first lacked something, and how many bytes it was given."""

    def apply(self, buffer: bytes, bodies: Iterable[tuple[int, int]]) -> int:
        """Use the copies among the data bodies of a file, oldest first; gives their number.

        Raises:
            InvalidInput: a link or a device stands in a metadata file's place.
            OSError: the disk refuses.
        """
        count = 0
        for start, end in bodies:
            if buffer.startswith(_SIGN, start) and end - start > _OVERHEAD:
                count += 1
                index, offset = _PLACE.unpack_from(buffer, start + len(_SIGN))
                self._write(index, offset, buffer[start + _OVERHEAD : end])
        return count

    def reports(self) -> list[DamageReport]:
        """What was mended, one report a file."""
        what = "what was written from here on was lost, and there was a copy"
        return [
            DamageReport(self._path(index), offset, size_bytes, DamageKind.MENDED, what)
            for index, (offset, size_bytes) in sorted(self._mended.items())
        ]

    def finish(self) -> None:
        """Sync the files that copies told of: the data files may be given up from now on.

        Raises:
            OSError: the disk refuses.
        """
        for index in self._told:
            descriptor = open_private(self._path(index), os.O_RDWR)
            try:
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)

    def _write(self, index: int, offset: int, frames: bytes) -> None:
        if index not in self._files:
            self._files[index] = self._read(index)
        file = self._files[index]
        if file is None or not _begins_with(frames, file[1]):
            return
        self._told.add(index)
        content, marks = file
        if content[offset : offset + len(frames)] == frames:
            return
        descriptor = open_private(self._path(index), os.O_RDWR)
        try:
            write_all(descriptor, frames, offset)
        finally:
            os.close(descriptor)
        first, size_bytes = self._mended.get(index, (offset, 0))
        self._mended[index] = (min(first, offset), size_bytes + len(frames))
        before = content[:offset].ljust(offset, b"\0")
        self._files[index] = (before + frames + content[offset + len(frames) :], marks)

    def _read(self, index: int) -> tuple[bytes, Marks] | None:
        path = self._path(index)
        if not path.exists() and not path.is_symlink():
            return None
        content = read_bytes(path)
        header = decode_header(content, stream_of(path))
        return (content, header.marks) if header is not None and header.file_index == index else None


def _begins_with(frames: bytes, marks: Marks) -> bool:
    """Whether the first frame is one of a file with these marks."""
    header = FRAME_HEADER.unpack_from(frames)
    return is_whole(header, frames[FRAME_HEADER.size :][: header[1]], marks)
