"""The types and topics of `schemas/qsctl_queue.idl`.

They follow the IDL exactly. Both versions of CDR align all members in the same way, so `_octets` has one layout for
both.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from qsctl.transport.dds.wire.idl_classes import idl_class

PREFIX: Final = "qsctl/"
"""Prefix of the names of the IDL's topics."""

_IDL: Final = "schemas/qsctl_queue.idl"

PlainMessage = Literal["Delivery", "Acknowledgment", "Availability", "Write", "WriteAcknowledgment"]
"""Structs of the IDL that have a topic."""


def plain_class(name: PlainMessage) -> type[Any]:
    """Return the class of a topic's type."""
    return idl_class(_IDL, f"qsctl::{name}")


def write_topic(topic_name: str) -> str:
    """Return the topic to which producers write numbered samples, requests and replies."""
    return f"{PREFIX}{topic_name}/write"


def write_acknowledgment_topic(topic_name: str) -> str:
    """Return the topic on which producers that request it receive acknowledgments of their samples."""
    return f"{PREFIX}{topic_name}/write_acknowledgment"


def delivery_topic(topic_name: str, subscriber: str) -> str:
    """Return the topic on which consumers receive samples."""
    return f"{PREFIX}{topic_name}/{subscriber}/delivery"


def acknowledgment_topic(topic_name: str, subscriber: str) -> str:
    """Return the topic to which consumers write their acknowledgments and rejections."""
    return f"{PREFIX}{topic_name}/{subscriber}/acknowledgment"


def availability_topic(topic_name: str, subscriber: str) -> str:
    """Return the topic to which consumers write the number of samples that they accept."""
    return f"{PREFIX}{topic_name}/{subscriber}/availability"
