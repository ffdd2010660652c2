"""Inputs that `request` and `reply` share: the queue's name, its domain, the content."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from qsctl.cli._input_files import STANDARD_INPUT, is_standard_input, reading
from qsctl.cli.samples._input import EMPTY_REMEDY
from qsctl.errors import InvalidInput, UsageError

if TYPE_CHECKING:
    from qsctl.transport.dds.participant import DomainSettings


class RequestQueuePlace(NamedTuple):
    """The topic, subscriber and DDS domain of a request queue."""

    topic: str
    subscriber: str
    domain_id: int
    settings: DomainSettings


def request_queue(queue: str, service: str, wait_s: float) -> RequestQueuePlace:
    """Return the queue of a name, in the forms of other commands: `Q`, `S/Q`, `P/S/Q`, `TOPIC@S`, an identifier.

    `TOPIC@S` is sufficient by itself. For the other forms the services of the domain are queried.

    Raises:
        UsageError: the location is not on DDS, or several queues match.
        NoAnswer: no service answers in time.
        NotFound: no service has such a queue.
    """
    kind, colon, rest = service.partition(":")
    if kind != "dds" or not colon:
        raise UsageError(
            f"--service {service!r} is not on DDS",
            remedy="Requests travel over DDS, between programs that run: name the service, as in --service dds:7, or "
            "use a context or QSCTL_SERVICE.",
        )
    from qsctl.client.dds_location import parse_dds_location

    domain_id, settings = parse_dds_location(rest)
    topic, _, subscriber = queue.rpartition("@")
    if topic and subscriber:
        return RequestQueuePlace(topic, subscriber, domain_id, settings)
    from qsctl.client.administration import Administration
    from qsctl.client.dds_connection import DdsConnection
    from qsctl.core.admin.resolve import short_name

    with closing(DdsConnection(domain_id, wait_s, settings)) as connection:
        found = Administration(connection).queue_named(queue)
        return RequestQueuePlace(*connection.place_of(short_name(found)), settings)


def request_content(text: str | None, file: Path | None) -> bytes:
    """Return the octets to send: the text, the file's content, or standard input.

    Raises:
        UsageError: both are given.
        NotFound, InvalidInput: the input cannot be read, or standard input is empty.
    """
    if text is not None and file is not None:
        raise UsageError("--text and --file are both given", remedy="Give one.")
    if text is not None:
        return text.encode("utf-8", "surrogateescape")
    if file is None or is_standard_input(file):
        with reading(STANDARD_INPUT):
            content = sys.stdin.buffer.read()
        if not content:
            raise InvalidInput("there is nothing to send: standard input is empty", remedy=EMPTY_REMEDY)
        return content
    with reading(file):
        return file.read_bytes()


def printable(octets: bytes) -> str:
    """Return octets as text if they are UTF-8, else in hexadecimal."""
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return f"0x{octets.hex()}"
