"""One repetition of an egress model whose independent ports are simulated by parallel threads.

Each part (`independent_ports`) is an `EgressRun` of its own, with its own arrays and arrivals; kernels release the
interpreter lock. Numbers of clients and topics are translated to those of the whole scenario on output.

Nothing depends on the number of threads: a scenario that has parts and is large enough is always simulated in parts, by
one thread part after part. The parts advance from one instant to the next, `_stride_ns` apart, and the rows of the log
are ordered by (stride, part, position in the part's own log); for each client this is the order in which its outcomes
were decided, as without parts. Counters, events and happenings equal those of a run without parts, to the bit: each
belongs to a client, except totals of the whole broker, which are added.

Measured on two processors, 10^7 messages to two ports at level counters, wall time, the best of seven alternating runs
beside other load: one thread 0.70 s (without parts 0.71 s), two threads 0.43 s, in single runs up to 1.87 times as
fast; two forked processes 0.44 s, two spawned ones, as a program with threads needs them, 1.69 s. Hence threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsctl.eventlog.run_folder import Happening
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import Nanoseconds
from qsctl.sim.arrivals.streams import client_ranges
from qsctl.sim.egress.layout.client_names import ClientNames
from qsctl.sim.egress.runs._independent_ports import expected_arrivals, independent_parts
from qsctl.sim.egress.runs._run import EgressRun
from qsctl.sim.model import CHUNK_ROWS, LOG_ROW, ModelRun, Rows, Stop
from qsctl.sim.recording.happenings import TOTALS, Happenings
from qsctl.sim.scenario.scenario import Scenario

FEWEST_MESSAGES: Final = 500_000
"""Of a scenario that is simulated in parts: 50 ms without, 33 ms by two threads; of 200,000 messages 19 and 27 ms."""
STRIDE_MESSAGES: Final = 1 << 16
"""Of all parts together, from one instant at which they wait for one another to the next one."""


def egress_run(scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int = CHUNK_ROWS) -> ModelRun:
    """Return a run of a scenario, in parts where it has independent ones and enough messages to profit.

    Raises:
        InvalidInput: the scenario cannot be simulated.
    """
    messages = sum(expected_arrivals(scenario, each) for each in scenario.traffic if each.stop_ns > each.start_ns)
    if messages >= FEWEST_MESSAGES and len(parts := independent_parts(scenario)) > 1:
        stride_ns = max(1, int(scenario.horizon_ns * STRIDE_MESSAGES / messages))
        return ParallelRun(scenario, parts, replication, level, chunk_rows, stride_ns)
    return EgressRun(scenario, replication, level, chunk_rows)


class _PartRun:
    """The run of one part, and its log rows since the last stride began.

    Args:
        run: the part's run.
        clients: the whole scenario's numbers of the part's clients and durable queues, followed by -1 for "none".
    """

    def __init__(self, run: EgressRun, clients: npt.NDArray[Any]) -> None:
        self.run = run
        self.clients = clients
        self.topics = np.zeros(1, np.int32)
        """The whole scenario's numbers of its topics."""
        self._pieces: list[Rows] = []

    def step(self, until_ns: Nanoseconds) -> None:
        """Simulate to an instant and keep the log rows."""
        while self.run.step(until_ns) is Stop.LOG_FULL:
            self._pieces.append(self._named(self.run.take_log()).copy())

    def take_log(self) -> list[Rows]:
        """Return the log rows since the last call; the last array is a view that the next step overwrites."""
        pieces, self._pieces = [*self._pieces, self._named(self.run.take_log())], []
        return [each for each in pieces if len(each)]

    def take_events(self) -> Rows:
        """Return the events since the last call."""
        events = self.run.take_events()
        events["client_id"] = self.clients[events["client_id"]]
        return events

    def _named(self, rows: Rows) -> Rows:
        rows["client_id"] = self.clients[rows["client_id"]]
        rows["topic_id"] = self.topics[rows["topic_id"]]
        return rows


