"""A run of an egress model whose state can be saved and resumed repeatedly, for multilevel splitting.

The arrays that the kernels change are consecutive in one block of memory, so that saving and restoring a state are one
copy each. Histograms, which only measure waits, are excluded. Arrivals and all other random values after the instant
are drawn anew for each branch, see `arrivals.branching` and `queues.watch`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsctl.eventlog.schema import LogLevel
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.profiles.client_profile import WORK_UNIT_BYTES
from qsctl.sim.arrivals.branching import BranchingStreams, StreamsState
from qsctl.sim.arrivals.streams import ArrivalStreams
from qsctl.sim.egress.broker.ingress import Ingress, Row
from qsctl.sim.egress.broker.slow_subscribers import SlowSubscribers
from qsctl.sim.egress.queues import watch
from qsctl.sim.egress.runs._run import EgressRun
from qsctl.sim.kernel import records as r
from qsctl.sim.kernel.jit import as_records
from qsctl.sim.kernel.lines import CACHE_LINE, zeros_in_lines
from qsctl.sim.model import Rows, Stop
from qsctl.sim.scenario.scenario import QUEUE_ORDER, Scenario, TraceArrivals
from qsctl.sim.splitting.question import Question, no_such_queue
from qsctl.sim.splitting.trajectory import QueueTally

NOT_OF_THE_STATE: Final = frozenset({"arrivals", "log", "events", "octaves", "blocks", "recent"})
"""Arrays that the future of a run does not depend on."""
KEPT: Final = ("blocks_used", "blocks_limit", "recent_turn", "watch_low", "watch_high")
"""Numbers of the state record that belong to such arrays."""
NODES: Final = 16
"""Messages that the first arrays have room for at least: all of it is copied."""
NODES_MAX: Final = 1024
"""Messages that they have room for at most. Arrays that grow on the way are others than those of the states before."""
SIZES_SEEN: Final = 1000
"""Work units from which the mean size of one is taken."""
_AHEAD: Final = ("ingress_refused", "too_big", "first_refused")
"""Losses that ingress counts a window ahead."""


@dataclass(frozen=True, slots=True)
class RunMemory:
    """One block of memory with the offsets of the arrays in it."""

    bytes: npt.NDArray[Any]
    places: dict[str, tuple[int, int, Any]]
    """For each array's name: its offset in bytes, its size in bytes and its type."""


@dataclass(frozen=True, slots=True)
class SavedBroker:
    """The saved state of a run at an instant."""

    memory: RunMemory
    copied: npt.NDArray[Any]
    record: npt.NDArray[Any]
    arrivals: npt.NDArray[Any]
    ingress: IngressState
    slow: SlowSubscribers
    spool_used: npt.NDArray[Any]
    controls: list[Any]
    numbers: tuple[Any, ...]
    instant_ns: Nanoseconds
    known: dict[str, Any] = field(default_factory=dict)
    """Results that the first branch computes for the others.

    `rows`: the arrivals still to be processed up to the instant; `streams`: the state of the arrival streams after
    them.
    """


@dataclass(frozen=True, slots=True)
class IngressState:
    """The ingress at the beginning of the present window; `used` of its arrivals have reached the queues since."""

    streams: StreamsState
    used: int
    turned_away: int
    left: npt.NDArray[Any] | None = None
    arrays: tuple[npt.NDArray[Any], ...] = ()


