"""The execution of the dispositions of a protocol thread's procedures [CLOVERLEAF].

Decides: the destination of each result, and the record that commits the change. A single result keeps the message's id;
several results are separate messages, which count once the message that they were made from is removed. If one of
several results is RETRY, all results of the run are discarded, and the procedures run again on the original message.
The sources define RETRY as another run of the procedures on the message that they were given, of which there is one; a
result that continued would be made a second time (our reading).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from qsctl.core.integration._ledger import derived
from qsctl.core.integration._lifecycle import HeldMessage, MessageCause
from qsctl.core.integration._message_queue import MessageQueue
from qsctl.core.integration._site import Site
from qsctl.core.integration.dispositions import ALLOWED, ERROR_CODES, Disposition, ProcedureContext
from qsctl.core.integration.error_codes import ErrorCode
from qsctl.core.integration.events import Fate
from qsctl.core.integration.message import Flag, Message
from qsctl.core.integration.procedures import StackVerdict
from qsctl.core.integration.records import CopyRemovalCause

_DESTROYED = frozenset({Disposition.KILL, Disposition.KILLREPLY})


class Ways(NamedTuple):
    """The directions in which a thread's procedures may send a message. None: this direction does not exist."""

    next_queue: MessageQueue
    """The destination of CONTINUE."""
    sending: MessageQueue
    """The destination of SEND: the queue to the translation thread of its process, which passes it on untranslated."""
    other_direction: MessageQueue | None
    other_is_unprocessed: bool
    """Whether the other direction has no procedures, so that the message enters its post-TPS queue."""
    head: MessageQueue | None
    """The outbound post-TPS queue, the destination of PROTO."""


class ResultFailure(NamedTuple):
    """The reason for which a result moves to the error database."""

    code: ErrorCode
    text: str


def asks_again(verdicts: Sequence[StackVerdict]) -> StackVerdict | None:
    """Return the first result with RETRY; None: there is none."""
    return next((each for each in verdicts if each.disposition is Disposition.RETRY), None)


def apply(
    site: Site, held: HeldMessage, verdicts: Sequence[StackVerdict], context: ProcedureContext, ways: Ways
) -> None:
    """Execute the dispositions of a message. The thread itself handles RETRY, see `asks_again`."""
    source = held.message
    kept = [each for each in verdicts if each.disposition not in _DESTROYED & ALLOWED[context]]
    if not kept:
        site.end(held, Fate.KILLED)
        return
    is_same = len(verdicts) == 1
    to_put: list[tuple[HeldMessage, MessageQueue]] = []
    made: list[HeldMessage] = []
    for verdict in kept:
        result = _result(site, held, verdict, is_same=is_same)
        made.append(result)
        failure = _failure(site, verdict, context, ways, result)
        if failure is not None:
            site.fail(result, failure.code, failure.text)
            continue
        queue, cause, at_front = _way(verdict.disposition, ways)
        turns = result.message.turns + (verdict.disposition is Disposition.OVER)
        flags = result.message.flags
        if verdict.disposition is Disposition.SEND:
            flags |= Flag.SKIPXLT
        site.prepare(result, queue, cause, at_front=at_front, turns=turns, flags=flags)
        site.ledger.save(result)
        to_put.append((result, queue))
    if is_same:
        if made[0].message.serial != source.serial:
            site.ledger.remove(source, CopyRemovalCause.REPLACED)
    else:
        site.end(held, Fate.REPLACED, tuple(each.message.mid for each in made))
    for result, queue in to_put:
        site.put(result, queue)


def _result(site: Site, held: HeldMessage, verdict: StackVerdict, *, is_same: bool) -> HeldMessage:
    """Return the message of a verdict: the original one, with a new copy if its content changed, or a new message."""
    source = held.message
    made = verdict.message
    flags = source.flags | (Flag.USERDB if verdict.is_recoverable else Flag.NONE)
    changes = {
        "payload": made.payload,
        "destination": made.destination,
        "transaction_id": made.transaction_id,
        "priority": made.priority,
        "flags": flags,
    }
    if is_same:
        is_changed = made.payload != source.payload or made.transaction_id != source.transaction_id
        if is_changed and source.serial:
            changes |= {"serial": 0, "replaces": source.serial}
        held.change(**changes)
        return held
    result = HeldMessage(derived(source, site.ledger.new_id(), replaces=source.serial))
    result.change(**changes)
    return result


def _failure(
    site: Site, verdict: StackVerdict, context: ProcedureContext, ways: Ways, result: HeldMessage
) -> ResultFailure | None:
    """Return the reason for which a result cannot be sent by its disposition; None: it can."""
    disposition = verdict.disposition
    if disposition is Disposition.ERROR:
        return ResultFailure(verdict.code or ERROR_CODES[context], verdict.text or "the procedure returned ERROR")
    if disposition not in ALLOWED[context]:
        return ResultFailure(ERROR_CODES[context], f"{disposition} is not allowed in {context.value}")
    if disposition is Disposition.SEND:
        destination = result.message.destination
        if not destination:
            return ResultFailure(ErrorCode.NO_DESTINATION, "SEND of a message without a destination")
        thread = site.threads.get(destination)
        if thread is None or thread.settings.outbound is None:
            return ResultFailure(ErrorCode.WRONG_DESTINATION, f"SEND to {destination!r}, which sends nothing")
    if (disposition is Disposition.OVER and ways.other_direction is None) or (
        disposition is Disposition.PROTO and ways.head is None
    ):
        return ResultFailure(ErrorCode.WRONG_DESTINATION, f"{disposition} in a thread that has no other direction")
    if disposition is Disposition.OVER and result.message.turns >= site.settings.turns_max:
        return ResultFailure(ERROR_CODES[context], f"sent over {site.settings.turns_max} times")
    return None


def _way(disposition: Disposition, ways: Ways) -> tuple[MessageQueue, MessageCause, bool]:
    match disposition:
        case Disposition.SEND:
            is_inbound = ways.sending is ways.next_queue
            return ways.sending, MessageCause.PASS if is_inbound else MessageCause.SKIP, False
        case Disposition.OVER:
            assert ways.other_direction is not None
            return (
                ways.other_direction,
                MessageCause.OVER_UNPROCESSED if ways.other_is_unprocessed else MessageCause.OVER,
                False,
            )
        case Disposition.PROTO:
            assert ways.head is not None
            return ways.head, MessageCause.PROTO, True
        case _:
            return ways.next_queue, MessageCause.PASS, False


def addressed(message: Message, destination: str) -> Message:
    """Return a message with another destination in its metadata."""
    return replace(message, destination=destination)
