"""The topic of replicas and its type: octets, which only services of one version exchange [QS 7.1]."""

# The binding reads these annotations itself; to a type checker they are no types.
# mypy: disable-error-code="type-arg,assignment,valid-type"

from dataclasses import dataclass
from typing import Final

from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import final
from cyclonedds.idl.types import byte, sequence

REPLICATION_TOPIC: Final = "qsctl/replication"
"""Ours: [QS 7.1] states no type of what replicas say to each other."""


@dataclass
@final
class WireReplicaPiece(IdlStruct, typename="RTI.QueuingService.ReplicaPiece"):
    """A piece of a letter between replicas."""

    value: sequence[byte] = b""
