"""The arrays of a run of an integration engine: made from a layout, enlarged when the kernel asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsctl.eventlog.schema import BUCKET_COUNT
from qsctl.sim.integration import _records as r
from qsctl.sim.integration._advance import ROWS_A_STEP
from qsctl.sim.integration._labels import remember
from qsctl.sim.integration._layout import EngineLayout
from qsctl.sim.kernel.jit import COMPILED, address_of, as_records
from qsctl.sim.kernel.plain_state import PlainState
from qsctl.sim.kernel.records import ARRIVAL, EVENT_ROW
from qsctl.sim.model import LOG_ROW, Rows

_FIRST_MESSAGES: Final = 1 << 10
_FIRST_FRAMES: Final = 1 << 9
_FIRST_PATHS: Final = 1 << 9
_FIRST_EVENTS: Final = 1 << 8


class EngineArrays:
    """The arrays that the kernel changes in place."""

    def __init__(self, layout: EngineLayout, chunk_rows: int, *, logs: bool) -> None:
        self._record = np.zeros(1, r.STATE)
        self.state: Any = self._record[0]
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self._known = address_of(self._record) if COMPILED else PlainState(self.state, self._arrays)
        self._layout = layout
        for name, number in layout.numbers.items():
            if name in r.SCALARS:
                self.state[name] = number
        for name, array in layout.arrays.items():
            self._place(name, array)
        state = self.state
        state["stepping"] = r.NONE
        state["message_free"] = state["frame_free"] = r.NONE
        state["powered"] = 1
        state["logging"] = logs
        state["log_limit"] = chunk_rows if logs else r.FOREVER
        self._chunk_rows = chunk_rows if logs else 0
        self._place("buckets", np.zeros(layout.numbers["key_count"] * BUCKET_COUNT, r.BUCKET))
        self._place("done", np.zeros(layout.numbers["done_count"] * BUCKET_COUNT, r.BUCKET))
        for name, kind in (
            ("messages", r.MESSAGE), ("frames", r.FRAME), ("heap", r.ENTRY), ("world", r.ENTRY), ("log", LOG_ROW),
            ("events", EVENT_ROW), ("sorted", r.VALUE), ("paths", r.PATH), ("links", r.LINK), ("arrivals", ARRIVAL),
        ):  # fmt: skip
            self._place(name, np.zeros(0, kind))
        self._enlarge_paths(max(_FIRST_PATHS, 4 * len(layout.threads) + 4 * layout.numbers["results_max"]))
        for number, name in enumerate(layout.threads):
            self._arrays["paths"][number] = (r.NONE, 0, len(name.encode()) + 1, number)
        state["path_count"] = len(layout.threads)
        self._enlarge_frames(_FIRST_FRAMES + 2 * layout.numbers["results_max"])
        self._enlarge_messages(_FIRST_MESSAGES + 2 * layout.numbers["destinations_max"])
        self.grow()

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        """Return the array that the state record addresses by this name."""
        if name in r.ARRAYS:
            return self._arrays[name]
        raise AttributeError(name)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a kernel."""
        with np.errstate(over="ignore"):  # for the wrapping integers of kernels that are plain Python
            return function(self._known, *arguments)

    def arrive(self, rows: npt.NDArray[Any]) -> None:
        """Set the next window of arrivals: rows of ARRIVAL, in time order."""
        self._place("arrivals", np.ascontiguousarray(rows, ARRIVAL))
        self.state["position"], self.state["count"] = 0, len(rows)

    def grow(self) -> None:
        """Enlarge the arrays that are too small for the next step."""
        state = self.state
        if state["message_left"] < state["message_limit"] // 4 + 8:
            self._enlarge_messages(2 * int(state["message_limit"]))
        if state["frame_left"] < state["results_max"] + 8:
            self._enlarge_frames(2 * len(self._arrays["frames"]))
        most = int(state["results_max"]) + 8
        if min(state["path_limit"] - state["path_count"], state["link_limit"] - state["link_count"]) < most:
            self._enlarge_paths(2 * int(state["path_limit"]))
        threads, processes = int(state["thread_count"]), int(state["process_count"])
        entries = int(state["heap_count"] + state["message_limit"]) + threads + 8
        for name, limit, length, kind in (
            ("heap", "heap_limit", entries, r.ENTRY),
            ("world", "world_limit", int(state["world_count"]) + 2 * threads + 8, r.ENTRY),
            ("events", "event_limit", int(state["event_count"]) + 4 * (threads + processes) + 8, EVENT_ROW),
        ):
            if state[limit] < length:
                self._lengthen(name, max(2 * length, _FIRST_EVENTS), kind)
                state[limit] = len(self._arrays[name])

    def remember_key(self, key: int) -> None:
        """Add the key of a stream of durations, which the kernel stopped for."""
        state = self.state
        self.call(
            remember, -2 - int(state["missing_draws"]), int(state["missing_path"]), int(state["missing_step"]),
            np.uint64(key),
        )  # fmt: skip

    def path_text(self, path: int) -> tuple[str, str]:
        """Return the thread and the text of a path."""
        steps: list[str] = []
        while path >= len(self._layout.threads):
            row = self._arrays["paths"][path]
            step = int(row["step"])
            steps.append(str(step) if step >= 0 else self._layout.steps[-1 - step])
            path = int(row["parent"])
        return self._layout.threads[path], ".".join(["m", *reversed(steps)])

    def take_log(self) -> Rows:
        """Return the rows since the last call: a view that the kernel overwrites."""
        count = int(self.state["log_count"])
        self.state["log_count"] = 0
        return self._arrays["log"][:count]

    def take_events(self) -> Rows:
        """Return the events since the last call."""
        rows = self._arrays["events"][: int(self.state["event_count"])].copy()
        self.state["event_count"] = 0
        return rows

    def _place(self, name: str, array: npt.NDArray[Any]) -> None:
        array = as_records(array)
        self._arrays[name] = array
        if COMPILED:
            self.state[name] = address_of(array)

    def _lengthen(self, name: str, length: int, kind: np.dtype[Any]) -> npt.NDArray[Any]:
        old = self._arrays[name]
        if length > len(old):
            new = np.zeros(length, kind)
            new[: len(old)] = old
            self._place(name, new)
        return self._arrays[name]

    def _enlarge_messages(self, limit: int) -> None:
        state, used = self.state, len(self._arrays["messages"])
        rows = self._lengthen("messages", limit, r.MESSAGE)
        fresh = rows[used:]
        fresh["state"] = r.FREE
        fresh["mid"] = fresh["held"] = r.NONE
        fresh["next"] = np.arange(used + 1, limit + 1)
        rows["next"][-1] = state["message_free"]
        state["message_free"] = used
        state["message_left"] += limit - used
        state["message_limit"] = limit
        self._lengthen("sorted", limit, r.VALUE)
        if self._chunk_rows:
            self._lengthen("log", self._chunk_rows + ROWS_A_STEP * limit + 64, LOG_ROW)

    def _enlarge_frames(self, limit: int) -> None:
        state, used = self.state, len(self._arrays["frames"])
        rows = self._lengthen("frames", limit, r.FRAME)
        rows["next"][used:] = np.arange(used + 1, limit + 1)
        rows["next"][-1] = state["frame_free"]
        state["frame_free"] = used
        state["frame_left"] += limit - used

    def _enlarge_paths(self, limit: int) -> None:
        """Enlarge the tables of paths and keys to `limit`; the hash table has at least two slots for each."""
        state, old = self.state, self._arrays["links"]
        limit = 1 << (limit - 1).bit_length()
        self._lengthen("paths", limit, r.PATH)
        self._place("links", np.zeros(2 * limit, r.LINK))
        state["path_limit"] = state["link_limit"] = limit
        state["link_count"] = 0
        for each in old[old["used"] != 0]:
            self.call(remember, int(each["a"]), int(each["b"]), int(each["c"]), each["value"])
