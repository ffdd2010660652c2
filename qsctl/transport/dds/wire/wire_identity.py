"""The identity of a sample, as every type on the wire contains it [QS 2.12, 5.2.2]."""

# The binding interprets these annotations; for a type checker they are not types.
# mypy: disable-error-code="type-arg,assignment,valid-type"

from dataclasses import dataclass, field
from typing import Final

from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import final
from cyclonedds.idl.types import array, byte, int32, uint32

NIL_OCTETS: Final = bytes(16)


@dataclass
@final
class WireGuid(IdlStruct, typename="RTI.QueuingService.GUID_t"):
    """`GUID_t`: 16 octets."""

    value: array[byte, 16] = NIL_OCTETS


@dataclass
@final
class WireSequenceNumber(IdlStruct, typename="RTI.QueuingService.SequenceNumber_t"):
    """`SequenceNumber_t`: 64 bits in two halves."""

    high: int32 = 0
    low: uint32 = 0


@dataclass
@final
class WireIdentity(IdlStruct, typename="RTI.QueuingService.SampleIdentity_t"):
    """`SampleIdentity_t`: the writer's GUID and the number of the sample among those of this writer."""

    writer_guid: WireGuid = field(default_factory=WireGuid)
    sequence_number: WireSequenceNumber = field(default_factory=WireSequenceNumber)
