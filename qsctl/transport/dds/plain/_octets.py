"""Serialization of the messages of `schemas/qsctl_queue.idl`, with one `struct` call each.

Decides: which messages of a peer are refused. Both versions of CDR have the same layout for these types; the
encapsulation header contains the version and the byte order.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

from qsctl.core.messages import FLAGS_MASK, AckResponse, Delivery, SampleFlag
from qsctl.identity import NIL_GUID, NIL_IDENTITY, SEQUENCE_NUMBER_MAX, Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.transport.dds.boundary import Malformed

XCDR1: Final = b"\x00\x01\x00\x00"
XCDR2: Final = b"\x00\x07\x00\x00"

_BYTE_ORDERS: Final = {b"\x00\x00": ">", b"\x00\x01": "<", b"\x00\x06": ">", b"\x00\x07": "<"}
"""Byte orders by the first two octets of the encapsulation header, for final types in both versions of CDR."""

_DELIVERY: Final = struct.Struct("<16s16sQ16s16s16sQIII")
_WRITE_ACKNOWLEDGMENT: Final = struct.Struct("<16sQqII")
_ACKNOWLEDGMENTS: Final = {order: struct.Struct(f"{order}16s16sQI") for order in "<>"}
_AVAILABILITIES: Final = {order: struct.Struct(f"{order}16si?") for order in "<>"}
_WRITES: Final = {order: struct.Struct(f"{order}16sQ16s16s16sQqII") for order in "<>"}

_RESPONSES: Final = {int(response): response for response in AckResponse}
_PRODUCER_FLAGS: Final = int(SampleFlag.INTERMEDIATE_REPLY_SEQUENCE)


class ReadAcknowledgment(NamedTuple):
    """A parsed `Acknowledgment` of a consumer."""

    consumer: Guid
    identity: SampleIdentity
    response: AckResponse


class ReadAvailability(NamedTuple):
    """A parsed `Availability` of a consumer; the nil GUID means all readers of its participant."""

    consumer: Guid
    unacked_threshold: int
    reception_enabled: bool


class ReadWrite(NamedTuple):
    """A parsed `Write` of a producer; the nil GUID in its identity means the DDS writer's own."""

    identity: SampleIdentity
    source_guid: Guid
    related_source_guid: Guid
    related_identity: SampleIdentity
    lifespan_ns: Nanoseconds
    flags: int
    payload: bytes


def pack_delivery(delivery: Delivery, header: bytes) -> bytes:
    """Return a serialized `Delivery` with its encapsulation header, `XCDR1` or `XCDR2`; its payload is not None."""
    identity, related, payload = delivery.identity, delivery.related_identity, delivery.payload
    assert payload is not None, "the driver puts payloads back before it sends"
    return b"".join(
        (
            header,
            _DELIVERY.pack(
                delivery.consumer_guid, identity.writer_guid, identity.sequence_number, delivery.source_guid,
                delivery.related_source_guid, related.writer_guid, related.sequence_number, delivery.attempt,
                delivery.flags & FLAGS_MASK, len(payload),
            ),
            payload,
        )
    )  # fmt: skip


def pack_write_acknowledgment(
    identity: SampleIdentity, source_timestamp_ns: Nanoseconds, response: int, queue: bytes, header: bytes
) -> bytes:
    """Return a serialized `WriteAcknowledgment` with its encapsulation header.

    `queue` is `<topic>@<subscriber>`, at most 255 octets.
    """
    head = _WRITE_ACKNOWLEDGMENT.pack(
        identity.writer_guid, identity.sequence_number, source_timestamp_ns, response, len(queue) + 1
    )
    return b"".join((header, head, queue, b"\0"))


def read_acknowledgment(data: bytes) -> ReadAcknowledgment:
    """Parse an `Acknowledgment`.

    Raises:
        Malformed: it is invalid, has the nil GUID as its consumer, or a response other than 0 to 2.
    """
    consumer, writer, number, response = _unpack(_ACKNOWLEDGMENTS, data)
    if consumer == NIL_GUID:
        # A sample that no consumer holds has the nil GUID as its holder's: such an answer must never be looked up.
        raise Malformed("an acknowledgment without its consumer")
    if response not in _RESPONSES:
        raise Malformed(f"a response is {response}; 0 to 2 are read")
    return ReadAcknowledgment(Guid(consumer), SampleIdentity(Guid(writer), number), _RESPONSES[response])


def read_availability(data: bytes) -> ReadAvailability:
    """Parse an `Availability`.

    Raises:
        Malformed: it is invalid, or its threshold is below -1.
    """
    consumer, threshold, enabled = _unpack(_AVAILABILITIES, data)
    if threshold < -1:
        raise Malformed(f"an unacknowledged threshold is {threshold}; -1, 0 and more are read")
    return ReadAvailability(Guid(consumer), threshold, enabled)


def read_write(data: bytes) -> ReadWrite:
    """Parse a `Write`.

    Raises:
        Malformed: it is invalid, is shorter than the payload size that it states, or has a number outside 1 to 2**63 -
            1, a negative lifespan, or flags that producers do not set.
    """
    head = _WRITES[_byte_order(data)]
    writer, number, source, related_source, related_writer, related_number, lifespan_ns, flags, size = _unpack(
        _WRITES, data
    )
    start = len(XCDR1) + head.size
    payload = data[start : start + size]
    if len(payload) != size:
        raise Malformed(f"a payload of {size} octets reaches past the message's {len(data)}")
    for each, least in ((number, 1), (related_number, 0)):
        if not least <= each <= SEQUENCE_NUMBER_MAX:
            raise Malformed(f"a sequence number is {each}; {least} to {SEQUENCE_NUMBER_MAX} are read")
    if lifespan_ns < 0:
        raise Malformed(f"a lifespan is {lifespan_ns} ns; 0 means the queue's own")
    if flags & ~_PRODUCER_FLAGS:
        raise Malformed(f"flags are {flags:#x}; producers have {_PRODUCER_FLAGS:#x}")
    related = SampleIdentity(Guid(related_writer), related_number)
    return ReadWrite(
        SampleIdentity(Guid(writer), number),
        Guid(source),
        Guid(related_source),
        NIL_IDENTITY if related == NIL_IDENTITY else related,
        lifespan_ns or INFINITE_NS,
        flags,
        payload,
    )


def _byte_order(data: bytes) -> str:
    order = _BYTE_ORDERS.get(data[:2])
    if order is None:
        raise Malformed(f"the encapsulation header {data[:4].hex()} is not that of a final type in XCDR1 or XCDR2")
    return order


def _unpack(layouts: dict[str, struct.Struct], data: bytes) -> tuple[Any, ...]:
    layout = layouts[_byte_order(data)]
    if len(data) < len(XCDR1) + layout.size:
        raise Malformed(f"a message of {len(data)} octets is truncated: it has at least {len(XCDR1) + layout.size}")
    return layout.unpack_from(data, len(XCDR1))
