"""What `request` and `reply` share: the queue's name, the place, the content."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from qsctl.errors import NotFound, UsageError

if TYPE_CHECKING:
    from qsctl.transport.dds.participant import DomainSettings


def queue_and_subscriber(queue: str) -> tuple[str, str]:
    """The topic and the shared subscriber of `TOPIC@SUBSCRIBER`.

    Raises:
        UsageError: one is missing.
    """
    topic, at, subscriber = queue.rpartition("@")
    if not at or not topic or not subscriber:
        raise UsageError(f"{queue!r} names no queue", remedy="Write it as TOPIC@SUBSCRIBER, as in Quotes@Desk.")
    return topic, subscriber


def dds_place(service: str) -> tuple[int, DomainSettings]:
    """The domain of `dds:DOMAIN`.

    Raises:
        UsageError: it is another place: requests travel over DDS.
    """
    kind, colon, rest = service.partition(":")
    if kind != "dds" or not colon:
        raise UsageError(f"--service {service!r} is not on DDS", remedy="Write dds:DOMAIN, as in dds:7.")
    from qsctl.client.dds_location import parse_dds_location

    return parse_dds_location(rest)


def request_content(text: str | None, file: Path | None) -> bytes:
    """The octets to send: the text, the file's content, or standard input.

    Raises:
        UsageError: both are given.
        NotFound: there is no such file.
    """
    if text is not None and file is not None:
        raise UsageError("--text and --file are both given", remedy="Give one.")
    if text is not None:
        return text.encode()
    if file is not None:
        try:
            return file.read_bytes()
        except OSError as error:
            raise NotFound(f"{file}: {error.strerror}", remedy="Name a file that can be read.") from error
    return sys.stdin.buffer.read()


def printable(octets: bytes) -> str:
    """Text where it is text, else hexadecimal."""
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return f"0x{octets.hex()}"
