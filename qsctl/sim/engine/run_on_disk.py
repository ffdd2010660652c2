"""An integration engine run against a recovery database on disk, as fast as it goes or at the pace of a clock.

Decides: the state after a run. Its database is that of a killed engine: messages that were in memory only are lost, and
the next run with the same database recovers the rest.
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
    """The time for which its oldest message has been in it; None: the queue is empty."""
    counts: QueueCounts


class EngineTotals(NamedTuple):
    """Totals of messages, in one run or in all runs with a database."""

    offered: int
    delivered: int
    failed: int
    lost: int

    def since(self, before: EngineTotals) -> EngineTotals:
        """Return the difference from earlier totals."""
        return EngineTotals(*(now - then for now, then in zip(self, before, strict=True)))


@dataclass(frozen=True, slots=True)
class EngineRun:
    """The results of a run."""

    from_ns: Nanoseconds
    until_ns: Nanoseconds
    was_interrupted: bool
    counted: EngineTotals
    """Totals of this run; `lost` includes messages in memory that were lost at the end of the previous run."""
    total: EngineTotals
    """Totals of all runs with this database."""
    waiting_at_senders: int
    recovered: int
    """The number of messages in the database when the run began."""
    possible_duplicates: int
    queues: tuple[EngineQueueState, ...]
    threads: tuple[tuple[str, bool, str], ...]
    """Threads and processes that are stopped at the end: name, whether it is a process, and the reason."""
    left: tuple[Message, ...]
    """Damage found in the recovery database."""
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
    """Run an engine with a recovery database.

    Args:
        scenario: a scenario with an engine; its first replication is run.
        database: the recovery database; None: in memory.
        from_ns: start of the virtual time; None: the end of the previous run with the database.
        until_ns: end of the run; None: the scenario's horizon.
        drain: whether to continue after the end, without new messages, until no event is left.
        speed: virtual seconds a second of the wall clock; 0: as fast as possible.
        synchronization: when written records are synced to the disk.
        discards_damaged: whether to discard a database that is unreadable, or the part that was in a missing log.
        stop: function that is called often; the run ends when it returns True.

    Raises:
        InvalidInput: the scenario cannot be simulated.
        UsageError: the end is not after the start, or `from_ns` is before the clock of the database.
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
    """Return the instant at which the virtual time begins.

    Raises:
        UsageError: `from_ns` is before the clock of the database.
    """
    if from_ns is None:
        return peers.at_ns
    if held.start and from_ns < peers.at_ns:
        raise UsageError(
            f"--from {format_duration(from_ns)} is before {format_duration(peers.at_ns)}, where the database ends",
            remedy="Leave --from out: the run continues where the database ends; or name a new database.",
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
        """Run to the end; return whether `stop` ended the run early."""
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
        """Return the results of the run."""
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
        """Wait until an instant of the wall clock; return whether `stop` ended the wait."""
        while (left := until - time.monotonic()) > 0:
            if stop():
                return True
            time.sleep(min(left, _NAP_S))
        return False
