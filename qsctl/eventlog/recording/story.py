"""The event history that a service reports to its recorder, in this order: its beginning, its events, its end.

Light: the service's own process imports this and nothing of Arrow. All instants are Unix nanoseconds.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from qsctl.core.events import Event
from qsctl.core.ready import Input
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds

HELD_AT_ONCE: Final = 10_000
"""Number of samples of the beginning in one part."""


class RecordedQueue(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A queue at the beginning; `max_count` -1: unlimited."""

    name: str
    max_count: int


class RecordedConsumer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A consumer at the beginning, with what is in force of its window."""

    queue: str
    consumer_guid: Guid
    source_guid: Guid
    unacked_threshold: int
    reception_enabled: bool


class RecordedHeldSample(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A sample at the beginning.

    `attempts` are the deliveries that are over; `consumer_guid` holds it since `sent_at_ns`, nil: no consumer does.
    `is_outside`: it waits for room, since `at_ns`; else it was enqueued then.
    """

    queue: str
    identity: SampleIdentity
    size_bytes: int
    at_ns: Nanoseconds
    expires_at_ns: Nanoseconds = INFINITE_NS
    address: Guid = NIL_GUID
    attempts: int = 0
    redelivered: bool = False
    consumer_guid: Guid = NIL_GUID
    sent_at_ns: Nanoseconds = 0
    is_outside: bool = False


class Begun(msgspec.Struct, frozen=True, array_like=True, tag="begun"):
    """A process begins to report. What its queues hold follows in parts of `HeldAtBeginning`."""

    at_ns: Nanoseconds
    queues: list[RecordedQueue]
    seats: list[RecordedConsumer]


class HeldAtBeginning(msgspec.Struct, frozen=True, array_like=True, tag="holding"):
    """Some of what is held at the beginning, in queue order."""

    samples: list[RecordedHeldSample]


class Happened(msgspec.Struct, frozen=True, array_like=True, tag="happened", gc=False):
    """Events of one turn or several, with the inputs among them."""

    events: list[Event]
    inputs: list[Input]


class Resumed(msgspec.Struct, frozen=True, array_like=True, tag="resumed"):
    """The service is another process from here on: what was with consumers is with none, nothing waits outside."""

    at_ns: Nanoseconds


class RecordingEnded(msgspec.Struct, frozen=True, array_like=True, tag="ended"):
    """A process reports no more. `overrun`: it reported faster than the recorder could read, and gave up."""

    at_ns: Nanoseconds
    overrun: bool = False


Part: TypeAlias = Begun | HeldAtBeginning | Happened | Resumed | RecordingEnded

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Part)


def encode(part: Part) -> bytes:
    """Return a part as octets."""
    return _ENCODER.encode(part)


def decode(octets: bytes) -> Part:
    """Return a part of `encode`.

    Raises:
        msgspec.DecodeError: the octets are none.
    """
    part: Part = _DECODER.decode(octets)
    return part
