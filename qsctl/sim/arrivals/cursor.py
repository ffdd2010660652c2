"""Arrivals in time order, one at a time, for models in Python."""

from __future__ import annotations

from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.sim.arrivals.streams import ArrivalStreams
from qsctl.sim.scenario.scenario import Scenario


class ArrivalCursor:
    """The arrivals of one repetition in time order; `next_ns` is the time of the next one, INFINITE_NS for none."""

    def __init__(
        self, scenario: Scenario, replication: int, until_ns: Nanoseconds, draw: type[ArrivalStreams] = ArrivalStreams
    ) -> None:
        self._streams = draw(scenario, replication)
        self._until_ns = until_ns
        self._position = 0
        self._times: list[Nanoseconds] = []
        self._clients: list[int] = []
        self._sizes: list[int] = []
        self.next_ns: Nanoseconds = INFINITE_NS
        self._find()

    def pop(self) -> tuple[int, int]:
        """Return the client and the bytes of the next arrival, and advance to the one after it."""
        at = self._position
        self._position = at + 1
        found = self._clients[at], self._sizes[at]
        self._find()
        return found

    def _find(self) -> None:
        while self._position >= len(self._times):
            if self._streams.now_ns >= self._until_ns:
                self.next_ns = INFINITE_NS
                return
            window = self._streams.window(self._until_ns)
            # As lists: a field of a row of an array costs ten times as much.
            self._times, self._clients, self._sizes = (window[name].tolist() for name in ("time", "client", "bytes"))
            self._position = 0
        self.next_ns = self._times[self._position]
