"""The transitions between the states of a message [CLOVERLEAF].

Only `HeldMessage.move` assigns a state, and it takes the next one from `TRANSITIONS`.
"""

from __future__ import annotations

from enum import IntEnum, unique
from typing import Any, Final

from msgspec.structs import replace

from qsctl.core.integration.message import Message, State


@unique
class MessageCause(IntEnum):
    """The cause of a message's transition."""

    PASS = 0
    """The procedures of its stage have processed it."""
    HOP = 1
    """It was sent to another thread by ICL."""
    ARRIVE = 2
    """It arrived; an outbound thread without procedures puts it directly into the post-TPS queue."""
    ARRIVE_UNPROCESSED = 3
    """It arrived at an outbound thread that has procedures for it."""
    RETURN = 4
    """The receiving thread has stopped: it returns to the queue that it left."""
    BEGIN = 5
    """Its routing and translation began."""
    COLLECT = 6
    """Its route detail is done."""
    DISTRIBUTE = 7
    """Its source is translated and removed: it moves to the queue of its destination."""
    REROUTE = 8
    """Its source is translated and removed: it is routed again by another transaction id."""
    SKIP = 9
    """It skips translation (disposition SEND)."""
    OVER = 10
    """It moves to the other direction of its thread (disposition OVER), which has procedures."""
    OVER_UNPROCESSED = 11
    """It moves to the other direction of its thread (disposition OVER), which has no procedures."""
    PROTO = 12
    """It moves to the head of the outbound post-TPS queue (disposition PROTO)."""
    WRITE = 13
    """It was handed to its connection."""
    ACKNOWLEDGE = 14
    """The connection confirmed it."""
    RESERVE = 15
    """The connection confirmed it, and its thread waits for the reply."""
    GIVE_BACK = 16
    """The delivery, or the run of a procedure, had no result: it returns to its former position."""
    GIVE_UP = 17
    """No attempts are left."""
    RESTART = 18
    """Its process restarted."""


_S, _C = State, MessageCause

