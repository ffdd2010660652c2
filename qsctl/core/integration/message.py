"""A message of the integration engine, with its members as the recovery and error databases store them.

Decides: the members, and the numbers of the states in listings for operators. The queues of route details and of
partial results have no number in listings; such a message is listed as in translation, see `State.code`.
"""

from __future__ import annotations

import re
from enum import IntEnum, IntFlag, unique
from typing import Final, NamedTuple

import msgspec

from qsctl.errors import UsageError
from qsctl.instant import Nanoseconds

PRIORITY_DEFAULT: Final = 5120
"""Priority of a message that states none. Higher numbers are processed first."""
PRIORITY_MIN: Final = 0
PRIORITY_MAX: Final = 65_535


class MessageId(NamedTuple):
    """`[x.y.z]`: the site, the engine's start that assigned the id, and a number within that start.

    Ids sort in the order of their assignment.
    """

    site: int
    start: int
    number: int

    def __str__(self) -> str:
        return f"[{self.site}.{self.start}.{self.number}]"


NIL_ID: Final = MessageId(0, 0, 0)
"""The id of no message."""

_ID: Final = re.compile(r"\[?(\d{1,18})\.(\d{1,18})\.(\d{1,18})\]?")


def parse_id(text: str) -> MessageId:
    """Parse an id, `x.y.z` or `[x.y.z]`.

    Raises:
        UsageError: the text is not an id.
    """
    match = _ID.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a message id", remedy="Write three whole numbers, as in 0.1.42.")
    return MessageId(*map(int, match.groups()))


@unique
class State(IntEnum):
    """The state of a message. 1 to 20 are the numbers of the listings."""

    INBOUND_PRE_TPS = 1
    INBOUND_POST_TPS = 2
    SENT_TO_TRANSLATION = 3
    """In transit by ICL."""
    STAGED_AT_TRANSLATION = 4
    """Used in listings of other engines only: here a message is in transit until it is in the queue."""
    PRE_TRANSLATION = 5
    IN_TRANSLATION = 6
    POST_TRANSLATION = 7
    SENT_TO_DESTINATION = 8
    """In transit by ICL."""
    STAGED_AT_DESTINATION = 9
    """Used in listings of other engines only, as STAGED_AT_TRANSLATION."""
    OUTBOUND_PRE_TPS = 10
    OUTBOUND_POST_TPS = 11
    FORWARD_PRE_TPS = 12
    FORWARD_POST_TPS = 13
    DELIVERED = 14
    FAILED_DELIVERY = 15
    RESERVED_FOR_REPLY = 16
    PRE_WRITE = 17
    """Being written to its connection: after a crash it is unknown whether it arrived."""
    UNBACKED = 18
    JAVA_INBOUND = 19
    JAVA_OUTBOUND = 20
    ROUTE_DETAIL = 60
    PARTIAL = 61

    @property
    def code(self) -> int:
        """Return the number of the state in a listing."""
        return State.IN_TRANSLATION if self in _INSIDE_TRANSLATION else int(self)


_INSIDE_TRANSLATION: Final = frozenset({State.ROUTE_DETAIL, State.PARTIAL})

STATE_NAMES: Final[dict[State, str]] = {
    State.INBOUND_PRE_TPS: "inbound pre-TPS",
    State.INBOUND_POST_TPS: "inbound post-TPS",
    State.SENT_TO_TRANSLATION: "sent by ICL to translation",
    State.STAGED_AT_TRANSLATION: "staged at translation",
    State.PRE_TRANSLATION: "pre-translation",
    State.IN_TRANSLATION: "in translation",
    State.POST_TRANSLATION: "post-translation",
    State.SENT_TO_DESTINATION: "sent by ICL to destination",
    State.STAGED_AT_DESTINATION: "staged at destination",
    State.OUTBOUND_PRE_TPS: "outbound pre-TPS",
    State.OUTBOUND_POST_TPS: "outbound post-TPS",
    State.FORWARD_PRE_TPS: "forward pre-TPS",
    State.FORWARD_POST_TPS: "forward post-TPS",
    State.DELIVERED: "delivered",
    State.FAILED_DELIVERY: "failed delivery",
    State.RESERVED_FOR_REPLY: "outbound reserved for an inbound reply",
    State.PRE_WRITE: "outbound pre-write",
    State.UNBACKED: "unbacked",
    State.JAVA_INBOUND: "Java protocol, inbound",
    State.JAVA_OUTBOUND: "Java protocol, outbound",
    State.ROUTE_DETAIL: "route detail",
    State.PARTIAL: "partial",
}
"""The states in words; the state of a queue's messages is also the queue's name."""


class MessageType(IntEnum):
    """The type of a message for its thread."""

    UNKNOWN = 0
    DATA = 1
    REPLY = 2


class MessageClass(IntEnum):
    """The class of a message: carried for other systems, or a protocol driver's own."""

    ENGINE = 0
    PROTOCOL = 1


class Flag(IntFlag):
    """The flags of a message."""

    NONE = 0
    USERDB = 1
    """It is in the recovery database from its arrival to its end."""
    KEEPONDISK = 2
    """Its data should be on disk instead of in memory."""
    ISONDISK = 4
    """Its data is on disk."""
    SKIPXLT = 8
    """It skips translation and is sent to `destination` (disposition SEND)."""
    REROUTED = 16
    """It waits in the partial queue to be routed again by another transaction id (disposition REROUTE)."""
    POSSIBLE_DUPLICATE = 32
    """It was being delivered when the engine was interrupted: its destination may have received it."""
    RESENT = 64
    """An operator resent it."""


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One version of a message, as stored in a database; each stage creates the next.

    `serial` is the number of its copy in the databases; a copy that replaces another has a new one. A copy counts only
    once the copy with the serial `replaces` is removed from both databases, and the one with the serial `results_from`
    from the recovery database: so the last record of a change of several records commits it.
    """

    serial: int
    mid: MessageId
    source_mid: MessageId
    """The id of the inbound message from which it resulted; equal to `mid` for an inbound message."""
    state: State
    position: int
    """Its position in its queue, lower first within a priority; kept while it is in transit or in translation."""
    process: str
    """The process whose memory holds it."""
    owner: str
    """The thread in whose queue it is; in post-translation, its destination."""
    source: str
    """The thread by which it arrived."""
    destination: str
    """The thread by which it leaves; empty until it is routed."""
    priority: int = PRIORITY_DEFAULT
    type: MessageType = MessageType.DATA
    message_class: MessageClass = MessageClass.ENGINE
    transaction_id: str = ""
    flags: Flag = Flag.NONE
    created_at_ns: Nanoseconds = 0
    """Instant at which its inbound message arrived."""
    entered_at_ns: Nanoseconds = 0
    """Instant at which it entered its present state, or failed."""
    outbound_at_ns: Nanoseconds = 0
    """Instant at which it reached its outbound thread; 0: not yet."""
    forwards: int = 0
    attempts: int = 0
    """Number of failed deliveries, or of procedure runs that ended with RETRY."""
    turns: int = 0
    """Number of times that OVER or REROUTE sent it back."""
    error: int = 0
    """Its error code in the error database; 0: it is not there."""
    error_text: str = ""
    user_data: str = ""
    results_from: int = 0
    replaces: int = 0
    payload: bytes = b""

    @property
    def size_bytes(self) -> int:
        """Return the length of its data."""
        return len(self.payload)

    @property
    def is_error(self) -> bool:
        """Return whether it belongs in the error database."""
        return self.error != 0

    @property
    def queue_name(self) -> str:
        """Return its state in words."""
        return STATE_NAMES[self.state]