class BranchingIngress(Ingress):
    """An ingress that can return to an earlier instant of the present window."""

    def __init__(self, scenario: Scenario, streams: BranchingStreams) -> None:
        super().__init__(scenario, streams)
        self._branching = streams
        self._begun = IngressState(streams.save(), 0, 0)
        self._turned: Rows = np.zeros(0, r.LOG_ROW)

    @property
    def filters(self) -> bool:
        """Return whether the ingress delays or refuses arrivals."""
        return self._filters

    def window(
        self, until_ns: Nanoseconds, left: npt.NDArray[Any], losses: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[Any], list[Row], Rows]:
        """Return the next window as `Ingress.window` does, and keep the state before it for `save`."""
        before = self._arrays(losses) if self._filters else ()
        turned_away = self.turned_away
        kept = left.copy() if self._filters else None
        admitted = super().window(until_ns, left, losses)
        self._begun = IngressState(self._branching.save(), 0, turned_away, kept, before)
        self._turned = admitted[2]
        return admitted

    def save(self, used: int) -> IngressState:
        """Return the state at the beginning of the present window; `used` is the number of arrivals processed since."""
        begun = self._begun
        return IngressState(self._branching.save(), begun.used + used, begun.turned_away, begun.left, begun.arrays)

    def restore(
        self, saved: IngressState, losses: npt.NDArray[Any], until_ns: Nanoseconds | None
    ) -> npt.NDArray[Any] | None:
        """Return to the window of a saved state, and return its unprocessed arrivals: all, or those before `until_ns`.

        Returns None where the ingress does not filter: the arrivals saved with the state apply, those before
        `until_ns`.
        """
        self._begun = saved
        self.turned_away = saved.turned_away
        rows = self._branching.restore(saved.streams, until_ns)
        if not self._filters or saved.left is None:
            return None
        held, ring, cursor, *ahead = (each.copy() for each in saved.arrays)
        self._held, self._ring, self._cursor = held, ring, cursor
        for name, column in zip(_AHEAD, ahead, strict=True):
            losses[name] = column
        admitted, _, self._turned = self._admit(rows, saved.left, losses)
        return as_records(admitted[saved.used :].copy())

    def streams_now(self) -> StreamsState:
        """Return the state of the streams at the end of the present window."""
        return self._branching.at_end()

    def go_to(self, saved: IngressState, streams: StreamsState) -> None:
        """Set the state that a `restore` of `saved` led to, with the `streams` it had then.

        Only where nothing is filtered.
        """
        self._begun = saved
        self.turned_away = saved.turned_away
        self._branching.go_to(streams)

    def begin_anew(self, branch: int, left: npt.NDArray[Any], losses: npt.NDArray[Any]) -> None:
        """Draw later arrivals from the streams of a branch.

        `left` are arrivals that have not reached their queues yet.
        """
        self._branching.begin_anew(branch)
        kept = (left.copy(), self._arrays(losses)) if self._filters else (None, ())
        self._begun = IngressState(self._branching.save(), 0, self.turned_away, *kept)

    def refused_after(self, instant_ns: Nanoseconds, clients: frozenset[int], queue: int) -> int:
        """Return the number of refused copies for these queues that the present window has counted after an instant."""
        turned = self._turned
        if not len(turned):
            return 0
        later = (turned["enqueued_ns"] > instant_ns) & (turned["enqueued_ns"] >= self._warm_up_ns)
        later &= (turned["queue"] == queue) & np.isin(turned["client_id"], list(clients))
        return int(later.sum())

    def _arrays(self, losses: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
        ahead = tuple(losses[name].copy() for name in _AHEAD)
        return (self._held.copy(), self._ring.copy(), self._cursor.copy(), *ahead)


class EgressTrajectory(EgressRun):
    """A run of egress queues that `sim.splitting` can branch."""

    def __init__(self, scenario: Scenario, replication: int, question: Question) -> None:
        super().__init__(
            scenario, replication, LogLevel.COUNTERS, draw=BranchingStreams, first_nodes=NODES
        )  # fmt: skip
        assert isinstance(self._streams, BranchingStreams)
        self._branching = BranchingIngress(scenario, self._streams)
        self._ingress = self._branching
        self._question = question
        self._queue = self.queue_names.index(question.queue) if question.queue in self.queue_names else -1
        clients = self._watched(scenario, question)
        self._watched_clients = frozenset(int(c) for c in clients)
        self.most = self._most(clients)
        unit = _unit_bytes(scenario, clients, self._queue) if self._queue else 0
        self.arrays.watch(clients, self._queue, self.most, by_depth=question.by_depth, unit_bytes=unit)
        self.arrays.have_nodes(min(NODES_MAX, 2 * self.most))
        self._pack()
        self._slow_saved: SlowSubscribers | None = None

    def _watched(self, scenario: Scenario, question: Question) -> npt.NDArray[Any]:
        """Return the clients, and durable queues, that receive messages of the queue in question."""
        found: list[int] = []
        for name in dict.fromkeys(
            traffic.to
            for traffic in scenario.traffic
            if isinstance(traffic.arrivals, TraceArrivals) or QUEUE_ORDER.index(traffic.queue) == self._queue
        ):
            first, count = self._ranges[name]
            found += range(first, first + count)
            for flow in next((queue.flows for queue in scenario.durable_queues if queue.name == name), ()):
                first, count = self._ranges[flow.group]  # whose G-1 the queue's messages go through
                found += range(first, first + count)
        if not found:
            raise no_such_queue(question.queue, self._carrying(scenario))
        return np.array(sorted(set(found)), np.int64)

    def _carrying(self, scenario: Scenario) -> list[str]:
        places = {QUEUE_ORDER.index(traffic.queue) for traffic in scenario.traffic}
        return [self.queue_names[place] for place in sorted(places)]

    def _most(self, clients: npt.NDArray[Any]) -> int:
        """Return the importance at which the rare event occurs, or is the next event."""
        if self._question.by_depth:
            return self._question.level
        if self._queue == 0:
            return max(0, int(self.arrays.endpoints["held_max"][clients].max()))
        rows = self.arrays.queues[clients * r.QUEUES + self._queue]
        return int(np.maximum(rows["max_depth"], rows["burst"]).max())

    def importance(self) -> int:
        """Return the importance of the present state."""
        return int(self.arrays.kernel(watch.importance))

    def advance(self, low: int, high: int) -> bool:
        """Simulate while low ≤ importance < high; return False at the horizon."""
        state = self.arrays.state
        state["watch_low"], state["watch_high"] = low, high
        if self.step(self._scenario.horizon_ns) is Stop.CROSSED:
            return True
        self._drain(self.now_ns - 1)
        return False

    def skip(self, until_ns: Nanoseconds) -> None:
        """Simulate to an instant, regardless of the importance."""
        state = self.arrays.state
        state["watch_low"], state["watch_high"] = -r.FOREVER, r.FOREVER
        self.step(until_ns)

    def tally(self) -> QueueTally:
        """Return the losses, messages and high-water mark counted on the path to the present state."""
        if self._warm_ns != INFINITE_NS:
            return QueueTally(0, 0, 0)
        lost, passed, mark = self.arrays.kernel(watch.counted)
        if self._branching.filters:
            lost -= self._branching.refused_after(self._instant(), self._watched_clients, self._queue)
        return QueueTally(int(lost), int(lost + passed), int(mark))

    def save(self) -> SavedBroker:
        """Return a copy of the present state."""
        arrays, state = self.arrays, self.arrays.state
        if self._growths != arrays.growths:
            self._pack()
        if self._slow_saved is None:
            self._slow_saved = copy.deepcopy(self._slow)
        position = int(state["position"])
        return SavedBroker(
            memory=self._memory,
            copied=self._memory.bytes.copy(),
            record=arrays.record.copy(),
            arrivals=self._rows[position:].copy(),
            ingress=self._branching.save(position),
            slow=self._slow_saved,
            spool_used=self._spool_used.copy(),
            controls=self._controls.copy(),
            numbers=(self.now_ns, self._warm_ns, self._load_set, self._sequence),
            instant_ns=self._instant(),
        )

    def resume(self, saved: SavedBroker, branch: int | None) -> None:
        """Return to a saved state; with a branch number, later random values are drawn from that branch's streams."""
        arrays = self.arrays
        kept = [(name, int(arrays.state[name])) for name in KEPT]
        arrays.record[:] = saved.record
        if saved.memory is self._memory and self._growths == arrays.growths:
            self._memory.bytes[:] = saved.copied
        else:
            memory = zeros_in_lines(len(saved.copied), np.uint8)
            memory[:] = saved.copied
            self._adopt(RunMemory(memory, saved.memory.places))
        for name, value in kept:
            arrays.state[name] = value
        if self._slow_saved is not saved.slow:
            self._slow, self._slow_saved = copy.deepcopy(saved.slow), saved.slow
        self._spool_used[:] = saved.spool_used
        self._controls = saved.controls.copy()
        self.now_ns, self._warm_ns, self._load_set, self._sequence = saved.numbers
        if branch is not None and "streams" in saved.known:
            rows = saved.known["rows"]
            self._branching.go_to(saved.ingress, saved.known["streams"])
        else:
            rows = self._arrivals_of(saved, branch)
        self._rows = as_records(rows)
        arrays.state["position"] = 0
        arrays.state["count"] = len(rows)
        if branch is not None:
            self._branching.begin_anew(branch, rows, arrays.losses)
            arrays.kernel(watch.begin_anew, branch)

    def _arrivals_of(self, saved: SavedBroker, branch: int | None) -> npt.NDArray[Any]:
        """Restore the arrivals of a state and return the unprocessed ones.

        For a branch, only those up to the instant.
        """
        until = None if branch is None else min(saved.instant_ns + 1, saved.ingress.streams.end_ns)
        rows = self._branching.restore(saved.ingress, self.arrays.losses, until)
        if rows is not None:
            return rows
        rows = saved.arrivals
        if until is not None:
            if len(rows):
                rows = rows[: int(np.searchsorted(rows["time"], until))]
            saved.known.update(rows=rows, streams=self._branching.streams_now())
        return rows

    def _instant(self) -> Nanoseconds:
        """Return the instant up to which, inclusive, all events have been processed."""
        return max(self.now_ns, int(self.arrays.state["now"]))

    def _second(self) -> None:
        self._slow_saved = None
        super()._second()

    def _pack(self) -> None:
        """Move the arrays of the state into one block of memory."""
        places: dict[str, tuple[int, int, Any]] = {}
        begin = 0
        for name, array in self.arrays.named():
            if name not in NOT_OF_THE_STATE:
                places[name] = (begin, array.nbytes, array.dtype)
                begin += -(-array.nbytes // CACHE_LINE) * CACHE_LINE
        memory = zeros_in_lines(begin, np.uint8)
        for name, array in self.arrays.named():
            if name in places:
                first, size, _ = places[name]
                memory[first : first + size] = np.asarray(array).view(np.uint8)
        self._adopt(RunMemory(memory, places))

    def _adopt(self, memory: RunMemory) -> None:
        self._memory = memory
        self._growths = self.arrays.growths
        for name, (first, size, dtype) in memory.places.items():
            self.arrays.place(name, memory.bytes[first : first + size].view(dtype))


def _unit_bytes(scenario: Scenario, clients: npt.NDArray[Any], queue: int) -> int:
    """Return the mean bytes of a work unit, of the first messages for these queues; 0 without messages.

    It is computed from repetition 0 for all repetitions, so that an importance means the same in each.
    """
    streams = ArrivalStreams(scenario, 0)
    found, units = 0, 0
    while units < SIZES_SEEN and streams.now_ns < scenario.horizon_ns:
        rows = streams.window(scenario.horizon_ns)
        rows = rows[np.isin(rows["client"], clients) & (rows["tag"] & 7 == queue)]
        found += int(rows["bytes"].sum())
        units += int((-(-rows["bytes"].astype(np.int64) // WORK_UNIT_BYTES)).sum())
    return max(1, found // units) if units else 0
