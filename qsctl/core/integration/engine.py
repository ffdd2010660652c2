"""The integration engine: its processes and threads as a sans-I/O state machine [CLOVERLEAF].

Decides: the order of work at one instant, and the output for a driver. The driver stores the records of a turn, then
releases its messages; a message rests on all records up to its turn. The driver owns the clock, the files and the
connections, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, assert_never

from qsctl.core.integration import _recovery as recovery
from qsctl.core.integration._lifecycle import HeldMessage
from qsctl.core.integration._message_queue import MessageQueue
from qsctl.core.integration._protocol_thread import ProtocolThread
from qsctl.core.integration._site import Site
from qsctl.core.integration._translation_thread import TranslationThread
from qsctl.core.integration.administration import Keeper, again, requirement_of, stop_first
from qsctl.core.integration.database import Database
from qsctl.core.integration.events import Changed, Event, Fate
from qsctl.core.integration.message import Message, MessageId
from qsctl.core.integration.messages import (
    Acknowledged,
    Answered,
    Arrived,
    Connected,
    ConnectionLost,
    Delete,
    Inbound,
    Outbound,
    ProcessStarted,
    ProcessStopped,
    Resend,
    ThreadStarted,
    ThreadStopped,
)
from qsctl.core.integration.records import CopyRemovalCause, Record
from qsctl.core.integration.settings import EngineSettings, ProcessSettings
from qsctl.errors import NotFound, Refused
from qsctl.instant import Nanoseconds


class EngineReady(NamedTuple):
    """The output of a turn: store the records, then send the messages. The receiver owns the lists."""

    records: list[Record]
    messages: list[Outbound]
    events: list[Event]


class Down(NamedTuple):
    """Processes and threads that a starting engine does not start, and connections that are lost at its start."""

    processes: frozenset[str] = frozenset()
    threads: frozenset[str] = frozenset()
    connections: frozenset[str] = frozenset()
    """Names of the threads whose connection is lost."""


NOTHING_DOWN: Final = Down()


class IntegrationEngine:
    """One engine, with the databases that its last run left.

    Args:
        settings: its processes and threads.
        database: the stored state, which the engine owns from now on; None: a new one.
        started_at: the present instant.
        down: processes and threads that do not start with it; later messages can start them.
    """

    def __init__(
        self,
        settings: EngineSettings,
        database: Database | None = None,
        started_at: Nanoseconds = 0,
        down: Down = NOTHING_DOWN,
    ) -> None:
        self.settings = settings
        self._threads: dict[str, ProtocolThread] = {}
        self._translations: dict[str, TranslationThread] = {}
        stored = Database() if database is None else database
        self._site = site = Site(settings, stored, started_at, self._threads, self._translations)
        self._processes = {process.name: process for process in settings.processes}
        self._up: set[str] = set()
        for process in settings.processes:
            self._translations[process.name] = TranslationThread(site, process.name)
            for thread in process.threads:
                self._threads[thread.name] = ProtocolThread(site, thread, process.name)
        recovery.drop_unfinished(site)
        recovery.fail_misplaced(site, self._threads)
        for name, each in self._threads.items():
            if name in down.connections:
                each.connect(is_connected=False)
        for process in settings.processes:
            if process.name in down.processes:
                site.events.append(Changed(site.now, "process", process.name, is_up=False))
            elif process.is_started:
                self._start_process(process, down.threads)
        self._run()

    @property
    def database(self) -> Database:
        """Return both databases in the state after all written records; read only."""
        return self._site.database

    def messages(self) -> list[Message]:
        """Return all messages in memory, by id."""
        return sorted((held.message for held in self._site.live.values()), key=lambda each: each.mid)

    def queues(self) -> Iterator[MessageQueue]:
        """Yield all queues; read only."""
        for thread in self._threads.values():
            yield from thread.queues
        for translation in self._translations.values():
            yield from translation.queues

    @property
    def unbacked_count(self) -> int:
        """Return the number of messages that are in memory only and are lost when their process ends."""
        return len(self._site.unbacked)

    def is_running(self, name: str) -> bool:
        """Return whether a protocol thread or a process is running."""
        thread = self._threads.get(name)
        return thread.is_running if thread is not None else name in self._up

    def receive(self, now: Nanoseconds, message: Inbound) -> None:
        """Process a message, and do all work that follows from it at this instant.

        Raises:
            NotFound: no such thread or process exists.
        """
        self.advance(now)
        site = self._site
        match message:
            case Arrived(thread):
                self._thread(thread).receive(message)
            case Acknowledged(thread, mid, is_accepted):
                self._thread(thread).acknowledge(mid, is_accepted=is_accepted)
            case ThreadStopped(thread):
                self._thread(thread).stop()
            case ThreadStarted(thread):
                found = self._thread(thread)
                if found.process in self._up:
                    found.start()
            case ConnectionLost(thread):
                self._thread(thread).connect(is_connected=False)
            case Connected(thread):
                self._thread(thread).connect(is_connected=True)
            case ProcessStopped(name, is_crash):
                self._stop_process(self._process(name), "crash" if is_crash else "")
            case ProcessStarted(name, without):
                process = self._process(name)
                if name not in self._up:
                    self._start_process(process, without)
            case Resend():
                self._resend(message)
            case Delete(mid):
                self._delete(mid)
            case _:
                assert_never(message)
        assert site.now == now
        self._run()

    def advance(self, now: Nanoseconds) -> None:
        """Do all work that is due up to now, each at its own instant."""
        site = self._site
        while (instant := site.agenda.next_instant()) is not None and instant <= now:
            site.now = max(site.now, instant)
            self._run()
        site.now = max(site.now, now)
        self._run()

    def next_deadline(self) -> Nanoseconds | None:
        """Return the instant at which `advance` has work to do; None: there is none."""
        return self._site.agenda.next_instant()

    def take_ready(self) -> EngineReady:
        """Return all output since the last call."""
        site = self._site
        ready = EngineReady(site.ledger.records, site.outbox, site.events)
        site.ledger.records, site.outbox, site.events = [], [], []
        return ready

    def _run(self) -> None:
        """Let the threads work until nothing is left to do at this instant."""
        site = self._site
        while True:
            if site.panics:
                name, why = site.panics.pop(0)
                self._stop_process(self._processes[name], why)
            elif (work := site.next_awake()) is not None or (work := site.agenda.take(site.now)) is not None:
                work()
            else:
                return

    def _start_process(self, process: ProcessSettings, stopped: frozenset[str] = frozenset()) -> None:
        site = self._site
        self._up.add(process.name)
        site.events.append(Changed(site.now, "process", process.name, is_up=True))
        recovery.recover(site, process.name, self._threads, self._translations)
        self._translations[process.name].start()
        for thread in process.threads:
            if thread.name in stopped:
                site.events.append(Changed(site.now, "thread", thread.name, is_up=False))
            elif thread.is_started:
                self._threads[thread.name].start()

    def _stop_process(self, process: ProcessSettings, why: str) -> None:
        """End a process: messages that are in no database are lost."""
        if process.name not in self._up:
            return
        site = self._site
        self._up.discard(process.name)
        for queue in self._queues_of(process):
            for held in queue:
                site.leave(held, queue, _fate_of(held.message))
        for held in [each for each in site.live.values() if each.message.process == process.name]:
            site.forget(held, _fate_of(held.message))
        for thread in process.threads:
            self._threads[thread.name].crash()
        self._translations[process.name].crash()
        site.events.append(Changed(site.now, "process", process.name, is_up=False, text=why))

    def _queues_of(self, process: ProcessSettings) -> Iterator[MessageQueue]:
        for thread in process.threads:
            yield from self._threads[thread.name].queues
        yield from self._translations[process.name].queues

    def _resend(self, command: Resend) -> None:
        site = self._site
        message = next((each for each in site.database.failed() if each.mid == command.mid), None)
        if message is None:
            self._answer(command.mid, "there is no such message in the error database", "Look for it with a dump.")
            return
        try:
            ledger = site.ledger
            mid = ledger.new_id()
            new = again(message, command.place, mid, 0, ledger.next_place(), site.now)
        except Refused as error:
            self._answer(command.mid, error.message, error.remedy)
            return
        thread = self._threads.get(new.owner)
        if thread is None:
            self._answer(command.mid, f"there is no thread {new.owner!r}", "Resend it to the other direction.")
            return
        held = HeldMessage(new)
        held.change(process=thread.process)
        ledger.save(held)
        ledger.remove(message, CopyRemovalCause.RESENT)
        if thread.process in self._up:
            queue = next(each for each in thread.queues if each.state is new.state)
            site.put(held, queue)
            site.wake(thread.work)
        site.outbox.append(Answered(command.mid, f"sent again as {mid}", new_mid=mid))

    def _delete(self, mid: MessageId) -> None:
        site = self._site
        failed = next((each for each in site.database.failed() if each.mid == mid), None)
        if failed is not None:
            site.ledger.remove(failed, CopyRemovalCause.DELETED)
            self._answer(mid, "deleted from the error database")
            return
        held = site.live.get(mid)
        message = held.message if held is not None else None
        if message is None:
            message = next((each for each in site.database.messages() if each.mid == mid), None)
        if message is None:
            self._answer(mid, "there is no such message", "Look for it with a dump.")
            return
        needed = requirement_of(message)
        assert needed is not None
        if self.is_running(needed.name) and (needed.keeper is Keeper.PROCESS or needed.process in self._up):
            where = f"it is in state {message.state.code}, in the memory of {needed.keeper.value} {needed.name}"
            self._answer(mid, f"not deleted: {where}, and would go on all the same", stop_first(message))
            return
        if held is not None:
            self._threads[needed.name].remove(mid)
            site.end(held, Fate.DELETED)
        else:
            site.ledger.remove(message, CopyRemovalCause.DELETED)
        self._answer(mid, "deleted")

    def _answer(self, mid: MessageId, text: str, remedy: str = "") -> None:
        self._site.outbox.append(Answered(mid, text, remedy))

    def _thread(self, name: str) -> ProtocolThread:
        found = self._threads.get(name)
        if found is None:
            raise NotFound(f"there is no thread {name!r}", remedy=f"Threads: {', '.join(self._threads)}.")
        return found

    def _process(self, name: str) -> ProcessSettings:
        found = self._processes.get(name)
        if found is None:
            raise NotFound(f"there is no process {name!r}", remedy=f"Processes: {', '.join(self._processes)}.")
        return found


def _fate_of(message: Message) -> Fate:
    """Return the fate of a message whose process ends; a result with a stored source is abandoned, and made again."""
    if message.serial:
        return Fate.INTERRUPTED
    return Fate.ABANDONED if message.results_from else Fate.LOST
