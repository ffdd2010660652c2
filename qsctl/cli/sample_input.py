"""What `qsctl produce` writes: texts, JSON, files or standard input, as payloads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from qsctl.cli.sample_json import payload_of_json, read_type_file
from qsctl.errors import InvalidInput, NotFound, UsageError

MAX_SAMPLE_BYTES: Final = 64 * 1024 * 1024
"""The largest sample: far above what a queue should carry, far below what would fill the memory."""


@dataclass(frozen=True, slots=True)
class Content:
    """What was asked for on the command line."""

    texts: tuple[str, ...]
    documents: tuple[str, ...]
    file: Path | None
    lines: bool
    types: Path | None
    count: int

    def check(self) -> None:
        """Refuse what does not go together, before the service is opened.

        Raises:
            UsageError: two kinds of content, or an option that means nothing with the content.
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
        if self.count > 1 and not given:
            raise UsageError("--count cannot repeat standard input", remedy="Give the content with --text or --file.")


def payloads(content: Content, type_name: str) -> Iterator[bytes]:
    """The payload of every sample to write, in order.

    Raises:
        NotFound: the file is not there.
        InvalidInput: it cannot be read, a sample is too large, or a JSON document does not fit the type.
    """
    types = read_type_file(content.types)
    for _ in range(content.count):
        if content.texts:
            yield from (text.encode("utf-8", "surrogateescape") for text in content.texts)
        elif content.documents:
            yield from (payload_of_json(document, type_name, types) for document in content.documents)
        else:
            yield from _from_stream(content)


def _from_stream(content: Content) -> Iterator[bytes]:
    if content.file is None or str(content.file) == "-":
        yield from _samples(sys.stdin.buffer, "standard input", lines=content.lines)
        return
    try:
        with content.file.open("rb") as stream:
            yield from _samples(stream, str(content.file), lines=content.lines)
    except FileNotFoundError:
        raise NotFound(f"there is no file {content.file}", remedy="Check the path.") from None
    except OSError as error:
        raise InvalidInput(f"{content.file} cannot be read: {error.strerror}", remedy="Give a readable file.") from None


def _samples(stream: IO[bytes], source: str, *, lines: bool) -> Iterator[bytes]:
    if not lines:
        yield _bounded(stream.read(MAX_SAMPLE_BYTES + 1), source)
        return
    number = 0
    while line := stream.readline(MAX_SAMPLE_BYTES + 2):
        number += 1
        yield _bounded(line.removesuffix(b"\n"), f"{source}, line {number}")


def _bounded(payload: bytes, source: str) -> bytes:
    if len(payload) > MAX_SAMPLE_BYTES:
        raise InvalidInput(
            f"{source} is longer than {MAX_SAMPLE_BYTES} bytes", remedy="Split it; a queue carries small samples."
        )
    return payload
