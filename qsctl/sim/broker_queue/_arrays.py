"""The arrays of a run of a broker's queue: made from a layout, enlarged when the kernel asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsctl.eventlog.schema import BUCKET_COUNT, LogLevel
from qsctl.sim.broker_queue import _records as r
from qsctl.sim.broker_queue._advance import HEAP_ROOM
from qsctl.sim.broker_queue._layout import QueueLayout
from qsctl.sim.kernel.jit import COMPILED, address_of, as_records
from qsctl.sim.kernel.plain_state import PlainState
from qsctl.sim.kernel.records import ARRIVAL
from qsctl.sim.model import LOG_ROW, Rows

FIRST_MESSAGES: Final = 1 << 10
FIRST_DELIVERIES: Final = 1 << 8
_OF_A_CONSUMER: Final = 8
"""Entries of the heap that are of one consumer, at most: polls of its former presences too."""


class QueueArrays:
    """The arrays that the kernel changes in place."""

    def __init__(self, layout: QueueLayout, level: LogLevel, chunk_rows: int) -> None:
        self._record = np.zeros(1, r.STATE)
        self.state: Any = self._record[0]
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self._known = address_of(self._record) if COMPILED else PlainState(self.state, self._arrays)
        for name, number in layout.numbers.items():
            self.state[name] = number
        for name, array in layout.arrays.items():
            self._place(name, array)
        self._place("buckets", np.zeros(2 * r.HISTOGRAMS * BUCKET_COUNT, r.BUCKET))
        logged = level is not LogLevel.COUNTERS
        self._chunk_rows = chunk_rows if logged else 0
        self.state["logging"] = logged
        self.state["log_limit"] = chunk_rows if logged else r.FOREVER
        most = int(layout.numbers["most_at_once"])
        sources = int(layout.arrays["publishers"]["sources"].sum())
        self._always = HEAP_ROOM + _OF_A_CONSUMER * len(layout.names) + len(layout.arrays["rules"]) + sources
        self._place("messages", np.zeros(0, r.MESSAGE))
        self._place("deliveries", np.zeros(0, r.DELIVERY))
        self._place("log", np.zeros(0, LOG_ROW))
        self._place("heap", np.zeros(0, r.ENTRY))
        self._enlarge_deliveries(max(FIRST_DELIVERIES, 2 * most))
        self._enlarge_messages(max(FIRST_MESSAGES, layout.backlog + FIRST_MESSAGES))

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        """Return the array that the state record addresses by this name."""
        if name in r.ARRAYS:
            return self._arrays[name]
        raise AttributeError(name)

    def call(self, function: Callable[..., Any], *arguments: int) -> Any:
        """Call a kernel."""
        with np.errstate(over="ignore"):  # for the wrapping integers of kernels that are plain Python
            return function(self._known, *arguments)

    def arrive(self, rows: npt.NDArray[Any]) -> None:
        """Set the next window of arrivals: rows of ARRIVAL, in time order."""
        self._place("arrivals", np.ascontiguousarray(rows, ARRIVAL))
        self.state["position"], self.state["count"] = 0, len(rows)

    def grow(self) -> None:
        """Enlarge the arrays of messages, deliveries and heap entries."""
        state = self.state
        needed = 4 + int(state["delivery_limit"] - state["delivery_left"])
        if state["delivery_left"] < max(1, int(state["most_at_once"])):
            self._enlarge_deliveries(2 * int(state["delivery_limit"]))
            needed = max(needed, 4 + int(state["delivery_limit"] - state["delivery_left"]))
        if state["message_left"] < 2 * needed:
            self._enlarge_messages(2 * int(state["message_limit"]) + 2 * needed)

    def take_log(self) -> Rows:
        """Return the rows since the last call: a view that the kernel overwrites."""
        count = int(self.state["log_count"])
        self.state["log_count"] = 0
        return self._arrays["log"][:count]

    def _place(self, name: str, array: npt.NDArray[Any]) -> None:
        array = as_records(array)
        self._arrays[name] = array
        if COMPILED:
            self.state[name] = address_of(array)

    def _enlarge_messages(self, limit: int) -> None:
        old = self._arrays["messages"]
        new = np.zeros(limit, r.MESSAGE)
        new[: len(old)] = old
        new["state"][len(old) :] = r.FREE
        new["next"][len(old) :] = np.arange(len(old) + 1, limit + 1)
        new["next"][-1] = self.state["message_free"] if len(old) else r.NONE
        self.state["message_free"] = len(old)
        self.state["message_left"] += limit - len(old)
        self.state["message_limit"] = limit
        self._place("messages", new)
        self._fit()

    def _enlarge_deliveries(self, limit: int) -> None:
        old = self._arrays["deliveries"]
        new = np.zeros(limit, r.DELIVERY)
        new[: len(old)] = old
        new["message"][len(old) :] = np.arange(len(old) + 1, limit + 1)
        new["message"][-1] = self.state["delivery_free"] if len(old) else r.NONE
        self.state["delivery_free"] = len(old)
        self.state["delivery_left"] += limit - len(old)
        self.state["delivery_limit"] = limit
        self._place("deliveries", new)
        self._fit()

    def _fit(self) -> None:
        """Enlarge the heap and the log to what this number of messages and deliveries may need at one instant."""
        state = self.state
        entries = self._always + 3 * int(state["delivery_limit"]) + int(state["message_limit"])
        for name, length, kind in (
            ("heap", entries, r.ENTRY),
            ("log", self._chunk_rows + 2 * int(state["message_limit"]) + 64 if self._chunk_rows else 0, LOG_ROW),
        ):
            old = self._arrays[name]
            if length > len(old):
                new = np.zeros(length, kind)
                new[: len(old)] = old
                self._place(name, new)
        state["heap_limit"] = entries
