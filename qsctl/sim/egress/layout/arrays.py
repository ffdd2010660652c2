"""The arrays of an egress run: made from a layout, enlarged on a kernel's request, reset at the end of the warm-up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsctl.eventlog.schema import LogLevel
from qsctl.instant import Nanoseconds
from qsctl.sim.egress.layout.scenario_layout import Layout
from qsctl.sim.kernel import records as r
from qsctl.sim.kernel.histogram import BLOCK, OCTAVES
from qsctl.sim.kernel.jit import COMPILED, address_of, as_records
from qsctl.sim.kernel.lines import is_in_lines, longer, zeros_in_lines
from qsctl.sim.kernel.plain_state import PlainState
from qsctl.sim.model import EVENT_ROW, LOG_ROW, Rows

FIRST_NODES: Final = 1 << 12
FIRST_BLOCKS: Final = 1 << 10
FIRST_BLOCK: Final = 1
"""Block 0 belongs to no octave: see `kernel.histogram`."""
HISTOGRAMS_AT_ONCE: Final = 1 << 10
"""Histograms that are read together: few enough that the copy of their blocks stays some megabytes."""


class EgressArrays:
    """The arrays of one egress run, which the kernels change in place."""

    def __init__(
        self,
        layout: Layout,
        level: LogLevel,
        chunk_rows: int,
        horizon_ns: Nanoseconds,
        *,
        acknowledging: bool,
        unacknowledged_max: int = -1,
        first_nodes: int | None = None,
    ) -> None:
        count = len(layout.names)
        # One event may send to each flow of the durable queues, or to each client that waits for the broker's limit.
        reached = int(layout.durables["flows"].sum()) if unacknowledged_max < 0 else count
        more = {"heap": r.ENTRIES_AN_EVENT * reached, "timers": r.TIMERS_AN_CLIENT * reached, "blocks": 0}
        if (layout.clients["traits"] & r.ELIDING).any():
            more["blocks"] = r.BLOCKS_AN_EVENT * reached  # of clients whose eliding delay ends at this instant
        record = np.zeros(1, r.STATE)
        self.state: Any = record[0]
        self.acknowledged = np.full(count, acknowledging) | (layout.clients["traits"] & (r.TRACKED | r.SPOOL) != 0)
        """Clients and durable queues whose messages have acknowledgments: guaranteed ones, and all of TIBCO."""
        self.state["acknowledging"] = acknowledging
        self.state["horizon"] = horizon_ns
        self.state["done_place"] = count * r.QUEUES
        self.state["unfinished_place"] = count * (r.QUEUES + 1)
        histograms = count * (r.QUEUES + 2 if self.acknowledged.any() else r.QUEUES)
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self._known = address_of(record) if COMPILED else PlainState(self.state, self._arrays)
        self._record = record
        self._more_an_event = more
        for name, array in (
            ("clients", layout.clients),
            ("queues", layout.queues),
            ("tallies", layout.tallies),
            ("losses", layout.losses),
            ("more", layout.more),
            ("ports", layout.ports),
            ("nodes", np.zeros(0, r.NODE)),
            ("topics", np.zeros(0, r.TOPIC)),
            ("lives", np.zeros(0, r.LIFE)),
            ("later", np.zeros(0, r.LATER)),
            ("log", np.zeros(0, LOG_ROW)),
            ("heap", zeros_in_lines(count + 16 + 2 * more["heap"], r.HEAP)),
            ("timers", zeros_in_lines(count + 16 + 2 * more["timers"], r.HEAP)),
            ("octaves", zeros_in_lines(histograms * OCTAVES, r.OCTAVE)),
            ("blocks", np.zeros((FIRST_BLOCKS + more["blocks"]) * BLOCK, r.BUCKET)),
            ("recent", np.zeros(r.RECENT_WAITS, r.RECENT)),
            ("endpoints", layout.endpoints),
            ("pauses", layout.pauses),
            ("elided", layout.elided),
            ("events", zeros_in_lines(count + 16, EVENT_ROW)),
            ("receivers", layout.receivers),
            ("readers", layout.readers),
            ("shares", layout.shares),
            ("durables", layout.durables),
            ("flows", layout.flows),
            ("backlogs", layout.backlogs),
            ("connections", layout.connections),
            ("segments", np.zeros(0, r.SEGMENT)),
            ("traffics", layout.traffics),
            ("expiries", np.zeros(1, r.HEAP)),
            ("spools", np.zeros(1, r.SPOOLED)),
            ("dones", zeros_in_lines(count, r.DONE)),
            ("watches", np.zeros(0, r.WATCH)),
        ):
            self._place(name, array)
        logged = level is not LogLevel.COUNTERS
        self._chunk_rows = chunk_rows if logged else 0
        self.state["free"] = self.state["segment_free"] = r.NONE
        # One event may have each client that is reached send what its window allows.
        self.state["segments_room"] = room = layout.segments_room * (1 + reached)
        self.state["unacknowledged_max"] = r.FOREVER if unacknowledged_max < 0 else unacknowledged_max
        self.state["durable_count"] = int((layout.clients["traits"] & r.SPOOL != 0).sum())
        self.state["client_count"] = count - self.state["durable_count"]
        self.state["blocks_used"] = FIRST_BLOCK
        self.state["logging"] = logged
        self.state["log_limit"] = chunk_rows if logged else r.FOREVER
        self._enlarge_nodes(max(FIRST_NODES, 4 * count) if first_nodes is None else first_nodes)
        self._expires = bool(layout.durables["respects_time_to_live"].any())
        self._enlarge_expiries()
        self._enlarge_segments(2 * room + 1)
        self._measure_room()
        self.rare: int | None = 1 if layout.rare else None
        self.growths = 0
        """Number of times that arrays were replaced by longer ones."""

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        """Return the array of this name in the state record."""
        if name in r.ARRAYS:
            return self._arrays[name]
        raise AttributeError(name)

    @property
    def record(self) -> npt.NDArray[Any]:
        """The state record, an array of one."""
        return self._record

    def named(self) -> list[tuple[str, npt.NDArray[Any]]]:
        """Return every array with its name."""
        return list(self._arrays.items())

    def place(self, name: str, array: npt.NDArray[Any]) -> None:
        """Replace an array by another one, which is used in place, without a copy."""
        self._place(name, array, moved=False)

    def have_nodes(self, count: int) -> None:
        """Enlarge the node arrays to room for at least this number of messages."""
        if len(self.nodes) < count:
            self._enlarge_nodes(count)

    def kernel(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a kernel on the state; in interpreted mode, suppress the warnings of its wrapping integers."""
        if COMPILED:
            return function(self._known, *arguments)
        with np.errstate(over="ignore"):
            return function(self._known, *arguments)

    def call(self, function: Callable[..., int], rows: Rows, count: int, until: int, until_acknowledged: int) -> int:
        """Run the main kernel over the first `count` arrivals of `rows`; return the kernel's reason to stop."""
        self._place("arrivals", rows, moved=False)
        self.state["count"] = count
        self.state["until"] = until
        self.state["until_acknowledged"] = until_acknowledged
        return int(self.kernel(function, self.rare))

    def watch(self, clients: npt.NDArray[Any], queue: int, most: int, *, by_depth: bool, unit_bytes: int) -> None:
        """Have the main kernel stop where a queue's importance leaves its bounds (splitting; see `queues.watch`).

        Args:
            clients: the clients, and durable queues, that have the queue.
            queue: its index in `scenario.QUEUE_ORDER`.
            most: the importance of a queue that discards its next message, or that has the depth in question.
            by_depth: whether the question is about a depth, not about losses.
            unit_bytes: mean bytes of one work unit; 0 leaves waiting bytes out of the importance.
        """
        watches = np.zeros(len(clients), r.WATCH)
        watches["client"] = clients
        self._place("watches", watches)
        self.state["watched"] = len(clients)
        self.state["watched_queue"], self.state["watched_most"] = queue, most
        self.state["watched_depth"], self.state["watched_bytes"] = by_depth, unit_bytes
        self.rare = 1  # the kernel that looks

    def take_log(self) -> Rows:
        """Return the log rows written since the last call, as a view."""
        rows: Rows = self.log[: self.state["log_count"]]
        self.state["log_count"] = 0
        return rows

    def take_kernel_events(self) -> Rows:
        """Return the events that kernels wrote since the last call, as a view."""
        rows: Rows = self.events[: self.state["event_count"]]
        self.state["event_count"] = 0
        return rows

    def ensure_room(self) -> None:
        """Enlarge the arrays, if needed, to room for one event; to be called before any kernel except the main loop."""
        if self.state["free"] == r.NONE or self.state["short"]:
            self.grow()

    def grow(self) -> None:
        """Double every array that may be too small for the next event."""
        self.growths += 1
        state = self.state
        if state["free"] == r.NONE:
            self._enlarge_nodes(2 * len(self.nodes))
        if state["segments_left"] < state["segments_room"]:
            self._enlarge_segments(2 * len(self.segments))
        for name, used, limit in (
            ("heap", "heap_count", "heap_limit"),
            ("timers", "timer_count", "timer_limit"),
            ("blocks", "blocks_used", "blocks_limit"),
        ):
            if state[used] + r.ROOM_AN_EVENT[name] >= state[limit]:
                self._place(name, longer(self._arrays[name], 2 * len(self._arrays[name])))
        self._enlarge_expiries()
        self._measure_room()

    def reset_counters(self, now_ns: int) -> None:
        """Set all counters to zero at the end of the warm-up, and the high-water marks to the present depths."""
        self.state["counted_from"] = now_ns
        for array, fields in zip(
            (self.queues, self.tallies, self.endpoints, self.losses, self.durables), r.COUNTERS, strict=True
        ):
            for field in fields:
                values = array[field]
                values[values != 0] = 0  # what was never counted costs no memory
        for name in r.DONE.names or ():
            values = self.dones[name]
            values[values != 0] = 0
        self.queues["high_water"] = self.queues["work"]
        # Deliveries begun before are not redeliveries of the observation; the first one stays the first.
        np.minimum(self.lives["attempts"], 1, out=self.lives["attempts"])
        self._place("octaves", zeros_in_lines(len(self.octaves), r.OCTAVE))
        self.recent["place"] = 0
        self.blocks["messages"] = 0
        self.state["blocks_used"] = FIRST_BLOCK

    def flush_waits(self) -> None:
        """Add the waits still in the ring buffer to the histograms; to be called before these are read."""
        np.add.at(self.blocks["messages"], self.recent["place"], 1)
        self.recent["place"] = 0
        self.blocks["messages"][:BLOCK] = 0

    def histograms(
        self, numbers: npt.NDArray[Any], messages: npt.NDArray[Any]
    ) -> tuple[list[npt.NDArray[Any]], list[npt.NDArray[Any]]]:
        """Return the sparse buckets, and their counts, of histograms; `flush_waits` must have been called.

        Args:
            numbers: the histograms' numbers: client × 5 + queue for waits; for times to acknowledgment and ages of
                unfinished messages, `done_place` and `unfinished_place` of the state record, plus the client.
            messages: the number of messages of each histogram; those not in the blocks have a duration of zero.
        """
        octaves = self.octaves["block"].reshape(-1, OCTAVES)
        blocks = self.blocks["messages"].reshape(-1, BLOCK)
        buckets: list[npt.NDArray[Any]] = []
        counts: list[npt.NDArray[Any]] = []
        for begin in range(0, len(numbers), HISTOGRAMS_AT_ONCE):
            part = slice(begin, begin + HISTOGRAMS_AT_ONCE)
            of_part = octaves[numbers[part]]
            number, octave = np.nonzero(of_part)
            found = blocks[of_part[number, octave]]
            block, place = np.nonzero(found)
            count = found[block, place].astype(np.int64)
            bucket = (octave[block] * BLOCK + place).astype(np.int32)
            ends = np.searchsorted(number[block], np.arange(len(of_part)), "right")
            up_to = np.concatenate([np.zeros(1, np.int64), np.cumsum(count)])[ends]
            zeros = messages[part] - np.diff(up_to, prepend=0)
            # Bucket 0 is that of a duration of zero.
            at = np.concatenate([np.zeros(1, np.int64), ends[:-1]])[zeros > 0]
            bucket, count = np.insert(bucket, at, 0), np.insert(count, at, zeros[zeros > 0])
            stops = (ends + np.cumsum(zeros > 0)).tolist()
            # numpy's split takes seven microseconds a part.
            spans = list(zip([0, *stops], stops, strict=False))
            buckets += [bucket[start:stop] for start, stop in spans]
            counts += [count[start:stop] for start, stop in spans]
        return buckets, counts

    def _place(self, name: str, array: npt.NDArray[Any], moved: bool = True) -> None:
        """Store an array, aligned to cache lines if it may be moved, and enter its address in the state record."""
        self._arrays[name] = placed = as_records(
            longer(array, len(array)) if moved and not is_in_lines(array) else array
        )
        if COMPILED:
            self.state[name] = address_of(placed)

    def _enlarge_expiries(self) -> None:
        """Enlarge the heap of expiries to room for an event that moves every message to a dead message queue."""
        needed = int(self.state["expiry_count"]) + len(self.nodes) + 1
        if self._expires and len(self.expiries) < needed:
            self._place("expiries", longer(self.expiries, 2 * needed))

    def _measure_room(self) -> None:
        state = self.state
        more = self._more_an_event
        state["heap_limit"] = len(self.heap) - more["heap"]
        state["timer_limit"] = len(self.timers) - more["timers"]
        state["blocks_limit"] = len(self.blocks) // BLOCK - more["blocks"]
        state["expiry_limit"] = len(self.expiries) - len(self.nodes)
        state["short"] = 0

    def _enlarge_nodes(self, count: int) -> None:
        old = len(self.nodes)
        for name in ("nodes", "topics", "lives", "later", *(("spools",) if self.state["durable_count"] else ())):
            self._place(name, longer(self._arrays[name], count), moved=False)
        self.nodes["next"][old:] = np.arange(old + 1, count + 1)
        self.nodes["next"][count - 1] = self.state["free"]
        self.state["free"] = old
        if self._chunk_rows:
            # One event may log every message there is, beyond the limit that the loop checks.
            self._place("log", longer(self.log, self._chunk_rows + count + 16), moved=False)

    def _enlarge_segments(self, count: int) -> None:
        state = self.state
        old = len(self.segments)
        self._place("segments", longer(self.segments, count), moved=False)
        self.segments["next"][old:] = np.arange(old + 1, count + 1)
        self.segments["next"][count - 1] = state["segment_free"]
        state["segment_free"] = old
        state["segments_left"] += count - old
