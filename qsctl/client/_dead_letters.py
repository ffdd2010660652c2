"""Dead letters as they come over DDS: a `DeadLetter_t` with the sample inside [QS 2.12]."""

from __future__ import annotations

import msgspec

from qsctl.core.messages import Delivery
from qsctl.core.records import DeadLetterReason
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.wire.bodies import dead_letter_from_octets


def opened(delivery: Delivery) -> Delivery:
    """Return the delivery with the sample of its dead letter; one that cannot be read stays the octets that it is."""
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
