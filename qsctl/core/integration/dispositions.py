"""The dispositions that a procedure may choose for a message, by context [CLOVERLEAF].

Decides: which disposition is allowed in which context; `_tps` and `_translation` carry them out. Procedures of a
protocol driver (read, write) belong to the connection, which is outside the engine.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from qsctl.core.integration.error_codes import ErrorCode


class Disposition(StrEnum):
    """The disposition of a message."""

    CONTINUE = "CONTINUE"
    """Pass it to the next procedure, then to the next stage."""
    SEND = "SEND"
    """Send it to the destination in its metadata, without further procedures of this stage and without translation."""
    KILL = "KILL"
    """Destroy it."""
    KILLREPLY = "KILLREPLY"
    """Destroy it, and end the wait for a reply."""
    OVER = "OVER"
    """Put it into the pre-TPS queue of the other direction of its thread."""
    PROTO = "PROTO"
    """Put it at the head of the outbound post-TPS queue of its thread."""
    ERROR = "ERROR"
    """Move it from the recovery database to the error database."""
    REROUTE = "REROUTE"
    """Put it at the head of the pre-translation queue, with another transaction id."""
    RETRY = "RETRY"
    """Run the procedures again after an interval, on the message that they were given; see `_tps`."""


class ProcedureContext(StrEnum):
    """The context in which a procedure runs."""

    INBOUND_DATA = "inbound data TPS"
    INBOUND_REPLY = "inbound reply TPS"
    OUTBOUND_DATA = "outbound data TPS"
    OUTBOUND_REPLY = "outbound reply TPS"
    ROUTE_DETAIL = "route detail"
    """Pre- and post-procedures, the procedures of a raw detail and that of a generate detail."""


_D: Final = Disposition
_PROTOCOL: Final = frozenset({_D.CONTINUE, _D.SEND, _D.KILL, _D.KILLREPLY, _D.OVER, _D.PROTO, _D.ERROR, _D.RETRY})

ALLOWED: Final[dict[ProcedureContext, frozenset[Disposition]]] = {
    ProcedureContext.INBOUND_DATA: _PROTOCOL - {_D.KILLREPLY},
    ProcedureContext.INBOUND_REPLY: _PROTOCOL,
    ProcedureContext.OUTBOUND_DATA: _PROTOCOL - {_D.KILLREPLY},
    ProcedureContext.OUTBOUND_REPLY: _PROTOCOL - {_D.KILLREPLY},
    ProcedureContext.ROUTE_DETAIL: frozenset({_D.CONTINUE, _D.SEND, _D.KILL, _D.ERROR, _D.REROUTE}),
}
"""Any other disposition is an error of the message, or ends the process: see `FATAL`."""

ERROR_CODES: Final[dict[ProcedureContext, ErrorCode]] = {
    ProcedureContext.INBOUND_DATA: ErrorCode.INBOUND_DATA_TPS,
    ProcedureContext.INBOUND_REPLY: ErrorCode.INBOUND_REPLY_TPS,
    ProcedureContext.OUTBOUND_DATA: ErrorCode.OUTBOUND_DATA_TPS,
    ProcedureContext.OUTBOUND_REPLY: ErrorCode.OUTBOUND_REPLY_TPS,
    ProcedureContext.ROUTE_DETAIL: ErrorCode.ROUTE_DETAIL,
}
"""Error codes of messages whose procedures fail."""

FATAL: Final = frozenset({_D.OVER, _D.PROTO})
"""In a route detail these end the whole process: its translation thread has no connection for the message."""
