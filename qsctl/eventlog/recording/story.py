"""The event history that a service reports to its recorder: its beginning, its events, its end, in this order.

The service's own process imports this module, which therefore does not import Arrow. All instants are Unix nanoseconds.
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
    """A consumer at the beginning, with its window as in force."""

    queue: str
    consumer_guid: Guid
    source_guid: Guid
    unacked_threshold: int
    reception_enabled: bool


class RecordedHeldSample(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A sample at the beginning.

    `attempts` is the number of finished deliveries; the consumer `consumer_guid` has held it since `sent_at_ns`, nil:
    no consumer. `is_outside`: it has been in the reader cache of a full queue since `at_ns`; else it was enqueued then.
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
    """The part by which a process begins to report; parts of `HeldAtBeginning` with its queues' contents follow."""

    at_ns: Nanoseconds
    queues: list[RecordedQueue]
    seats: list[RecordedConsumer]


class HeldAtBeginning(msgspec.Struct, frozen=True, array_like=True, tag="holding"):
    """A part with some of the samples held at the beginning, in queue order."""

    samples: list[RecordedHeldSample]


class Happened(msgspec.Struct, frozen=True, array_like=True, tag="happened", gc=False):
    """A part with the events of one turn or several, and the inputs between them."""

    events: list[Event]
    inputs: list[Input]


class Resumed(msgspec.Struct, frozen=True, array_like=True, tag="resumed"):
    """The part that marks a change of process: open deliveries end, and reader caches are empty."""

    at_ns: Nanoseconds


class RecordingEnded(msgspec.Struct, frozen=True, array_like=True, tag="ended"):
    """The last part of a process. `overrun`: it reported faster than the recorder could read, and stopped."""

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
        msgspec.DecodeError: the octets are not a part.
    """
    part: Part = _DECODER.decode(octets)
    return part
