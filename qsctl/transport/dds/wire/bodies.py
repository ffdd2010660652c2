"""The bodies of replies (`octet_body`), as CDR of the types of [QS 5.4.4 to 5.4.6].

Decides: the bytes, in standard XCDR1 with the encapsulation header. Each pair of functions is its own inverse.
"""

# The wire types' annotations are the binding's, not a type checker's.
# mypy: disable-error-code="arg-type"

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from cyclonedds.idl import IdlEnum, IdlStruct

from qsctl.core.admin.reply import MessageData, MessageStatus, QueueData, ServiceData
from qsctl.core.statistics.status import (
    AdditionalCounters,
    ConsumerStatus,
    Counters,
    MemberStatus,
    ReplicationStatus,
    SharedReaderQueueStatus,
    StatisticMetrics,
    StatisticVariable,
)
from qsctl.identity import Guid, Incarnation, SampleIdentity, sequence_number_from_pair, sequence_number_pair
from qsctl.instant import INFINITE_NS, SECOND_NS
from qsctl.transport.dds.boundary import Malformed, decoded
from qsctl.transport.dds.wire.wire_identity import WireGuid, WireIdentity, WireSequenceNumber
from qsctl.transport.dds.wire.wire_monitoring import monitoring_value
from qsctl.transport.dds.wire.wire_types import UndeliveredReasonKind, WireDeadLetter, WireSampleBuffer

ENCAPSULATION_SIZE_BYTES: Final = 4

_COUNTERS: Final = Counters.__struct_fields__
_CURRENT: Final = (
    "current_message_count",
    "current_acknowledged_message_count",
    "current_unacknowledged_message_count",
    "current_sent_message_count",
)
_ADDITIONAL: Final = AdditionalCounters.__struct_fields__
_ADDITIONAL_CURRENT: Final = ("current_waiting_message_count", "current_undeliverable_message_count")
_OF_STATUS: Final = ("members", "group", "is_current", "behind_ns")
"""Fields of the replication's status that are beside it on the wire, which earlier versions do not write."""
_REPLICATION: Final = tuple(each for each in ReplicationStatus.__struct_fields__ if each not in _OF_STATUS)
_NOT_REPLICATED: Final = ReplicationStatus("", 0, "", 0, 0, 0, False, 0, 0, 0, "")
"""On the wire: the role is empty."""

_CANDIDACY: Final = ("master_priority", "is_witness")
"""Fields of a member's status that are behind those of all members on the wire, see there."""
_MEMBER: Final = tuple(each for each in MemberStatus.__struct_fields__ if each not in _CANDIDACY)
_UNKNOWN: Final = -1
"""On the wire: in the place of a number of a member that is unknown."""

_VARIABLES: Final = ("sending_latency", "enqueue_throughput", "dequeue_throughput", "sending_throughput")


def octets_of(value: IdlStruct) -> bytes:
    """Return a value as standard XCDR1, encapsulation header included."""
    return bytes(value.serialize(use_version_2=False))


def read_wire(kind: type[IdlStruct], data: bytes, *, any_numbers: bool = False) -> Any:
    """Read a value of a wire type, encapsulation header included.

    Args:
        kind: the type.
        data: a peer's octets.
        any_numbers: leave an enumeration's number that has no name as an `int`, so that the answer can name it.

    Raises:
        Malformed: the octets are no such value.
    """
    if len(data) < ENCAPSULATION_SIZE_BYTES:  # of no octets at all, the library makes a value of defaults
        raise Malformed(
            f"{len(data)} octets are not a {kind.__idl__.idl_transformed_typename}: there is no encapsulation header"
        )
    value = decoded(kind.deserialize, data)
    if not any_numbers:
        for name in _enumerations(kind):
            if isinstance(number := getattr(value, name), int):
                raise Malformed(f"{name} is {number}, which means nothing")
    return value


@functools.cache
def _enumerations(kind: type[IdlStruct]) -> tuple[str, ...]:
    return tuple(
        each.name for each in dataclasses.fields(kind) if isinstance(each.type, type) and issubclass(each.type, IdlEnum)
    )


def wire_identity(identity: SampleIdentity) -> WireIdentity:
    """Return the wire type's value of a sample identity."""
    high, low = sequence_number_pair(identity.sequence_number)
    return WireIdentity(WireGuid(bytes(identity.writer_guid)), WireSequenceNumber(high, low))


def identity_from_wire(wire: Any) -> SampleIdentity:
    """Return the inverse of `wire_identity`."""
    number = wire.sequence_number
    return SampleIdentity(Guid(bytes(wire.writer_guid.value)), sequence_number_from_pair(number.high, number.low))


