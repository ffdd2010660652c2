"""Arrivals of a run that branches (multilevel splitting): those of the run up to the branch, drawn anew afterwards.

Windows are short, since arrivals drawn ahead are discarded at each branch. A branch at an instant keeps every arrival
up to it, and draws later ones from streams of its own, whose keys are hashes of the run's key and the branch's number.
Arrivals that are determined at the instant are kept: a constant stream keeps its times, a trace is fixed, and a
modulated stream keeps its next arrival, which may follow changes of its state that have been drawn; after it the state
ends and the next gaps are drawn anew. The gap of a Poisson stream is memoryless, so that the rest of it is drawn again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsctl.instant import Nanoseconds
from qsctl.sim.arrivals.cursor import ArrivalCursor
from qsctl.sim.arrivals.draw import MODULATED, POISSON, draw_next
from qsctl.sim.arrivals.streams import ArrivalStreams
from qsctl.sim.kernel.jit import COMPILED, kernel
from qsctl.sim.kernel.random import logarithm, uniform, uniform_bits
from qsctl.sim.kernel.records import FOREVER
from qsctl.sim.scenario.scenario import Scenario

ROWS: Final = 64
"""Arrivals that a window aims at."""


@dataclass(frozen=True, slots=True)
class StreamsState:
    """The state of the streams at the beginning of a window, and the window's bounds."""

    streams: npt.NDArray[Any]
    begin_ns: Nanoseconds
    end_ns: Nanoseconds


class BranchingStreams(ArrivalStreams):
    """The arrivals of one repetition, which can be drawn anew from any instant of the present window."""

    def __init__(self, scenario: Scenario, replication: int) -> None:
        super().__init__(scenario, replication)
        self.width_ns = max(1, self.width_ns // 1024)
        self._allocate(2 * ROWS + int(self.streams["count"].max(initial=0)))
        self.first = self._begun = StreamsState(self.streams.copy(), 0, 0)

    def window(self, until_ns: Nanoseconds) -> npt.NDArray[Any]:
        """Return the next arrivals in time order, at most up to `until_ns` (exclusive); `now_ns` is the end reached."""
        begin, end = self.now_ns, min(until_ns, self.now_ns + self.width_ns)
        self._begun = StreamsState(self.streams.copy(), begin, end)
        rows = self._draw(end)
        self._fit_width(len(rows), end - begin, ROWS)
        return rows

    def save(self) -> StreamsState:
        """Return the state at the beginning of the present window."""
        return self._begun

    def restore(self, saved: StreamsState, until_ns: Nanoseconds | None = None) -> npt.NDArray[Any]:
        """Return to a window; return its arrivals up to its end, or those before `until_ns`."""
        self.streams[:] = saved.streams
        self.now_ns = saved.begin_ns
        end = saved.end_ns if until_ns is None else until_ns
        self._begun = StreamsState(saved.streams, saved.begin_ns, end)
        return self._draw(end)

    def at_end(self) -> StreamsState:
        """Return the state at the end of the present window."""
        return StreamsState(self.streams.copy(), self.now_ns, self.now_ns)

    def go_to(self, state: StreamsState) -> None:
        """Continue from a state, discarding all later draws."""
        self.streams[:] = state.streams
        self.now_ns = state.end_ns
        self._begun = state

    def begin_anew(self, branch: int) -> None:
        """Draw later arrivals from the streams of this branch."""
        _wrapping(branch_streams, self.streams, self.now_ns, branch, self.table)
        self._begun = StreamsState(self.streams.copy(), self.now_ns, self.now_ns)


def _wrapping(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a kernel; in interpreted mode, suppress the warnings of its wrapping integers."""
    if COMPILED:
        return function(*arguments)
    with np.errstate(over="ignore"):
        return function(*arguments)


class BranchingCursor(ArrivalCursor):
    """Arrivals in time order, one at a time, which can be drawn anew after the last one returned."""

    def __init__(self, scenario: Scenario, replication: int, until_ns: Nanoseconds) -> None:
        super().__init__(scenario, replication, until_ns, BranchingStreams)
        assert isinstance(self._streams, BranchingStreams)
        self._branching = self._streams
        self._passed = self._branching.first
        """The window of the last arrival that was given; `_coming` is that of the next one."""
        self._coming = self._branching.save()

    def pop(self) -> tuple[int, int]:
        """Return the client and the bytes of the next arrival, and advance to the one after it."""
        self._passed = self._coming
        found = super().pop()
        self._coming = self._branching.save()
        return found

    def begin_anew(self, instant_ns: Nanoseconds, branch: int) -> None:
        """Draw the arrivals after an instant from the streams of a branch; all earlier ones must have been returned."""
        self._branching.restore(self._passed, instant_ns + 1)
        self._branching.begin_anew(branch)
        self._passed = self._branching.save()
        self._times, self._clients, self._sizes = [], [], []
        self._position = 0
        self._find()
        self._coming = self._branching.save()


@kernel
def branch_streams(streams: Any, now: int, branch: int, table: Any) -> None:
    """Give every stream a key of this branch, and draw anew the values that are not determined at `now`.

    Every arrival before `now` has been drawn; `next` of a stream is at `now` or later.
    """
    for i in range(len(streams)):
        stream = streams[i]
        stream.key_gap = uniform_bits(stream.key_gap, branch)
        stream.key_stay = uniform_bits(stream.key_stay, branch)
        stream.key_size = uniform_bits(stream.key_size, branch)
        stream.key_topic = uniform_bits(stream.key_topic, branch)
        if stream.next == FOREVER:
            continue
        if stream.kind == POISSON:
            if now <= stream.start:
                stream.next = draw_next(stream, stream.start, table)
            else:
                # A gap is rounded to whole nanoseconds; the rest of one that is not over is rounded down.
                gap = -logarithm(uniform(stream.key_gap, stream.gaps)) * stream.mean_gap
                stream.gaps += 1
                stream.next = now + int(gap)
        elif stream.kind == MODULATED and stream.fixed == 0 and stream.next < stream.switch < FOREVER:
            stay = table[stream.state_table + stream.states + stream.state]
            rest = -logarithm(uniform(stream.key_gap, stream.gaps)) * stay
            stream.gaps += 1
            stream.switch = stream.next + 1 + int(min(rest, 4.0e18 - float(stream.next)))