TRANSITIONS: Final[dict[tuple[State, MessageCause], State]] = {
    (_S.INBOUND_PRE_TPS, _C.PASS): _S.INBOUND_POST_TPS,
    (_S.INBOUND_POST_TPS, _C.HOP): _S.SENT_TO_TRANSLATION,
    (_S.SENT_TO_TRANSLATION, _C.ARRIVE): _S.PRE_TRANSLATION,
    (_S.SENT_TO_TRANSLATION, _C.SKIP): _S.POST_TRANSLATION,
    (_S.SENT_TO_TRANSLATION, _C.RETURN): _S.INBOUND_POST_TPS,
    (_S.PRE_TRANSLATION, _C.BEGIN): _S.IN_TRANSLATION,
    # Its results begin in the state of their source; from then on each is a separate message.
    (_S.IN_TRANSLATION, _C.PASS): _S.ROUTE_DETAIL,
    (_S.ROUTE_DETAIL, _C.COLLECT): _S.PARTIAL,
    (_S.PARTIAL, _C.DISTRIBUTE): _S.POST_TRANSLATION,
    (_S.PARTIAL, _C.REROUTE): _S.PRE_TRANSLATION,
    (_S.POST_TRANSLATION, _C.HOP): _S.SENT_TO_DESTINATION,
    (_S.SENT_TO_DESTINATION, _C.ARRIVE): _S.OUTBOUND_POST_TPS,
    (_S.SENT_TO_DESTINATION, _C.ARRIVE_UNPROCESSED): _S.OUTBOUND_PRE_TPS,
    (_S.SENT_TO_DESTINATION, _C.RETURN): _S.POST_TRANSLATION,
    (_S.OUTBOUND_PRE_TPS, _C.PASS): _S.OUTBOUND_POST_TPS,
    (_S.OUTBOUND_POST_TPS, _C.WRITE): _S.PRE_WRITE,
    (_S.PRE_WRITE, _C.ACKNOWLEDGE): _S.DELIVERED,
    (_S.PRE_WRITE, _C.RESERVE): _S.RESERVED_FOR_REPLY,
    (_S.PRE_WRITE, _C.GIVE_BACK): _S.OUTBOUND_POST_TPS,
    (_S.PRE_WRITE, _C.GIVE_UP): _S.FAILED_DELIVERY,
    (_S.RESERVED_FOR_REPLY, _C.ACKNOWLEDGE): _S.DELIVERED,
    (_S.RESERVED_FOR_REPLY, _C.GIVE_BACK): _S.OUTBOUND_POST_TPS,
    (_S.RESERVED_FOR_REPLY, _C.GIVE_UP): _S.FAILED_DELIVERY,
    # A procedure that asks for another run, or whose thread stopped in the middle.
    (_S.INBOUND_PRE_TPS, _C.GIVE_BACK): _S.INBOUND_PRE_TPS,
    (_S.OUTBOUND_PRE_TPS, _C.GIVE_BACK): _S.OUTBOUND_PRE_TPS,
    (_S.IN_TRANSLATION, _C.GIVE_BACK): _S.PRE_TRANSLATION,
    (_S.INBOUND_PRE_TPS, _C.OVER): _S.OUTBOUND_PRE_TPS,
    (_S.INBOUND_PRE_TPS, _C.OVER_UNPROCESSED): _S.OUTBOUND_POST_TPS,
    (_S.OUTBOUND_PRE_TPS, _C.OVER): _S.INBOUND_PRE_TPS,
    (_S.OUTBOUND_PRE_TPS, _C.OVER_UNPROCESSED): _S.INBOUND_POST_TPS,
    (_S.INBOUND_PRE_TPS, _C.PROTO): _S.OUTBOUND_POST_TPS,
    (_S.OUTBOUND_PRE_TPS, _C.PROTO): _S.OUTBOUND_POST_TPS,
    (_S.OUTBOUND_PRE_TPS, _C.SKIP): _S.INBOUND_POST_TPS,
    **{
        (state, _C.RESTART): state
        for state in (
            _S.INBOUND_PRE_TPS,
            _S.INBOUND_POST_TPS,
            _S.PRE_TRANSLATION,
            _S.PARTIAL,
            _S.POST_TRANSLATION,
            _S.OUTBOUND_PRE_TPS,
            _S.OUTBOUND_POST_TPS,
        )
    },
    # A message in transit, or in work, returns to its former queue.
    (_S.SENT_TO_TRANSLATION, _C.RESTART): _S.INBOUND_POST_TPS,
    (_S.IN_TRANSLATION, _C.RESTART): _S.PRE_TRANSLATION,
    (_S.SENT_TO_DESTINATION, _C.RESTART): _S.POST_TRANSLATION,
    (_S.PRE_WRITE, _C.RESTART): _S.OUTBOUND_POST_TPS,
    (_S.RESERVED_FOR_REPLY, _C.RESTART): _S.OUTBOUND_POST_TPS,
}
"""Any other pair is a defect of this program, and raises an error."""


class HeldMessage:
    """A message in the engine's memory: its present version, which each stage replaces by the next."""

    __slots__ = ("message",)

    def __init__(self, message: Message) -> None:
        self.message = message

    def move(self, cause: MessageCause, **changes: Any) -> None:
        """Change to the next state by a cause, with further changes of the message.

        Raises:
            AssertionError: `TRANSITIONS` has no transition from the present state by this cause.
        """
        following = TRANSITIONS.get((self.message.state, cause))
        if following is None:
            raise AssertionError(f"no transition from {self.message.state.name} by {cause.name}: {self.message.mid}")
        self.message = replace(self.message, state=following, **changes)

    def change(self, **changes: Any) -> None:
        """Change any members but the state."""
        assert "state" not in changes
        self.message = replace(self.message, **changes)
