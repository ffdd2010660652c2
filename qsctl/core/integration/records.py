"""The durable records of the integration engine, one an atomic change of a database.

Decides: the records of a step. Of a change that takes several records, the last one makes it: the copies that the
others stored count only then, see `Message.replaces` and `Message.results_from`. Tags, and the first two members, have
the layout of those of a queue's records.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, TypeAlias

import msgspec

from qsctl.core.integration.message import Flag, Message, State
from qsctl.instant import Nanoseconds

STREAM: Final = "integration"
"""The stream at the beginning of every record."""


class CopyRemovalCause(IntEnum):
    """Why a copy left the databases."""

    DELIVERED = 1
    KILLED = 2
    """A procedure destroyed it."""
    TRANSLATED = 3
    """All its route details are done and its results are in the partial queue: they count from here on."""
    REPLACED = 4
    """Replaced by the message that a procedure made of it."""
    ABANDONED = 5
    """A result of a translation that failed, or that is begun again."""
    DELETED = 6
    """By an operator."""
    RESENT = 7
    """By an operator; a copy with an id of its own is there."""


class Stored(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """A message was copied into a database: the error database where `message.is_error`.

    `payload` is that of `message`, which is empty here.
    """

    stream: str
    position: int
    message: Message
    payload: bytes = b""


class Moved(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """A new version of a copy took the place of the old one: it is in another state or queue."""

    stream: str
    position: int
    state: State
    place: int
    """`Message.position` from here on."""
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
    """A message left the recovery database for the error database."""

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
    """The engine started for the `start`-th time, or ended in good order: no id and no serial is given twice."""

    stream: str
    position: int
    """No serial from here on was given before."""
    start: int
    at_ns: Nanoseconds = 0


Record: TypeAlias = Stored | Moved | Failed | CopyRemoved | Started
