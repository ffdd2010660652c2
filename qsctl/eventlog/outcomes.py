"""The outcomes of messages, and which of them are losses: one list, used for all figures and outputs.

Conservation: each message that was published to a queue, and is not a duplicate, has one outcome. So `arrived_messages`
is the sum of delivered, elided, every loss, `length_messages` and `waiting_messages`, where no warm-up cuts the
observation.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, TypeVar


class Outcome(StrEnum):
    """The outcome of a message.

    `held`: in its queue when the run ended; a guaranteed message stays in G-1 until the client has acknowledged it,
    with the times of its sending if it was sent. `waiting`: accepted by the broker, but not in its queue then: a
    guaranteed message at its endpoint (not sent to G-1 yet, or returned from it), or a sample in the reader cache of a
    full queue.
    """

    DELIVERED = "delivered"
    DISCARDED = "discarded"
    """By the queue's limit: Egress Congestion Discards; TIBCO's Transmit Congestion--Slow Consumer."""
    ELIDED = "elided"
    """Replaced by a newer message of its topic, which is not a loss."""
    EXPIRED = "expired"
    DEAD = "dead"
    HELD = "held"
    WAITING = "waiting"
    NOT_CONNECTED = "not_connected"
    """A direct message that arrived while its client was disconnected."""
    DISCONNECTED = "disconnected"
    """A direct message in a queue of a client that disconnected."""
    SPOOL_REFUSED = "spool_refused"
    """A guaranteed message that its full or congested endpoint refused."""
    INGRESS_REFUSED = "ingress_refused"
    """Refused at ingress: its publisher's part of the ingress buffers was full."""
    TOO_BIG = "too_big"
    """Refused at ingress: larger than the broker's largest message."""
    REJECTED = "rejected"
    """A guaranteed message that the application of its consumer rejected: it is not delivered again."""


LOSSES: Final = (
    Outcome.DISCARDED,
    Outcome.NOT_CONNECTED,
    Outcome.DISCONNECTED,
    Outcome.SPOOL_REFUSED,
    Outcome.INGRESS_REFUSED,
    Outcome.TOO_BIG,
    Outcome.EXPIRED,
    Outcome.DEAD,
    Outcome.REJECTED,
)
"""A message with one of these never reaches its client."""

DISCARDS: Final = LOSSES[:6]
"""The losses by which a broker discards a message: the first of them is `first_discard_ns`."""


def column_of(outcome: Outcome) -> str:
    """Return the name of the outcome's counter, such as `discarded_messages`."""
    return f"{outcome.value}_messages"


LOSS_COLUMNS: Final = tuple(column_of(outcome) for outcome in LOSSES)

Number = TypeVar("Number")
"""A number of messages, or an array of them."""


def loss_ratio(lost: Number, delivered: Number, elided: Number) -> Any:
    """Return the fraction of lost messages among those lost, delivered or elided; 0 without any.

    Messages held or waiting when the run ends may still be delivered, and do not count.
    """
    ended: Any = lost + delivered + elided  # type: ignore[operator]
    return lost / (ended + (ended == 0))


LOSS_WORDS: Final = {
    Outcome.DISCARDED: "egress congestion",
    Outcome.NOT_CONNECTED: "client not connected",
    Outcome.DISCONNECTED: "client disconnected",
    Outcome.SPOOL_REFUSED: "endpoint full or congested",
    Outcome.INGRESS_REFUSED: "ingress rate",
    Outcome.TOO_BIG: "message too big",
    Outcome.EXPIRED: "expired",
    Outcome.DEAD: "delivery attempts spent",
    Outcome.REJECTED: "rejected by the application",
}
"""Each loss in an operator's words."""
