"""The types of monitoring on the wire [QS 3.3.4.3, 5.4.4, 5.4.5 and 6.2].

Decides: nothing; `schemas/qsctl_monitoring.idl` does, which peers that monitor queues generate their code from.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from cyclonedds.idl import IdlStruct

from qsctl.transport.dds.wire.idl_classes import idl_class

MONITORING_TOPIC: Final = "rti/queuing_service/monitoring/shared_reader_queue"

_IDL: Final = "schemas/qsctl_monitoring.idl"

MonitoringStruct = Literal[
    "GUID_t",
    "Monitoring::StatisticMetrics",
    "Monitoring::StatisticVariable",
    "Monitoring::ConsumerStatus",
    "Monitoring::MemberStatus",
    "Monitoring::ReplicationStatus",
    "Monitoring::SharedReaderQueueStatus",
    "Monitoring::SharedReaderQueueData",
    "Monitoring::ServiceData",
]
"""Structs of the IDL, by their names in the module `RTI::QueuingService`."""


def monitoring_class(name: MonitoringStruct) -> type[Any]:
    """Return the class of a struct of the IDL."""
    return idl_class(_IDL, f"RTI::QueuingService::{name}")


def monitoring_value(name: MonitoringStruct, /, *values: object, **named: object) -> IdlStruct:
    """Return a value of a struct of the IDL, by all its members in order or by their names."""
    value: IdlStruct = monitoring_class(name)(*values, **named)
    return value
