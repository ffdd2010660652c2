"""An integration engine run against a recovery database on disk, as fast as it goes or at the pace of a clock.

Decides: what a run leaves behind. Its database is that of an engine that was killed: what was in memory only is gone,
and the next run with the same database recovers the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from qsctl.config.filesystem import FilesystemSettings, JournalMode, Synchronization
from qsctl.core.integration.database import Database
from qsctl.core.integration.events import Changed, Event, Recovered
from qsctl.core.integration.message import Message, State
from qsctl.core.integration.records import Record
from qsctl.errors import UsageError
from qsctl.eventlog.queue_counts import QueueCounts
from qsctl.instant import SECOND_NS, Nanoseconds, format_duration
from qsctl.sim.engine._peers import Peers
from qsctl.sim.engine.client_names import client_names
from qsctl.sim.engine.recovery_store import RecoveryStore
from qsctl.sim.engine.visit_log import QUEUE_NAMES, QUEUES, VisitLog
from qsctl.sim.engine.world import EngineWorld
from qsctl.sim.scenario.scenario import Scenario
from qsctl.storage.damage import DamageReport

_NAP_S = 0.05
_NOTE_S = 1.0
"""Interval, by the clock, at which senders and receivers are stored without a record of the engine."""
_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True)
class EngineQueueState:
    """One queue at the end of a run."""

    thread: str
    queue: str
    length: int
    oldest_ns: Nanoseconds | None
    """Time that its oldest message has been in it; None: it is empty."""
    counts: QueueCounts


class EngineTotals(NamedTuple):
    """Totals of messages, in one run or in all runs with a database."""

    offered: int
    delivered: int
    failed: int
    lost: int

    def since(self, before: EngineTotals) -> EngineTotals:
        """Return what was added."""
        return EngineTotals(*(now - then for now, then in zip(self, before, strict=True)))


@dataclass(frozen=True, slots=True)
class EngineRun:
    """The results of a run."""

    from_ns: Nanoseconds
    until_ns: Nanoseconds
    was_interrupted: bool
    counted: EngineTotals
    """In this run; `lost` has what the end of the one before it took out of memory."""
    total: EngineTotals
    """In all runs with its database."""
    waiting_at_senders: int
    recovered: int
    """Messages that were found in the database when it began."""
    possible_duplicates: int
    queues: tuple[EngineQueueState, ...]
    threads: tuple[tuple[str, bool, str], ...]
    """Threads and processes that do not run at the end: name, whether it is a process, and why."""
    left: tuple[Message, ...]
    """In the recovery database."""
    errors: tuple[Message, ...]
    damage: tuple[DamageReport, ...]
    records: int


def run_engine(
    scenario: Scenario,
    database: Path | None,
    *,
    from_ns: Nanoseconds | None = None,
    until_ns: Nanoseconds | None = None,
    drain: bool = False,
    speed: float = 0.0,
    synchronization: Synchronization = Synchronization.FULL,
    discards_damaged: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> EngineRun:
    """Run an engine.

    Args:
        scenario: with an engine; its first replication.
        database: the recovery database; None: in memory.
        from_ns: where the virtual time begins; None: where the database left it.
        until_ns: where the run ends; None: at the scenario's horizon.
        drain: whether it goes on after that, without new messages, until nothing happens any more.
        speed: virtual seconds for each of the clock's; 0: as fast as it goes.
        synchronization: when the disk must have what is written.
        discards_damaged: whether to lose what a damaged database has, where nothing of it can be read or its log is
            missing.
        stop: asked often; true ends the run.

    Raises:
        InvalidInput: the scenario cannot be simulated.
        UsageError: nothing is left between beginning and end.
        Refused: another engine uses the database.
        Damaged: the database is another scenario's, is no such database, or nothing of it can be read; or the disk
            refuses: what was not stored was not released.
    """
    settings = FilesystemSettings(journal_mode=JournalMode.WAL, synchronization=synchronization)
    store = (
        None
        if database is None
        else RecoveryStore(database, settings, scenario=scenario.name, discards_damaged=discards_damaged)
    )
    try:
        held = Database() if store is None else store.database
        peers = Peers() if store is None else deepcopy(store.peers)
        begins = _beginning(held, peers, from_ns)
        if not held.start:
            peers.at_ns = begins
        ends = scenario.horizon_ns if until_ns is None else min(until_ns, scenario.horizon_ns)
        _check_span(begins, ends, drain)
        driver = _Driver(scenario, store, held, peers, begins, ends)
        was_interrupted = driver.run(drain=drain, speed=speed, stop=stop)
        report = driver.report(begins, was_interrupted, store)
    except BaseException:
        if store is not None:
            store.abandon()
        raise
    if store is not None:
        store.append([store.database.mark(driver.world.now), driver.world.take_peers()])
        store.compact()
        store.close()
    return report


def _beginning(held: Database, peers: Peers, from_ns: Nanoseconds | None) -> Nanoseconds:
    """Return where the virtual time begins.

    Raises:
        UsageError: the database is behind that already.
    """
    if from_ns is None:
        return peers.at_ns
    if held.start and from_ns < peers.at_ns:
        raise UsageError(
            f"--from {format_duration(from_ns)} is before {format_duration(peers.at_ns)}, where the database ends",
            remedy="Leave --from out: the run goes on where the database ends; or name a new database.",
        )
    return from_ns


def _check_span(begins: Nanoseconds, ends: Nanoseconds, drain: bool) -> None:
    if begins >= ends and not drain:
        raise UsageError(
            f"the run would begin at {format_duration(begins)}, and ends at {format_duration(ends)}",
            remedy="Give a later --until (the scenario's horizon at most), an earlier --from, or --drain.",
        )


class _Driver:
    def __init__(
        self,
        scenario: Scenario,
        store: RecoveryStore | None,
        held: Database,
        peers: Peers,
        begins: Nanoseconds,
        ends: Nanoseconds,
    ) -> None:
        self._store = store
        self._log = VisitLog(client_names(scenario), 0, keeps_rows=False, rows_max=_LIMIT)
        self._ends = ends
        self._down: dict[str, tuple[bool, str]] = {}
        self._recovered = self._duplicates = self._records = 0
        self.world = EngineWorld(
            scenario,
            database=held,
            peers=peers,
            from_ns=begins,
            until_ns=ends,
            store=None if store is None else partial(store.append, is_applied=True),
            on_event=self._note,
            on_turn=self._count,
        )
        self._before = EngineTotals(peers.offered, peers.delivered, peers.failed, peers.lost)

    def run(self, *, drain: bool, speed: float, stop: Callable[[], bool]) -> bool:
        """Run to the end; gives whether it was stopped before."""
        world, began, began_ns = self.world, time.monotonic(), self.world.now
        turns, noted_turns, noted = 0, 0, began
        while not stop():
            if speed and turns > noted_turns and time.monotonic() >= noted + _NOTE_S:
                self._note_peers()  # of messages that wait at their senders the engine has no record
                noted_turns, noted = turns, time.monotonic()
            instant = world.next_instant()
            is_over = instant >= self._ends
            if is_over and (not drain or instant >= _LIMIT):
                world.now = max(world.now, self._ends)
                return False
            if speed and self._wait(began + (instant - began_ns) / SECOND_NS / speed, stop):
                break
            world.turn(instant)
            turns += 1
            if self._store is not None and turns % 1_000 == 0:
                self._store.compact()
        return True

    def report(self, begins: Nanoseconds, was_interrupted: bool, store: RecoveryStore | None) -> EngineRun:
        """Sum up."""
        world = self.world
        now = world.now
        queues: dict[tuple[str, State], list[Message]] = {}
        for queue in world.engine.queues():
            found = queues.setdefault((queue.owner, queue.state), [])
            found += [held.message for held in queue]
        states = [
            EngineQueueState(
                owner,
                QUEUE_NAMES[QUEUES.index(state)],
                len(queues.get((owner, state), [])),
                max((now - each.entered_at_ns for each in queues.get((owner, state), [])), default=None),
                counts,
            )
            for (owner, state), counts in self._log.by_queue().items()
        ]
        database = world.engine.database
        total = EngineTotals(world.offered, world.delivered, world.failed, world.lost)
        return EngineRun(
            begins,
            now,
            was_interrupted,
            total.since(self._before),
            total,
            world.waiting_at_senders,
            self._recovered,
            self._duplicates,
            tuple(states),
            tuple((name, is_process, why) for name, (is_process, why) in self._down.items()),
            tuple(database.messages()),
            tuple(database.failed()),
            () if store is None else tuple(store.damage),
            self._records,
        )

    def _note_peers(self) -> None:
        if self._store is not None:
            self._store.append([self.world.take_peers()])

    def _count(self, at_ns: Nanoseconds, records: Sequence[Record], events: Sequence[Event]) -> None:
        del at_ns, events
        self._records += len(records)

    def _note(self, event: Event) -> None:
        self._log.note(event)
        if isinstance(event, Recovered):
            self._recovered += 1
            self._duplicates += event.was in {State.PRE_WRITE, State.RESERVED_FOR_REPLY}
        elif isinstance(event, Changed):
            if event.is_up:
                self._down.pop(event.name, None)
            else:
                self._down[event.name] = (event.what == "process", event.text or f"{event.what} is down")

    def _wait(self, until: float, stop: Callable[[], bool]) -> bool:
        """Wait for the clock; gives whether it was stopped meanwhile."""
        while (left := until - time.monotonic()) > 0:
            if stop():
                return True
            time.sleep(min(left, _NAP_S))
        return False
