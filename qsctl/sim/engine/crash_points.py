"""Interruptions of an integration engine at every point of a run, and checks of its recovery [CLOVERLEAF].

Decides the points and the expected results. A scenario is run once; there is a point after every record that was
written, every message that a receiver got, every answer that a sender got, and every turn that changes memory only. At
each point the engine restarts with the records written so far and runs until no work is left; this recovery is
interrupted in turn after each record that it wrote. The expected results are those of a run of the same scenario
without failures.

A message of a logged connection has all of its results, or, if its sender was not answered, none at all; no result is
duplicated, except that of a message that was being written to its receiver, which is marked as a possible duplicate. A
message of a connection without logging is lost exactly if it was in no database.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias

from qsctl.core.integration.database import Database
from qsctl.core.integration.error_codes import ErrorCode
from qsctl.core.integration.events import Ended, Entered
from qsctl.core.integration.message import Message, MessageId, State
from qsctl.core.integration.messages import Accepted, Outbound
from qsctl.core.integration.records import CopyRemovalCause, CopyRemoved
from qsctl.core.integration.settings import EngineSettings
from qsctl.errors import InvalidInput
from qsctl.instant import Nanoseconds
from qsctl.sim.engine._interruption import (
    REPLY_STEP,
    InterruptedTurn,
    RecoveryOutcome,
    Source,
    named,
    recover_and_drain,
    timeline_of,
)
from qsctl.sim.engine.behaviours import MessageLabel, label_of
from qsctl.sim.engine.world import EngineWorld, ReceivedMessage
from qsctl.sim.scenario.parts.engine import Engine
from qsctl.sim.scenario.scenario import Scenario

Item: TypeAlias = tuple[str, str]
"""A result of a message: a destination, or an error, and the path of the result."""

_ROUTED: Final = frozenset({State.POST_TRANSLATION, State.OUTBOUND_PRE_TPS, State.OUTBOUND_POST_TPS})
_DELIVERY_ERRORS: Final = frozenset({ErrorCode.RETRIES})


class Violation(NamedTuple):
    """A violation of the guarantees of recovery, found after an interruption."""

    point: int
    nested: int
    """The index of the first recovery's record after which the second interruption was; -1 for none."""
    after: str
    source: Source
    what: str


@dataclass(slots=True)
class PointRow:
    """The results of all interruptions after one kind of step."""

    after: str
    points: int = 0
    translated_again: int = 0
    moved_on: int = 0
    """Results whose source was translated before: they continued from the partial queue."""
    returned: int = 0
    """Messages in transit by ICL that returned to the queue they had left."""
    possible_duplicates: int = 0
    dropped_copies: int = 0
    """Copies dropped from changes that were interrupted before their last record."""
    lost: int = 0
    """Results lost by connections without logging, as expected."""
    violations: int = 0


@dataclass(frozen=True, slots=True)
class CrashReport:
    """The results of all points of a scenario."""

    scenario: str
    rows: tuple[PointRow, ...]
    violations: tuple[Violation, ...]
    sources: int
    records: int
    points: int
    nested: int


def explore(scenario: Scenario, *, every: int = 1, nested: bool = True) -> CrashReport:
    """Interrupt a scenario at every point, and check each recovery.

    Args:
        scenario: a scenario with an engine; its crashes, stops and outages happen as well.
        every: the step between the points tried; 1 tries all.
        nested: whether the recovery is interrupted, too.

    Raises:
        InvalidInput: the scenario cannot be simulated, or two results of one message for one receiver are equal.
    """
    assert scenario.engine is not None
    expected = _expected(scenario)
    settings, timeline = timeline_of(scenario, 0)
    logged = {
        thread.name
        for process in scenario.engine.processes
        for thread in process.threads
        if thread.inbound is not None and thread.inbound.logging
    }
    explorer = _Explorer(settings, expected, logged, every, nested)
    for turn in timeline:
        explorer.follow(turn)
    rows = sorted(explorer.rows.values(), key=lambda row: -row.points)
    return CrashReport(
        scenario.name,
        tuple(rows),
        tuple(explorer.violations),
        len(expected),
        sum(len(turn.records) for turn in timeline),
        explorer.points,
        explorer.nested_points,
    )


