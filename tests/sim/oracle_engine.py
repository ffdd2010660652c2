"""A run of `core.integration` itself, as an oracle of the compiled engine: its events folded into rows and counters."""

from __future__ import annotations

from typing import Any

from qsctl.eventlog.schema import LogLevel
from qsctl.instant import Nanoseconds
from qsctl.sim.engine.client_names import client_names
from qsctl.sim.engine.visit_log import QUEUE_NAMES, VisitLog
from qsctl.sim.engine.world import EngineWorld
from qsctl.sim.model import CHUNK_ROWS, Rows, Stop
from qsctl.sim.scenario.scenario import Scenario


class OracleEngineRun:
    """A run of an engine. `queue_names` are the names of the log's queue numbers."""

    queue_names = QUEUE_NAMES

    def __init__(self, scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int = CHUNK_ROWS) -> None:
        self._scenario = scenario
        self._level = level
        self._log = VisitLog(
            client_names(scenario), scenario.warm_up_ns, keeps_rows=level is not LogLevel.COUNTERS, rows_max=chunk_rows
        )
        self._world = EngineWorld(scenario, replication, on_event=self._log.note)
        self._finished = False

    @property
    def now_ns(self) -> Nanoseconds:
        """Simulated up to here."""
        return min(self._world.now, self._scenario.horizon_ns)

    @property
    def messages(self) -> int:
        """Messages that senders had to send."""
        return self._world.offered

    def step(self, until_ns: Nanoseconds) -> Stop:
        """Simulate to `until_ns` (exclusive) or until the log chunk is full."""
        until_ns = min(until_ns, self._scenario.horizon_ns)
        while not self._log.is_full:
            instant = self._world.next_instant()
            if instant >= until_ns:
                self._world.now = max(self._world.now, until_ns)
                return Stop.UNTIL
            self._world.turn(instant)
        return Stop.LOG_FULL

    def take_log(self) -> Rows:
        """Return the rows since the last call."""
        return self._log.collect()

    def take_events(self) -> Rows:
        """Return the events since the last call."""
        rows = self._log.take_events()
        return rows if self._level is LogLevel.EVENTS else rows[:0]

    def finish(self) -> Stop:
        """Write what is still in a queue as `held`."""
        if not self._finished:
            self._finished = True
            self._log.hold()
            self._log.totals(self.now_ns)
        return Stop.UNTIL

    def counters(self) -> dict[str, Any]:
        """Return one row a thread and queue."""
        return self._log.counters(max(0, self.now_ns - self._scenario.warm_up_ns))
