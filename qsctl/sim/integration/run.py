"""One repetition of an integration engine: windows of arrivals, the kernel, and what it counted."""

from __future__ import annotations

from typing import Any, Final, NoReturn

import numpy as np

from qsctl.errors import InvalidInput
from qsctl.eventlog.outcomes import Outcome
from qsctl.eventlog.queue_counts import NEVER, QueueCounts, counter_columns
from qsctl.eventlog.schema import BUCKET_COUNT, LogLevel
from qsctl.instant import Nanoseconds, format_duration
from qsctl.sim.arrivals.streams import ArrivalStreams
from qsctl.sim.engine.client_names import client_names
from qsctl.sim.engine.visit_log import QUEUE_NAMES
from qsctl.sim.engine.world import arrivals_scenario
from qsctl.sim.integration import _records as r
from qsctl.sim.integration._advance import advance, end_all_written, start, warm
from qsctl.sim.integration._arrays import EngineArrays
from qsctl.sim.integration._layout import lay_out_engine
from qsctl.sim.kernel.random import stream_key
from qsctl.sim.model import CHUNK_ROWS, EVENT_ROW, LOG_ROW, Event, ModelRun, Rows, Stop
from qsctl.sim.scenario.scenario import Scenario

STEPS_MIN: Final = 1_000_000
STEPS_A_MESSAGE: Final = 1_000
"""An instant that takes more steps than both, of all messages so far, does not end: without time, no message ends."""


def prepare(scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int = CHUNK_ROWS) -> ModelRun:
    """Return a run of the scenario at its beginning, see `sim.model.CompiledModel`.

    Raises:
        InvalidInput: no engine, a route to a thread that cannot send.
    """
    if scenario.engine is None:
        raise InvalidInput(f"{scenario.name}: there is no engine to simulate", remedy="Add an <engine>.")
    return CompiledEngineRun(scenario, replication, level, chunk_rows)


