"""Checks that the numbered files of a log are complete, correctly named and not truncated.

Decides: the evidence. In a contiguous log each file records at its start the size of the one before it, and ends with
a seal once another one follows. A base records its own size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from qsctl.storage._frames import FRAME_HEADER
from qsctl.storage.base import Extent
from qsctl.storage.damage import DamageKind, DamageReport
from qsctl.storage.file_system import FileSystem
from qsctl.storage.log.segment_file import (
    HEADER_SIZE_BYTES,
    TEMPORARY,
    SegmentContent,
    SegmentHeader,
    find_bodies,
    reports_of,
)

SEAL: Final = b"\xc0"
"""The last body of a file that another one follows: where that one is not there, it was lost."""

_SEAL_FRAME_BYTES: Final = FRAME_HEADER.size + len(SEAL)
"""Octets of a seal. What is shorter at the end of a file that another one follows is a seal that a crash cut short: all
records before it were durable. Had one lost its end, the file would be shorter than the next one records.
"""


def existing_indexes(stem: Path, letter: str, disk: FileSystem) -> list[int]:
    """Return the indexes of the existing files, ascending; delete temporary files left by a crash."""
    pattern = re.compile(rf"{re.escape(f'{stem.name}_{letter}')}(0|[1-9][0-9]*)\.db({re.escape(TEMPORARY)})?")
    found = []
    directory = disk.resolved(stem.parent)
    for name in disk.names(directory) if directory is not None else ():
        match = pattern.fullmatch(name)
        if match and match[2]:
            disk.unlink(stem.with_name(name))
        elif match:
            found.append(int(match[1]))
    return sorted(found)


class FileSequence:
    """The files of one log in the order of reading, oldest first.

    Args:
        path: returns the path of the file with an index.
        contiguous: whether every index from the first on must exist; else files in between may have been dropped.
        first_index: the index of the oldest file that is needed.
    """

    def __init__(self, path: Callable[[int], Path], *, contiguous: bool, first_index: int) -> None:
        self._path = path
        self._contiguous = contiguous
        self._before = first_index - 1
        self._size_before = 0
        self._is_sealed = False

    def own(self, index: int, content: SegmentContent, assumed: SegmentHeader) -> SegmentContent:
        """Return the content if the header has the index of the file's name; else one without its header."""
        header = content.header
        if not self._contiguous or header is None or header.file_index == index:
            return content
        return SegmentContent(None, content.buffer, find_bodies(content.buffer, assumed))

    def reports(self, index: int, content: SegmentContent, *, is_last: bool) -> Iterator[tuple[int, DamageReport]]:
        """Yield the damage of the next file, and of files missing before it, each with the file's index."""
        if self._contiguous and self._before + 1 < index:
            yield self._missing(self._before + 1, index - 1)
        header = content.header
        is_next = self._contiguous and self._before == index - 1 and self._size_before > 0
        if header is not None and header.is_base:
            yield from self._shortened(index, max(content.found.end, HEADER_SIZE_BYTES), header)
        elif header is not None and is_next:
            yield from self._shortened(self._before, self._size_before, header)
        for report in reports_of(self._path(index), content):
            is_seal = self._contiguous and report.offset >= HEADER_SIZE_BYTES and report.size_bytes < _SEAL_FRAME_BYTES
            if report.kind is DamageKind.TORN_TAIL and not is_last and not is_seal:
                report = replace(report, kind=DamageKind.CHECKSUM, what="the file ends inside a record")
            yield index, report

    def add(self, index: int, content: SegmentContent) -> int:
        """Advance to the next file, and remove the seal from its bodies; return the file's bytes in use."""
        self._before, self._size_before = index, max(content.found.end, HEADER_SIZE_BYTES)
        bodies = content.found.bodies
        self._is_sealed = self._contiguous and bool(bodies) and content.buffer[slice(*bodies[-1])] == SEAL
        if self._is_sealed:
            bodies.pop()
        return self._size_before

    def end(self) -> Iterator[tuple[int, DamageReport]]:
        """Yield the damage behind the last file: a seal proves that another file existed."""
        if self._is_sealed:
            yield self._missing(self._before + 1, self._before + 1)

    def _shortened(self, index: int, size_bytes: int, header: SegmentHeader) -> Iterator[tuple[int, DamageReport]]:
        if (lost := header.size_before_bytes - size_bytes) > 0:
            what = "the end of the file is missing"
            yield index, DamageReport(self._path(index), size_bytes, lost, DamageKind.CHECKSUM, what)

    def _missing(self, first: int, last: int) -> tuple[int, DamageReport]:
        what = "the file is missing" if last == first else f"this file and all up to index {last} are missing"
        return first, DamageReport(self._path(first), 0, 0, DamageKind.UNREADABLE, what)


def shortfall(
    path: Callable[[int], Path], known: Extent | None, found: Extent, reported: Iterable[DamageReport]
) -> list[DamageReport]:
    """Return reports of the part of a log that is missing up to its `known` extent, unless reported already."""
    if known is None or known.kind != found.kind:
        return []
    file = path(known.index)
    if found.index < known.index and not any(report.file == file for report in reported):
        what = "the file is missing, and every record in it"
        return [DamageReport(file, 0, known.size_bytes, DamageKind.UNREADABLE, what)]
    if found.index == known.index and found.size_bytes < known.size_bytes:
        lost, what = known.size_bytes - found.size_bytes, "the end of the file is missing"
        return [DamageReport(file, found.size_bytes, lost, DamageKind.CHECKSUM, what)]
    return []
