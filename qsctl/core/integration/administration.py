"""What operators do to messages: send one of the error database again, delete one [CLOVERLEAF].

Decides: the safe order. A message that is deleted from the databases only is still in the memory of its thread or
process, and would be delivered after all; so that has to stop first.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec.structs import replace

from qsctl.core.integration.database import Database, stored
from qsctl.core.integration.message import Flag, Message, MessageId, State
from qsctl.core.integration.messages import ResendPlace
from qsctl.core.integration.records import STREAM, CopyRemovalCause, CopyRemoved, Record, Started
from qsctl.errors import NotFound, Refused
from qsctl.instant import Nanoseconds


class Keeper(StrEnum):
    """What has a message in its memory."""

    THREAD = "thread"
    PROCESS = "process"


class Requirement(NamedTuple):
    """What has to stop before a message can be deleted."""

    keeper: Keeper
    name: str
    process: str
    """Stopping this does as well."""


_OF_THREADS: Final = frozenset(
    {
        State.INBOUND_PRE_TPS,
        State.INBOUND_POST_TPS,
        State.OUTBOUND_PRE_TPS,
        State.OUTBOUND_POST_TPS,
        State.PRE_WRITE,
        State.RESERVED_FOR_REPLY,
    }
)
_STATE_AT: Final = {
    ResendPlace.INBOUND_PRE_TPS: State.INBOUND_PRE_TPS,
    ResendPlace.INBOUND_POST_TPS: State.INBOUND_POST_TPS,
    ResendPlace.OUTBOUND_PRE_TPS: State.OUTBOUND_PRE_TPS,
    ResendPlace.OUTBOUND_POST_TPS: State.OUTBOUND_POST_TPS,
}
_INBOUND: Final = frozenset({ResendPlace.INBOUND_PRE_TPS, ResendPlace.INBOUND_POST_TPS})


def keeper_of(state: State) -> Keeper:
    """Return what has messages of this state in its memory; a thread's process has them, too."""
    return Keeper.THREAD if state in _OF_THREADS else Keeper.PROCESS


def requirement_of(message: Message) -> Requirement | None:
    """Return what has to stop before this message is deleted; None: nothing, it is in the error database."""
    if message.is_error:
        return None
    if keeper_of(message.state) is Keeper.THREAD:
        return Requirement(Keeper.THREAD, message.owner, message.process)
    return Requirement(Keeper.PROCESS, message.process, message.process)


def stop_first(message: Message) -> str:
    """Return the same as advice."""
    found = requirement_of(message)
    if found is None:
        return ""
    also = f" (or its process {found.process})" if found.keeper is Keeper.THREAD else ""
    return f"stop {found.keeper.value} {found.name}{also} first, then delete {message.mid}, then start it again"


def find(database: Database, mid: MessageId) -> Message:
    """Return the message of this id, in either database.

    Raises:
        NotFound: there is none.
    """
    for message in (*database.failed(), *database.messages()):
        if message.mid == mid:
            return message
    raise NotFound(
        f"there is no message {mid} in the recovery or error database",
        remedy="`qsctl engine dump` lists what there is.",
    )


def deletion(database: Database, mids: Sequence[MessageId]) -> list[Record]:
    """Return the records that delete messages: nothing is written unless all are there. No engine may be running.

    Raises:
        NotFound: a message is not there.
    """
    found = [find(database, mid) for mid in mids]
    return [CopyRemoved(STREAM, each.serial, CopyRemovalCause.DELETED) for each in found]


def resending(
    database: Database, mids: Sequence[MessageId], place: ResendPlace, now: Nanoseconds
) -> tuple[list[Record], list[Message]]:
    """Return the records that send messages of the error database again, and the new messages.

    No engine may be running.

    Each gets a new id and keeps that of its source; it leaves the error database once the new copy is there.

    Raises:
        NotFound: a message is not there.
        Refused: a message is not in the error database, or has no destination to be sent to.
    """
    failed = [_failed(database, mid) for mid in mids]
    start = database.start + 1
    records: list[Record] = [Started(STREAM, database.next_serial, start)]
    place_in_queue = max((each.position for each in database.recovery.values()), default=0) + 1
    messages: list[Message] = []
    for number, message in enumerate(failed):
        mid = MessageId(message.mid.site, start, number + 1)
        new = again(message, place, mid, database.next_serial + number, place_in_queue + number, now)
        records += [stored(new), CopyRemoved(STREAM, message.serial, CopyRemovalCause.RESENT)]
        messages.append(new)
    return records, messages


def again(
    message: Message, place: ResendPlace, mid: MessageId, serial: int, position: int, now: Nanoseconds
) -> Message:
    """Return a message of the error database as it enters anew. Its process is that of its thread, whichever that is.

    Raises:
        Refused: it has no thread to be sent to.
    """
    owner = message.source if place in _INBOUND else message.destination
    if not owner:
        raise Refused(
            f"message {message.mid} has no destination: it failed before it was routed",
            remedy=f"Send it again to {ResendPlace.INBOUND_PRE_TPS.value} or {ResendPlace.INBOUND_POST_TPS.value}.",
        )
    destination = "" if place in _INBOUND and not message.flags & Flag.SKIPXLT else message.destination
    return replace(
        message,
        serial=serial,
        mid=mid,
        state=_STATE_AT[place],
        position=position,
        process="",
        owner=owner,
        destination=destination,
        flags=(message.flags | Flag.USERDB | Flag.RESENT) & ~Flag.REROUTED,
        entered_at_ns=now,
        outbound_at_ns=0 if place in _INBOUND else now,
        attempts=0,
        turns=0,
        error=0,
        error_text="",
        results_from=0,
        replaces=message.serial,
    )


def _failed(database: Database, mid: MessageId) -> Message:
    message = find(database, mid)
    if not message.is_error:
        raise Refused(
            f"message {mid} is in the recovery database ({message.queue_name}), not in the error database",
            remedy="It is on its way; only a message that failed is sent again.",
        )
    return message
