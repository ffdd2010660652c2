"""The arrays of an egress run: made from a layout, enlarged when a kernel asks, reset at the end of the warm-up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsctl.eventlog.schema import LogLevel
from qsctl.sim.kernel import records as r
from qsctl.sim.kernel.histogram import BLOCK
from qsctl.sim.kernel.jit import as_records
from qsctl.sim.models.base import EVENT_ROW, LOG_ROW, Rows
from qsctl.sim.models.egress_layout import Layout, empty_octaves

FIRST_NODES: Final = 1 << 12
FIRST_BLOCKS: Final = 1 << 10


class EgressArrays:
    """What the kernels change in place."""

    def __init__(self, layout: Layout, level: LogLevel, chunk_rows: int) -> None:
        count = len(layout.names)
        self.clients = as_records(layout.clients)
        self.queues = as_records(layout.queues)
        self.ports = as_records(layout.ports)
        self.nodes = np.zeros(0, r.NODE)
        self.lives = np.zeros(0, r.LIFE)
        self.control = np.zeros(r.CONTROL_SLOTS, np.int64)
        self.control[r.FREE] = r.NONE
        logged = level is not LogLevel.COUNTERS
        self.control[r.LOGGING] = logged
        self.control[r.LOG_LIMIT] = chunk_rows if logged else r.FOREVER
        self._chunk_rows = chunk_rows if logged else 0
        self.log: Rows = np.zeros(0, LOG_ROW)
        self.rare = r.Rare(
            more=as_records(layout.more),
            heap=as_records(np.zeros(count + 16, r.HEAP)),
            timers=as_records(np.zeros(count + 16, r.HEAP)),
            octaves=empty_octaves(count * r.QUEUES),
            blocks=np.zeros((FIRST_BLOCKS, BLOCK), np.int64),
            endpoints=as_records(layout.endpoints),
            pauses=layout.pauses,
            elided=as_records(layout.elided),
            events=as_records(np.zeros(count + 16, EVENT_ROW)),
        )
        self._enlarge_nodes(max(FIRST_NODES, 4 * count))

    def call(self, function: Callable[..., int], rows: Rows, count: int, until: int, until_acknowledged: int) -> int:
        """Run the main kernel; without compilation its wrapping integers must not warn."""
        with np.errstate(over="ignore"):
            return function(
                rows, count, until, until_acknowledged, self.clients, self.queues, self.ports, self.nodes, self.lives,
                self.log, self.control, self.rare,
            )  # fmt: skip

    def take_log(self) -> Rows:
        """The rows written since the last call: a view."""
        rows: Rows = self.log[: self.control[r.LOG_COUNT]]
        self.control[r.LOG_COUNT] = 0
        return rows

    def take_kernel_events(self) -> Rows:
        """The events that kernels wrote since the last call: a view."""
        rows: Rows = self.rare.events[: self.control[r.EVENT_COUNT]]
        self.control[r.EVENT_COUNT] = 0
        return rows

    def ensure_room(self) -> None:
        """Before a kernel that is not the main loop: have room for one event."""
        control, rare = self.control, self.rare
        if (
            control[r.FREE] == r.NONE
            or control[r.HEAP_COUNT] + 2 >= len(rare.heap)
            or control[r.TIMER_COUNT] + 8 >= len(rare.timers)
            or control[r.BLOCKS_USED] + r.ROWS_AN_EVENT >= len(rare.blocks)
        ):
            self.grow()

    def grow(self) -> None:
        """Double whatever may be too small for the next event."""
        control, rare = self.control, self.rare
        if control[r.FREE] == r.NONE:
            self._enlarge_nodes(2 * len(self.nodes))
        if control[r.HEAP_COUNT] + 2 >= len(rare.heap):
            rare = rare._replace(heap=_longer(rare.heap))
        if control[r.TIMER_COUNT] + 8 >= len(rare.timers):
            rare = rare._replace(timers=_longer(rare.timers))
        if control[r.BLOCKS_USED] + r.ROWS_AN_EVENT >= len(rare.blocks):
            rare = rare._replace(blocks=_longer(rare.blocks))
        self.rare = rare

    def reset_counters(self) -> None:
        """The warm-up is over: counters restart, the state stays; the high-water mark restarts at the depth."""
        for field in r.COUNTERS:
            self.queues[field] = 0
        self.queues["high_water"] = self.queues["work"]
        self.queues["first_discard"] = r.NONE
        # Deliveries begun before are no redeliveries of the observation; the first one stays the first.
        np.minimum(self.lives["attempts"], 1, out=self.lives["attempts"])
        self.rare.octaves[:] = r.NONE
        self.rare.blocks[:] = 0
        self.control[r.BLOCKS_USED] = 0

    def _enlarge_nodes(self, count: int) -> None:
        old = len(self.nodes)
        self.nodes = _longer(self.nodes, count)
        self.lives = _longer(self.lives, count)
        self.nodes["next"][old:] = np.arange(old + 1, count + 1)
        self.nodes["next"][count - 1] = self.control[r.FREE]
        self.control[r.FREE] = old
        if self._chunk_rows:
            # One event may settle every message there is, beyond the limit that the loop checks.
            self.log = _longer(self.log, self._chunk_rows + count + 16)


def _longer(array: npt.NDArray[Any], count: int = 0) -> npt.NDArray[Any]:
    longer = np.zeros((count or 2 * len(array), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer if array.dtype.names is None else as_records(longer)
