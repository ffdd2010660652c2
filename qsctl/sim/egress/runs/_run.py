"""One replication of an egress model: calls of the main kernel, and between them the events at fixed times.

The kernel runs from one fixed time to the next (a change, an absence, the end of a second, the end of the warm-up), so
that these cost it nothing. The order at one instant: the end of the warm-up, so that the whole instant is observed;
then acknowledgments and timers, the second's end, connections, disconnections, the events of pauses and timed changes
in the scenario's order, then arrivals.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial
from math import ceil, floor
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsctl.eventlog.run_folder import Happening
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import INFINITE_NS, SECOND_NS, Nanoseconds, later
from qsctl.sim.arrivals.streams import ArrivalStreams
from qsctl.sim.egress.broker.ingress import Ingress, log_rows
from qsctl.sim.egress.broker.slow_subscribers import SlowSubscribers
from qsctl.sim.egress.clients.connection import drain
from qsctl.sim.egress.clients.presence import connect, count_rest, disconnect, hold
from qsctl.sim.egress.clients.traits import stir
from qsctl.sim.egress.layout.arrays import EgressArrays
from qsctl.sim.egress.layout.counters import counter_columns, total_events
from qsctl.sim.egress.layout.scenario_layout import lay_out, port_links, set_port_rate
from qsctl.sim.egress.queues.watch import importance
from qsctl.sim.egress.runs._advance import advance
from qsctl.sim.kernel import records as r
from qsctl.sim.kernel.histogram import count_unfinished
from qsctl.sim.kernel.jit import as_records
from qsctl.sim.model import CHUNK_ROWS, EVENT_ROW, LOG_ROW, NEVER, Event, Rows, Stop
from qsctl.sim.recording.happenings import Happenings
from qsctl.sim.scenario.changes import PortChange, QueueChange, read_changes
from qsctl.sim.scenario.scenario import QUEUE_ORDER, TIBCO_QUEUE, Model, Queue, Scenario

SECOND, CONNECT, DISCONNECT, MARK, CHANGE = range(5)
"""The order of what happens at one instant."""

SPOOL_SET_PERCENT: Final = 80
SPOOL_CLEAR_PERCENT: Final = 60
Control = tuple[Nanoseconds, int, int, Callable[[], None]]


class EgressRun:
    """A run of egress queues."""

    def __init__(
        self,
        scenario: Scenario,
        replication: int,
        level: LogLevel,
        chunk_rows: int = CHUNK_ROWS,
        draw: type[ArrivalStreams] = ArrivalStreams,
        first_nodes: int | None = None,
    ) -> None:
        self._scenario = scenario
        self._level = level
        changes, self._outages = read_changes(scenario)
        streams = self._streams = draw(scenario, replication)
        layout = lay_out(scenario, replication, self._outages, streams.topic_ranges, streams.guaranteed_groups)
        self.names = layout.names
        self.queue_names = [name.value for name in QUEUE_ORDER]
        if scenario.model is Model.TIBCO:
            self.queue_names[QUEUE_ORDER.index(Queue.D_1)] = TIBCO_QUEUE
        self.arrays = EgressArrays(
            layout,
            level,
            chunk_rows,
            scenario.horizon_ns,
            acknowledging=scenario.model is Model.TIBCO,
            unacknowledged_max=scenario.broker.unacknowledged_limit_messages,
            first_nodes=first_nodes,
        )
        self._ingress = Ingress(scenario, streams)
        self._ranges = streams.client_ranges
        self._rows = as_records(np.zeros(0, r.ARRIVAL))
        broker = scenario.broker
        self._slow = SlowSubscribers(
            scenario.seed, replication, len(layout.names), broker.slow_penalty_percent, broker.slow_threshold_percent
        )
        self._buffer = broker.egress_buffer_bytes
        self._load_set = False
        self._spool_used = np.zeros(len(layout.names), np.bool_)
        self._bound_load()
        self.noted = Happenings()
        """The events so far, by kind."""
        self._events: list[tuple[int, int, int, int, int]] = []
        self._controls: list[Control] = []
        self._sequence = 0
        self._plan(changes)
        self._warm_ns = scenario.warm_up_ns or INFINITE_NS
        self._held = 0
        self._finished = False
        self._aside = self._at_ingress = np.zeros(0, LOG_ROW)
        """Rows to be logged behind those of the kernel: what ingress refused, or had not whole when the run ended."""
        self.now_ns: Nanoseconds = 0
        for client, value, event in self._ingress.subscriptions.events():
            self._raise(0, client, -1, value, event)

    @property
    def messages(self) -> int:
        """Arrivals simulated so far, including the warm-up and those that the ingress refused."""
        return int(self.arrays.state["arrived"]) + self._ingress.turned_away

    @property
    def topics(self) -> list[tuple[int, int]]:
        """The first topic number and the number of topics of each traffic."""
        return self._streams.topics

    @property
    def slow_percent(self) -> npt.NDArray[Any]:
        """The slowness of every client at the end of the last second, in percent."""
        return self._slow.percent

    def step(self, until_ns: Nanoseconds) -> Stop:
        """Simulate to `until_ns` (exclusive, at most the horizon) or until the log chunk is full."""
        horizon = self._scenario.horizon_ns
        until_ns = min(until_ns, horizon)
        arrays = self.arrays
        state = arrays.state
        while True:
            if state["log_count"] >= state["log_limit"] or len(self._aside):
                return Stop.LOG_FULL
            if self._controls and self._controls[0][0] <= self.now_ns:
                heapq.heappop(self._controls)[3]()
                if state["buffers"] and not state["load_fall"] < state["egress_bytes"] < state["load_rise"]:
                    state["now"] = self.now_ns
                    self._load_changed()
                if state["watched"] and not state["watch_low"] <= arrays.kernel(importance) < state["watch_high"]:
                    state["now"] = self.now_ns
                    return Stop.CROSSED
                continue
            if self.now_ns >= until_ns:
                return Stop.UNTIL
            if self._ingress.now_ns <= self.now_ns:
                left = self._rows[state["position"] :]
                self._rows, refused, turned_away = self._ingress.window(horizon, left, arrays.losses)
                state["position"] = 0
                for row in refused:
                    self._raise(*row)
                if self._level is not LogLevel.COUNTERS and len(turned_away):
                    self._aside = turned_away
                    continue
            bound = min(until_ns, self._ingress.now_ns)
            if self._controls:
                bound = min(bound, self._controls[0][0])
            warm = bound >= self._warm_ns
            if warm:
                bound = self._warm_ns
            last = bound - 1 if warm or bound == horizon else bound
            match arrays.call(advance, self._rows, len(self._rows), bound, last):
                case r.REACHED if warm:
                    self._drain(bound - 1)
                    arrays.reset_counters(bound)
                    self._slow.warm_up(bound, arrays.clients, arrays.more)
                    self._warm_ns = INFINITE_NS
                case r.REACHED:
                    self.now_ns = bound
                case r.GROW:
                    arrays.grow()
                case r.LOAD_CHANGED:
                    self._load_changed()
                case r.LEVEL_CROSSED:
                    return Stop.CROSSED
                case _:
                    return Stop.LOG_FULL

    def take_log(self) -> Rows:
        """Return the rows since the last call: a view that the next `step` overwrites."""
        rows = self.arrays.take_log()
        if len(self._aside):
            rows = np.concatenate([rows, self._aside])
            self._aside = self._aside[:0]
        return rows

    def take_events(self) -> Rows:
        """Return a copy of the events since the last call."""
        for row in self.arrays.take_kernel_events():
            self._raise(int(row["at_ns"]), int(row["client_id"]), int(row["queue"]), int(row["value"]), row["event"])
        rows = np.zeros(len(self._events), EVENT_ROW)
        for i, (at, client, queue, value, event) in enumerate(sorted(self._events, key=lambda row: row[0])):
            rows[i] = (at, value, client, queue, event)
        self._events.clear()
        return rows if self._level is LogLevel.EVENTS else rows[:0]

    def finish(self) -> Stop:
        """Log the messages still in the broker as `held`; to be called again while it returns LOG_FULL."""
        arrays = self.arrays
        if not self._finished:
            self._finished = True
            self._drain(self.now_ns - 1 if self.now_ns >= self._scenario.horizon_ns else self.now_ns)
            arrays.state["horizon"] = self.now_ns
            counted = 0
            while (counted := arrays.kernel(count_rest, counted, len(self.names))) < len(self.names):
                arrays.grow()
            self._at_ingress = self._count_at_ingress()
            blocked_ns = self._slow.blocked_ns(self.now_ns, arrays.clients, arrays.more)
            for row in total_events(self.now_ns, arrays, self._slow.percent, blocked_ns):
                self._raise(*row)
            if self._slow.missed_keepalives:
                self._raise(self.now_ns, -1, -1, self._slow.missed_keepalives, Event.MISSED_KEEPALIVES)
        while arrays.state["logging"] and self._held < len(self.names):
            if arrays.state["log_count"] >= arrays.state["log_limit"]:
                return Stop.LOG_FULL
            arrays.kernel(hold, self._held)
            self._held += 1
        if arrays.state["logging"]:
            self._aside, self._at_ingress = self._at_ingress, self._at_ingress[:0]
        return Stop.UNTIL

    def counters(self) -> dict[str, Any]:
        """Return one row for each client and queue that carried traffic, as columns."""
        observed = max(0, min(self.now_ns, self._scenario.horizon_ns) - self._scenario.warm_up_ns)
        return counter_columns(self.names, self.queue_names, self.arrays, observed)

    def _drain(self, until_ns: Nanoseconds) -> None:
        """Process pending acknowledgments up to `until_ns` that affect counters: those of G-1 and of lossy links."""
        clients = self.arrays.clients
        for c in np.flatnonzero((clients["traits"] & (r.HOLD | r.LOSSY) != 0) & (clients["next_ack"] <= until_ns)):
            self.arrays.ensure_room()
            self.arrays.kernel(drain, int(c), until_ns)

    def _count_at_ingress(self) -> Rows:
        """Count messages that ingress is still receiving at the end of the run as waiting; return their log rows."""
        arrays = self.arrays
        left = self._rows[arrays.state["position"] :]
        if self.now_ns < self._scenario.horizon_ns:
            left = left[:0]  # the run was stopped: these are still to come
        place = left["client"].astype(np.int64) * r.QUEUES + (left["tag"] & 7)
        np.add.at(arrays.queues["arrived"], place, 1)
        np.add.at(arrays.losses["waiting"], place, 1)
        arrays.state["arrived"] += len(left)
        rows = log_rows(left, r.WAITING, wait_ns=NEVER)
        rows["enqueued_ns"] = np.minimum(rows["enqueued_ns"], max(0, self.now_ns - 1))
        own = arrays.acknowledged[rows["client_id"]] & ((rows["queue"] == 0) | bool(arrays.state["acknowledging"]))
        for row in rows[own]:
            arrays.ensure_room()
            arrays.kernel(count_unfinished, int(row["client_id"]), self.now_ns - int(row["enqueued_ns"]))
        return rows

    @property
    def happenings(self) -> tuple[Happening, ...]:
        """The events of the run, by kind."""
        return self.noted.summed(self.names)

    def _raise(self, at: int, client: int, queue: int, value: int, event: int) -> None:
        self.noted.note(at, client, value, event)
        if self._level is LogLevel.EVENTS:
            self._events.append((at, client, queue, value, int(event)))

    def _at(self, time: Nanoseconds, rank: int, action: Callable[[], None]) -> None:
        if time < self._scenario.horizon_ns:
            heapq.heappush(self._controls, (time, rank, self._sequence, action))
            self._sequence += 1

    def _plan(self, changes: list[QueueChange | PortChange]) -> None:
        self._at(SECOND_NS, SECOND, self._second)
        for change in changes:
            self._at(change.at_ns, CHANGE, partial(self._change, change))
        for group, spans in self._outages.absences.items():
            first, count = self._ranges[group]
            for start, end in spans:
                for c in range(first, first + count):
                    self._at(start, DISCONNECT, partial(self._disconnect, c))
                    self._at(end, CONNECT, partial(self._connect, c, group))
        for group, spans in self._outages.pauses.items():
            first, count = self._ranges[group]
            if self._level is LogLevel.EVENTS:
                for c in range(first, first + count):
                    for start, end in spans:
                        self._at(start, MARK, partial(self._raise, start, c, -1, 0, Event.PAUSED))
                        self._at(end, MARK, partial(self._raise, end, c, -1, 0, Event.RESUMED))

    def _second(self) -> None:
        for c in self._slow.tick(self.now_ns, self.arrays.clients, self.arrays.more):
            event = Event.SLOW_SUBSCRIBER if self._slow.slow[c] else Event.SLOW_SUBSCRIBER_CLEARED
            self._raise(self.now_ns, int(c), -1, round(100 * self._slow.percent[c]), event)
        self._check_endpoints()
        self._at(later(self.now_ns, SECOND_NS), SECOND, self._second)

    def _check_endpoints(self) -> None:
        """Raise the threshold events of endpoints with a limit (80 and 60 %: [SOL-QUEUES]), checked each second."""
        endpoints = self.arrays.endpoints
        most, largest = endpoints["held_max"], endpoints["bytes_max"]
        if not ((most > 0) | (largest > 0)).any():
            return
        self._drain(self.now_ns)
        messages = np.where(most > 0, 100 * endpoints["held"] // np.maximum(most, 1), 0)
        spooled = np.where(largest > 0, 100 * endpoints["held_bytes"] // np.maximum(largest, 1), 0)
        usage = np.maximum(messages, spooled)
        for c in np.flatnonzero(~self._spool_used & (usage >= SPOOL_SET_PERCENT)):
            self._raise(self.now_ns, int(c), 0, int(usage[c]), Event.SPOOL_USAGE_SET)
            self._spool_used[c] = True
        for c in np.flatnonzero(self._spool_used & (usage <= SPOOL_CLEAR_PERCENT)):
            self._raise(self.now_ns, int(c), 0, int(usage[c]), Event.SPOOL_USAGE_CLEARED)
            self._spool_used[c] = False

    def _change(self, change: QueueChange | PortChange) -> None:
        scenario = self._scenario
        if isinstance(change, PortChange):
            links = port_links(scenario)[change.port]
            set_port_rate(self.arrays.ports[links], change.port, change.rate_bits_per_second)
            return
        queue = QUEUE_ORDER.index(change.queue)
        event = {"max_depth": Event.DEPTH_CHANGED, "burst": Event.BURST_CHANGED}.get(change.limit)
        for group in scenario.groups:
            if group.profile == change.profile:
                first, count = self._ranges[group.name]
                limits = self.arrays.tallies if change.limit == "weight" else self.arrays.queues
                limits[change.limit][first * 5 + queue : (first + count) * 5 : 5] = change.value
                for c in range(first, first + count) if event is not None else ():
                    self._raise(self.now_ns, c, queue, change.value, event or 0)
                    if queue == 0 and self.arrays.clients["traits"][c] & r.HOLD:
                        self.arrays.ensure_room()
                        self.arrays.kernel(stir, c, self.now_ns)

    def _disconnect(self, c: int, event: Event = Event.DISCONNECTED) -> None:
        arrays = self.arrays
        if arrays.clients["traits"][c] & r.ABSENT:
            return
        arrays.ensure_room()
        dropped = int(arrays.kernel(disconnect, c, self.now_ns))
        self._raise(self.now_ns, c, -1, dropped, event)

    def _connect(self, c: int, group: str) -> None:
        arrays = self.arrays
        if not arrays.clients["traits"][c] & r.ABSENT:
            return
        next_absence = self._outages.next_absence(group, self.now_ns - 1)
        arrays.more["next_absence"][c] = next_absence
        self._raise(self.now_ns, c, -1, 0, Event.CONNECTED)
        arrays.ensure_room()
        arrays.kernel(connect, c, self.now_ns)

    def _bound_load(self) -> None:
        state = self.arrays.state
        state["buffers"] = 1 if self._buffer > 0 else 0
        broker = self._scenario.broker
        self._set_bytes = ceil(self._buffer * broker.load_factor_set_percent / 100)
        self._clear_bytes = floor(self._buffer * broker.load_factor_clear_percent / 100)
        self._bounds()

    def _bounds(self) -> None:
        state = self.arrays.state
        over = self._buffer + 1 if self._scenario.broker.slow_disconnect else r.FOREVER
        state["load_rise"] = over if self._load_set else min(over, self._set_bytes)
        state["load_fall"] = self._clear_bytes if self._load_set else -1

    def _load_changed(self) -> None:
        """Raise the event of the buffer threshold that was crossed; disconnect the slowest client while above 100 %."""
        state = self.arrays.state
        now = int(state["now"])
        self.now_ns = now
        if not self._load_set and state["egress_bytes"] >= self._set_bytes:
            self._load_set = True
            self._raise(now, -1, -1, int(100 * state["egress_bytes"] // self._buffer), Event.BUFFER_LOAD_SET)
        while self._scenario.broker.slow_disconnect and state["egress_bytes"] > self._buffer:
            more = self.arrays.more
            order = np.lexsort((-more["buffered"], -self._slow.percent, more["buffered"] <= 0))
            slowest = int(order[0])
            self._disconnect(slowest, Event.DISCONNECTED_SLOW)
            back = later(now, self._scenario.broker.slow_reconnect_ns)
            if back < INFINITE_NS:
                group = self._group_of(slowest)
                self._at(back, CONNECT, partial(self._connect, slowest, group))
        if self._load_set and state["egress_bytes"] <= self._clear_bytes:
            self._load_set = False
            self._raise(now, -1, -1, int(100 * state["egress_bytes"] // self._buffer), Event.BUFFER_LOAD_CLEARED)
        self._bounds()

    def _group_of(self, c: int) -> str:
        return next(name for name, (first, count) in self._ranges.items() if first <= c < first + count)
