"""The settings of a shared reader queue [QS Tables 3.14 to 3.16; 2.15].

Frozen dataclasses with the defaults of [QS 3], in nanoseconds, octets and counts. `config/_build.py` creates them from
XML. Two queues have the same configuration if their settings are equal ([QS 5.4.1]: DUPLICATED against ALREADY_EXISTS).

A field that is declared by `_in_place` can be changed while its queue works, see `core.queue.change`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from qsctl.instant import INFINITE_NS, MILLISECOND_NS, SECOND_NS, Nanoseconds

UNLIMITED: Final = -1
"""LENGTH_UNLIMITED, and the unlimited threshold -1 of [QS 2.10.1]."""


SIZE_BYTES_MAX: Final = (1 << 63) - 1
"""Size of the largest possible payload."""

IN_PLACE: Final = "in place"
"""Key of a field's metadata: whether the field can be changed while its queue works."""


def _in_place(default: Any) -> Any:
    """Declare a field with this default that can be changed while its queue works."""
    return field(default=default, metadata={IN_PLACE: True})


class DistributionKind(StrEnum):
    """Dispatch policies; [QS Table 3.15] has only one."""

    ROUND_ROBIN = "ROUND_ROBIN"


class PersistenceKind(StrEnum):
    """The persistence of samples: whether they outlive the service [QS 2.14.2]."""

    VOLATILE = "VOLATILE"
    PERSISTENT = "PERSISTENT"


class ReplacementKind(StrEnum):
    """The policy for a sample that finds the queue full [QS 2.15.4]."""

    REJECT_WITHOUT_REPLACEMENT = "REJECT_WITHOUT_REPLACEMENT"
    WAIT_WITHOUT_REPLACEMENT = "WAIT_WITHOUT_REPLACEMENT"


@dataclass(frozen=True, slots=True)
class DistributionSettings:
    """`<distribution>` [QS Table 3.15, 2.10]."""

    kind: DistributionKind = DistributionKind.ROUND_ROBIN
    unacked_threshold: int = _in_place(UNLIMITED)
    """A consumer is eligible while its outstanding samples are at most this number; -1: always."""
    allow_consumer_feedback: bool = False
    mark_last_undelivered_sample: bool = _in_place(default=False)


@dataclass(frozen=True, slots=True)
class RedeliverySettings:
    """`<redelivery>` [QS Table 3.15]; the first delivery is not a retry, so attempts = retries + 1."""

    max_delivery_retries: int = _in_place(0)
    response_timeout_ns: Nanoseconds = _in_place(INFINITE_NS)


@dataclass(frozen=True, slots=True)
class PersistenceSettings:
    """`<persistence>` of a queue [QS Table 3.15, 2.14.2]."""

    kind: PersistenceKind = PersistenceKind.VOLATILE
    in_memory_state: bool = True
    restore: bool = True


@dataclass(frozen=True, slots=True)
class ResourceLimitSettings:
    """`<resource_limits>` [QS 2.15]. Watermarks are percentages of the limits; None: not set."""

    initial_count: int = _in_place(1)
    max_count: int = _in_place(UNLIMITED)
    incremental_count: int = _in_place(-1)
    max_in_memory_bytes: int = _in_place(UNLIMITED)
    max_sample_bytes: int = _in_place(UNLIMITED)
    high_watermark_percent: int | None = _in_place(None)
    low_watermark_percent: int | None = _in_place(None)
    replacement: ReplacementKind = _in_place(ReplacementKind.REJECT_WITHOUT_REPLACEMENT)
    waiting_count_max: int = _in_place(UNLIMITED)
    """Number of samples that may wait outside a full queue: `<datareader_qos>/<resource_limits>/<max_samples>`."""

    @property
    def sample_size_bytes_max(self) -> int:
        """Return the size of the largest payload that is enqueued even into an empty queue."""
        return SIZE_BYTES_MAX if self.max_sample_bytes < 0 else self.max_sample_bytes


@dataclass(frozen=True, slots=True)
class SampleBufferSettings:
    """`<memory_management>` of the domain participant [QS 3.3.6.1]."""

    min_size_bytes: int = 256
    trim_to_size: bool = True


@dataclass(frozen=True, slots=True)
class HistoricalStatistics:
    """`<historical_statistics>` [QS Table 3.7]; a window that is not configured is off."""

    five_second: bool = False
    one_minute: bool = False
    five_minute: bool = False
    one_hour: bool = False
    up_time: bool = False


@dataclass(frozen=True, slots=True)
class StatisticsSettings:
    """`<statistics>` [QS Table 3.7] with inherited values resolved for the queue."""

    sampling_period_ns: Nanoseconds = SECOND_NS
    historical: HistoricalStatistics = HistoricalStatistics()


@dataclass(frozen=True, slots=True)
class MonitoringSettings:
    """`<entity_monitoring>` [QS Table 3.6] with inherited values resolved for the queue."""

    enabled: bool = False
    status_publication_period_ns: Nanoseconds = 5 * SECOND_NS


@dataclass(frozen=True, slots=True)
class ReplicationSettings:
    """`<replication_settings>` [QS Table 7.3] with inherited values resolved for the queue."""

    enabled: bool = False
    queue_instances: int = 2
    master_timeout_ns: Nanoseconds = 5 * SECOND_NS
    synchronize_consumer_assignment: bool = False
    sample_timeout_ns: Nanoseconds = 7 * SECOND_NS


@dataclass(frozen=True, slots=True)
class SharedReaderQueueSettings:
    """A `<shared_reader_queue>` or `<dead_letter_shared_reader_queue>` with all inherited values resolved.

    `app_ack_sample_to_producer` is the reliability of [QS Table 3.15]. `dead_letter_queue` is the `name` of a queue of
    the same subscriber; empty: none. An `is_dead_letter` queue holds `DeadLetter_t` and has neither `type_name` nor
    `reply_type` [QS 3.3.11]. `qos` contains the DDS QoS elements of the queue as canonical XML text by tag name; only a
    transport reads them.
    """

    name: str
    topic_name: str
    type_name: str = ""
    reply_type: str = ""
    reply_topic: str = ""
    session: str = ""
    dead_letter_queue: str = ""
    is_dead_letter: bool = False
    distribution: DistributionSettings = DistributionSettings()
    lifespan_ns: Nanoseconds = _in_place(INFINITE_NS)
    redelivery: RedeliverySettings = RedeliverySettings()
    persistence: PersistenceSettings = PersistenceSettings()
    app_ack_sample_to_producer: bool = True
    limits: ResourceLimitSettings = ResourceLimitSettings()
    sample_buffer: SampleBufferSettings = SampleBufferSettings()
    statistics: StatisticsSettings = StatisticsSettings()
    monitoring: MonitoringSettings = MonitoringSettings()
    replication: ReplicationSettings = ReplicationSettings()
    qos: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """A `<session>` [QS Table 3.13]: the threads and dequeue period that its queues share."""

    name: str
    dequeue_period_ns: Nanoseconds = 10 * MILLISECOND_NS
    thread_mask: str = "MASK_DEFAULT"
    thread_priority: str = "THREAD_PRIORITY_DEFAULT"
    thread_stack_size: str = "THREAD_STACK_SIZE_DEFAULT"
