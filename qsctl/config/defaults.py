"""Every default of the manual with the section that states it.

Decides: what a value is when a file does not say. The settings' own defaults are the same; a test holds it.
QoS defaults are changes to the DDS library's, as canonical XML; a transport lays them under what a file says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from qsctl.config.filesystem import JournalMode, Synchronization, Vacuum
from qsctl.core.queue.settings import UNLIMITED, DistributionKind, PersistenceKind, ReplacementKind
from qsctl.instant import INFINITE_NS, MILLISECOND_NS, SECOND_NS

Value = TypeVar("Value", covariant=True)


@dataclass(frozen=True, slots=True)
class Default(Generic[Value]):
    """A value and where the manual states it."""

    value: Value
    section: str


MONITORING_ENABLED: Final = Default(True, "Table 3.5")
STATUS_PUBLICATION_PERIOD: Final = Default(5 * SECOND_NS, "Table 3.5")
ENTITY_MONITORING_ENABLED: Final = Default(True, "Table 3.6")
HISTORICAL_WINDOW: Final = Default(False, "Table 3.7")
STATISTICS_SAMPLING_PERIOD: Final = Default(SECOND_NS, "Table 3.7")

REPLY_BUFFER_MIN_SIZE: Final = Default(32768, "section 3.3.3.1")
REPLY_BUFFER_TRIM_TO_SIZE: Final = Default(False, "section 3.3.3.1")
DISTRIBUTED_LOGGER_ENABLED: Final = Default(True, "section 3.5")
"""Inside the tag; without the tag the logger is off."""

DIRECTORY: Final = Default("", "Table 3.9")
FILE_MAX_SIZE: Final = Default(1000, "Table 3.9")
FILE_PREFIX: Final = Default("QS", "Table 3.9")
JOURNAL_MODE: Final = Default(JournalMode.DELETE, "Table 3.9")
SYNCHRONIZATION: Final = Default(Synchronization.OFF, "Table 3.9")
TRACE_FILE: Final = Default("", "Table 3.9")
VACUUM: Final = Default(Vacuum.FULL, "Table 3.9")

SERVICE_PERSISTENCE_KIND: Final = Default(PersistenceKind.VOLATILE, "Table 3.3")
SERVICE_PERSISTENCE_RESTORE: Final = Default(True, "Table 3.3")

SAMPLE_BUFFER_MIN_SIZE: Final = Default(256, "section 3.3.6.1")
SAMPLE_BUFFER_TRIM_TO_SIZE: Final = Default(True, "section 3.3.6.1")

DEQUEUE_PERIOD: Final = Default(10 * MILLISECOND_NS, "Table 3.13")
THREAD_MASK: Final = Default("MASK_DEFAULT", "Table 3.13")
THREAD_PRIORITY: Final = Default("THREAD_PRIORITY_DEFAULT", "Table 3.13")
THREAD_STACK_SIZE: Final = Default("THREAD_STACK_SIZE_DEFAULT", "Table 3.13")

REPLY_TOPIC_SUFFIX: Final = Default("Reply", "Table 3.14")

DISTRIBUTION_KIND: Final = Default(DistributionKind.ROUND_ROBIN, "Table 3.15")
UNACKED_THRESHOLD: Final = Default(UNLIMITED, "Table 3.15")
ALLOW_CONSUMER_FEEDBACK: Final = Default(False, "Table 3.15")
MARK_LAST_UNDELIVERED_SAMPLE: Final = Default(False, "Table 3.15")
LIFESPAN: Final = Default(INFINITE_NS, "Table 3.15")
QUEUE_PERSISTENCE_KIND: Final = Default(PersistenceKind.VOLATILE, "Table 3.15")
IN_MEMORY_STATE: Final = Default(True, "Table 3.15")
QUEUE_RESTORE: Final = Default(True, "section 2.14.2.1")
MAX_DELIVERY_RETRIES: Final = Default(0, "Table 3.15")
RESPONSE_TIMEOUT: Final = Default(INFINITE_NS, "Table 3.15")
APP_ACK_SAMPLE_TO_PRODUCER: Final = Default(True, "Table 3.15")

INITIAL_COUNT: Final = Default(1, "section 2.15.1.1")
MAX_COUNT: Final = Default(UNLIMITED, "section 2.15.1.1")
INCREMENTAL_COUNT: Final = Default(-1, "section 2.15.1.1")
MAX_IN_MEMORY_BYTES: Final = Default(UNLIMITED, "section 2.15.1.2")
WATERMARK: Final = Default(None, "section 2.15.3")
REPLACEMENT: Final = Default(ReplacementKind.REJECT_WITHOUT_REPLACEMENT, "section 2.15.4")

REPLICATION_OFF: Final = Default(False, "section 7.1.3")
"""Without any replication tag."""
REPLICATION_ENABLED: Final = Default(True, "Tables 7.1 and 7.2")
"""Inside a replication tag."""
CONFIGURATION_REPLICATION_ENABLED: Final = Default(True, "Table 7.4")
QUEUE_INSTANCES: Final = Default(2, "Table 7.3")
MASTER_TIMEOUT: Final = Default(5 * SECOND_NS, "Table 7.3")
SYNCHRONIZE_CONSUMER_ASSIGNMENT: Final = Default(False, "Table 7.3")
SAMPLE_TIMEOUT: Final = Default(7 * SECOND_NS, "Table 7.3")

_RELIABLE = "<reliability><kind>RELIABLE_RELIABILITY_QOS</kind></reliability>"
_KEEP_ALL = "<history><kind>KEEP_ALL_HISTORY_QOS</kind></history>"
_SERVICE = "<service><kind>QUEUING_SERVICE_QOS</kind></service>"
_EXPLICIT = "APPLICATION_EXPLICIT_ACKNOWLEDGMENT_MODE"
_RELIABLE_EXPLICIT = (
    f"<reliability><acknowledgment_kind>{_EXPLICIT}</acknowledgment_kind>"
    "<kind>RELIABLE_RELIABILITY_QOS</kind></reliability>"
)
_MAX_32 = "<resource_limits><max_samples>32</max_samples></resource_limits>"

QOS_DEFAULTS: Final[dict[tuple[str, str], Default[str]]] = {
    ("administration", "datareader_qos"): Default(
        f"<datareader_qos>{_KEEP_ALL}{_RELIABLE}{_MAX_32}</datareader_qos>", "Table 3.4"
    ),
    ("administration", "datawriter_qos"): Default(
        f"<datawriter_qos>{_KEEP_ALL}{_MAX_32}</datawriter_qos>", "Table 3.4"
    ),
    ("monitoring", "datawriter_qos"): Default(
        "<datawriter_qos><durability><kind>TRANSIENT_LOCAL_DURABILITY_QOS</kind></durability></datawriter_qos>",
        "Table 3.5",
    ),
    ("monitoring", "participant_qos"): Default(
        "<participant_qos><resource_limits><type_code_max_serialized_length>4096</type_code_max_serialized_length>"
        "</resource_limits></participant_qos>",
        "Table 3.5",
    ),
    ("shared_reader_queue", "datareader_qos"): Default(
        f"<datareader_qos>{_KEEP_ALL}<reader_resource_limits><max_app_ack_response_length>1</max_app_ack_response_length>"
        f"</reader_resource_limits>{_RELIABLE_EXPLICIT}{_SERVICE}"
        "<subscription_name><role_name>QUEUING_SERVICE</role_name></subscription_name></datareader_qos>",
        "Table 3.14",
    ),
    ("shared_reader_queue", "datawriter_qos"): Default(
        f"<datawriter_qos>{_KEEP_ALL}{_RELIABLE_EXPLICIT}{_SERVICE}</datawriter_qos>", "Table 3.14"
    ),
    ("shared_reader_queue", "update_datareader_qos"): Default(
        f"<update_datareader_qos>{_KEEP_ALL}{_RELIABLE}</update_datareader_qos>", "Table 3.14"
    ),
    ("shared_reader_queue", "update_datawriter_qos"): Default(
        f"<update_datawriter_qos>{_KEEP_ALL}{_RELIABLE}</update_datawriter_qos>", "Table 3.14"
    ),
}
"""By the tag that holds the QoS element and the element's own tag. Dead-letter queues have those of queues."""

