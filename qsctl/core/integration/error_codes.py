"""The error codes of messages in the error database, as in the listings of the engine [CLOVERLEAF]."""

from __future__ import annotations

from enum import IntEnum


class ErrorCode(IntEnum):
    """The codes that this engine assigns; the numbers in between are used by other products."""

    NO_TRANSACTION_ID = 100
    UNSUPPORTED_TRANSACTION_ID = 101
    TRANSACTION_ID_FAILED = 103
    NO_DESTINATION_FOR_REPLY = 104
    NO_DESTINATION = 105
    INCORRECT_ICL_SERVER = 107
    """Its destination is in another process than when the message was sent."""
    WRONG_DESTINATION = 108
    """No thread of this name can send it."""
    INBOUND_REPLY_TPS = 200
    """A procedure failed, returned ERROR or a forbidden disposition, or used OVER too often."""
    INBOUND_DATA_TPS = 201
    OUTBOUND_REPLY_TPS = 202
    OUTBOUND_DATA_TPS = 203
    TRANSLATION = 301
    """A translation failed."""
    ROUTE_DETAIL = 302
    """A procedure of a route detail failed, or returned ERROR or a forbidden disposition."""
    XPM_ERROR = 303
    """A translation raised an error by `xpmerror`."""
    RETRIES = 405
    """All attempts failed: a procedure returned RETRY, a receiver refused the message, or no reply arrived in time."""
    UNREADABLE = 500
    """Its data is missing or damaged."""
    ROUTE_LOOP = 1001
    """It was rerouted too often."""
