"""QoS policies of a queue's endpoints that the DDS library lacks: the service runs without them, with a notice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lxml import etree

from qsctl.config.files.schema_model import schema_model
from qsctl.config.qos_libraries.qos import entity_tag
from qsctl.config.rules._place import QueuePlace
from qsctl.config.tables.qos import FIXED_POLICIES, MAPPED_POLICIES
from qsctl.declared.problems import Problem

DELIVERY_TAGS: Final = ("datareader_qos", "datawriter_qos", "update_datareader_qos", "update_datawriter_qos")
"""The elements of a queue that reach its endpoints, or those of its replica."""


def policies_without_equivalent_are_said(place: QueuePlace) -> Iterator[Problem]:
    """Find a policy that Cyclone DDS does not have: it changes nothing [QS Table 3.14]."""
    model = schema_model()
    for tag in DELIVERY_TAGS:
        if tag.startswith("update_") and not place.given(tag) and not place.queue.replication.enabled:
            continue  # a default profile alone gives it to a queue that has no replica
        kind = entity_tag(tag)
        known = model.elements[kind].children
        text = place.queue.qos.get(tag, "")
        for policy in etree.fromstring(text) if text.strip() else ():
            name = str(policy.tag)
            # What the schema does not know either, it has named itself.
            if name in known and name not in {"property", *MAPPED_POLICIES[kind], *FIXED_POLICIES}:
                yield place.warning(
                    f"{tag}/{name}",
                    f"<{name}> of <{tag}> is not used",
                    found=f"<{name}>",
                    allowed="Cyclone DDS has no such policy, or delivery sets it itself",
                    suggestion="`qsctl serve` runs without it.",
                )