QOS_FIXED: Final[dict[tuple[str, str], dict[str, str]]] = {
    ("administration", "datareader_qos"): {"reliability/kind": "RELIABLE_RELIABILITY_QOS"},
    ("shared_reader_queue", "datareader_qos"): {
        "reliability/kind": "RELIABLE_RELIABILITY_QOS",
        "history/kind": "KEEP_ALL_HISTORY_QOS",
        "service/kind": "QUEUING_SERVICE_QOS",
    },
    ("shared_reader_queue", "datawriter_qos"): {
        "reliability/kind": "RELIABLE_RELIABILITY_QOS",
        "reliability/acknowledgment_kind": _EXPLICIT,
        "history/kind": "KEEP_ALL_HISTORY_QOS",
        "service/kind": "QUEUING_SERVICE_QOS",
    },
    ("shared_reader_queue", "update_datareader_qos"): {
        "reliability/kind": "RELIABLE_RELIABILITY_QOS",
        "history/kind": "KEEP_ALL_HISTORY_QOS",
    },
    ("shared_reader_queue", "update_datawriter_qos"): {
        "reliability/kind": "RELIABLE_RELIABILITY_QOS",
        "history/kind": "KEEP_ALL_HISTORY_QOS",
    },
}
"""Values that a file cannot change (Tables 3.4 and 3.14)."""


def qos_holder(tag: str) -> str:
    """The key of QOS_DEFAULTS for a tag that holds QoS: dead-letter queues count as queues."""
    return "shared_reader_queue" if tag == "dead_letter_shared_reader_queue" else tag


_MAPPED_POLICIES: Final = frozenset(
    {"deadline", "destination_order", "durability", "latency_budget", "liveliness", "ownership"}
)
MAPPED_POLICIES: Final = {
    "datareader_qos": _MAPPED_POLICIES | {"time_based_filter"},
    "datawriter_qos": _MAPPED_POLICIES | {"lifespan", "transport_priority"},
}
"""What a file may set at an endpoint of delivery."""

FIXED_POLICIES: Final = frozenset(
    {"reliability", "history", "service", "publication_name", "subscription_name", "reader_resource_limits"}
)
"""Delivery sets these itself; files name them with the values that delivery has anyway."""