class ParallelRun:
    """A run of egress queues that is simulated in independent parts.

    Args:
        scenario: the whole scenario.
        parts: the result of `independent_parts`, two or more.
        replication: the repetition's number.
        level: the log level.
        chunk_rows: the number of rows that a part writes before it copies them.
        stride_ns: the time between the instants at which all parts are synchronized.
    """

    def __init__(
        self,
        scenario: Scenario,
        parts: Sequence[Scenario],
        replication: int,
        level: LogLevel,
        chunk_rows: int,
        stride_ns: Nanoseconds,
    ) -> None:
        self._horizon_ns = scenario.horizon_ns
        self._stride_ns = stride_ns if level is not LogLevel.COUNTERS else scenario.horizon_ns
        self._stride_end_ns = self._stride_ns
        self.names = ClientNames(scenario)
        self._parts = [
            _PartRun(EgressRun(each, replication, level, chunk_rows), _numbers_of(scenario, each)) for each in parts
        ]
        self.queue_names = self._parts[0].run.queue_names
        _number_topics(scenario, parts, self._parts)
        self._threads: ThreadPoolExecutor | None = None
        self._rows: deque[Rows] = deque()
        self._finishing = 0
        self.now_ns: Nanoseconds = 0

    def use_cores(self, count: int) -> None:
        """Simulate with this number of threads from now on; the results are the same with any."""
        threads = min(count, len(self._parts))
        self._threads = ThreadPoolExecutor(threads, "egress-part") if threads > 1 else None

    @property
    def messages(self) -> int:
        """Arrivals simulated so far, including the warm-up and those that the ingress refused."""
        return sum(each.run.messages for each in self._parts)

    def step(self, until_ns: Nanoseconds) -> Stop:
        """Simulate to `until_ns` (exclusive, at most the horizon) or until log rows are available."""
        until_ns = min(until_ns, self._horizon_ns)
        while True:
            if self._rows:
                return Stop.LOG_FULL
            if self.now_ns >= until_ns:
                return Stop.UNTIL
            bound = min(until_ns, self._stride_end_ns)
            self._advance(bound)
            self.now_ns = bound
            if bound in (self._stride_end_ns, self._horizon_ns):
                self._stride_end_ns = bound + self._stride_ns
                for part in self._parts:
                    self._rows += part.take_log()

    def take_log(self) -> Rows:
        """Return rows of one part, a view that the next `step` overwrites.

        Rows are available at the end of a stride.
        """
        return self._rows.popleft() if self._rows else np.zeros(0, LOG_ROW)

    def take_events(self) -> Rows:
        """Return the events of all parts since the last call, in order of time."""
        events = np.concatenate([each.take_events() for each in self._parts])
        return _whole_summed(events[np.argsort(events["at_ns"], kind="stable")])

    def finish(self) -> Stop:
        """Log the messages still in the broker as `held`; to be called again while it returns LOG_FULL."""
        if self._finishing == 0:
            # Ctrl-C may have ended the last step between two parts.
            self.now_ns = max(self.now_ns, *(each.run.now_ns for each in self._parts))
            self._advance(self.now_ns)
            self.use_cores(1)
        while not self._rows and self._finishing < len(self._parts):
            part = self._parts[self._finishing]
            stopped = part.run.finish()
            self._rows += part.take_log()
            if stopped is Stop.UNTIL:
                self._finishing += 1
        return Stop.LOG_FULL if self._rows else Stop.UNTIL

    def counters(self) -> dict[str, Any]:
        """Return one row for each client and queue that carried traffic, as columns."""
        found = [(each, each.run.counters()) for each in self._parts]
        clients = np.concatenate([part.clients[columns["client_id"]] for part, columns in found])
        queues = np.array([self.queue_names.index(name) for _, columns in found for name in columns["queue"]], np.int64)
        order = np.lexsort((queues, clients))
        merged: dict[str, Any] = {"client_id": clients[order]}
        for name, values in found[0][1].items():
            if isinstance(values, np.ndarray):
                merged.setdefault(name, np.concatenate([columns[name] for _, columns in found])[order])
            else:
                rows = [row for _, columns in found for row in columns[name]]
                merged[name] = [rows[place] for place in order.tolist()]
        return merged

    @property
    def happenings(self) -> tuple[Happening, ...]:
        """The events of the run, by kind."""
        noted = Happenings()
        for each in self._parts:
            noted.add(each.run.noted, each.clients.tolist())
        return noted.summed(self.names)

    def _advance(self, until_ns: Nanoseconds) -> None:
        """Simulate all parts to an instant; every part has reached it, or failed, when this returns or raises."""
        if self._threads is None:
            for part in self._parts:
                part.step(until_ns)
            return
        stepped = [self._threads.submit(part.step, until_ns) for part in self._parts]
        try:
            for each in stepped:
                each.result()
        finally:
            wait(stepped)


def _numbers_of(scenario: Scenario, part: Scenario) -> npt.NDArray[Any]:
    """Return the whole scenario's numbers of a part's clients and durable queues, followed by -1 for "none"."""
    ranges = client_ranges(scenario)
    spans = [ranges[name] for name in client_ranges(part)]
    numbers = [np.arange(first, first + count, dtype=np.int32) for first, count in spans]
    return np.concatenate([*numbers, np.full(1, -1, np.int32)])


def _number_topics(scenario: Scenario, parts: Sequence[Scenario], runs: Sequence[_PartRun]) -> None:
    """Set each part's topic numbers in the whole scenario, where they are consecutive from traffic to traffic."""
    counts: dict[int, tuple[_PartRun, int]] = {}
    for part, run in zip(parts, runs, strict=True):
        places = [i for i, each in enumerate(scenario.traffic) if any(each is own for own in part.traffic)]
        for place, (_, count) in zip(places, run.run.topics, strict=True):
            counts[place] = run, count
    numbers: dict[int, list[npt.NDArray[Any]]] = {}
    first = 0
    for place in range(len(scenario.traffic)):
        run, count = counts[place]
        numbers.setdefault(id(run), []).append(np.arange(first, first + count, dtype=np.int32))
        first += count
    for run in runs:
        run.topics = np.concatenate(numbers[id(run)])


def _whole_summed(events: Rows) -> Rows:
    """Return the events with the whole broker's totals, of which each part has one, added up."""
    whole = np.flatnonzero((events["client_id"] < 0) & np.isin(events["event"], list(TOTALS)))
    again: list[int] = []
    first: dict[tuple[int, int], int] = {}
    for place in whole.tolist():
        key = int(events["at_ns"][place]), int(events["event"][place])
        if key in first:
            events["value"][first[key]] += events["value"][place]
            again.append(place)
        else:
            first[key] = place
    return np.delete(events, again)
