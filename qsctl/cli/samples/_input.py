"""The input of `qsctl produce`: texts, JSON, files or standard input, as payloads."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from qsctl.cli._input_files import STANDARD_INPUT, is_standard_input, reading
from qsctl.cli.samples.json_form import check_text_fits, payload_of_json, read_type_file
from qsctl.errors import InvalidInput, UsageError

MAX_SAMPLE_BYTES: Final = 64 * 1024 * 1024
"""The largest sample: larger than a queue should carry, and small enough not to fill the memory."""

CHUNK_BYTES: Final = 1024 * 1024
EMPTY_REMEDY: Final = "--text '' is an empty sample."


@dataclass(frozen=True, slots=True)
class Content:
    """The options of `qsctl produce` that give the samples' content."""

    texts: tuple[str, ...]
    documents: tuple[str, ...]
    file: Path | None
    lines: bool
    types: Path | None
    count: int

    def check(self) -> None:
        """Check the combination of options before the service is opened.

        Raises:
            UsageError: two kinds of content, or an option that does not apply to the content.
        """
        given = [
            option
            for option, is_given in (
                ("--text", bool(self.texts)),
                ("--json", bool(self.documents)),
                ("--file", self.file is not None),
            )
            if is_given
        ]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} are both given", remedy="Give one kind of content.")
        if self.lines and (self.texts or self.documents):
            raise UsageError("--lines is for --file and standard input", remedy=f"Leave it out, or repeat {given[0]}.")
        if self.types is not None and not self.documents:
            raise UsageError("--types is for --json", remedy="Leave it out, or give the samples with --json.")
        if self.count > 1 and not self.texts and not self.documents and is_standard_input(self.file):
            raise UsageError("--count cannot repeat standard input", remedy="Give the content with --text or --file.")


def payloads(content: Content, type_name: str) -> Iterator[bytes | None]:
    """Yield the payload of each sample in order; None if reading on would block, so that a batch should be written.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: it cannot be read or is empty, a sample is too large, or a JSON document does not fit the type.
        UsageError: texts for a queue with another type.
    """
    if content.texts:
        check_text_fits(type_name)
    types = read_type_file(content.types)
    # All are converted first, so that a mistake in the last is found before the first is written.
    given = [text.encode("utf-8", "surrogateescape") for text in content.texts]
    given += [payload_of_json(document, type_name, types) for document in content.documents]
    for _ in range(content.count):
        if given:
            yield from given
        else:
            yield from _from_stream(content)


def _from_stream(content: Content) -> Iterator[bytes | None]:
    if content.file is None or is_standard_input(content.file):
        yield from _samples(sys.stdin.buffer, STANDARD_INPUT, lines=content.lines)
        return
    with reading(content.file):
        stream = content.file.open("rb")
    with stream:
        yield from _samples(stream, str(content.file), lines=content.lines)


def _samples(stream: IO[bytes], source: str, *, lines: bool) -> Iterator[bytes | None]:
    count = 0
    for payload in _lines(stream, source) if lines else _whole(stream, source):
        count += payload is not None
        yield payload
    if not count:
        raise InvalidInput(f"there is nothing to write: {source} is empty", remedy=EMPTY_REMEDY)


def _whole(stream: IO[bytes], source: str) -> Iterator[bytes]:
    with reading(source):
        payload = stream.read(MAX_SAMPLE_BYTES + 1)
    if payload:
        yield _bounded(payload, source)


def _lines(stream: IO[bytes], source: str) -> Iterator[bytes | None]:
    """Yield the lines of a stream, and None whenever reading on would block."""
    number, rest = 0, b""
    while True:
        with reading(source):
            chunk = os.read(stream.fileno(), CHUNK_BYTES) if _is_file(stream) else stream.read(CHUNK_BYTES)
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            number += 1
            yield _bounded(line, f"{source}, line {number}")
        _bounded(rest, f"{source}, line {number + 1}")
        if not _has_more(stream):
            yield None
    if rest:
        yield rest


def _is_file(stream: IO[bytes]) -> bool:
    """Return whether a stream has a file descriptor, from which available data can be read without blocking."""
    try:
        stream.fileno()
    except OSError:
        return False
    return True


def _has_more(stream: IO[bytes]) -> bool:
    """Return whether reading on would not block."""
    return not _is_file(stream) or bool(select.select([stream], [], [], 0)[0])


def _bounded(payload: bytes, source: str) -> bytes:
    if len(payload) > MAX_SAMPLE_BYTES:
        raise InvalidInput(
            f"{source} is longer than {MAX_SAMPLE_BYTES} bytes", remedy="Split it; a queue carries small samples."
        )
    return payload