def _expected(scenario: Scenario) -> Mapping[Source, frozenset[Item]]:
    """Return the results of each inbound message in a run without failures."""
    found: dict[Source, set[Item]] = defaultdict(set)

    def note(received: ReceivedMessage) -> None:
        source, item = _source(received.payload), _item(received)
        if item in found[source] and REPLY_STEP not in item[1]:
            raise InvalidInput(
                f"scenario {scenario.name!r}: message {source[1]} of {source[0]} has two results for {item[0]} "
                f"that are alike ({item[1]}): a duplicate could not be distinguished from a loss",
                remedy='Let one of them go through <pre does="change" text="…"/> or <post does="change" text="…"/>.',
            )
        found[source].add(item)

    def accept(message: Outbound) -> None:
        if isinstance(message, Accepted) and message.thread in inbound:
            found[message.thread, message.token] |= set()

    engine = scenario.engine
    assert engine is not None
    inbound = {thread.name for process in engine.processes for thread in process.threads if thread.inbound is not None}
    world = EngineWorld(replace(scenario, engine=_calm(engine)), 0, on_received=note, on_release=accept)
    world.run()
    for message in world.engine.database.failed():
        label = label_of(message.payload)
        found[label.thread, label.number].add(_error_item(message, label))
    return {source: frozenset(each for each in items if REPLY_STEP not in each[1]) for source, items in found.items()}


def _calm(engine: Engine) -> Engine:
    """Return the same engine without crashes, stops, outages, power failures, refusals and missing replies."""
    processes = tuple(
        replace(
            process,
            crashes=(),
            threads=tuple(
                replace(
                    thread,
                    stops=(),
                    outbound=None
                    if thread.outbound is None
                    else replace(thread.outbound, outages=(), refuses=0.0, silent=0.0),
                )
                for thread in process.threads
            ),
        )
        for process in engine.processes
    )
    return replace(engine, processes=processes, failures=())


