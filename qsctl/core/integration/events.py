"""Events of the integration engine: facts for the event log, counters and checks.

No decision depends on them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

import msgspec

from qsctl.core.integration.message import MessageId, State
from qsctl.instant import Nanoseconds


class Fate(StrEnum):
    """The way in which a message left a queue, or the engine."""

    PASSED = "passed"
    """It passed to the next stage."""
    DELIVERED = "delivered"
    KILLED = "killed"
    FAILED = "failed"
    """It moved to the error database."""
    REPLACED = "replaced"
    """It was replaced by the messages that were made of it."""
    ABANDONED = "abandoned"
    """It is a result of a translation that failed or begins again."""
    LOST = "lost"
    """Its process ended, and it was in no database."""
    INTERRUPTED = "interrupted"
    """Its process ended; it is in the recovery database."""
    DELETED = "deleted"


class Entered(msgspec.Struct, frozen=True, gc=False):
    """A message was put into a queue."""

    at_ns: Nanoseconds
    process: str
    owner: str
    queue: State
    mid: MessageId
    is_backed: bool
    payload: bytes


class Left(msgspec.Struct, frozen=True, gc=False):
    """A message left a queue: for work, to another one, or for good."""

    at_ns: Nanoseconds
    process: str
    owner: str
    queue: State
    mid: MessageId
    fate: Fate


class Received(msgspec.Struct, frozen=True, gc=False):
    """A message arrived from a connection."""

    at_ns: Nanoseconds
    thread: str
    mid: MessageId
    is_backed: bool


class Ended(msgspec.Struct, frozen=True, gc=False):
    """A message is no longer in the engine's memory; `became` are the ids of the messages made of it."""

    at_ns: Nanoseconds
    mid: MessageId
    source_mid: MessageId
    state: State
    thread: str
    fate: Fate
    is_backed: bool
    payload: bytes = b""
    became: tuple[MessageId, ...] = ()
    text: str = ""


class Translated(msgspec.Struct, frozen=True, gc=False):
    """All route details of a source message are done; its results move to the post-translation queues."""

    at_ns: Nanoseconds
    mid: MessageId
    results: tuple[MessageId, ...]
    is_failed: bool


class Recovered(msgspec.Struct, frozen=True, gc=False):
    """A starting process found a message in the recovery database; `was` is its state there."""

    at_ns: Nanoseconds
    mid: MessageId
    was: State
    state: State


class Changed(msgspec.Struct, frozen=True, gc=False):
    """A thread, process or connection started or stopped; `text` is the reason if no command requested it."""

    at_ns: Nanoseconds
    what: str
    name: str
    is_up: bool
    text: str = ""


Event: TypeAlias = Entered | Left | Received | Ended | Translated | Recovered | Changed
