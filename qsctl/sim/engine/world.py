"""The world around a simulated integration engine: senders, receivers, operators, power [CLOVERLEAF].

Decides: what a driver does. Records are stored before messages are released; a sender whose thread does not run keeps
its messages, in order, until it does; a receiver processes one message at a time. Storage takes no virtual time.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from qsctl.core.integration.database import Database
from qsctl.core.integration.engine import IntegrationEngine
from qsctl.core.integration.events import Changed, Ended, Event, Fate
from qsctl.core.integration.message import MessageType
from qsctl.core.integration.messages import (
    Accepted,
    Acknowledged,
    Answered,
    Arrived,
    Connected,
    ConnectionLost,
    Delivery,
    Inbound,
    Outbound,
    ProcessStarted,
    ProcessStopped,
    Refused,
    ThreadStarted,
    ThreadStopped,
)
from qsctl.core.integration.records import Record
from qsctl.instant import INFINITE_NS, SECOND_NS, Nanoseconds
from qsctl.sim.arrivals.cursor import ArrivalCursor
from qsctl.sim.engine.behaviours import label_of, new_payload
from qsctl.sim.engine.build import engine_settings
from qsctl.sim.kernel.random import logarithm, stream_key, uniform
from qsctl.sim.scenario.engine import EngineInbound, EngineOutbound
from qsctl.sim.scenario.intervals import occurrences
from qsctl.sim.scenario.scenario import (
    ClientGroup,
    ConstantArrivals,
    ConstantSize,
    PoissonArrivals,
    Scenario,
    Traffic,
)

DEFAULT_SIZE_BYTES: Final = 256


@dataclass(frozen=True, slots=True)
class Received:
    """A message that a receiver has."""

    at_ns: Nanoseconds
    thread: str
    payload: bytes
    is_possible_duplicate: bool


@dataclass(slots=True)
class _Sender:
    """Sends the messages of one inbound thread, in order."""

    thread: str
    declared: EngineInbound
    number: int = 0
    backlog: deque[tuple[int, bytes]] = field(default_factory=deque)
    """Number and data of what could not be sent yet."""
    accepted: int = 0


@dataclass(slots=True)
class _Receiver:
    """Processes the messages of one outbound thread, one at a time."""

    thread: str
    mean_service_ns: float
    is_exponential: bool
    declared: EngineOutbound
    service_key: Any
    answer_key: Any
    reply_key: Any
    processed: int = 0
    presence: int = 0
    """Counts outages and restarts: a service that was in progress is void."""

    def service_ns(self) -> Nanoseconds:
        if not self.is_exponential:
            return round(self.mean_service_ns)
        return max(1, round(-float(logarithm(uniform(self.service_key, self.processed))) * self.mean_service_ns))

    def refuses(self) -> bool:
        return float(uniform(self.answer_key, self.processed)) < self.declared.refuses

    def is_silent(self) -> bool:
        return float(uniform(self.reply_key, self.processed)) < self.declared.silent


class EngineWorld:
    """One engine and everything around it.

    Args:
        scenario: with an engine.
        replication: its number: random streams are its own.
        database: what an earlier run left.
        from_ns: where the virtual time begins; arrivals before it are not sent.
        until_ns: where arrivals end; by default the scenario's horizon.
        store: makes records durable; called before what rests on them is released.
        on_event: called with every event of the engine.
        on_turn: called with the instant, the records and the events of every turn, once the records are stored.
        on_release: called with every message that the engine sends.
        on_received: called with every message that a receiver has.

    Raises:
        InvalidInput: the scenario cannot be simulated.
    """

    def __init__(
        self,
        scenario: Scenario,
        replication: int = 0,
        *,
        database: Database | None = None,
        from_ns: Nanoseconds = 0,
        until_ns: Nanoseconds | None = None,
        store: Callable[[Sequence[Record]], None] = lambda _: None,
        on_event: Callable[[Event], None] = lambda _: None,
        on_turn: Callable[[Nanoseconds, Sequence[Record], Sequence[Event]], None] = lambda *_: None,
        on_release: Callable[[Outbound], None] = lambda _: None,
        on_received: Callable[[Received], None] = lambda _: None,
    ) -> None:
        assert scenario.engine is not None
        self.declared = scenario.engine
        self.settings = engine_settings(scenario.engine, scenario.seed, replication)
        self.now: Nanoseconds = from_ns
        self.offered = 0
        """Messages that senders had to send."""
        self.delivered = 0
        self.lost = 0
        """Messages that were in no database when their process ended."""
        self.failed = 0
        self.answers: list[Answered] = []
        self._from_ns = from_ns
        self._until_ns = scenario.horizon_ns if until_ns is None else min(until_ns, scenario.horizon_ns)
        self._store, self._on_event, self._on_turn = store, on_event, on_turn
        self._on_release, self._on_received = on_release, on_received
        self._agenda: list[tuple[Nanoseconds, int, Callable[[], None]]] = []
        self._count = 0
        self._senders: dict[str, _Sender] = {}
        self._receivers: dict[str, _Receiver] = {}
        self._arrivals = ArrivalCursor(arrivals_scenario(scenario), replication, self._until_ns)
        self._by_client = [
            thread.name for process in scenario.engine.processes for thread in process.threads if thread.inbound
        ]
        self._is_powered = True
        self._add_peers(scenario, replication)
        while self._arrivals.next_ns < from_ns:  # an earlier run has sent it: it only counts
            self._senders[self._by_client[self._arrivals.pop()[0]]].number += 1
        self._engine = IntegrationEngine(self.settings, database, from_ns)
        self._plan(scenario)
        self._finish_turn()

    @property
    def engine(self) -> IntegrationEngine:
        """The engine, as it is now; after power failed, the one that was."""
        return self._engine

    @property
    def waiting_at_senders(self) -> int:
        """Messages that no thread has received yet."""
        return sum(len(each.backlog) for each in self._senders.values())

    def next_instant(self) -> Nanoseconds:
        """Return when something happens next; INFINITE_NS: never."""
        instant = self._arrivals.next_ns
        if self._agenda:
            instant = min(instant, self._agenda[0][0])
        deadline = self._engine.next_deadline() if self._is_powered else None
        return instant if deadline is None or deadline > instant else max(deadline, self.now)

    def turn(self, instant: Nanoseconds) -> None:
        """Do everything that happens at an instant."""
        self.now = max(self.now, instant)
        while self._arrivals.next_ns <= self.now:
            client, size_bytes = self._arrivals.pop()
            self._offer(self._by_client[client], size_bytes)
        while self._agenda and self._agenda[0][0] <= self.now:
            heapq.heappop(self._agenda)[2]()
            self._finish_turn()
        if self._is_powered:
            self._engine.advance(self.now)
            self._finish_turn()

    def run(self, until_ns: Nanoseconds = INFINITE_NS) -> None:
        """Go on until nothing more happens, or to an instant (exclusive)."""
        while (instant := self.next_instant()) < min(until_ns, INFINITE_NS):
            self.turn(instant)

    def command(self, message: Inbound) -> None:
        """Have an operator do something now."""
        self._receive(message)
        self._finish_turn()

    # Senders, receivers, and what is planned.

    def _add_peers(self, scenario: Scenario, replication: int) -> None:
        for process in self.declared.processes:
            for thread in process.threads:
                if thread.inbound is not None:
                    self._senders[thread.name] = _Sender(thread.name, thread.inbound)
                if thread.outbound is not None:
                    service = thread.outbound.service
                    assert isinstance(service, PoissonArrivals | ConstantArrivals)
                    service_key, answer_key, reply_key = (
                        np.uint64(stream_key(scenario.seed, replication, thread.name, purpose))
                        for purpose in ("service", "answer", "reply")
                    )
                    self._receivers[thread.name] = _Receiver(
                        thread.name,
                        SECOND_NS / service.rate_per_second,
                        isinstance(service, PoissonArrivals),
                        thread.outbound,
                        service_key,
                        answer_key,
                        reply_key,
                    )

    def _plan(self, scenario: Scenario) -> None:
        horizon_ns = scenario.horizon_ns
        for process in self.declared.processes:
            for start, end in occurrences(process.crashes, horizon_ns):
                self._at(start, lambda name=process.name: self._receive(ProcessStopped(name, is_crash=True)))  # type: ignore[misc]
                self._at(end, lambda name=process.name: self._receive(ProcessStarted(name)))  # type: ignore[misc]
            for thread in process.threads:
                for start, end in occurrences(thread.stops, horizon_ns):
                    self._at(start, lambda name=thread.name: self._receive(ThreadStopped(name)))  # type: ignore[misc]
                    self._at(end, lambda name=thread.name: self._receive(ThreadStarted(name)))  # type: ignore[misc]
                for start, end in occurrences(thread.outbound.outages if thread.outbound else (), horizon_ns):
                    self._at(start, lambda name=thread.name: self._outage(name, is_over=False))  # type: ignore[misc]
                    self._at(end, lambda name=thread.name: self._outage(name, is_over=True))  # type: ignore[misc]
        for start, end in occurrences(self.declared.failures, horizon_ns):
            self._at(start, self._lose_power)
            self._at(end, self._get_power)

    def _at(self, instant: Nanoseconds, action: Callable[[], None]) -> None:
        """Plan something; what was due before the virtual time began is in force from the beginning."""
        if instant < INFINITE_NS:
            self._count += 1
            heapq.heappush(self._agenda, (max(instant, self._from_ns), self._count, action))

    # What happens.

    def _offer(self, thread: str, size_bytes: int) -> None:
        sender = self._senders[thread]
        sender.number += 1
        self.offered += 1
        sender.backlog.append((sender.number, new_payload(thread, sender.number, size_bytes)))
        if len(sender.backlog) == 1:
            self._send(sender)

    def _send(self, sender: _Sender) -> None:
        """Send what waits, while the thread runs."""
        while sender.backlog and self._is_powered and self._engine.is_running(sender.thread):
            number, payload = sender.backlog.popleft()
            self._receive(Arrived(sender.thread, number, payload))
            self._finish_turn()

    def _receive(self, message: Inbound) -> None:
        if self._is_powered:
            self._engine.receive(self.now, message)

    def _finish_turn(self) -> None:
        """Store, release, report: until the engine has nothing more."""
        while self._is_powered:
            ready = self._engine.take_ready()
            if not (ready.records or ready.messages or ready.events):
                return
            self._store(ready.records)
            self._on_turn(self.now, ready.records, ready.events)
            started: list[str] = []
            for event in ready.events:
                self._note(event)
                self._on_event(event)
                if isinstance(event, Changed) and event.is_up and event.what == "thread":
                    started.append(event.name)
            for message in ready.messages:
                self._on_release(message)
                self._release(message)
            for name in started:
                if name in self._senders:
                    self._send(self._senders[name])

    def _note(self, event: Event) -> None:
        if isinstance(event, Ended):
            self.lost += event.fate is Fate.LOST
            self.failed += event.fate is Fate.FAILED
        elif isinstance(event, Changed) and event.what in {"thread", "process"} and not event.is_up:
            for receiver in self._receivers.values():
                if not self._engine.is_running(receiver.thread):
                    receiver.presence += 1

    def _release(self, message: Outbound) -> None:
        match message:
            case Delivery(thread):
                receiver = self._receivers[thread]
                presence, service_ns = receiver.presence, receiver.service_ns()
                self._later(service_ns, lambda: self._served(receiver, message, presence))
            case Accepted(thread):
                if thread in self._senders:
                    self._senders[thread].accepted += 1
            case Refused():
                pass  # a sender sends only while its thread runs; a reply that comes too late is gone
            case Answered():
                self.answers.append(message)

    def _served(self, receiver: _Receiver, delivery: Delivery, presence: int) -> None:
        """End a receiver's service of a message, unless the connection or the process has changed meanwhile."""
        if presence != receiver.presence:
            return
        is_refused, is_silent = receiver.refuses(), receiver.is_silent()
        receiver.processed += 1
        if not is_refused:
            self.delivered += 1
            self._on_received(Received(self.now, receiver.thread, delivery.payload, delivery.is_possible_duplicate))
        self._receive(Acknowledged(receiver.thread, delivery.mid, is_accepted=not is_refused))
        if receiver.declared.awaits_reply and not is_refused and not is_silent:
            label = label_of(delivery.payload)
            reply = label._replace(path=f"{label.path}.reply").line() + b"\n"
            action = Arrived(receiver.thread, label.number, reply, type=MessageType.REPLY)
            self._later(receiver.declared.reply_delay_ns, lambda: self._receive(action))

    def _outage(self, thread: str, *, is_over: bool) -> None:
        self._receivers[thread].presence += 1
        self._receive(Connected(thread) if is_over else ConnectionLost(thread))

    def _lose_power(self) -> None:
        """End every process; what was stored is stored."""
        for process in self.settings.processes:
            self._receive(ProcessStopped(process.name, is_crash=True))
        self._finish_turn()
        self._is_powered = False

    def _get_power(self) -> None:
        if not self._is_powered:
            self._is_powered = True
            for receiver in self._receivers.values():
                receiver.presence += 1
            self._engine = IntegrationEngine(self.settings, self._engine.database, self.now)

    def _later(self, duration: Nanoseconds, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._agenda, (self.now + duration, self._count, action))


def arrivals_scenario(scenario: Scenario) -> Scenario:
    """Return the senders as groups of clients with traffic to each.

    The arrival streams of all models are made from such a scenario.
    """
    assert scenario.engine is not None
    declared = [
        (thread.name, thread.inbound)
        for process in scenario.engine.processes
        for thread in process.threads
        if thread.inbound is not None
    ]
    return Scenario(
        name=scenario.name,
        seed=scenario.seed,
        horizon_ns=scenario.horizon_ns,
        groups=tuple(ClientGroup(name, "", "") for name, _ in declared),
        traffic=tuple(
            Traffic(name, name, each.arrivals, each.size or ConstantSize(DEFAULT_SIZE_BYTES)) for name, each in declared
        ),
    )
