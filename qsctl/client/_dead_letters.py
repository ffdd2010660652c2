"""Decoding of dead letters over DDS: a `DeadLetter_t` that contains the sample [QS 2.12]."""

from __future__ import annotations

import msgspec

from qsctl.core.messages import Delivery
from qsctl.core.records import DeadLetterReason
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.wire.bodies import dead_letter_from_octets


def opened(delivery: Delivery) -> Delivery:
    """Return the delivery with the sample in its dead letter; unreadable octets are returned unchanged."""
    try:
        dead_letter = dead_letter_from_octets(delivery.payload or b"")
    except Malformed:
        return delivery
    return msgspec.structs.replace(
        delivery,
        payload=dead_letter.payload,
        dead_letter_from=dead_letter.queue_name,
        dead_letter_reason=DeadLetterReason[dead_letter.reason],
        dead_letter_identity=dead_letter.identity,
    )
