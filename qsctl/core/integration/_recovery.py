"""The recovery of a process: its messages in the recovery database at its start, and their queues [CLOVERLEAF].

Decides: whether a translation begins again or its results move on, which depends on whether the inbound message is
still stored. Messages in transit return to their former queue, and the positions restore the order of each queue.
"""

from __future__ import annotations

from collections.abc import Mapping

from qsctl.core.integration._lifecycle import HeldMessage, MessageCause
from qsctl.core.integration._message_queue import MessageQueue
from qsctl.core.integration._protocol_thread import ProtocolThread
from qsctl.core.integration._site import Site
from qsctl.core.integration._translation_thread import TranslationThread
from qsctl.core.integration.error_codes import ErrorCode
from qsctl.core.integration.events import Recovered
from qsctl.core.integration.message import Flag, Message, State
from qsctl.core.integration.records import CopyRemovalCause

_MAY_BE_DELIVERED = frozenset({State.PRE_WRITE, State.RESERVED_FOR_REPLY})
_NEED_DESTINATION = frozenset({State.PARTIAL, State.POST_TRANSLATION, State.SENT_TO_DESTINATION})


def drop_unfinished(site: Site) -> None:
    """Remove the copies of interrupted changes from the databases; only while no process is running."""
    for message in site.database.unfinished():
        site.ledger.remove(message, CopyRemovalCause.ABANDONED)


def recover(
    site: Site, process: str, threads: Mapping[str, ProtocolThread], translations: Mapping[str, TranslationThread]
) -> None:
    """Put a process's messages in the recovery database into its queues."""
    database = site.database
    of_process = [each for each in database.recovery.values() if process_of(site, threads, each) == process]
    for message in [each for each in of_process if not database.counts(each)]:
        site.ledger.remove(message, CopyRemovalCause.ABANDONED)
    partial: list[HeldMessage] = []
    for message in sorted(filter(database.counts, of_process), key=lambda each: (each.position, each.mid)):
        queue = _queue_of(message, threads, translations[process])
        held = HeldMessage(message)
        site.live[message.mid] = held
        if isinstance(queue, ErrorCode):
            owner = message.destination if message.state in _NEED_DESTINATION else message.owner
            site.fail(held, queue, f"on recovery: {_WHY[queue]}: {owner!r}")
            continue
        flags = message.flags | (Flag.POSSIBLE_DUPLICATE if message.state in _MAY_BE_DELIVERED else Flag.NONE)
        was = message.state
        held.move(MessageCause.RESTART, flags=flags, process=process)
        if held.message.state is not was or not message.process:
            held.change(entered_at_ns=site.now)
            site.ledger.save(held)
        site.put(held, queue)
        if was is State.PARTIAL:
            partial.append(held)
        site.events.append(Recovered(site.now, message.mid, was, held.message.state))
    translations[process].distribute(partial)


_WHY = {
    ErrorCode.INCORRECT_ICL_SERVER: "the destination is in another process now",
    ErrorCode.WRONG_DESTINATION: "no thread of this name is here, or it has no such side",
}


def _queue_of(
    message: Message, threads: Mapping[str, ProtocolThread], translation: TranslationThread
) -> MessageQueue | ErrorCode:
    """Return the queue of a recovered message, or the error code if it has none."""
    thread = threads.get(message.owner)
    match message.state:
        case State.INBOUND_PRE_TPS if _is_of(thread, message):
            assert thread is not None
            return thread.inbound_pre
        case State.INBOUND_POST_TPS | State.SENT_TO_TRANSLATION if _is_of(thread, message):
            assert thread is not None
            return thread.inbound_post
        case State.PRE_TRANSLATION | State.IN_TRANSLATION:
            return translation.pre_translation
        case State.PARTIAL if message.flags & Flag.REROUTED:
            return translation.partial
        case State.PARTIAL | State.POST_TRANSLATION | State.SENT_TO_DESTINATION:
            destination = threads.get(message.destination)
            if destination is None or destination.settings.outbound is None:
                return ErrorCode.WRONG_DESTINATION
            is_partial = message.state is State.PARTIAL
            return translation.partial if is_partial else translation.post_queue(message.destination)
        case State.OUTBOUND_PRE_TPS if _is_of(thread, message):
            assert thread is not None
            return thread.outbound_pre
        case State.OUTBOUND_POST_TPS | State.PRE_WRITE | State.RESERVED_FOR_REPLY if _is_of(thread, message):
            assert thread is not None
            return thread.outbound_post
        case _:
            return ErrorCode.WRONG_DESTINATION


def _is_of(thread: ProtocolThread | None, message: Message) -> bool:
    return thread is not None and message.process in {thread.process, ""}


def fail_misplaced(site: Site, threads: Mapping[str, ProtocolThread]) -> None:
    """Fail the messages of processes that no longer exist, and of threads that now belong to another process."""
    for message in list(site.database.recovery.values()):
        if not message.process or not site.database.counts(message):
            continue
        thread = threads.get(message.owner)
        has_moved = thread is not None and thread.process != message.process and message.state not in _NEED_DESTINATION
        if has_moved or message.process not in site.translations:
            code = ErrorCode.INCORRECT_ICL_SERVER
            site.fail(
                HeldMessage(message), code, f"on recovery: {_WHY[code]}: {message.owner!r}, process {message.process!r}"
            )


def process_of(site: Site, threads: Mapping[str, ProtocolThread], message: Message) -> str:
    """Return the process to which a message belongs.

    A message that was resent while no engine was running belongs to its thread's process.
    """
    if message.process:
        return message.process
    thread = threads.get(message.owner)
    return thread.process if thread is not None else next(iter(site.translations))