class CompiledEngineRun:
    """One repetition in progress, a `sim.model.ModelRun`; `queue_names` is what the log's queue numbers mean."""

    queue_names = QUEUE_NAMES

    def __init__(self, scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int = CHUNK_ROWS) -> None:
        self._scenario = scenario
        self._replication = replication
        self._level = level
        self._chunk_rows = chunk_rows
        self._streams = ArrivalStreams(arrivals_scenario(scenario), replication)
        self._layout = lay_out_engine(scenario, replication, client_names(scenario))
        self.arrays = EngineArrays(self._layout, chunk_rows, logs=level is not LogLevel.COUNTERS)
        self.arrays.call(start)
        self._held: Rows | None = None
        self._waiting: Rows = np.zeros(0, r.MESSAGE)
        """What is still in a queue at the end, and the rows of its counters."""
        self._keys: Rows = np.zeros(0, np.int64)
        self._totals: list[tuple[int, ...]] = []
        self.now_ns: Nanoseconds = 0

    @property
    def messages(self) -> int:
        """The number of messages that senders had to send, warm-up included."""
        return int(self.arrays.state["offered"])

    def step(self, until_ns: Nanoseconds) -> Stop:
        """Simulate to `until_ns` (exclusive, at most the horizon) or until the log chunk is full.

        Raises:
            InvalidInput: messages go in a circle without any time passing.
        """
        horizon = self._scenario.horizon_ns
        until_ns = min(until_ns, horizon)
        arrays, state = self.arrays, self.arrays.state
        while self.now_ns < until_ns:
            if self._streams.now_ns <= self.now_ns:
                arrays.arrive(self._streams.window(horizon))
            bound = min(until_ns, self._streams.now_ns)
            state["until"] = bound
            state["spent_max"] = self._steps_max()
            match arrays.call(advance):
                case r.REACHED:
                    self.now_ns = bound
                case r.GROW:
                    arrays.grow()
                case r.KEY_MISSING:
                    self._make_key()
                case r.CIRCLING:
                    if state["spent"] >= self._steps_max():
                        self._refuse_circle()
                case _:
                    return Stop.LOG_FULL
            if self._level is not LogLevel.EVENTS:
                state["event_count"] = 0
        return Stop.UNTIL

    def take_log(self) -> Rows:
        """Return the rows since the last call: a view that the next `step` overwrites."""
        rows = self.arrays.take_log()
        if self._held is None:
            return rows
        held, self._held = self._held[: self._chunk_rows], self._held[self._chunk_rows :]
        return np.concatenate([rows, held])

    def take_events(self) -> Rows:
        """Return the events since the last call."""
        rows = self.arrays.take_events()
        if self._level is not LogLevel.EVENTS:
            return rows[:0]
        if self._totals:
            rows = np.concatenate([rows, np.array(self._totals, EVENT_ROW)])
            self._totals = []
        return rows

    def finish(self) -> Stop:
        """Log the messages that are still in a queue as `held`; call it again while it returns LOG_FULL."""
        if self._held is None:
            if self._observed_ns > 0:
                self.arrays.call(warm)
            self._end_visits()
            failed = self.arrays.failed["value"]
            names = self._layout.clients
            for client in sorted(np.flatnonzero(failed), key=lambda each: names[each]):
                self._totals.append((self.now_ns, int(failed[client]), int(client), -1, int(Event.FAILED_MESSAGES)))
        assert self._held is not None
        return Stop.LOG_FULL if len(self._held) > self._chunk_rows else Stop.UNTIL

    def counters(self) -> dict[str, Any]:
        """Return columns with one row for each thread and queue that a message visited."""
        counts = self.arrays.counts
        keys = np.flatnonzero(counts["touched"])
        clients = [int(each) for each in counts["client"][keys]]
        return counter_columns(
            [self._counts_of(int(key)) for key in keys],
            clients,
            [self._layout.clients[each] for each in clients],
            [QUEUE_NAMES[int(each)] for each in counts["stage"][keys]],
            [0] * len(keys),
            self._observed_ns,
            [bool(each != r.NONE) for each in counts["last"][keys]],
        )

    @property
    def _observed_ns(self) -> Nanoseconds:
        return max(0, self.now_ns - self._scenario.warm_up_ns)

    def _steps_max(self) -> int:
        return STEPS_MIN + STEPS_A_MESSAGE * self.messages

    def _refuse_circle(self) -> NoReturn:
        state, scenario = self.arrays.state, self._scenario
        at, worked = format_duration(int(state["now"])), int(state["worked"])
        threads = self._layout.threads
        assert scenario.engine is not None
        process = scenario.engine.processes[max(0, worked - len(threads))].name
        name = f"thread {threads[worked]}" if worked < len(threads) else f"the translation thread of {process}"
        raise InvalidInput(
            f"{scenario.name}: a message goes in a circle that takes no time: at {at}, {int(state['spent']):,} steps "
            f"after that instant began, {name} works on",
            remedy="Have a procedure of the circle take time (`takes`), or not send the message back.",
        )

    def _make_key(self) -> None:
        state = self.arrays.state
        thread, path = self.arrays.path_text(int(state["missing_path"]))
        name = self._layout.draws[int(state["missing_draws"])]
        self.arrays.remember_key(
            stream_key(self._scenario.seed, self._replication, name, thread, path, int(state["missing_step"]))
        )

    def _end_visits(self) -> None:
        """Count and log the visits of messages that are still on their way or in a queue."""
        arrays = self.arrays
        messages = arrays.messages
        written = np.flatnonzero((messages["written"] == 1) & (messages["state"] != r.FREE))
        written = written[np.argsort(messages["visit"][written])]
        arrays.sorted["value"][: len(written)] = written
        arrays.call(end_all_written, len(written))
        held = np.flatnonzero(messages["state"] == r.QUEUED)
        held = held[np.argsort(messages["visit"][held])]
        self._waiting = messages[held]
        self._keys = arrays.queues["key"][messages["queue"][held]]
        rows = np.zeros(len(held) if self._level is not LogLevel.COUNTERS else 0, LOG_ROW)
        if len(rows):
            rows["enqueued_ns"] = messages["entered"][held]
            rows["wait_ns"] = rows["send_ns"] = rows["acknowledge_ns"] = NEVER
            rows["client_id"] = arrays.counts["client"][self._keys]
            rows["size_bytes"] = messages["bytes"][held]
            rows["queue"] = arrays.counts["stage"][self._keys]
            rows["outcome"] = r.HELD
        self._held = rows

    def _counts_of(self, key: int) -> QueueCounts:
        """Return the counters of the queues of one stage at one thread."""
        row = self.arrays.counts[key]
        made = QueueCounts(self._scenario.warm_up_ns, tries=True)
        waiting = self._waiting["entered"][self._keys == key].tolist()
        made.arrived = int(row["arrived"]) + sum(each >= self._scenario.warm_up_ns for each in waiting)
        made.by_outcome[Outcome.DELIVERED] = int(row["delivered"])
        made.by_outcome[Outcome.DISCARDED] = int(row["discarded"])
        made.by_outcome[Outcome.ELIDED] = int(row["elided"])
        made.by_outcome[Outcome.HELD] = len(waiting)
        made.delivered_bytes, made.work_units = int(row["bytes"]), int(row["work"])
        made.high_water_mark, made.first_discard_ns = int(row["mark"]), int(row["first_discard"])
        made.wait_sum_ns, made.wait_max_ns = int(row["wait_sum"]), int(row["wait_max"])
        made.histogram = _histogram(self.arrays.buckets["messages"], key)
        if row["last"] != r.NONE:
            made.done_sum_ns, made.done_max_ns = int(row["done_sum"]), int(row["done_max"])
            made.done = _histogram(self.arrays.done["messages"], int(row["last"]))
        made.unfinished_since_ns = waiting
        return made


def _histogram(buckets: Any, number: int) -> dict[int, int]:
    """Return the counts of a histogram by bucket."""
    own = buckets[number * BUCKET_COUNT : (number + 1) * BUCKET_COUNT]
    return {int(bucket): int(own[bucket]) for bucket in np.flatnonzero(own)}
