"""Journals of client processes: what each wrote, received and was answered, a line an event, in the order of events.

A line is in the file before the program goes on, so a program that is killed has lost none. Instants are those of the
machine's monotonic clock, in nanoseconds, which all processes share.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

ACCEPTED: Final = 1
REFUSED: Final = 0
DELETED: Final = -1
"""The queue was deleted before it answered."""


class Opened(msgspec.Struct, frozen=True, tag="open", array_like=True):
    """A program is about to look for its queue."""

    at_ns: int
    topic: str


class Wrote(msgspec.Struct, frozen=True, tag="write", array_like=True):
    """A producer is about to write a sample."""

    at_ns: int
    number: int


class Answered(msgspec.Struct, frozen=True, tag="answer", array_like=True):
    """A queue answered a sample of this producer."""

    at_ns: int
    number: int
    answer: int


class Received(msgspec.Struct, frozen=True, tag="receive", array_like=True):
    """A consumer received a sample; a payload that no producer makes has the writer "" and the number 0."""

    at_ns: int
    writer: str
    number: int
    is_redelivered: bool


class Rejected(msgspec.Struct, frozen=True, tag="reject", array_like=True):
    """A consumer is about to reject the sample that it received last of this name."""

    at_ns: int
    writer: str
    number: int


class DeletionAsked(msgspec.Struct, frozen=True, tag="delete", array_like=True):
    """An operator is about to delete the queue of a topic."""

    at_ns: int
    topic: str


class DeletionAnswered(msgspec.Struct, frozen=True, tag="deleted", array_like=True):
    """All services answered that they deleted the queue of a topic."""

    at_ns: int
    topic: str


Event: TypeAlias = Opened | Wrote | Answered | Received | Rejected | DeletionAsked | DeletionAnswered


class Journal(msgspec.Struct, frozen=True):
    """The events of one program."""

    name: str
    events: Sequence[Event]

    @property
    def topic(self) -> str:
        """Return the topic of a producer or consumer; "" of another program."""
        first = self.events[0] if self.events else None
        return first.topic if isinstance(first, Opened) else ""


_DECODER: Final = msgspec.json.Decoder(Event)


class JournalFile:
    """The journal that a program writes."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, *events: Event) -> None:
        """Append events."""
        os.write(self._descriptor, b"".join(msgspec.json.encode(event) + b"\n" for event in events))


def now_ns() -> int:
    """Return the instant that events of now have."""
    return time.monotonic_ns()


def read_journal(path: Path) -> Journal:
    """Return the journal in a file; a last line that is not complete is not read."""
    lines = path.read_bytes().split(b"\n")[:-1]
    return Journal(path.name, tuple(map(_DECODER.decode, lines)))


def read_journals(directory: Path) -> Iterator[Journal]:
    """Yield the journals in a directory."""
    return map(read_journal, sorted(directory.iterdir()))


def payload_of(writer: str, number: int) -> bytes:
    """Return the payload of a producer's sample: its name and number, octets that follow from these, and a checksum."""
    body = b"%s %d " % (writer.encode(), number) + b"." * (number * 37 % 400)
    return body + b"%08x" % zlib.crc32(body)


def writer_of(payload: bytes) -> tuple[str, int]:
    """Return the writer and the number of a payload; ("", 0) where no producer makes it."""
    writer, _, rest = payload.partition(b" ")
    number = rest.partition(b" ")[0]
    if number.isdigit() and payload == payload_of(writer.decode(errors="replace"), int(number)):
        return writer.decode(), int(number)
    return "", 0
