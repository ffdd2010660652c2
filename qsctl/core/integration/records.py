"""The durable records of the integration engine, each an atomic change of a database.

Decides: the records of a step. The last record of a change that needs several commits it: copies stored by the others
count only then, see `Message.replaces` and `Message.results_from`. The tags and the first two members have the same
layout as those of a queue's records.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, TypeAlias

import msgspec

from qsctl.core.integration.message import Flag, Message, State
from qsctl.instant import Nanoseconds

STREAM: Final = "integration"
"""The name of the stream, the first member of every record."""


class CopyRemovalCause(IntEnum):
    """The cause for which a copy left the databases."""

    DELIVERED = 1
    KILLED = 2
    """A procedure destroyed it."""
    TRANSLATED = 3
    """All its route details are done, and its results in the partial queue count from here on."""
    REPLACED = 4
    """It was replaced by the message that a procedure made of it."""
    ABANDONED = 5
    """It is a result of a translation that failed, or that begins again."""
    DELETED = 6
    """An operator deleted it."""
    RESENT = 7
    """An operator resent it; a copy with another id exists."""


class Stored(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """A message was stored in a database: in the error database if `message.is_error`.

    `payload` is that of `message`, whose own member is empty here.
    """

    stream: str
    position: int
    message: Message
    payload: bytes = b""


class Moved(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """A new version of a copy replaced the old one: the message is in another state or queue."""

    stream: str
    position: int
    state: State
    place: int
    """`Message.position` from now on."""
    process: str
    owner: str
    destination: str
    priority: int
    at_ns: Nanoseconds
    flags: Flag
    attempts: int
    turns: int
    outbound_at_ns: Nanoseconds


class Failed(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """A message moved from the recovery database to the error database."""

    stream: str
    position: int
    at_ns: Nanoseconds
    state: State
    """The state in which it failed."""
    error: int
    text: str


class CopyRemoved(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    """A copy left the databases."""

    stream: str
    position: int
    cause: CopyRemovalCause


class Started(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    """The engine started for the `start`-th time, or ended in good order; keeps ids and serials unique."""

    stream: str
    position: int
    """The lowest serial that was never assigned."""
    start: int
    at_ns: Nanoseconds = 0


Record: TypeAlias = Stored | Moved | Failed | CopyRemoved | Started
