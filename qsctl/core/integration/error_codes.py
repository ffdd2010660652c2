"""Why a message is in the error database: the numbers that operators know from listings [CLOVERLEAF]."""

from __future__ import annotations

from enum import IntEnum


class ErrorCode(IntEnum):
    """The numbers that this engine gives; those in between belong to others."""

    NO_TRANSACTION_ID = 100
    UNSUPPORTED_TRANSACTION_ID = 101
    TRANSACTION_ID_FAILED = 103
    NO_DESTINATION_FOR_REPLY = 104
    NO_DESTINATION = 105
    INCORRECT_ICL_SERVER = 107
    """Its destination is in another process than when it was sent."""
    WRONG_DESTINATION = 108
    """No thread of this name can send it."""
    INBOUND_REPLY_TPS = 200
    """A procedure broke off, returned ERROR or what is not allowed, or sent the message over again and again."""
    INBOUND_DATA_TPS = 201
    OUTBOUND_REPLY_TPS = 202
    OUTBOUND_DATA_TPS = 203
    TRANSLATION = 301
    """A translation broke off."""
    ROUTE_DETAIL = 302
    """A procedure of a route detail broke off, or returned ERROR or what is not allowed."""
    XPM_ERROR = 303
    """A translation raised an error on purpose."""
    RETRIES = 405
    """No attempt is left: a procedure asked for another run, a receiver refused it, or no reply came in time."""
    UNREADABLE = 500
    """Its data is gone or damaged."""
    ROUTE_LOOP = 1001
    """Rerouted again and again."""
