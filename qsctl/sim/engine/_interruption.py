"""The steps of a simulated integration engine's run, and the recovery of an engine that restarts between them.

Decides what a step is, and that a recovery runs until no work is left, with receivers that accept everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from qsctl.core.integration.database import Database
from qsctl.core.integration.engine import IntegrationEngine
from qsctl.core.integration.events import Event, Recovered
from qsctl.core.integration.message import STATE_NAMES, Message, MessageType
from qsctl.core.integration.messages import Accepted, Acknowledged, Arrived, ConnectionDelivery, Outbound
from qsctl.core.integration.records import CopyRemoved, Failed, Moved, Record, Started, Stored
from qsctl.core.integration.settings import EngineSettings
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.sim.engine.behaviours import label_of
from qsctl.sim.engine.world import EngineWorld, ReceivedMessage
from qsctl.sim.scenario.scenario import Scenario

Source: TypeAlias = tuple[str, int]
"""An inbound message: its thread and number."""

REPLY_STEP: Final = ".reply"
"""In the path of a reply."""
_STEPS_MAX: Final = 1_000_000


class InterruptedTurn(NamedTuple):
    """A step of the run to be interrupted: the records of a turn, then the effects of their being durable."""

    at_ns: Nanoseconds
    records: Sequence[Record] = ()
    events: Sequence[Event] = ()
    received: ReceivedMessage | None = None
    """A message that a receiver got; messages sent in this turn are turns of their own when they arrive."""
    accepted: Source | None = None
    """The message whose sender got its answer."""


class RecoveryOutcome(NamedTuple):
    """The actions of a recovery, and its results."""

    records: list[Record]
    """The records that the start wrote."""
    started_with: list[Recovered]
    received: list[ReceivedMessage]
    errors: list[Message]


def timeline_of(scenario: Scenario, replication: int) -> tuple[EngineSettings, list[InterruptedTurn]]:
    """Run the scenario and return the engine's settings and every step."""
    timeline: list[InterruptedTurn] = []

    def step(now: Nanoseconds, records: Sequence[Record], events: Sequence[Event]) -> None:
        timeline.append(InterruptedTurn(now, records, events))

    def release(message: Outbound) -> None:
        if isinstance(message, Accepted):
            timeline.append(InterruptedTurn(timeline[-1].at_ns, accepted=(message.thread, message.token)))

    def receive(received: ReceivedMessage) -> None:
        timeline.append(InterruptedTurn(received.at_ns, received=received))

    world = EngineWorld(scenario, replication, on_turn=step, on_release=release, on_received=receive)
    world.run()
    return world.settings, timeline


def named(record: Record) -> str:
    """Return the description of a record's effect."""
    match record:
        case Started():
            return "start"
        case Stored(_, _, message):
            where = "error database" if message.is_error else f"{STATE_NAMES[message.state]} queue"
            return f"copy into {where}"
        case Moved(_, _, state):
            return f"move to {STATE_NAMES[state]}"
        case Failed():
            return "move to error database"
        case CopyRemoved(_, _, cause):
            return f"removal: {cause.name.lower()}"


def recover_and_drain(settings: EngineSettings, database: Database, now: Nanoseconds) -> RecoveryOutcome:
    """Start an engine with a database and run it until no work is left; receivers accept everything at once."""
    engine = IntegrationEngine(settings, database, now)
    received: list[ReceivedMessage] = []
    recovered: list[Recovered] = []
    first: list[Record] = []
    replies: set[str] = {
        thread.name
        for process in settings.processes
        for thread in process.threads
        if thread.outbound is not None and thread.outbound.awaits_reply
    }
    for step in range(_STEPS_MAX):
        ready = engine.take_ready()
        if step == 0:
            first = ready.records
            recovered = [event for event in ready.events if isinstance(event, Recovered)]
        for message in ready.messages:
            if isinstance(message, ConnectionDelivery):
                received.append(ReceivedMessage(now, message.thread, message.payload, message.is_possible_duplicate))
                engine.receive(now, Acknowledged(message.thread, message.mid))
                if message.thread in replies and message.type is not MessageType.REPLY:
                    label = label_of(message.payload)
                    reply = label._replace(path=label.path + REPLY_STEP).line() + b"\n"
                    engine.receive(now, Arrived(message.thread, label.number, reply, type=MessageType.REPLY))
        if not (ready.records or ready.messages or ready.events):
            deadline = engine.next_deadline()
            if deadline is None or deadline >= INFINITE_NS:
                return RecoveryOutcome(first, recovered, received, engine.database.failed())
            now = max(now, deadline)
            engine.advance(now)
    raise AssertionError("the engine does not come to rest")
