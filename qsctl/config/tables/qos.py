"""QoS that [QS] states for the service's own entities: defaults, fixed values, and what Cyclone DDS has of the rest.

Defaults are changes to the DDS library's, as canonical XML; a transport lays them under what a file gives.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class QosDefault(NamedTuple):
    """A QoS element and where it is stated."""

    text: str
    section: str


_RELIABLE = "<reliability><kind>RELIABLE_RELIABILITY_QOS</kind></reliability>"
_KEEP_ALL = "<history><kind>KEEP_ALL_HISTORY_QOS</kind></history>"
_SERVICE = "<service><kind>QUEUING_SERVICE_QOS</kind></service>"
_EXPLICIT = "APPLICATION_EXPLICIT_ACKNOWLEDGMENT_MODE"
_RELIABLE_EXPLICIT = (
    f"<reliability><acknowledgment_kind>{_EXPLICIT}</acknowledgment_kind>"
    "<kind>RELIABLE_RELIABILITY_QOS</kind></reliability>"
)
_MAX_32 = "<resource_limits><max_samples>32</max_samples></resource_limits>"

QOS_DEFAULTS: Final[dict[tuple[str, str], QosDefault]] = {
    ("administration", "datareader_qos"): QosDefault(
        f"<datareader_qos>{_KEEP_ALL}{_RELIABLE}{_MAX_32}</datareader_qos>", "Table 3.4"
    ),
    ("administration", "datawriter_qos"): QosDefault(
        f"<datawriter_qos>{_KEEP_ALL}{_MAX_32}</datawriter_qos>", "Table 3.4"
    ),
    ("monitoring", "datawriter_qos"): QosDefault(
        "<datawriter_qos><durability><kind>TRANSIENT_LOCAL_DURABILITY_QOS</kind></durability></datawriter_qos>",
        "Table 3.5",
    ),
    ("monitoring", "participant_qos"): QosDefault(
        "<participant_qos><resource_limits><type_code_max_serialized_length>4096</type_code_max_serialized_length>"
        "</resource_limits></participant_qos>",
        "Table 3.5",
    ),
    ("shared_reader_queue", "datareader_qos"): QosDefault(
        f"<datareader_qos>{_KEEP_ALL}<reader_resource_limits><max_app_ack_response_length>1</max_app_ack_response_length>"
        f"</reader_resource_limits>{_RELIABLE_EXPLICIT}{_SERVICE}"
        "<subscription_name><role_name>QUEUING_SERVICE</role_name></subscription_name></datareader_qos>",
        "Table 3.14",
    ),
    ("shared_reader_queue", "datawriter_qos"): QosDefault(
        f"<datawriter_qos>{_KEEP_ALL}{_RELIABLE_EXPLICIT}{_SERVICE}</datawriter_qos>", "Table 3.14"
    ),
    ("shared_reader_queue", "update_datareader_qos"): QosDefault(
        f"<update_datareader_qos>{_KEEP_ALL}{_RELIABLE}</update_datareader_qos>", "Table 3.14"
    ),
    ("shared_reader_queue", "update_datawriter_qos"): QosDefault(
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
"""Values that a file cannot change [QS Tables 3.4 and 3.14]."""


def qos_holder(tag: str) -> str:
    """Return the key of QOS_DEFAULTS for a tag that holds QoS: dead-letter queues count as queues."""
    return "shared_reader_queue" if tag == "dead_letter_shared_reader_queue" else tag


_MAPPED_POLICIES: Final = frozenset(
    {"deadline", "destination_order", "durability", "latency_budget", "liveliness", "ownership"}
)
MAPPED_POLICIES: Final = {
    "datareader_qos": _MAPPED_POLICIES | {"time_based_filter"},
    "datawriter_qos": _MAPPED_POLICIES | {"lifespan", "transport_priority"},
}
"""Policies that a file may set at an endpoint of delivery."""

FIXED_POLICIES: Final = frozenset(
    {"reliability", "history", "service", "publication_name", "subscription_name", "reader_resource_limits"}
)
"""Delivery sets these itself; files name them with the values that delivery has anyway."""
