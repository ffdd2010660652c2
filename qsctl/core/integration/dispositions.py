"""The dispositions that a procedure may choose for a message, by context [CLOVERLEAF].

Decides: which disposition is allowed where; `tps` and `translation` carry them out. Procedures of a protocol driver
(read, write) belong to the connection, which is outside the engine.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from qsctl.core.integration.error_codes import ErrorCode


class Disposition(StrEnum):
    """The disposition of a message."""

    CONTINUE = "CONTINUE"
    """To the next procedure, then to the next stage."""
    SEND = "SEND"
    """To the destination in its metadata, past further procedures of this stage and past translation."""
    KILL = "KILL"
    """It is destroyed."""
    KILLREPLY = "KILLREPLY"
    """The same, and the wait for a reply ends."""
    OVER = "OVER"
    """To the pre-TPS queue of the other direction of its thread."""
    PROTO = "PROTO"
    """To the head of the outbound post-TPS queue of its thread."""
    ERROR = "ERROR"
    """To the error database, and out of the recovery database."""
    REROUTE = "REROUTE"
    """To the head of the pre-translation queue, with another transaction id."""
    RETRY = "RETRY"
    """Run the procedures again, after a while, over the message that they were given; see `tps`."""


class ProcedureContext(StrEnum):
    """The context in which a procedure runs."""

    INBOUND_DATA = "inbound data TPS"
    INBOUND_REPLY = "inbound reply TPS"
    OUTBOUND_DATA = "outbound data TPS"
    OUTBOUND_REPLY = "outbound reply TPS"
    ROUTE_DETAIL = "route detail"
    """Pre-procedures, post-procedures, those of a raw detail and the one of a generate detail."""


_D: Final = Disposition
_PROTOCOL: Final = frozenset({_D.CONTINUE, _D.SEND, _D.KILL, _D.KILLREPLY, _D.OVER, _D.PROTO, _D.ERROR, _D.RETRY})

ALLOWED: Final[dict[ProcedureContext, frozenset[Disposition]]] = {
    ProcedureContext.INBOUND_DATA: _PROTOCOL - {_D.KILLREPLY},
    ProcedureContext.INBOUND_REPLY: _PROTOCOL,
    ProcedureContext.OUTBOUND_DATA: _PROTOCOL - {_D.KILLREPLY},
    ProcedureContext.OUTBOUND_REPLY: _PROTOCOL - {_D.KILLREPLY},
    ProcedureContext.ROUTE_DETAIL: frozenset({_D.CONTINUE, _D.SEND, _D.KILL, _D.ERROR, _D.REROUTE}),
}
"""Any other disposition is an error of the message; but see `FATAL`."""

ERROR_CODES: Final[dict[ProcedureContext, ErrorCode]] = {
    ProcedureContext.INBOUND_DATA: ErrorCode.INBOUND_DATA_TPS,
    ProcedureContext.INBOUND_REPLY: ErrorCode.INBOUND_REPLY_TPS,
    ProcedureContext.OUTBOUND_DATA: ErrorCode.OUTBOUND_DATA_TPS,
    ProcedureContext.OUTBOUND_REPLY: ErrorCode.OUTBOUND_REPLY_TPS,
    ProcedureContext.ROUTE_DETAIL: ErrorCode.ROUTE_DETAIL,
}
"""Error codes of messages whose procedures fail."""

FATAL: Final = frozenset({_D.OVER, _D.PROTO})
"""In a route detail these end the whole process: its translation thread has no connection to give a message to."""