def wire_status(status: SharedReaderQueueStatus) -> IdlStruct:
    """Return a queue's status as it is published [QS 6.2] and answered (5.4.4)."""
    return monitoring_value(
        "Monitoring::SharedReaderQueueStatus",
        queue_name=status.queue_name,
        **{name: getattr(status.total, name) for name in _COUNTERS},
        **{f"{name}_change": getattr(status.change, name) for name in _COUNTERS},
        **{name: getattr(status, name) for name in _CURRENT},
        **{name: _wire_variable(getattr(status, name)) for name in _VARIABLES},
        **{name: getattr(status.additional, name) for name in _ADDITIONAL},
        **{name: getattr(status, name) for name in _ADDITIONAL_CURRENT},
        replication=_wire_replication(status.replication),
        consumer_count=status.consumer_count,
        consumers=[_wire_consumer(each) for each in status.consumers],
        members=_wire_members("MemberStatus", _MEMBER, status.replication),
        replication_group=status.replication.group if status.replication else "",
        is_current=status.replication.is_current if status.replication else False,
        behind_ns=(status.replication.behind_ns or 0) if status.replication else 0,
        member_candidacies=_wire_members("MemberCandidacy", _CANDIDACY, status.replication),
    )


def status_from_wire(wire: Any) -> SharedReaderQueueStatus:
    """Return the inverse of `wire_status`; figures are rounded to 32-bit floats."""
    return SharedReaderQueueStatus(
        queue_name=wire.queue_name,
        total=Counters(**{name: getattr(wire, name) for name in _COUNTERS}),
        change=Counters(**{name: getattr(wire, f"{name}_change") for name in _COUNTERS}),
        **{name: getattr(wire, name) for name in _CURRENT},
        **{name: _variable_from_wire(getattr(wire, name)) for name in _VARIABLES},
        additional=AdditionalCounters(**{name: getattr(wire, name) for name in _ADDITIONAL}),
        **{name: getattr(wire, name) for name in _ADDITIONAL_CURRENT},
        replication=_replication_from_wire(wire),
        consumer_count=wire.consumer_count,
        consumers=tuple(map(_consumer_from_wire, wire.consumers)),
    )


def _wire_consumer(consumer: ConsumerStatus) -> IdlStruct:
    return monitoring_value(
        "Monitoring::ConsumerStatus",
        monitoring_value("GUID_t", bytes(consumer.consumer_guid)),
        monitoring_value("GUID_t", bytes(consumer.source_guid)),
        consumer.outstanding_count,
        consumer.unacked_threshold,
        consumer.reception_enabled,
    )


def _consumer_from_wire(wire: Any) -> ConsumerStatus:
    return ConsumerStatus(
        Guid(bytes(wire.consumer_guid.value)),
        Guid(bytes(wire.source_guid.value)),
        wire.outstanding_count,
        wire.unacked_threshold,
        wire.reception_enabled,
    )


def _wire_replication(status: ReplicationStatus | None) -> IdlStruct:
    values = {name: getattr(status or _NOT_REPLICATED, name) for name in _REPLICATION}
    return monitoring_value("Monitoring::ReplicationStatus", **values)


def _replication_from_wire(wire: Any) -> ReplicationStatus | None:
    """Return the replication's part of a queue's status; None: the queue is not replicated."""
    if not wire.replication.role:
        return None
    candidacies = wire.member_candidacies
    if len(candidacies) != len(wire.members):  # of a version that writes none
        candidacies = [None] * len(wire.members)
    return ReplicationStatus(
        **{name: getattr(wire.replication, name) for name in _REPLICATION},
        members=tuple(map(_member_from_wire, wire.members, candidacies)),
        group=wire.replication_group,
        is_current=wire.is_current,
        behind_ns=wire.behind_ns or None,
    )


def _wire_members(kind: str, names: Sequence[str], status: ReplicationStatus | None) -> list[IdlStruct]:
    """Return these fields of each member's status."""
    members = status.members if status is not None else ()
    return [
        monitoring_value(f"Monitoring::{kind}", **{name: _or_unknown(getattr(each, name)) for name in names})
        for each in members
    ]


def _or_unknown(value: object) -> object:
    return _UNKNOWN if value is None else value


def _member_from_wire(wire: Any, candidacy: Any | None) -> MemberStatus:
    """Return the status of one member; None: its candidacy is not known."""
    values = {name: getattr(wire, name) for name in _MEMBER}
    if candidacy is not None:
        values |= {name: getattr(candidacy, name) for name in _CANDIDACY}
    return MemberStatus(**{name: None if value == _UNKNOWN else value for name, value in values.items()})


def wire_service_data(data: ServiceData, domain_ids: Mapping[str, int]) -> IdlStruct:
    """Return the data of a service: the parts that it hosts. `domain_ids` is by name of the domain participant."""
    return monitoring_value(
        "Monitoring::ServiceData",
        [wire_queue_data(queue, domain_ids) for queue in data.queues],
        list(data.participants),
        list(data.subscribers),
        data.is_daemon,
    )


