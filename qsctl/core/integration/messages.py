"""The messages between the integration engine and its environment: connections, operators and the driver."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

import msgspec

from qsctl.core.integration.message import PRIORITY_DEFAULT, MessageId, MessageType
from qsctl.instant import Nanoseconds

Token: TypeAlias = int
"""A sender's identifier of its message, which the answer repeats."""


class Arrived(msgspec.Struct, frozen=True, gc=False):
    """A protocol driver read a message from its connection."""

    thread: str
    token: Token
    payload: bytes
    transaction_id: str = ""
    type: MessageType = MessageType.DATA
    priority: int | None = None


class Acknowledged(msgspec.Struct, frozen=True, gc=False):
    """A connection confirms a message, or refuses it."""

    thread: str
    mid: MessageId
    is_accepted: bool = True


class ThreadStopped(msgspec.Struct, frozen=True, gc=False):
    """An operator stops a protocol thread."""

    thread: str


class ThreadStarted(msgspec.Struct, frozen=True, gc=False):
    """An operator starts a protocol thread."""

    thread: str


class ConnectionLost(msgspec.Struct, frozen=True, gc=False):
    """The peer of a connection is gone; its thread continues to run."""

    thread: str


class Connected(msgspec.Struct, frozen=True, gc=False):
    """The peer of a connection is connected again."""

    thread: str


class ProcessStopped(msgspec.Struct, frozen=True, gc=False):
    """A process ends, by an operator or by a crash: its memory is lost, the databases remain."""

    process: str
    is_crash: bool = False


class ProcessStarted(msgspec.Struct, frozen=True, gc=False):
    """An operator starts a process, which resumes from the recovery database. `without`: threads that stay stopped."""

    process: str
    without: frozenset[str] = frozenset()


class ResendPlace(StrEnum):
    """The queue that a resent message enters."""

    INBOUND_PRE_TPS = "ib_pre_tps"
    INBOUND_POST_TPS = "ib_post_tps"
    OUTBOUND_PRE_TPS = "ob_pre_tps"
    OUTBOUND_POST_TPS = "ob_post_tps"


class Resend(msgspec.Struct, frozen=True, gc=False):
    """An operator resends a message of the error database."""

    mid: MessageId
    place: ResendPlace


class Delete(msgspec.Struct, frozen=True, gc=False):
    """An operator deletes a message from the databases."""

    mid: MessageId


Inbound: TypeAlias = (
    Arrived
    | Acknowledged
    | ThreadStopped
    | ThreadStarted
    | ConnectionLost
    | Connected
    | ProcessStopped
    | ProcessStarted
    | Resend
    | Delete
)


class Accepted(msgspec.Struct, frozen=True, gc=False):
    """To a sender: the engine has its message, durably if its connection is logged."""

    thread: str
    token: Token
    mid: MessageId


class SenderRefused(msgspec.Struct, frozen=True, gc=False):
    """To a sender: its thread is not running; the engine does not have the message."""

    thread: str
    token: Token


class ConnectionDelivery(msgspec.Struct, frozen=True, gc=False):
    """To a connection: a message to write, which it answers with `Acknowledged`."""

    thread: str
    mid: MessageId
    payload: bytes
    source: str
    source_mid: MessageId
    is_possible_duplicate: bool = False
    type: MessageType = MessageType.DATA
    priority: int = PRIORITY_DEFAULT
    created_at_ns: Nanoseconds = 0


class Answered(msgspec.Struct, frozen=True, gc=False):
    """To an operator: the outcome of a command; `remedy` is empty if it was carried out."""

    mid: MessageId
    text: str
    remedy: str = ""
    new_mid: MessageId | None = None


Outbound: TypeAlias = Accepted | SenderRefused | ConnectionDelivery | Answered
