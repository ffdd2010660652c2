"""The topic of replicas and its type: octets, which only services of one version exchange [QS 7.1]."""

# The binding interprets these annotations; for a type checker they are not types.
# mypy: disable-error-code="type-arg,assignment,valid-type"

from dataclasses import dataclass
from typing import Final

from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import appendable, final
from cyclonedds.idl.types import byte, sequence, uint32, uint64

REPLICATION_TOPIC: Final = "qsctl/replication"
"""Topic of the messages between replicas: qsctl's own, since [QS 7.1] states no type for them."""


@dataclass
@final
class WireReplicaPiece(IdlStruct, typename="RTI.QueuingService.ReplicaPiece"):
    """A piece of a letter between replicas."""

    value: sequence[byte] = b""


@dataclass
@appendable
class WireReplicationStatus(IdlStruct, typename="RTI.QueuingService.Monitoring.ReplicationStatus"):
    """A queue's replica in this service. `role` is empty where the queue is not replicated."""

    role: str = ""
    epoch: uint64 = 0
    master: str = ""
    replica_count: uint32 = 0
    quorum_count: uint32 = 0
    up_to_date_count: uint32 = 0
    has_quorum: bool = False
    lag_count: uint64 = 0
    last_index: uint64 = 0
    commit_index: uint64 = 0
    reason: str = ""