def service_data_from_wire(wire: Any) -> ServiceData:
    """Return the inverse of `wire_service_data`."""
    return ServiceData(
        tuple(queue_data_from_wire(each) for each in wire.shared_reader_queue_data_list),
        tuple(wire.participants),
        tuple(wire.subscribers),
        wire.is_daemon,
    )


def wire_queue_data(queue: QueueData, domain_ids: Mapping[str, int]) -> IdlStruct:
    """Return the configuration data of one queue."""
    participant = queue.resource.strip("/").split("/")[1:2]
    return monitoring_value(
        "Monitoring::SharedReaderQueueData",
        queue.queue_name,
        queue.topic_name,
        queue.resource,
        queue.type_name,
        queue.is_dead_letter,
        domain_ids.get(participant[0], -1) if participant else -1,
        queue.acknowledges_producers,
    )


def queue_data_from_wire(wire: Any) -> QueueData:
    """Return the inverse of `wire_queue_data`, without the domain."""
    return QueueData(
        wire.queue_name,
        wire.topic_name,
        wire.resource,
        wire.type_name,
        bool(wire.is_dead_letter),
        bool(wire.acknowledges_producers),
    )


def message_from_wire(wire: Any) -> MessageData:
    """Return a sample of a queue [QS 5.4.6] from its wire type, for octets that `_packed_replies` cannot parse."""
    payload = bytes(wire.sample_buffer.value)
    return MessageData(
        queue_name=wire.queue_name,
        position=sequence_number_from_pair(wire.position_high, wire.position_low),
        status=MessageStatus(wire.status.value),
        identity=identity_from_wire(wire.original_virtual_sample_identity),
        payload=payload,
        size_bytes=len(payload),
        enqueued_at_ns=wire.enqueued_at_sec * SECOND_NS + wire.enqueued_at_nanosec,
        attempts=wire.attempts,
        redelivered=bool(wire.redelivered),
        dead_letter_from=wire.dead_letter_from,
        dead_letter_reason=wire.dead_letter_reason,
        flags=wire.flags,
        source_guid=Guid(bytes(wire.source_guid.value)),
        related_source_guid=Guid(bytes(wire.related_source_guid.value)),
        related_identity=identity_from_wire(wire.related_identity),
        related_reader_guid=Guid(bytes(wire.related_reader_guid.value)),
        expires_at_ns=INFINITE_NS
        if wire.expires_at_high < 0
        else sequence_number_from_pair(wire.expires_at_high, wire.expires_at_low),
        incarnation=Incarnation(sequence_number_from_pair(wire.incarnation_high, wire.incarnation_low)),
        dead_letter_position=sequence_number_from_pair(wire.dead_letter_position_high, wire.dead_letter_position_low),
        dead_letter_incarnation=Incarnation(
            sequence_number_from_pair(wire.dead_letter_incarnation_high, wire.dead_letter_incarnation_low)
        ),
    )


def dead_letter_octets(queue_name: str, identity: SampleIdentity, reason: int, payload: bytes) -> bytes:
    """Return the octets of a `DeadLetter_t` [QS 2.12]: the payload of a dead letter on its way to a consumer."""
    letter = WireDeadLetter(
        queue_name, wire_identity(identity), UndeliveredReasonKind(reason), WireSampleBuffer(payload)
    )
    return octets_of(letter)


class DeadLetter(msgspec.Struct, frozen=True):
    """The content of a `DeadLetter_t`: where the sample came from and why it was not delivered."""

    queue_name: str
    identity: SampleIdentity
    reason: str
    payload: bytes


def dead_letter_from_octets(octets: bytes) -> DeadLetter:
    """Return the inverse of `dead_letter_octets`.

    Raises:
        Malformed: the octets are not a `DeadLetter_t`.
    """
    wire = read_wire(WireDeadLetter, octets)
    return DeadLetter(
        wire.queue_name,
        identity_from_wire(wire.sample_identity),
        wire.undelivered_reason.name,
        bytes(wire.sample_buffer.value),
    )


def _wire_metrics(metrics: StatisticMetrics) -> IdlStruct:
    return monitoring_value("Monitoring::StatisticMetrics", *msgspec.structs.astuple(metrics))


def _wire_variable(variable: StatisticVariable) -> IdlStruct:
    return monitoring_value(
        "Monitoring::StatisticVariable",
        _wire_metrics(variable.publication_period_metrics),
        [_wire_metrics(each) for each in variable.historical_metrics],
    )


def _variable_from_wire(wire: Any) -> StatisticVariable:
    return StatisticVariable(
        _metrics_from_wire(wire.publication_period_metrics),
        tuple(_metrics_from_wire(each) for each in wire.historical_metrics),
    )


def _metrics_from_wire(wire: Any) -> StatisticMetrics:
    return StatisticMetrics(wire.period_ms, wire.count, wire.mean, wire.minimum, wire.maximum, wire.std_dev)
