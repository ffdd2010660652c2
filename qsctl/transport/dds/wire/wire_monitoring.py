"""The types of the monitoring topics on the wire [QS 3.3.4.3, 5.4.4 and 6.2].

Decides: what a peer that monitors queues sees. The types that these have in common with others are in `wire_types`.
"""

# The binding interprets these annotations; for a type checker they are not types.
# mypy: disable-error-code="type-arg,assignment,valid-type"

from dataclasses import dataclass, field

from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import appendable, key, mutable
from cyclonedds.idl.types import bounded_str, float32, int32, int64, sequence, uint32, uint64

from qsctl.transport.dds.replicas.replica_wire import WireReplicationStatus
from qsctl.transport.dds.wire.wire_identity import WireGuid


@dataclass
@appendable
class WireStatisticMetrics(IdlStruct, typename="RTI.QueuingService.Monitoring.StatisticMetrics"):
    """`StatisticMetrics` [QS 3.3.4.3]."""

    period_ms: uint64 = 0
    count: int64 = 0
    mean: float32 = 0.0
    minimum: float32 = 0.0
    maximum: float32 = 0.0
    std_dev: float32 = 0.0


@dataclass
@appendable
class WireStatisticVariable(IdlStruct, typename="RTI.QueuingService.Monitoring.StatisticVariable"):
    """`StatisticVariable` [QS 3.3.4.3]."""

    publication_period_metrics: WireStatisticMetrics = field(default_factory=WireStatisticMetrics)
    historical_metrics: sequence[WireStatisticMetrics, 5] = field(default_factory=list)


@dataclass
@appendable
class WireConsumerStatus(IdlStruct, typename="RTI.QueuingService.Monitoring.ConsumerStatus"):
    """One consumer of a queue: ours."""

    consumer_guid: WireGuid = field(default_factory=WireGuid)
    source_guid: WireGuid = field(default_factory=WireGuid)
    outstanding_count: uint32 = 0
    unacked_threshold: int32 = 0
    reception_enabled: bool = True


@dataclass
@mutable
class WireQueueStatus(IdlStruct, typename="RTI.QueuingService.Monitoring.SharedReaderQueueStatus"):
    """`SharedReaderQueueStatus` [QS 5.4.4 and 6.2]. The last eight are ours: the type is mutable, and a reader that
    knows only the others passes them over.
    """

    queue_name: bounded_str[255] = ""
    key("queue_name")
    received_message_count: uint64 = 0
    sent_message_count: uint64 = 0
    acknowledged_message_count: uint64 = 0
    failed_delivery_message_count: uint64 = 0
    late_acknowledgment_message_count: uint64 = 0
    bounced_message_count: uint64 = 0
    redelivered_message_count: uint64 = 0
    expired_message_count: uint64 = 0
    timeout_message_count: uint64 = 0
    high_watermark_count: uint64 = 0
    low_watermark_count: uint64 = 0
    queue_full_count: uint64 = 0
    received_message_count_change: uint64 = 0
    sent_message_count_change: uint64 = 0
    acknowledged_message_count_change: uint64 = 0
    failed_delivery_message_count_change: uint64 = 0
    late_acknowledgment_message_count_change: uint64 = 0
    bounced_message_count_change: uint64 = 0
    redelivered_message_count_change: uint64 = 0
    expired_message_count_change: uint64 = 0
    timeout_message_count_change: uint64 = 0
    high_watermark_count_change: uint64 = 0
    low_watermark_count_change: uint64 = 0
    queue_full_count_change: uint64 = 0
    current_message_count: uint64 = 0
    current_acknowledged_message_count: uint64 = 0
    current_unacknowledged_message_count: uint64 = 0
    current_sent_message_count: uint64 = 0
    sending_latency: WireStatisticVariable = field(default_factory=WireStatisticVariable)
    enqueue_throughput: WireStatisticVariable = field(default_factory=WireStatisticVariable)
    dequeue_throughput: WireStatisticVariable = field(default_factory=WireStatisticVariable)
    sending_throughput: WireStatisticVariable = field(default_factory=WireStatisticVariable)
    restored_message_count: uint64 = 0
    duplicate_message_count: uint64 = 0
    flushed_message_count: uint64 = 0
    current_waiting_message_count: uint64 = 0
    current_undeliverable_message_count: uint64 = 0
    replication: WireReplicationStatus = field(default_factory=WireReplicationStatus)
    consumer_count: uint32 = 0
    consumers: sequence[WireConsumerStatus] = field(default_factory=list)
