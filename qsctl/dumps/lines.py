"""The lines of a listing, one at a time, for files of any size and content.

Decides: encodings and the longest line. UTF-8 unless a byte order mark or the user sets another one; a line is decoded
by itself, so that the one which does not fit can be named.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from qsctl.errors import UsageError

LONGEST_LINE_BYTES: Final = 16 * 1024 * 1024
"""The data of a message is one line of the extended form; documents of some megabytes are sent inside messages."""

BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class LineError(ValueError):
    """A line that is not text; `found` shows why."""

    def __init__(self, message: str, found: str, *, is_last: bool = False) -> None:
        super().__init__(message)
        self.found = found
        self.is_last = is_last
        """Whether nothing behind it can be read."""


def check_encoding(name: str | None) -> None:
    """Refuse an encoding that is none.

    Raises:
        UsageError: Python knows no text encoding of that name.
    """
    if name is None:
        return
    try:
        known = codecs.lookup(name)
    except (LookupError, ValueError):
        known = None
    # Only encodings of text: `hex`, `zip` and their like are codecs, too.
    if known is None or not getattr(known, "_is_text_encoding", True):
        raise UsageError(f"there is no encoding {name!r}", remedy="As in utf-8, cp1252, latin-1 or utf-16.")


def lines_of(stream: BinaryIO, encoding: str | None = None) -> Iterator[str | LineError]:
    """Yield each line without its line ending, or the error where it cannot be decoded.

    Args:
        stream: the listing, which is read once, from its current position.
        encoding: the encoding of the text; None: that of the byte order mark, else UTF-8.
    """
    buffered = io.BufferedReader(_Raw(stream), 1 << 16)
    start = buffered.peek(4)[:4]
    marked = next((known for known in BYTE_ORDER_MARKS if start.startswith(known[0])), None)
    name = codecs.lookup(encoding or (marked[1] if marked else "utf-8")).name
    if marked is not None and (encoding is None or name.startswith(marked[1].rstrip("lbe").rstrip("-"))):
        buffered.read(len(marked[0]))
        name = marked[1]
    if name.startswith(("utf-16", "utf-32")):
        return _wide_lines(buffered, name)
    return _byte_lines(buffered, name)


class _Raw(io.RawIOBase):
    """A raw stream over a binary stream, so that a buffered reader with `peek` can wrap it without closing it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _byte_lines(stream: io.BufferedReader[Any], encoding: str) -> Iterator[str | LineError]:
    while line := stream.readline(LONGEST_LINE_BYTES + 1):
        if len(line) > LONGEST_LINE_BYTES:
            yield _too_long(line[:20])
            return
        line = line.rstrip(b"\r\n")
        if b"\0" in line:
            yield LineError("this is binary data", f"octet 0x00 at column {line.index(0) + 1}")
            continue
        try:
            yield line.decode(encoding)
        except UnicodeDecodeError as error:
            found = f"octet 0x{line[error.start]:02x} at column {error.start + 1}"
            yield LineError(f"this is not {encoding.upper()}", found)


def _wide_lines(stream: io.BufferedReader[Any], encoding: str) -> Iterator[str | LineError]:
    text = io.TextIOWrapper(stream, encoding=encoding, errors="replace", newline="\n")
    longest = LONGEST_LINE_BYTES // 4  # characters
    while line := text.readline(longest + 1):
        if len(line) > longest:
            yield _too_long(line[:20].encode("utf-8", "replace"))
            return
        line = line.rstrip("\r\n")
        if "\ufffd" in line or "\0" in line:
            at = line.index("\ufffd" if "\ufffd" in line else "\0")
            yield LineError(f"this is not {encoding.upper()}", f"at column {at + 1}")
            continue
        yield line


def _too_long(start: bytes) -> LineError:
    shown = start.decode("utf-8", "replace")
    return LineError(f"the line is longer than {LONGEST_LINE_BYTES} octets", shown, is_last=True)
