"""The topic of messages between replicas and its type: octets, which only services of one version exchange [QS 7.1]."""

# The binding interprets these annotations; for a type checker they are not types.
# mypy: disable-error-code="type-arg,assignment,valid-type"

from dataclasses import dataclass
from typing import Final

from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import final
from cyclonedds.idl.types import byte, sequence

REPLICATION_TOPIC: Final = "qsctl/replication"
"""Topic of the messages between replicas: qsctl's own, since [QS 7.1] states no type for them."""


@dataclass
@final
class WireReplicaPiece(IdlStruct, typename="RTI.QueuingService.ReplicaPiece"):
    """A fragment of a message between replicas, as encoded by `replica_letters`."""

    value: sequence[byte] = b""