@dataclass(slots=True)
class _Explorer:
    """The exploration of a timeline: follows the run and interrupts it at each point."""

    settings: EngineSettings
    expected: Mapping[Source, frozenset[Item]]
    logged: set[str]
    every: int
    nested: bool
    database: Database = field(default_factory=Database)
    received: list[ReceivedMessage] = field(default_factory=list)
    accepted: set[Source] = field(default_factory=set)
    live: dict[MessageId, Entered] = field(default_factory=dict)
    """Latest place of every message in memory."""
    rows: dict[str, PointRow] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    number: int = 0
    points: int = 0
    nested_points: int = 0

    def follow(self, turn: InterruptedTurn) -> None:
        """Apply one step of the run, and interrupt after each of its records and effects."""
        before = dict(self.live)
        steps_in_memory = 0
        for event in turn.events:
            if isinstance(event, Entered):
                self.live[event.mid] = event
                steps_in_memory += not event.is_backed
            elif isinstance(event, Ended):
                self.live.pop(event.mid, None)
        for record in turn.records:
            self.database.apply(record)
            self._interrupt(turn.at_ns, named(record), before)
        if steps_in_memory:
            self._interrupt(turn.at_ns, "a step in memory only", self.live)
        if turn.accepted is not None:
            self.accepted.add(turn.accepted)
            self._interrupt(turn.at_ns, "the sender's answer", self.live)
        if turn.received is not None:
            self.received.append(turn.received)
            self._interrupt(turn.at_ns, "the receiver has it, and no record of it", self.live)

    def _interrupt(self, now: Nanoseconds, after: str, before: Mapping[MessageId, Entered]) -> None:
        """Interrupt at this point, recover, and check the results."""
        self.number += 1
        if self.number % self.every:
            return
        self.points += 1
        row = self.rows.setdefault(after, PointRow(after))
        row.points += 1
        outcome = recover_and_drain(self.settings, self.database.copy(), now)
        for event in outcome.started_with:
            row.translated_again += event.was is State.IN_TRANSLATION
            row.moved_on += event.was is State.PARTIAL
            row.returned += event.was in {State.SENT_TO_TRANSLATION, State.SENT_TO_DESTINATION}
            row.possible_duplicates += event.was in {State.PRE_WRITE, State.RESERVED_FOR_REPLY}
        row.dropped_copies += sum(
            isinstance(record, CopyRemoved) and record.cause is CopyRemovalCause.ABANDONED for record in outcome.records
        )
        self._judge(-1, row, outcome, before)
        if self.nested:
            database = self.database.copy()
            for index, record in enumerate(outcome.records):
                database.apply(record)
                self.nested_points += 1
                self._judge(index, row, recover_and_drain(self.settings, database.copy(), now), before)

    def _judge(self, nested: int, row: PointRow, outcome: RecoveryOutcome, before: Mapping[MessageId, Entered]) -> None:
        found, twice = self._found(outcome)
        present = self._present(before), self._present(self.live)
        for source, expected in self.expected.items():
            got = found.get(source, set[Item]())
            missing = expected - got
            wrong: list[str] = []
            if stray := got - expected:
                wrong.append(f"came, and was not to come: {_shown(stray)}")
            if source[0] in self.logged:
                if missing and source in self.accepted:
                    wrong.append(f"lost, though its sender was answered: {_shown(missing)}")
                elif missing and got:
                    wrong.append(f"came in part: without {_shown(missing)}")
            elif source in self.accepted:
                predicted = [expected - each.get(source, set[Item]()) for each in present]
                if not predicted[0] & predicted[1] <= missing <= predicted[0] | predicted[1]:
                    wrong.append(f"lost {_shown(missing)}, predicted {_shown(predicted[1])}")
                if nested < 0:
                    row.lost += len(missing)
            if source in twice:
                wrong.append(f"delivered twice without the flag of a possible duplicate: {_shown(twice[source])}")
            self.violations += [Violation(self.number, nested, row.after, source, what) for what in wrong]
            row.violations += len(wrong)

    def _found(self, outcome: RecoveryOutcome) -> tuple[dict[Source, set[Item]], dict[Source, set[Item]]]:
        """Return the results of each inbound message, before and after the interruption, and its unmarked copies."""
        found: dict[Source, set[Item]] = defaultdict(set)
        count: Counter[tuple[Source, Item]] = Counter()
        for received in (*self.received, *outcome.received):
            item = _item(received)
            if REPLY_STEP in item[1]:
                continue
            source = _source(received.payload)
            found[source].add(item)
            count[source, item] += not received.is_possible_duplicate
        for message in outcome.errors:
            label = label_of(message.payload)
            if REPLY_STEP in label.path:
                continue
            item = _error_item(message, label)
            source = (label.thread, label.number)
            found[source].add(item)
            count[source, item] += message.error not in _DELIVERY_ERRORS
        twice: dict[Source, set[Item]] = defaultdict(set)
        for (source, item), times in count.items():
            if times > 1:
                twice[source].add(item)
        return found, twice

    def _present(self, live: Mapping[MessageId, Entered]) -> dict[Source, set[Item]]:
        """Return the results that each inbound message must have, derived from events instead of records.

        These are the results that its receivers or the error database have, and those still to come of messages that
        were in a database when last seen.
        """
        found: dict[Source, set[Item]] = defaultdict(set)
        for received in self.received:
            found[_source(received.payload)].add(_item(received))
        for message in self.database.failed():
            label = label_of(message.payload)
            found[label.thread, label.number].add(_error_item(message, label))
        for entered in live.values():
            if not entered.is_backed:
                continue
            label = label_of(entered.payload)
            source = (label.thread, label.number)
            is_routed = entered.queue in _ROUTED
            for destination, path in self.expected.get(source, frozenset()):
                if _is_within(path, label.path) and (not is_routed or destination == entered.owner):
                    found[source].add((destination, path))
        return found


def _error_item(message: Message, label: MessageLabel) -> Item:
    if message.error in _DELIVERY_ERRORS:
        return (message.destination, label.path)
    return (f"error {message.error}", label.path)


def _item(received: ReceivedMessage) -> Item:
    return (received.thread, label_of(received.payload).path)


def _source(payload: bytes) -> Source:
    label = label_of(payload)
    return (label.thread, label.number)


def _is_within(path: str, start: str) -> bool:
    return path == start or path.startswith(f"{start}.")


def _shown(items: Iterable[Item]) -> str:
    return ", ".join(f"{path} for {where}" for where, path in sorted(items))
