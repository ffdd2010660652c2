"""Operations on stored messages: resend one of the error database, delete one, move one [CLOVERLEAF].

Decides: the safe order. A message that is deleted from the databases alone remains in the memory of its thread or
process, and would still be delivered; so that must stop first. One move is forbidden: a result of a translation never
returns to a queue before the translation, which would translate it twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from qsctl.core.integration.database import Database, moved_record, stored
from qsctl.core.integration.error_codes import ErrorCode
from qsctl.core.integration.message import Flag, Message, MessageId, State
from qsctl.core.integration.messages import ResendPlace
from qsctl.core.integration.records import STREAM, CopyRemovalCause, CopyRemoved, Failed, Record, Started
from qsctl.errors import NotFound, Refused
from qsctl.instant import Nanoseconds


class Keeper(StrEnum):
    """The kind of unit that has a message in its memory."""

    THREAD = "thread"
    PROCESS = "process"


class Requirement(NamedTuple):
    """The thread or process that must stop before a message can be deleted."""

    keeper: Keeper
    name: str
    process: str
    """The process of a thread: stopping it is also sufficient."""


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
    """Return which unit has messages of this state in its memory; a thread's process has them too."""
    return Keeper.THREAD if state in _OF_THREADS else Keeper.PROCESS


def requirement_of(message: Message) -> Requirement | None:
    """Return the unit that must stop before this message is deleted; None: it is in the error database only."""
    if message.is_error:
        return None
    if keeper_of(message.state) is Keeper.THREAD:
        return Requirement(Keeper.THREAD, message.owner, message.process)
    return Requirement(Keeper.PROCESS, message.process, message.process)


def stop_first(message: Message) -> str:
    """Return `requirement_of` as advice to an operator; empty: nothing must stop."""
    found = requirement_of(message)
    if found is None:
        return ""
    also = f" (or its process {found.process})" if found.keeper is Keeper.THREAD else ""
    return f"stop {found.keeper.value} {found.name}{also} first, then delete {message.mid}, then start it again"


def find(database: Database, mid: MessageId) -> Message:
    """Return the message of this id, from either database.

    Raises:
        NotFound: no such message exists.
    """
    for message in (*database.failed(), *database.messages()):
        if message.mid == mid:
            return message
    raise NotFound(
        f"there is no message {mid} in the recovery or error database",
        remedy="`qsctl engine dump` lists the messages.",
    )


def deletion(database: Database, mids: Sequence[MessageId]) -> list[Record]:
    """Return the records that delete messages, all or none. No engine may be running.

    Raises:
        NotFound: a message does not exist.
    """
    found = [find(database, mid) for mid in mids]
    return [CopyRemoved(STREAM, each.serial, CopyRemovalCause.DELETED) for each in found]


class ResendEdit(NamedTuple):
    """Changes to a message when it is resent; None: unchanged."""

    payload: bytes | None = None
    priority: int | None = None
    source: str | None = None
    destination: str | None = None
    transaction_id: str | None = None
    user_data: str | None = None

    @property
    def changes(self) -> dict[str, Any]:
        """Return the changed fields with their new values."""
        return {name: value for name, value in self._asdict().items() if value is not None}


UNEDITED: Final = ResendEdit()


def resending(
    database: Database, edits: Mapping[MessageId, ResendEdit], place: ResendPlace, now: Nanoseconds
) -> tuple[list[Record], list[Message]]:
    """Return the records that resend messages of the error database, in the given order, and the new messages.

    No engine may be running. Each message gets a new id and keeps that of its source; it leaves the error database once
    the new copy is stored.

    Raises:
        NotFound: a message does not exist.
        Refused: a message is not in the error database, has no destination to which it can be sent, or has lost its
            data.
    """
    failed = [_edited(_failed(database, mid), edit) for mid, edit in edits.items()]
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
    """Return a message of the error database as it enters a queue again, in the process of its thread.

    Raises:
        Refused: it has no thread to which it can be sent.
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


def _edited(message: Message, edit: ResendEdit) -> Message:
    if message.error == ErrorCode.UNREADABLE and edit.payload is None:
        raise Refused(
            f"message {message.mid} has lost its data",
            remedy="Ask its source for it and give it with --data FILE; or delete the message.",
        )
    return replace(message, **edit.changes)


class MovePlace(StrEnum):
    """The place to which an operator moves a message of the recovery database."""

    INBOUND_PRE_TPS = "ib_pre_tps"
    INBOUND_POST_TPS = "ib_post_tps"
    PRE_TRANSLATION = "pre_xlt"
    POST_TRANSLATION = "post_xlt"
    OUTBOUND_PRE_TPS = "ob_pre_tps"
    OUTBOUND_POST_TPS = "ob_post_tps"
    ERRORS = "errors"


_PLACES: Final = {
    MovePlace.INBOUND_PRE_TPS: State.INBOUND_PRE_TPS,
    MovePlace.INBOUND_POST_TPS: State.INBOUND_POST_TPS,
    MovePlace.PRE_TRANSLATION: State.PRE_TRANSLATION,
    MovePlace.POST_TRANSLATION: State.POST_TRANSLATION,
    MovePlace.OUTBOUND_PRE_TPS: State.OUTBOUND_PRE_TPS,
    MovePlace.OUTBOUND_POST_TPS: State.OUTBOUND_POST_TPS,
}
_RESTS_IN: Final = {
    State.SENT_TO_TRANSLATION: State.INBOUND_POST_TPS,
    State.IN_TRANSLATION: State.PRE_TRANSLATION,
    State.PARTIAL: State.POST_TRANSLATION,
    State.SENT_TO_DESTINATION: State.POST_TRANSLATION,
    State.PRE_WRITE: State.OUTBOUND_POST_TPS,
    State.RESERVED_FOR_REPLY: State.OUTBOUND_POST_TPS,
}
"""The queue in which recovery puts a message that was in transit or in work."""
_BEFORE_TRANSLATION: Final = frozenset({State.INBOUND_PRE_TPS, State.INBOUND_POST_TPS, State.PRE_TRANSLATION})
_MAY_BE_DELIVERED: Final = frozenset({State.PRE_WRITE, State.RESERVED_FOR_REPLY})


class MoveOrder(NamedTuple):
    """An operator's command about waiting messages."""

    place: MovePlace | None = None
    """The new place; None: they stay in their queues."""
    destination: str | None = None
    priority: int | None = None
    at_front: bool = False
    """Whether they are moved before all others of their queue, with at least the highest priority in it."""
    error: int = 0
    """Their error code in the error database."""


