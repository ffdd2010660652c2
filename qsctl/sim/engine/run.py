"""The integration engine under virtual time: where messages wait, how long, and what limits throughput [CLOVERLEAF].

There is no second version of the engine: `sim.engine.world` steps `core.integration` as a real driver steps it.
"""

from __future__ import annotations

from typing import Any

from qsctl.errors import InvalidInput
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import Nanoseconds
from qsctl.sim.engine.visit_log import QUEUE_NAMES, VisitLog
from qsctl.sim.engine.world import EngineWorld
from qsctl.sim.model import CHUNK_ROWS, ModelRun, Rows, Stop
from qsctl.sim.scenario.scenario import Scenario


def prepare(scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int = CHUNK_ROWS) -> ModelRun:
    """Check the scenario, lay out the arrays, seed the streams of this replication.

    Raises:
        InvalidInput: no engine, a route to a thread that cannot send.
    """
    if scenario.engine is None:
        raise InvalidInput(f"{scenario.name}: there is no engine to simulate", remedy="Add an <engine>.")
    return IntegrationRun(scenario, replication, level, chunk_rows)


class IntegrationRun:
    """A run of an engine. `queue_names` are the names of the log's queue numbers."""

    queue_names = QUEUE_NAMES

    def __init__(self, scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int) -> None:
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


def client_names(scenario: Scenario) -> list[str]:
    """Return the threads by number: of each process its protocol threads, then its translation thread."""
    assert scenario.engine is not None
    return [
        name
        for process in scenario.engine.processes
        for name in (*(thread.name for thread in process.threads), f"{process.name}_xlate")
    ]
