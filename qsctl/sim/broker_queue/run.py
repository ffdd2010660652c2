"""One repetition of a broker's queue: windows of arrivals, the kernel, and its counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qsctl.errors import InvalidInput
from qsctl.eventlog.run_folder import QueueWorker, WorkedQueue
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import Nanoseconds
from qsctl.sim.arrivals.streams import ArrivalStreams
from qsctl.sim.broker_queue import _records as r
from qsctl.sim.broker_queue._advance import advance, finish, hold, start
from qsctl.sim.broker_queue._arrays import QueueArrays
from qsctl.sim.broker_queue._layout import arrivals_scenario, lay_out_queue
from qsctl.sim.broker_queue._results import counter_columns_of, worked_queue_of, workers_of
from qsctl.sim.model import CHUNK_ROWS, EVENT_ROW, ModelRun, Rows, Stop
from qsctl.sim.scenario.scenario import Scenario


def prepare(scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int = CHUNK_ROWS) -> ModelRun:
    """Return a run of the scenario at its beginning, see `sim.model.CompiledModel`.

    Raises:
        InvalidInput: it has no queue.
    """
    if scenario.queue is None:
        raise InvalidInput(f"{scenario.name}: there is no queue to simulate", remedy="Add a <queue>.")
    return BrokerQueueRun(scenario, replication, level, chunk_rows)


class BrokerQueueRun:
    """One repetition in progress, a `sim.model.ModelRun`; `queue_names` is what the log's queue numbers mean."""

    def __init__(self, scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int = CHUNK_ROWS) -> None:
        assert scenario.queue is not None
        self._scenario = scenario
        self._queue = scenario.queue
        self._streams = ArrivalStreams(arrivals_scenario(scenario), replication)
        layout = lay_out_queue(scenario, replication, self._streams.topics)
        self.arrays = QueueArrays(layout, level, chunk_rows)
        self.arrays.arrive(np.zeros(0, r.ARRIVAL))
        self.arrays.call(start)
        self._names = layout.names
        self._logging = level is not LogLevel.COUNTERS
        self._finished = False
        self._held = 0
        self.now_ns: Nanoseconds = 0

    @property
    def queue_names(self) -> list[str]:
        """The names of the queue and of its dead letters' queue."""
        return [self._queue.name, self._queue.dead_name]

    @property
    def messages(self) -> int:
        """The number of messages published so far, warm-up included."""
        return int(self.arrays.state["published"])

    def step(self, until_ns: Nanoseconds) -> Stop:
        """Simulate to `until_ns` (exclusive, at most the horizon) or until the log chunk is full."""
        horizon = self._scenario.horizon_ns
        until_ns = min(until_ns, horizon)
        arrays, state = self.arrays, self.arrays.state
        while self.now_ns < until_ns:
            if self._streams.now_ns <= self.now_ns:
                arrays.arrive(self._streams.window(horizon))
            bound = min(until_ns, self._streams.now_ns)
            state["until"] = bound
            match arrays.call(advance):
                case r.REACHED:
                    self.now_ns = bound
                case r.GROW:
                    arrays.grow()
                case _:
                    return Stop.LOG_FULL
        return Stop.UNTIL

    def take_log(self) -> Rows:
        """Return the rows since the last call: a view that the next `step` overwrites."""
        return self.arrays.take_log()

    def take_events(self) -> Rows:
        """Return no events: all that happens to messages is in the log."""
        return np.zeros(0, EVENT_ROW)

    def finish(self) -> Stop:
        """Log messages still in the queue as `held`, or `waiting` outside; call it again while it returns LOG_FULL."""
        arrays, state = self.arrays, self.arrays.state
        if not self._finished:
            self._finished = True
            state["now"] = self.now_ns
            arrays.call(finish)
        if self._held < state["message_limit"]:
            self._held = arrays.call(hold, self._held)
        return Stop.UNTIL if self._held >= state["message_limit"] else Stop.LOG_FULL

    def counters(self) -> dict[str, Any]:
        """Return columns with one row for the queue, and one for its dead letters if they are kept."""
        return counter_columns_of(self._queue, self.arrays, self._observed_ns)

    @property
    def worked_queues(self) -> Sequence[WorkedQueue]:
        """The figures of the queue beside its counters."""
        return (worked_queue_of(self._queue, self.arrays, self._observed_ns),)

    @property
    def workers(self) -> Sequence[QueueWorker]:
        """The working time and the results of each consumer after the warm-up, in their order."""
        return workers_of(self._queue, self.arrays, self._names)

    @property
    def _observed_ns(self) -> Nanoseconds:
        return max(0, self.now_ns - self._scenario.warm_up_ns)
