"""A message of the engine's own databases as a listing has it."""

from __future__ import annotations

from qsctl.core.integration.message import (
    NIL_ID,
    STATE_NAMES,
    Flag,
    Message,
    MessageClass,
    MessageType,
    State,
)
from qsctl.dumps._flags import listed_bits
from qsctl.dumps.model import ListedMessage
from qsctl.dumps.moments import Moment

_CLASSES = {MessageClass.ENGINE: "E", MessageClass.PROTOCOL: "P"}
_TYPES = {MessageType.DATA: "D", MessageType.REPLY: "R", MessageType.UNKNOWN: "U"}
_AT_OUTBOUND = frozenset(
    {
        State.OUTBOUND_PRE_TPS,
        State.OUTBOUND_POST_TPS,
        State.PRE_WRITE,
        State.RESERVED_FOR_REPLY,
        State.DELIVERED,
        State.FAILED_DELIVERY,
    }
)
"""In these a message has reached its outbound thread, be it at instant 0."""


def listed(message: Message, *, with_data: bool = False) -> ListedMessage:
    """Return a stored message as a listing shows it; in the error database its state is the error's number."""
    is_outbound = message.outbound_at_ns > 0 or message.state in _AT_OUTBOUND
    return ListedMessage(
        mid=message.mid,
        state=message.error or message.state.code,
        created=Moment(message.created_at_ns, is_utc=True),
        message_class=_CLASSES[message.message_class],
        type=_TYPES[message.type],
        forward=message.forwards > 0,
        priority=message.priority,
        size_bytes=message.size_bytes,
        source=message.source,
        destination=message.destination,
        source_mid=None if message.source_mid == NIL_ID else message.source_mid,
        owner=message.owner,
        process=message.process,
        queue=STATE_NAMES[message.state],
        transaction_id=message.transaction_id,
        skips_translation=Flag.SKIPXLT in message.flags,
        retries=message.attempts,
        flags=listed_bits(message.flags),
        entered=Moment(message.entered_at_ns, is_utc=True),
        outbound=Moment(message.outbound_at_ns, is_utc=True) if is_outbound else None,
        user_data=message.user_data,
        error_text=message.error_text,
        data=message.payload if with_data else None,
        place=message.position,
    )