def moving(
    database: Database, mids: Sequence[MessageId], order: MoveOrder, now: Nanoseconds
) -> tuple[list[Record], list[Message]]:
    """Return the records that move messages of the recovery database, and the messages after the move.

    No engine may be running. The messages keep their ids and their order among each other.

    Raises:
        NotFound: a message does not exist.
        Refused: a message has failed, is a result that would be translated again, or has no thread in whose queue it
            could wait.
    """
    waiting = sorted((_waiting(database, mid) for mid in mids), key=lambda each: (-each.priority, each.position))
    held = [each for each in database.recovery.values() if database.counts(each)]
    back = max((each.position for each in held), default=0) + 1
    front = min((each.position for each in held), default=0) - len(waiting)
    records: list[Record] = []
    moved: list[Message] = []
    for number, message in enumerate(waiting):
        if order.place is MovePlace.ERRORS:
            text = f"moved by an operator from {message.queue_name}"
            records.append(Failed(STREAM, message.serial, now, message.state, order.error, text))
            moved.append(replace(message, error=order.error, error_text=text, entered_at_ns=now))
            continue
        new = _moved(message, order, now)
        if order.at_front:
            beside = [each.priority for each in held if _queue_of(each) == _queue_of(new)]
            new = replace(new, position=front + number, priority=max([new.priority, *beside]))
        elif _queue_of(new) != _queue_of(message):
            new = replace(new, position=back + number)
        records.append(moved_record(new))
        moved.append(new)
    return records, moved


def _waiting(database: Database, mid: MessageId) -> Message:
    message = find(database, mid)
    if message.is_error:
        raise Refused(
            f"message {mid} is in the error database", remedy="`qsctl engine resend` sends it again, by any queue."
        )
    return message


def _moved(message: Message, order: MoveOrder, now: Nanoseconds) -> Message:
    was = _RESTS_IN.get(message.state, message.state)
    state = was if order.place is None else _PLACES[order.place]
    destination = message.destination if order.destination is None else order.destination
    if state in _BEFORE_TRANSLATION:
        if was not in _BEFORE_TRANSLATION:
            raise Refused(
                f"message {message.mid} is a result of a translation ({message.queue_name}): it would be made again",
                remedy="Move it to post_xlt, ob_pre_tps or ob_post_tps; or resend its source.",
            )
        if order.destination is not None:
            raise Refused(
                f"message {message.mid} is not routed yet: its routes decide on its destination",
                remedy="Move it behind the translation, to post_xlt, ob_pre_tps or ob_post_tps.",
            )
        owner = message.owner if state is was else message.source
    else:
        if not destination:
            raise Refused(
                f"message {message.mid} has no destination: it was not routed yet",
                remedy="Name the thread that it is to go out by with --to.",
            )
        owner = destination
    is_outbound = state in {State.OUTBOUND_PRE_TPS, State.OUTBOUND_POST_TPS}
    flags = message.flags | (Flag.POSSIBLE_DUPLICATE if message.state in _MAY_BE_DELIVERED else Flag.NONE)
    return replace(
        message,
        state=state,
        process=message.process if owner == message.owner else "",
        owner=owner,
        destination=destination,
        priority=message.priority if order.priority is None else order.priority,
        flags=flags & ~Flag.REROUTED,
        entered_at_ns=message.entered_at_ns if state is message.state and owner == message.owner else now,
        outbound_at_ns=(message.outbound_at_ns or now) if is_outbound else 0,
        attempts=0,
    )


def _queue_of(message: Message) -> tuple[State, str]:
    return _RESTS_IN.get(message.state, message.state), message.owner


def _failed(database: Database, mid: MessageId) -> Message:
    message = find(database, mid)
    if not message.is_error:
        raise Refused(
            f"message {mid} is in the recovery database ({message.queue_name}), not in the error database",
            remedy="It is on its way; only a message that failed is sent again.",
        )
    return message
