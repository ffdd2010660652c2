"""Frames around records on disk: a numbered magic number, a length, a checksum, then the body.

Decides: the layout of a frame, and how damage is skipped. The secret of a file is random and includes the owner of the
file, so that neither a payload of a producer nor a frame of another file can be mistaken for a frame of this one. Since
frames are numbered, a missing or an exchanged frame is detected.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from operator import xor
from typing import Final, NamedTuple
from zlib import crc32

FRAME_HEADER: Final = struct.Struct("<III")
"""Mark, length of the body in bytes, CRC-32 of the body begun at (mark + the file's secret) xor length."""

BODY_SIZE_BYTES_MAX: Final = 2**32 - 1

_SIGN: Final = struct.Struct("<H")
_SIGN_MASK: Final = 0xFFFF
_ALL: Final = 2**32
_NUMBER_ONE: Final = 1 << 16
_NUMBER_MASK: Final = 0xFFFF
_AHEAD_MAX: Final = 1 << 15
"""Numbers are kept to 16 bits: a frame that is further ahead than this is one that was before."""


class Marks(NamedTuple):
    """The magic numbers that begin the frames of one file.

    `step` is the difference from one to the next; it is 0 in files of version 0.1, where all are equal. `secret` is
    added to the checksum's seed.
    """

    first: int
    step: int
    secret: int

    def at(self, number: int) -> int:
        """Return the magic number of the frame with the given number, counted from 0."""
        return (self.first + number * self.step) % _ALL


def numbered_marks(mark: int) -> Marks:
    """Return the magic numbers derived from a file's 32 random bits: 16 visible ones to search for, all as the
    secret.
    """
    return Marks(mark & _SIGN_MASK or 1, _NUMBER_ONE, mark)  # not 0: zeros are room that was allocated


def constant_marks(mark: int) -> Marks:
    """Return the magic numbers of a file of version 0.1, where all frames have the same."""
    return Marks(mark, 0, 0)


class Gap(NamedTuple):
    """A range of bytes between intact frames; `torn`: it looks like a frame whose writing was interrupted.

    With `size_bytes` 0, frames are missing between two adjacent ones.
    """

    offset: int
    size_bytes: int
    torn: bool


class Scan(NamedTuple):
    """The result of scanning a buffer: the (start, end) of every intact body, the gaps, and the end of the content.

    Zeros after the last frame are allocated and unused. `next_number` is the number of the next frame to append.
    """

    bodies: list[tuple[int, int]]
    gaps: list[Gap]
    end: int
    next_number: int


def frame(bodies: Iterable[bytes], marks: Marks, number: int = 0) -> bytes:
    """Return the bodies as consecutive frames; `number` is the number of the first.

    Raises:
        OverflowError: a body is too long for a frame's length field.
    """
    bodies = list(bodies)
    lengths = list(map(len, bodies))
    longest = max(lengths, default=0)
    if longest > BODY_SIZE_BYTES_MAX:
        raise OverflowError(f"a record of {longest} bytes is longer than {BODY_SIZE_BYTES_MAX}")
    # Maps over ranges: the interpreter does nothing for a frame but what the checksum takes.
    marked, seeds = _marks_of(marks, number, len(bodies))
    seeds = map(xor, seeds, lengths)
    parts = [b""] * (2 * len(bodies))
    parts[::2] = map(FRAME_HEADER.pack, marked, lengths, map(crc32, bodies, seeds))
    parts[1::2] = bodies
    return b"".join(parts)


def scan(buffer: bytes, marks: Marks, start: int = 0) -> Scan:
    """Find every intact frame from `start` on, skipping damaged bytes."""
    bodies: list[tuple[int, int]] = []
    gaps: list[Gap] = []
    unpack, header_size, size = FRAME_HEADER.unpack_from, FRAME_HEADER.size, len(buffer)
    expected, step, secret = marks
    at = start
    while at < size:
        body = at + header_size
        if body <= size:
            found, length, checksum = unpack(buffer, at)
            end = body + length
            if found == expected and end <= size and crc32(buffer[body:end], found + secret ^ length) == checksum:
                bodies.append((body, end))
                expected = (expected + step) % _ALL
                at = end
                continue
        following = _next_whole(buffer, marks, expected, at)
        if following < size:
            gaps.append(Gap(at, following - at, torn=False))
            expected = unpack(buffer, following)[0]
        elif rest := buffer[at:].rstrip(b"\0"):
            gaps.append(Gap(at, len(rest), _is_unfinished(rest, expected)))
            at += len(rest)
            break
        else:
            break
        at = following
    return Scan(bodies, gaps, at, _number_of(marks, expected))


def spans(buffer: bytes, start: int, end: int) -> list[tuple[int, int]]:
    """Return the (start, end) of every body between two offsets, where `scan` found all frames intact."""
    unpack, header_size = FRAME_HEADER.unpack_from, FRAME_HEADER.size
    bodies: list[tuple[int, int]] = []
    at = start
    while at < end:
        body = at + header_size
        at = body + unpack(buffer, at)[1]
        bodies.append((body, at))
    return bodies


def is_whole(header: tuple[int, int, int], body: bytes, marks: Marks) -> bool:
    """Return whether a body matches its frame's header, in a file with these magic numbers."""
    found, length, checksum = header
    is_ours = found & _SIGN_MASK == marks.first if marks.step else found == marks.first
    return is_ours and len(body) == length and crc32(body, found + marks.secret ^ length) == checksum


def _marks_of(marks: Marks, number: int, count: int) -> tuple[Iterable[int], Iterable[int]]:
    """Return the magic numbers of `count` frames, and each with the secret added; ranges where possible, for speed."""
    start, step, secret = marks.at(number), marks.step, marks.secret
    stop = start + count * step
    if step and stop <= _ALL:
        return range(start, stop, step), range(start + secret, stop + secret, step)
    all_marks = [marks.at(each) for each in range(number, number + count)]
    return all_marks, [mark + secret for mark in all_marks]


def _number_of(marks: Marks, mark: int) -> int:
    return (mark - marks.first) // marks.step if marks.step else 0


def _is_unfinished(rest: bytes, expected: int) -> bool:
    """Return whether the bytes are the beginning of one frame, as a killed writer leaves them."""
    if len(rest) < FRAME_HEADER.size:
        sign = expected.to_bytes(4, "little")
        return rest.startswith(sign) or sign.startswith(rest)
    found, length, _ = FRAME_HEADER.unpack_from(rest)
    return bool(found == expected and FRAME_HEADER.size + length > len(rest))


def _next_whole(buffer: bytes, marks: Marks, expected: int, at: int) -> int:
    """Return the offset of the next intact frame with a possible number, or the end of the buffer."""
    sign, size = (_SIGN.pack(marks.first) if marks.step else marks.first.to_bytes(4, "little")), len(buffer)
    while True:
        at = buffer.find(sign, at)
        if at < 0 or at + FRAME_HEADER.size > size:
            return size
        found, length, checksum = FRAME_HEADER.unpack_from(buffer, at)
        body, end = at + FRAME_HEADER.size, at + FRAME_HEADER.size + length
        ahead = ((found - expected) >> 16) & _NUMBER_MASK if marks.step else 0
        is_possible = ahead < _AHEAD_MAX and end <= size
        if is_possible and crc32(buffer[body:end], found + marks.secret ^ length) == checksum:
            return at
        at += 1
