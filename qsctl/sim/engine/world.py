"""The environment of a simulated integration engine: senders, receivers, operators, power [CLOVERLEAF].

Decides: the driver's order of steps. Records are stored before messages are released; a sender whose thread does not
run keeps its messages, in order, until it does; a receiver processes one message at a time. Storage takes no virtual
time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

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
    ConnectionDelivery,
    ConnectionLost,
    Inbound,
    Outbound,
    ProcessStarted,
    ProcessStopped,
    SenderRefused,
    ThreadStarted,
    ThreadStopped,
)
from qsctl.core.integration.records import STREAM, Record
from qsctl.instant import INFINITE_NS, SECOND_NS, Nanoseconds
from qsctl.sim.arrivals.cursor import ArrivalCursor
from qsctl.sim.engine._peers import OutboundPeer, Peers, PeersChanged, Sender, StoredRecord, sender_of
from qsctl.sim.engine.behaviours import label_of
from qsctl.sim.engine.build import engine_settings
from qsctl.sim.engine.plan import Interruption, PlannedInterruption, RunPlan
from qsctl.sim.kernel.random import stream_key
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
class ReceivedMessage:
    """A message that a receiver accepted."""

    at_ns: Nanoseconds
    thread: str
    payload: bytes
    is_possible_duplicate: bool


class EngineWorld:
    """One engine with its senders, receivers, operators and power.

    Args:
        scenario: a scenario with an engine.
        replication: number of the replication, which has its own random streams.
        database: the database of an earlier run.
        peers: the state of senders, receivers and the clock after the earlier run.
        from_ns: start of the virtual time; by default the clock of `peers`. If `peers` is not known, arrivals before it
            are not sent; if it is, the engine was down until then, and senders held their messages.
        until_ns: end of arrivals; by default the scenario's horizon.
        store: function that makes the records of a turn durable, all or none; called before dependent messages are
            released. The last record is that of the peers.
        on_event: called with every event of the engine.
        on_turn: called with the instant, the records and the events of every turn, once the records are stored.
        on_release: called with every message that the engine releases.
        on_received: called with every message that a receiver accepts.

    Raises:
        InvalidInput: the scenario cannot be simulated.
    """

    def __init__(
        self,
        scenario: Scenario,
        replication: int = 0,
        *,
        database: Database | None = None,
        peers: Peers | None = None,
        from_ns: Nanoseconds | None = None,
        until_ns: Nanoseconds | None = None,
        store: Callable[[Sequence[StoredRecord]], None] | None = None,
        on_event: Callable[[Event], None] = lambda _: None,
        on_turn: Callable[[Nanoseconds, Sequence[Record], Sequence[Event]], None] = lambda *_: None,
        on_release: Callable[[Outbound], None] = lambda _: None,
        on_received: Callable[[ReceivedMessage], None] = lambda _: None,
    ) -> None:
        assert scenario.engine is not None
        self.declared = scenario.engine
        self.settings = engine_settings(scenario.engine, scenario.seed, replication)
        before = Peers(at_ns=from_ns or 0) if peers is None else peers
        self.now: Nanoseconds = before.at_ns if from_ns is None else from_ns
        self.offered = before.offered
        """Messages that senders had to send; as the other figures, in all runs with its database."""
        self.delivered = before.delivered
        self.failed = before.failed
        self.lost = before.lost + before.unbacked
        """Messages that were in no database when their process ended."""
        self.answers: list[Answered] = []
        self._incarnation = before.incarnation
        self._until_ns = scenario.horizon_ns if until_ns is None else min(until_ns, scenario.horizon_ns)
        self._store, self._on_event, self._on_turn = store, on_event, on_turn
        self._on_release, self._on_received = on_release, on_received
        self._agenda: list[tuple[Nanoseconds, int, Callable[[], None]]] = []
        self._count = 0
        self._arrived = (before.at_ns, before.arrived_count)
        """An instant, and the number of messages of that instant that senders have had to send; and the same of the
        plan.
        """
        self._senders: dict[str, Sender] = {name: sender_of(name, each) for name, each in before.senders.items()}
        self._receivers: dict[str, OutboundPeer] = {}
        self._arrivals = ArrivalCursor(arrivals_scenario(scenario), replication, self._until_ns)
        self._by_client = [
            thread.name for process in scenario.engine.processes for thread in process.threads if thread.inbound
        ]
        done_count = before.planned_count if self.now == before.at_ns else 0
        self._planned = (self.now, done_count)
        self._plan = RunPlan(scenario.engine, scenario.horizon_ns, self.now, done_count)
        for each in self._plan.coming:
            self._later(each.at_ns - self.now, partial(self._carry_out, each))
        self._add_peers(scenario, replication, before)
        self._skip_arrivals(before)
        database = Database() if database is None else database
        self._engine = IntegrationEngine(self.settings, database, self.now, self._plan.down())
        self._is_powered = True
        self._finish_turn()
        self._is_powered = self._plan.is_powered

    @property
    def engine(self) -> IntegrationEngine:
        """The current engine; during a power failure the previous one."""
        return self._engine

    @property
    def waiting_at_senders(self) -> int:
        """The number of messages at senders that no thread has received yet."""
        return sum(len(each.held) for each in self._senders.values())

    def next_instant(self) -> Nanoseconds:
        """Return the instant of the next event, or INFINITE_NS where none is left."""
        instant = self._arrivals.next_ns
        if self._agenda:
            instant = min(instant, self._agenda[0][0])
        deadline = self._engine.next_deadline() if self._is_powered else None
        return instant if deadline is None or deadline > instant else max(deadline, self.now)

    def turn(self, instant: Nanoseconds) -> None:
        """Carry out all events of an instant."""
        self.now = max(self.now, instant)
        while self._arrivals.next_ns <= self.now:
            at_ns = self._arrivals.next_ns
            client, size_bytes = self._arrivals.pop()
            self._arrived = (at_ns, 1 + (self._arrived[1] if self._arrived[0] == at_ns else 0))
            self._offer(self._by_client[client], size_bytes)
        while self._agenda and self._agenda[0][0] <= self.now:
            heapq.heappop(self._agenda)[2]()
            self._finish_turn()
        if self._is_powered:
            self._engine.advance(self.now)
            self._finish_turn()

    def run(self, until_ns: Nanoseconds = INFINITE_NS) -> None:
        """Carry out events until none is left or the next is not before `until_ns`."""
        while (instant := self.next_instant()) < min(until_ns, INFINITE_NS):
            self.turn(instant)

    def command(self, message: Inbound) -> None:
        """Pass an operator's command to the engine now."""
        self._receive(message)
        self._finish_turn()

    def restart(self) -> None:
        """Kill the engine and start it at once: data in memory only is lost, and deliveries in progress are void."""
        if self._is_powered:
            self._lose_power()
            self._get_power()
            self._finish_turn()

    def take_peers(self) -> PeersChanged:
        """Return the record of the changes of senders, receivers and clock since the previous record."""
        changes = tuple(change for each in self._senders.values() if (change := each.take_change()) is not None)
        processed = tuple((each.thread, each.processed) for each in self._receivers.values() if each.is_changed)
        for thread, _ in processed:
            self._receivers[thread].is_changed = False
        now = self.now
        arrived, planned = (count if at == now else 0 for at, count in (self._arrived, self._planned))
        return PeersChanged(
            STREAM, 0, now, arrived, planned, self.offered, self.delivered, self.failed, self.lost,
            self._engine.unbacked_count, self._incarnation, changes, processed,
        )  # fmt: skip

    # Senders, receivers, and what is planned.

    def _add_peers(self, scenario: Scenario, replication: int, before: Peers) -> None:
        for process in self.declared.processes:
            for thread in process.threads:
                if thread.inbound is not None:
                    self._senders.setdefault(thread.name, Sender(thread.name))
                if thread.outbound is not None:
                    service = thread.outbound.service
                    assert isinstance(service, PoissonArrivals | ConstantArrivals)
                    service_key, answer_key, reply_key = (
                        np.uint64(stream_key(scenario.seed, replication, thread.name, purpose))
                        for purpose in ("service", "answer", "reply")
                    )
                    self._receivers[thread.name] = OutboundPeer(
                        thread.name,
                        SECOND_NS / service.rate_per_second,
                        isinstance(service, PoissonArrivals),
                        thread.outbound,
                        service_key,
                        answer_key,
                        reply_key,
                        before.processed.get(thread.name, 0),
                    )

    def _skip_arrivals(self, before: Peers) -> None:
        """Skip the arrivals of an earlier run, and those before the start of the virtual time."""
        arrivals, counted, left = self._arrivals, dict.fromkeys(self._by_client, 0), before.arrived_count
        while (instant := arrivals.next_ns) < before.at_ns or (instant == before.at_ns and left > 0):
            counted[self._by_client[arrivals.pop()[0]]] += 1
            left -= instant == before.at_ns
        for name, count in counted.items():
            if not (before.is_known and name in before.senders):
                self._senders[name].number = count
        if before.senders and not before.is_known:  # by the messages that are there, which of this instant were sent
            while arrivals.next_ns == before.at_ns:
                client, size_bytes = arrivals.pop()
                name = self._by_client[client]
                if name in before.senders and self._senders[name].number < before.senders[name].number:
                    self._senders[name].number += 1
                else:
                    self.offered += 1
                    self._senders[name].offer(size_bytes)

    # What happens.

    def _offer(self, thread: str, size_bytes: int) -> None:
        sender = self._senders[thread]
        self.offered += 1
        sender.offer(size_bytes)
        if len(sender.held) == 1:
            self._send(sender)

    def _send(self, sender: Sender) -> None:
        """Send the messages that a sender holds, while its thread runs."""
        while sender.held and self._is_powered and self._engine.is_running(sender.thread):
            number, payload = sender.send()
            self._receive(Arrived(sender.thread, number, payload))
            self._finish_turn()

    def _receive(self, message: Inbound) -> None:
        if self._is_powered:
            self._engine.receive(self.now, message)

    def _finish_turn(self) -> None:
        """Store records, release messages and report events until the engine has none left."""
        while self._is_powered:
            ready = self._engine.take_ready()
            if not (ready.records or ready.messages or ready.events):
                return
            for event in ready.events:
                self._note(event)
            if self._store is not None and ready.records:
                self._store([*ready.records, self.take_peers()])
            self._on_turn(self.now, ready.records, ready.events)
            started: list[str] = []
            for event in ready.events:
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
            case ConnectionDelivery(thread):
                receiver = self._receivers[thread]
                presence, service_ns = receiver.presence, receiver.service_ns()
                self._later(service_ns, lambda: self._served(receiver, message, presence))
            case Accepted() | SenderRefused():
                pass  # a sender sends only while its thread runs; a reply that comes too late is gone
            case Answered():
                self.answers.append(message)

    def _served(self, receiver: OutboundPeer, delivery: ConnectionDelivery, presence: int) -> None:
        """End a receiver's service of a message, unless the connection or the process has changed meanwhile."""
        if presence != receiver.presence:
            return
        is_refused, is_silent = receiver.refuses(), receiver.is_silent()
        receiver.processed += 1
        receiver.is_changed = True
        if not is_refused:
            self.delivered += 1
            self._on_received(
                ReceivedMessage(self.now, receiver.thread, delivery.payload, delivery.is_possible_duplicate)
            )
        self._receive(Acknowledged(receiver.thread, delivery.mid, is_accepted=not is_refused))
        if receiver.declared.awaits_reply and not is_refused and not is_silent:
            label = label_of(delivery.payload)
            reply = label._replace(path=f"{label.path}.reply").line() + b"\n"
            action = Arrived(receiver.thread, label.number, reply, type=MessageType.REPLY)
            self._later(receiver.declared.reply_delay_ns, lambda: self._reply(receiver, action, presence))

    def _reply(self, receiver: OutboundPeer, reply: Arrived, presence: int) -> None:
        """Pass a reply to the engine, unless the connection or the process has changed meanwhile."""
        if presence == receiver.presence:
            self._receive(reply)

    def _carry_out(self, planned: PlannedInterruption) -> None:
        """Begin or end an interruption that the scenario plans."""
        at_ns, what, name, is_end = planned
        self._planned = (at_ns, 1 + (self._planned[1] if self._planned[0] == at_ns else 0))
        self._plan.note(planned)
        match what:
            case Interruption.POWER:
                (self._get_power if is_end else self._lose_power)()
            case Interruption.PROCESS if is_end:
                self._receive(ProcessStarted(name, self._plan.down().threads))
            case Interruption.PROCESS:
                self._receive(ProcessStopped(name, is_crash=True))
            case Interruption.THREAD:
                self._receive(ThreadStarted(name) if is_end else ThreadStopped(name))
            case Interruption.CONNECTION:
                self._receivers[name].presence += 1
                self._receive(Connected(name) if is_end else ConnectionLost(name))

    def _lose_power(self) -> None:
        """Crash every process, as a power failure does; stored records remain."""
        for process in self.settings.processes:
            self._receive(ProcessStopped(process.name, is_crash=True))
        self._finish_turn()
        self._is_powered = False

    def _get_power(self) -> None:
        if not self._is_powered:
            self._is_powered = True
            for receiver in self._receivers.values():
                receiver.presence += 1
            self._engine = IntegrationEngine(self.settings, self._engine.database, self.now, self._plan.down())

    def _later(self, duration: Nanoseconds, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._agenda, (self.now + duration, self._count, action))


def arrivals_scenario(scenario: Scenario) -> Scenario:
    """Return a scenario of clients in which each sender is a group with its traffic.

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
