"""Records as bytes that can be checked and found again: a mark, a length, a checksum, the body.

Decides: the frame around every record on disk, and how damage is stepped over. The mark is a random number of the
store, so that nothing a producer writes into a payload can be taken for a frame.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple
from zlib import crc32

FRAME_HEADER: Final = struct.Struct("<III")
"""Mark, length of the body in bytes, CRC-32 of the body begun at mark xor length."""

BODY_SIZE_BYTES_MAX: Final = 2**32 - 1

_MARK: Final = struct.Struct("<I")


class Gap(NamedTuple):
    """Bytes between whole frames; `torn`: they look like the beginning of a frame that was never finished."""

    offset: int
    size_bytes: int
    torn: bool


class Scan(NamedTuple):
    """What stands in a buffer: the (start, end) of every whole body, what lies between, and where the content ends.

    Zeros after the last frame are room that was made ready and not used yet; what follows the end mark of a file that
    is written again is of its earlier life.
    """

    bodies: list[tuple[int, int]]
    gaps: list[Gap]
    end: int


def frame(bodies: Iterable[bytes], mark: int) -> bytes:
    """The bodies, framed, one after the other.

    Raises:
        OverflowError: a body is longer than a frame can say.
    """
    bodies = list(bodies)
    lengths = list(map(len, bodies))
    longest = max(lengths, default=0)
    if longest > BODY_SIZE_BYTES_MAX:
        raise OverflowError(f"a record of {longest} bytes is longer than {BODY_SIZE_BYTES_MAX}")
    pack = FRAME_HEADER.pack
    parts = [b""] * (2 * len(bodies))
    parts[::2] = [pack(mark, length, crc32(body, mark ^ length)) for body, length in zip(bodies, lengths, strict=True)]
    parts[1::2] = bodies
    return b"".join(parts)


def end_mark(mark: int) -> bytes:
    """What ends the content of a file that is written again: a frame without a body, overwritten by what comes next."""
    return frame([b""], mark)


def scan(buffer: bytes, mark: int, start: int = 0, *, has_end_mark: bool = False) -> Scan:
    """Find every whole frame from `start` on, stepping over whatever is damaged.

    With `has_end_mark` the content ends there, or with the buffer: where neither is so, the last write was cut short.
    """
    bodies: list[tuple[int, int]] = []
    gaps: list[Gap] = []
    unpack, header_size, size = FRAME_HEADER.unpack_from, FRAME_HEADER.size, len(buffer)
    at = start
    while at < size:
        body = at + header_size
        if body <= size:
            found, length, checksum = unpack(buffer, at)
            end = body + length
            if found == mark and end <= size and crc32(buffer[body:end], mark ^ length) == checksum:
                if has_end_mark and not length:
                    break
                bodies.append((body, end))
                at = end
                continue
        following = _next_whole(buffer, mark, at + 1)
        if following < size:
            gaps.append(Gap(at, following - at, torn=False))
        elif has_end_mark:
            gaps.append(Gap(at, size - at, torn=True))
            break
        elif rest := buffer[at:].rstrip(b"\0"):
            gaps.append(Gap(at, len(rest), _is_unfinished(rest, mark)))
            at += len(rest)
            break
        else:
            break
        at = following
    return Scan(bodies, gaps, at)


def spans(buffer: bytes, start: int, end: int) -> list[tuple[int, int]]:
    """The (start, end) of every body between two offsets of which `scan` found every frame whole."""
    unpack, header_size = FRAME_HEADER.unpack_from, FRAME_HEADER.size
    bodies: list[tuple[int, int]] = []
    at = start
    while at < end:
        body = at + header_size
        at = body + unpack(buffer, at)[1]
        bodies.append((body, at))
    return bodies


def is_whole(header: tuple[int, int, int], body: bytes, mark: int) -> bool:
    """Whether a body is the one that its header was written for."""
    found, length, checksum = header
    return found == mark and len(body) == length and crc32(body, mark ^ length) == checksum


def _is_unfinished(rest: bytes, mark: int) -> bool:
    """Whether the bytes are a prefix of one frame: what a killed writer leaves."""
    if len(rest) < FRAME_HEADER.size:
        sign = _MARK.pack(mark)
        return rest.startswith(sign) or sign.startswith(rest)
    found, length, _ = FRAME_HEADER.unpack_from(rest)
    return bool(found == mark and FRAME_HEADER.size + length > len(rest))


def _next_whole(buffer: bytes, mark: int, at: int) -> int:
    """Where the next whole frame begins, or the end of the buffer."""
    sign, size = _MARK.pack(mark), len(buffer)
    while True:
        at = buffer.find(sign, at)
        if at < 0 or at + FRAME_HEADER.size > size:
            return size
        _, length, checksum = FRAME_HEADER.unpack_from(buffer, at)
        body, end = at + FRAME_HEADER.size, at + FRAME_HEADER.size + length
        if end <= size and crc32(buffer[body:end], mark ^ length) == checksum:
            return at
        at += 1
