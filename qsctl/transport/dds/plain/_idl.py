"""The types and topics of `schemas/qsctl_queue.idl`, as the binding requires them.

Decides: nothing; the IDL does. Both versions of CDR align every member alike, so `octets` packs one layout for both.
"""

# The binding interprets these annotations; for a type checker they are not types.
# mypy: disable-error-code="type-arg,assignment,valid-type"

from dataclasses import dataclass, field
from typing import Final

from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import final
from cyclonedds.idl.types import array, bounded_str, byte, int32, int64, sequence, uint32, uint64

from qsctl.transport.dds.wire.wire_identity import NIL_OCTETS

PREFIX: Final = "qsctl/"
"""Prefix of the names of the IDL's topics."""


@dataclass
@final
class PlainGuid(IdlStruct, typename="qsctl.Guid"):
    """`Guid`."""

    value: array[byte, 16] = NIL_OCTETS


@dataclass
@final
class PlainIdentity(IdlStruct, typename="qsctl.SampleIdentity"):
    """`SampleIdentity`."""

    writer_guid: PlainGuid = field(default_factory=PlainGuid)
    sequence_number: uint64 = 0


@dataclass
@final
class PlainDelivery(IdlStruct, typename="qsctl.Delivery"):
    """`Delivery`."""

    consumer: PlainGuid = field(default_factory=PlainGuid)
    identity: PlainIdentity = field(default_factory=PlainIdentity)
    source_guid: PlainGuid = field(default_factory=PlainGuid)
    related_source_guid: PlainGuid = field(default_factory=PlainGuid)
    related_identity: PlainIdentity = field(default_factory=PlainIdentity)
    attempt: uint32 = 0
    flags: uint32 = 0
    payload: sequence[byte] = b""


@dataclass
@final
class PlainAcknowledgment(IdlStruct, typename="qsctl.Acknowledgment"):
    """`Acknowledgment`."""

    consumer: PlainGuid = field(default_factory=PlainGuid)
    identity: PlainIdentity = field(default_factory=PlainIdentity)
    response: uint32 = 1


@dataclass
@final
class PlainAvailability(IdlStruct, typename="qsctl.Availability"):
    """`Availability`."""

    consumer: PlainGuid = field(default_factory=PlainGuid)
    unacked_threshold: int32 = -1
    reception_enabled: bool = True


@dataclass
@final
class PlainWrite(IdlStruct, typename="qsctl.Write"):
    """`Write`."""

    identity: PlainIdentity = field(default_factory=PlainIdentity)
    source_guid: PlainGuid = field(default_factory=PlainGuid)
    related_source_guid: PlainGuid = field(default_factory=PlainGuid)
    related_identity: PlainIdentity = field(default_factory=PlainIdentity)
    lifespan_ns: int64 = 0
    flags: uint32 = 0
    payload: sequence[byte] = b""


@dataclass
@final
class PlainWriteAcknowledgment(IdlStruct, typename="qsctl.WriteAcknowledgment"):
    """`WriteAcknowledgment`."""

    identity: PlainIdentity = field(default_factory=PlainIdentity)
    source_timestamp_ns: int64 = 0
    response: uint32 = 1
    queue: bounded_str[255] = ""


def write_topic(topic_name: str) -> str:
    """Return the topic to which producers write numbered samples, requests and replies."""
    return f"{PREFIX}{topic_name}/write"


def write_acknowledgment_topic(topic_name: str) -> str:
    """Return the topic on which producers that request it receive acknowledgments of their samples."""
    return f"{PREFIX}{topic_name}/write_acknowledgment"


def delivery_topic(topic_name: str, subscriber: str) -> str:
    """Return the topic on which consumers receive samples."""
    return f"{PREFIX}{topic_name}/{subscriber}/delivery"


def acknowledgment_topic(topic_name: str, subscriber: str) -> str:
    """Return the topic to which consumers write their acknowledgments and rejections."""
    return f"{PREFIX}{topic_name}/{subscriber}/acknowledgment"


def availability_topic(topic_name: str, subscriber: str) -> str:
    """Return the topic to which consumers write how many samples they accept."""
    return f"{PREFIX}{topic_name}/{subscriber}/availability"
