"""The broker's ingress around the arrivals: nothing at all unless the scenario limits it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qsctl.instant import Nanoseconds
from qsctl.sim.arrivals import ArrivalStreams
from qsctl.sim.kernel.ingress import admit_ingress
from qsctl.sim.kernel.jit import as_records
from qsctl.sim.models.base import Event
from qsctl.sim.models.egress_layout import line_rate
from qsctl.sim.scenario import Scenario

Row = tuple[Nanoseconds, int, int, int, Event]
"""at_ns, client (-1), queue (-1), value, event."""


class Ingress:
    """Arrivals as they reach the egress queues."""

    def __init__(self, scenario: Scenario, streams: ArrivalStreams) -> None:
        broker = scenario.broker
        self._streams = streams
        self._size_max = broker.max_message_bytes
        self._publishers = max(1, len(scenario.traffic))
        self._share = broker.ingress_buffer_bytes // self._publishers
        rate = broker.ingress_rate_bits_per_second
        self._num, self._den = line_rate("the broker's ingress", rate) if rate else (0, 1)
        self._filters = bool(rate) or int(streams.streams["size_max"].max(initial=0)) > self._size_max
        self._filters = self._filters or bool((streams.trace["bytes"] > self._size_max).any())
        self._held = np.zeros(self._publishers, np.int64)
        self._ring = np.zeros((1, 3), np.int64)
        self._cursor = np.zeros(4, np.int64)
        self.refused = 0

    @property
    def now_ns(self) -> Nanoseconds:
        """Arrivals were given up to here."""
        return self._streams.now_ns

    def window(self, until_ns: Nanoseconds, left: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], list[Row]]:
        """The next rows, after those `left` of the window before (delayed past its end), and the refusals."""
        rows = self._streams.window(until_ns)
        if not self._filters:
            return rows, []
        waiting = int(self._cursor[1] - self._cursor[0])
        if len(self._ring) <= waiting + len(rows):
            order = np.arange(self._cursor[0], self._cursor[1]) % len(self._ring)
            held = self._ring[order]
            self._ring = np.zeros((2 * (waiting + len(rows)) + 1, 3), np.int64)
            self._ring[:waiting] = held
            self._cursor[:2] = 0, waiting
        refusals = np.zeros((len(rows), 4), np.int64)
        kept, refused = admit_ingress(
            rows, len(rows), self._size_max, self._num, self._den, self._share, self._held, self._ring, self._cursor,
            refusals,
        )  # fmt: skip
        self.refused += refused
        events: list[Row] = [
            (int(at), -1, -1, int(size), Event.MESSAGE_TOO_BIG if big else Event.INGRESS_DISCARD)
            for at, size, _, big in refusals[:refused]
        ]
        return as_records(np.concatenate([left, rows[:kept]])), events
