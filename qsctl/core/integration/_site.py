"""The state that all threads of an engine share: time, ledger, agenda, and the entry and exit of messages in queues.

Decides: that every entry and every end is one event, and every step of a backed message one record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from qsctl.core.integration._ledger import EngineLedger
from qsctl.core.integration._lifecycle import HeldMessage, MessageCause
from qsctl.core.integration._message_queue import MessageQueue
from qsctl.core.integration._neighbours import ConnectionThread, TranslatingThread
from qsctl.core.integration._worker import WorkerAgenda
from qsctl.core.integration.database import Database
from qsctl.core.integration.error_codes import ErrorCode
from qsctl.core.integration.events import Ended, Entered, Event, Fate, Left
from qsctl.core.integration.message import Flag, MessageId
from qsctl.core.integration.messages import Outbound
from qsctl.core.integration.records import CopyRemovalCause
from qsctl.core.integration.settings import EngineSettings
from qsctl.instant import Nanoseconds, later

_REMOVALS = {
    Fate.DELIVERED: CopyRemovalCause.DELIVERED,
    Fate.KILLED: CopyRemovalCause.KILLED,
    Fate.REPLACED: CopyRemovalCause.REPLACED,
    Fate.ABANDONED: CopyRemovalCause.ABANDONED,
    Fate.DELETED: CopyRemovalCause.DELETED,
    Fate.PASSED: CopyRemovalCause.TRANSLATED,
}


class Site:
    """The shared state of an engine's threads.

    Args:
        settings: the engine's.
        database: the stored state.
        now: the present instant.
        threads: the protocol threads, by name; the engine fills it.
        translations: the translation threads, by process; the engine fills it.
    """

    def __init__(
        self,
        settings: EngineSettings,
        database: Database,
        now: Nanoseconds,
        threads: Mapping[str, ConnectionThread],
        translations: Mapping[str, TranslatingThread],
    ) -> None:
        self.settings = settings
        self.now: Nanoseconds = now
        self.ledger = EngineLedger(database, settings.site, now)
        self.agenda = WorkerAgenda()
        self.outbox: list[Outbound] = []
        self.events: list[Event] = []
        self.threads = threads
        self.translations = translations
        self.live: dict[MessageId, HeldMessage] = {}
        """All messages in memory."""
        self.unbacked: dict[MessageId, HeldMessage] = {}
        """The subset of messages that are in no database and not made from one that is."""
        self.panics: list[tuple[str, str]] = []
        """Processes that must end, with the reasons."""
        self._awake: dict[Callable[[], None], None] = {}

    @property
    def database(self) -> Database:
        """Return both databases in the state after all written records."""
        return self.ledger.database

    def wake(self, work: Callable[[], None]) -> None:
        """Let a thread check for work in this turn."""
        self._awake[work] = None

    def next_awake(self) -> Callable[[], None] | None:
        """Return the next callback that checks for work, and remove it; None: there is none."""
        for work in self._awake:
            del self._awake[work]
            return work
        return None

    def after(self, duration: Nanoseconds, action: Callable[[], None]) -> None:
        """Schedule an action after a duration."""
        self.agenda.at(later(self.now, duration), action)

    def enter(
        self, held: HeldMessage, queue: MessageQueue, cause: MessageCause, *, at_front: bool = False, **changes: Any
    ) -> None:
        """Move a message into a queue: write its new version first, then insert it in memory."""
        self.prepare(held, queue, cause, at_front=at_front, **changes)
        self.ledger.save(held)
        self.put(held, queue)

    def prepare(
        self, held: HeldMessage, queue: MessageQueue, cause: MessageCause, *, at_front: bool = False, **changes: Any
    ) -> None:
        """Change a message to its version in a queue, at the end or at the head of it."""
        if at_front:
            changes["priority"] = max(held.message.priority, queue.highest_priority() or 0)
        changes.setdefault("position", self.ledger.next_place(at_front=at_front))
        held.move(cause, process=queue.process, owner=queue.owner, entered_at_ns=self.now, **changes)

    def put(self, held: HeldMessage, queue: MessageQueue) -> None:
        """Insert a prepared message into a queue."""
        message = held.message
        self.live[message.mid] = held
        queue.put(held)
        is_backed = bool(message.serial)
        if not (is_backed or message.results_from):
            self.unbacked[message.mid] = held
        elif self.unbacked:
            self.unbacked.pop(message.mid, None)
        self.events.append(
            Entered(self.now, queue.process, queue.owner, queue.state, message.mid, is_backed, message.payload)
        )

    def take(self, queue: MessageQueue) -> HeldMessage | None:
        """Remove and return the next message of a queue."""
        held = queue.take()
        if held is not None:
            self.leave(held, queue, Fate.PASSED)
        return held

    def leave(self, held: HeldMessage, queue: MessageQueue, fate: Fate) -> None:
        """Report that a message has left a queue."""
        self.events.append(Left(self.now, queue.process, queue.owner, queue.state, held.message.mid, fate))

    def end(self, held: HeldMessage, fate: Fate, became: tuple[MessageId, ...] = (), text: str = "") -> None:
        """Remove a message from memory, and its copy from the recovery database."""
        removal = _REMOVALS.get(fate)
        if removal is not None:
            self.ledger.remove(held.message, removal)
        self.forget(held, fate, became, text)

    def forget(self, held: HeldMessage, fate: Fate, became: tuple[MessageId, ...] = (), text: str = "") -> None:
        """Remove a message from memory, without changing the databases."""
        message = held.message
        self.live.pop(message.mid, None)
        if self.unbacked:
            self.unbacked.pop(message.mid, None)
        is_backed = bool(message.flags & Flag.USERDB)
        self.events.append(
            Ended(
                self.now, message.mid, message.source_mid, message.state, message.owner, fate, is_backed,
                message.payload, became, text,
            )
        )  # fmt: skip

    def fail(self, held: HeldMessage, code: ErrorCode, text: str) -> None:
        """Move a message to the error database."""
        self.ledger.fail(held, self.now, code, text)
        self.forget(held, Fate.FAILED, text=f"{int(code)} {text}")
