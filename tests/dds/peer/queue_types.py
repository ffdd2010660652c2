"""`schemas/qsctl_queue.idl` by hand, as a Python program without qsctl has it."""

from dataclasses import dataclass, field

from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import final
from cyclonedds.idl.types import array, bounded_str, byte, int32, int64, sequence, uint32, uint64


@dataclass
@final
class Guid(IdlStruct, typename="qsctl.Guid"):
    value: array[byte, 16] = bytes(16)


@dataclass
@final
class SampleIdentity(IdlStruct, typename="qsctl.SampleIdentity"):
    writer_guid: Guid = field(default_factory=Guid)
    sequence_number: uint64 = 0


@dataclass
@final
class Delivery(IdlStruct, typename="qsctl.Delivery"):
    consumer: Guid
    identity: SampleIdentity
    source_guid: Guid
    related_source_guid: Guid
    related_identity: SampleIdentity
    attempt: uint32
    flags: uint32
    payload: sequence[byte]


@dataclass
@final
class Acknowledgment(IdlStruct, typename="qsctl.Acknowledgment"):
    consumer: Guid
    identity: SampleIdentity
    response: uint32 = 1


@dataclass
@final
class Availability(IdlStruct, typename="qsctl.Availability"):
    consumer: Guid = field(default_factory=Guid)
    unacked_threshold: int32 = -1
    reception_enabled: bool = True


@dataclass
@final
class Write(IdlStruct, typename="qsctl.Write"):
    identity: SampleIdentity
    source_guid: Guid = field(default_factory=Guid)
    related_source_guid: Guid = field(default_factory=Guid)
    related_identity: SampleIdentity = field(default_factory=SampleIdentity)
    lifespan_ns: int64 = 0
    flags: uint32 = 0
    payload: sequence[byte] = b""


@dataclass
@final
class WriteAcknowledgment(IdlStruct, typename="qsctl.WriteAcknowledgment"):
    identity: SampleIdentity
    source_timestamp_ns: int64
    response: uint32
    queue: bounded_str[255]
