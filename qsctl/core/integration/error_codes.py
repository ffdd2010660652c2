"""Why a message is in the error database: the numbers that operators know from listings (RULINGS, "Cloverleaf")."""

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
    TPS_FAILED = 200
    TPS_DISPOSITION = 201
    """A disposition that is not allowed there."""
    TPS_ERROR = 202
    """The procedure returned ERROR."""
    TPS_RETRIES = 203
    """The procedure asked for more runs than there are."""
    TPS_LOOP = 204
    """Sent from one direction to the other again and again."""
    TRANSLATION_FAILED = 300
    TRANSLATION_DISPOSITION = 301
    TRANSLATION_ERROR = 302
    """A procedure of a route detail returned ERROR."""
    XPM_ERROR = 303
    """A translation raised an error on purpose."""
    DELIVERY_FAILED = 400
    REPLY_TIMED_OUT = 401
    ROUTE_LOOP = 1001
    """Rerouted again and again."""
