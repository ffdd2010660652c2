"""Arrivals of a scenario: one stream a client (or a fan-out), merged window by window into time order.

Every stream has its own random keys for gaps, stays, sizes and topics, hashed from seed, replication, traffic, group
and the client's number in the group. So a variant that changes a limit, a profile or another group has the same
arrivals.
Times are rounded to whole nanoseconds.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsctl.errors import InvalidInput
from qsctl.instant import SECOND_NS, Nanoseconds, later
from qsctl.sim.arrivals._merge import sort_within_spans
from qsctl.sim.arrivals.draw import (
    CONSTANT,
    CYCLE,
    MODULATED,
    POISSON,
    SIZE_CONSTANT,
    STREAM,
    TRACE,
    TRACE_ROW,
    draw_times,
    end_spans,
    place_rows,
    start_streams,
)
from qsctl.sim.arrivals.quantities import cumulative, guided, lay_quantity
from qsctl.sim.arrivals.remembered import ArrivalWindow, Memory, memory
from qsctl.sim.arrivals.trace import read_trace
from qsctl.sim.kernel.jit import as_records
from qsctl.sim.kernel.random import exponential, logarithm, stream_keys
from qsctl.sim.kernel.records import (
    ARRIVAL,
    ARRIVAL_ELIGIBLE,
    ARRIVAL_KEPT,
    ARRIVAL_SHARED,
    ARRIVAL_TRAFFIC_SHIFT,
    FOREVER,
)
from qsctl.sim.scenario.scenario import (
    QUEUE_ORDER,
    ConstantArrivals,
    MmppArrivals,
    OnOffArrivals,
    PoissonArrivals,
    Queue,
    Scenario,
    ScheduleArrivals,
    TraceArrivals,
    Traffic,
)

WINDOW_ROWS: Final = 1 << 14
"""Arrivals that a window aims at: enough to amortise a call from Python, few enough to stay in the cache."""
ROWS_A_STREAM: Final = 2
"""Arrivals that it aims at for each stream, for each window looks at all of them."""
SPANS_MAX: Final = 1 << 16
BLOCK: Final = 256
"""Draws that are made together."""


def client_ranges(scenario: Scenario) -> dict[str, tuple[int, int]]:
    """Return the first client number and the number of clients of each group, in the order of the scenario.

    The durable queues follow, each numbered like a group of one client.
    """
    ranges: dict[str, tuple[int, int]] = {}
    first = 0
    for group in scenario.groups:
        ranges[group.name] = (first, group.count)
        first += group.count
    for queue in scenario.durable_queues:
        ranges[queue.name] = (first, 1)
        first += 1
    return ranges


class ArrivalStreams:
    """The arrivals of one replication: windows of rows, each in time order."""

    def __init__(self, scenario: Scenario, replication: int) -> None:
        """Prepare the streams of all traffic.

        Raises:
            InvalidInput: traffic to an unknown group, an impossible rate, size or share, or an invalid trace.
        """
        self._table: list[float] = []
        self._traces: list[npt.NDArray[Any]] = []
        self._trace_rows = 0
        self.client_ranges = client_ranges(scenario)
        """The first client number and the number of clients of each group, and of each durable queue."""
        self.topic_ranges: dict[str, tuple[int, int]] = {}
        """The first topic number of a group's traffic and the number after its last."""
        self.topics: list[tuple[int, int]] = []
        """The first topic number and the number of topics of each traffic."""
        guaranteed: set[str] = set()
        rows: list[npt.NDArray[Any]] = []
        rate = 0.0
        topic_base = 0
        for number, traffic in enumerate(scenario.traffic):
            if traffic.to not in self.client_ranges:
                known = ", ".join(self.client_ranges) or "none"
                raise InvalidInput(
                    f"traffic {traffic.name!r} is sent to the group {traffic.to!r}; the groups are: {known}",
                    remedy="Name a group of the scenario.",
                )
            streams, topics, per_second = self._streams(scenario, replication, number, traffic, topic_base)
            low, high = self.topic_ranges.get(traffic.to, (topic_base, topic_base))
            self.topic_ranges[traffic.to] = (min(low, topic_base), max(high, topic_base + topics))
            self.topics.append((topic_base, topics))
            topic_base += topics
            rate += per_second
            rows.append(streams)
            if traffic.queue is Queue.G_1 or (
                isinstance(traffic.arrivals, TraceArrivals) and (self._traces[-1]["queue"] == 0).any()
            ):
                guaranteed.add(traffic.to)
        self.guaranteed_groups = frozenset(guaranteed)
        """Groups to which messages of G-1 come."""
        self.streams = as_records(rows[0] if len(rows) == 1 else np.concatenate([np.zeros(0, STREAM), *rows]))
        self.trace = as_records(np.concatenate([*self._traces, np.zeros(1, TRACE_ROW)]))
        self.table = np.array(self._table or [0.0], np.float64)
        self.now_ns: Nanoseconds = 0
        """Windows were given up to here."""
        self._wanted = max(WINDOW_ROWS, ROWS_A_STREAM * len(self.streams))
        self.width_ns: Nanoseconds = max(1, int(self._wanted / rate * SECOND_NS)) if rate > 0 else SECOND_NS
        self._allocate(self._wanted + self._wanted // 4)
        with np.errstate(over="ignore"):
            start_streams(self.streams, self.table, self.trace)
        self._memory = memory()
        self._key = b""
        self._known: list[ArrivalWindow] | None = None
        """The windows that were drawn before; None: they are drawn now."""
        self._drawn: list[ArrivalWindow] | None = None
        """Those that are to be remembered; None: none are."""
        self._place = 0

    def _allocate(self, capacity: int) -> None:
        self._times = np.zeros(capacity, np.int64)
        self._ordered = as_records(np.zeros(capacity, ARRIVAL))
        self._aside = as_records(np.zeros(1, ARRIVAL))
        self._spans = np.zeros(min(SPANS_MAX, 1 << capacity.bit_length()), np.int32)
        """At first the arrivals of each span of a window, then where their rows begin."""
        self._reals = np.zeros(BLOCK, np.float64)
        self._sizes = np.zeros(BLOCK, np.int64)

    def window(self, until_ns: Nanoseconds) -> npt.NDArray[Any]:
        """Return the next arrivals in time order, at most those before `until_ns`; `now_ns` is the end of the window.

        The next call overwrites the rows. The division of time into windows does not change any row.
        """
        if self._memory is not None and self.now_ns == 0:
            self._recall(self._memory, until_ns)
        if self._known is not None:
            return self._known_window()
        start = self.now_ns
        rows = self._draw(min(until_ns, start + self.width_ns))
        self._fit_width(len(rows), self.now_ns - start, self._wanted)
        if self._memory is not None and self._drawn is not None:
            self._remember(self._memory, until_ns, len(rows))
        return rows

    def _draw(self, end: Nanoseconds) -> npt.NDArray[Any]:
        """Draw the arrivals before `end`, and return the rows in time order."""
        start, used, stream = self.now_ns, 0, 0
        self._spans.fill(0)
        shift = max(0, (end - start).bit_length() - (len(self._spans).bit_length() - 1))
        with np.errstate(over="ignore"):  # for the wrapping integers of kernels that are plain Python
            while True:
                used, stream = draw_times(
                    self.streams, stream, start, end, shift, self._times, used, self._spans, self._reals,
                    self.table, self.trace,
                )  # fmt: skip
                if stream == len(self.streams):
                    break
                self._times = np.concatenate([self._times, np.zeros_like(self._times)])
            count = end_spans(self._spans)
            if count > len(self._ordered):
                self._ordered = as_records(np.zeros(count + count // 4, ARRIVAL))
            place_rows(
                self.streams, start, shift, self._times, self._spans, self._ordered, self._reals, self._sizes,
                self.table, self.trace,
            )  # fmt: skip
        rows = self._ordered[:count]
        if not sort_within_spans(self._ordered, count, self._aside):
            rows[:] = rows[np.argsort(rows["time"], kind="stable")]
        self.now_ns = end
        return rows

    def _fit_width(self, count: int, width_ns: Nanoseconds, wanted: int) -> None:
        """Halve or double the width of the next window where the last one had far more or fewer rows than `wanted`."""
        if count > 2 * wanted and self.width_ns > 1:
            self.width_ns //= 2
        elif count < wanted // 2 and width_ns == self.width_ns:
            self.width_ns = min(2 * self.width_ns, FOREVER // 4)

    def _recall(self, memory: Memory, until_ns: Nanoseconds) -> None:
        """Look up the remembered windows by the streams' parameters and `until_ns`, which determine them."""
        self._key = digest_of(f"{until_ns} {self.width_ns}", self.streams, self.table, self.trace)
        self._known = memory.get(self._key)
        self._drawn = [] if self._known is None else None

    def _known_window(self) -> npt.NDArray[Any]:
        """Return a copy of the next remembered window, since the caller may change it."""
        assert self._known is not None
        window = self._known[self._place]
        self._place += 1
        self.now_ns, self.width_ns = window.end_ns, window.width_ns
        return as_records(window.rows.copy())

    def _remember(self, memory: Memory, until_ns: Nanoseconds, count: int) -> None:
        """Keep a copy of the window; after the last one store all, or none where the memory is too small."""
        assert self._drawn is not None
        rows = np.array(self._ordered[:count])
        if not memory.has_room(rows.nbytes + sum(each.rows.nbytes for each in self._drawn)):
            self._drawn = None
            return
        self._drawn.append(ArrivalWindow(self.now_ns, self.width_ns, rows))
        if self.now_ns >= until_ns:
            memory.keep(self._key, self._drawn)
            self._drawn = None

    def _streams(
        self, scenario: Scenario, replication: int, number: int, traffic: Traffic, topic_base: int
    ) -> tuple[npt.NDArray[Any], int, float]:
        first, clients = self.client_ranges[traffic.to]
        arrivals = traffic.arrivals
        if traffic.shared:
            clients = 1
        whole = traffic.fan_out or isinstance(arrivals, TraceArrivals)
        streams = np.zeros(1 if whole else clients, STREAM)
        streams["first"] = first if whole else np.arange(first, first + clients)
        streams["count"] = clients if whole else 1
        streams["start"] = traffic.start_ns
        streams["stop"] = min(traffic.stop_ns, scenario.horizon_ns)
        eligible = ARRIVAL_ELIGIBLE if traffic.discard_eligible else 0
        eligible |= (ARRIVAL_SHARED if traffic.shared else 0) | (0 if traffic.eliding_eligible else ARRIVAL_KEPT)
        streams["tag"] = QUEUE_ORDER.index(traffic.queue) | eligible | (number << ARRIVAL_TRAFFIC_SHIFT)
        streams["topic_base"] = topic_base
        topics, rate = max(1, traffic.topics), 0.0
        streams["topics"] = topics
        if topics > 1:
            streams["topic_table"] = len(self._table)
            self._table.extend(guided(zipf_shares(topics, traffic.topic_skew), [0.0] * topics))
        self._set_size(streams, traffic)
        match arrivals:
            case TraceArrivals(path):
                rows = read_trace(Path(path), clients)
                rows["time"] += traffic.start_ns
                streams["kind"] = TRACE
                streams["cursor"], streams["cursor_end"] = self._trace_rows, self._trace_rows + len(rows)
                self._traces.append(rows)
                self._trace_rows += len(rows)
                topics = max(topics, int(rows["topic"].max(initial=0)) + 1)
                span = max(1, int(rows["time"].max(initial=0)) - traffic.start_ns)
                rate = len(rows) / span * SECOND_NS * clients
            case PoissonArrivals(rate_per_second):
                streams["kind"] = POISSON
                streams["mean_gap"] = SECOND_NS / _positive(traffic, rate_per_second)
                rate = rate_per_second * clients
            case ConstantArrivals(rate_per_second):
                streams["kind"] = CONSTANT
                streams["mean_gap"] = SECOND_NS / _positive(traffic, rate_per_second)
                streams["offset"] = np.arange(len(streams)) / len(streams)
                rate = rate_per_second * clients
            case OnOffArrivals(rate_per_second, on_ns, off_ns, fixed):
                _positive(traffic, rate_per_second)
                self._modulate(streams, traffic, (rate_per_second, 0.0), (on_ns, off_ns))
                streams["fixed"] = fixed
                rate = rate_per_second * clients * on_ns / (on_ns + off_ns)
            case MmppArrivals(rates, stays, cycle):
                self._modulate(streams, traffic, rates, stays)
                streams["fixed"] = CYCLE if cycle else 0
                rate = sum(r * s for r, s in zip(rates, stays, strict=True)) / sum(stays) * clients
            case ScheduleArrivals(instants, rates, period_ns):
                ends = (*instants[1:], period_ns)
                stays = tuple(end - start for start, end in zip(instants, ends, strict=True))
                self._modulate(streams, traffic, rates, stays)
                streams["fixed"] = CYCLE
                rate = sum(r * s for r, s in zip(rates, stays, strict=True)) / period_ns * clients
        for purpose in _purposes(streams[0]):
            streams[f"key_{purpose}"] = stream_keys(
                scenario.seed, replication, (traffic.name, traffic.to), len(streams), purpose
            )
        if later(traffic.start_ns, 1) >= streams["stop"][0]:
            rate = 0.0
        return streams, topics, rate

    def _modulate(
        self, streams: npt.NDArray[Any], traffic: Traffic, rates: tuple[float, ...], stays: tuple[Nanoseconds, ...]
    ) -> None:
        if len(rates) != len(stays) or not rates or min(rates) < 0 or max(rates) <= 0 or min(stays) <= 0:
            raise InvalidInput(
                f"traffic {traffic.name!r}: rates {rates} with mean stays {stays} ns describe no arrivals",
                remedy="Give as many stays as rates, each stay above 0, no rate below 0 and one above.",
            )
        streams["kind"] = MODULATED
        streams["states"] = len(rates)
        streams["state_table"] = len(self._table)
        self._table.extend(SECOND_NS / rate if rate > 0 else 0.0 for rate in rates)
        self._table.extend(float(stay) for stay in stays)

    def _set_size(self, streams: npt.NDArray[Any], traffic: Traffic) -> None:
        if not lay_quantity(streams, traffic.size, self._table):
            raise InvalidInput(
                f"traffic {traffic.name!r}: the sizes {traffic.size} describe no message of at least 1 byte",
                remedy="Give sizes of at least 1 byte, minimum ≤ maximum, and a weight for each size.",
            )


def _purposes(stream: Any) -> list[str]:
    """Return the quantities that a stream draws at random, of gaps, stays, sizes and topics."""
    kind = stream["kind"]
    if kind == TRACE:
        return []
    drawn = {
        "gap": kind in (POISSON, MODULATED),
        "stay": kind == MODULATED and stream["fixed"] != CYCLE,
        "size": stream["size_kind"] != SIZE_CONSTANT,
        "topic": stream["topics"] > 1,
    }
    return [purpose for purpose, is_drawn in drawn.items() if is_drawn]


def digest_of(text: str, *arrays: npt.NDArray[Any]) -> bytes:
    """Return a digest of a text and of the values of arrays; the padding of records is excluded."""
    digest = hashlib.blake2b(text.encode(), digest_size=16)
    for array in arrays:
        for column in [array[name] for name in array.dtype.names] if array.dtype.names else [array]:
            digest.update(np.ascontiguousarray(column).view(np.uint8).data)
    return digest.digest()


def _positive(traffic: Traffic, rate_per_second: float) -> float:
    if not 0 < rate_per_second <= SECOND_NS:
        raise InvalidInput(
            f"traffic {traffic.name!r}: a rate of {rate_per_second} messages a second is not above 0 and at most 1e9",
            remedy="Correct the rate; for no traffic leave the element out.",
        )
    return rate_per_second


def zipf_shares(topics: int, skew: float) -> list[float]:
    """Return the cumulative shares of topics 0, 1, …; the weight of topic i is (i + 1) to the power −skew."""
    return cumulative([float(exponential(-skew * logarithm(float(i + 1)))) for i in range(topics)])
