"""The broker's ingress, applied to arrivals; it has no effect unless the scenario limits it.

A refused message is counted and logged for every client's queue that would have received it, so that for each queue
the arrivals equal the sum of the outcomes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsctl.instant import Nanoseconds
from qsctl.sim.arrivals.streams import ArrivalStreams
from qsctl.sim.egress.broker._admission import BUFFERED, REFUSAL, TOO_BIG_REASON, admit_ingress
from qsctl.sim.egress.broker.subscriptions import Subscriptions
from qsctl.sim.egress.layout.scenario_layout import line_rate
from qsctl.sim.kernel.jit import as_records
from qsctl.sim.kernel.records import ARRIVAL, ARRIVAL_TRAFFIC_SHIFT, INGRESS_REFUSED, QUEUES, TOO_BIG
from qsctl.sim.model import LOG_ROW, NEVER, Event, Rows
from qsctl.sim.scenario.scenario import Scenario

Row = tuple[Nanoseconds, int, int, int, Event]
"""at_ns, client (-1), queue (-1), value, event."""


class Ingress:
    """The arrivals that pass the broker's ingress, window by window, at the times when they reach the egress queues."""

    def __init__(self, scenario: Scenario, streams: ArrivalStreams) -> None:
        broker = scenario.broker
        self._streams = streams
        self.subscriptions = Subscriptions(scenario, streams.topics)
        self._size_max = broker.max_message_bytes
        self._publishers = max(1, len(scenario.traffic))
        self._share = broker.ingress_buffer_bytes // self._publishers
        rate = broker.ingress_rate_bits_per_second
        self._num, self._den = line_rate("the broker's ingress", rate) if rate else (0, 1)
        largest = max(int(streams.streams["size_max"].max(initial=0)), int(streams.trace["bytes"].max(initial=0)))
        self._filters = bool(rate) or largest > self._size_max
        self._large = broker.large_message_bytes
        self._looks_for_large = largest > self._large
        self._raised_large: set[int] = set()
        self._held = np.zeros(self._publishers, np.int64)
        self._ring = as_records(np.zeros(1, BUFFERED))
        self._cursor = np.zeros(4, np.int64)
        self._warm_up_ns = scenario.warm_up_ns
        self.turned_away = 0
        """Copies of refused messages, warm-up included."""

    @property
    def now_ns(self) -> Nanoseconds:
        """The end of the last window returned."""
        return self._streams.now_ns

    def window(
        self, until_ns: Nanoseconds, left: npt.NDArray[Any], losses: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[Any], list[Row], Rows]:
        """Return the admitted rows of the window that ends at `until_ns`, its events, and the log rows of its refusals.

        Args:
            until_ns: the end of the window, exclusive.
            left: admitted rows of the previous window that were delayed past its end; they are returned first.
            losses: the LOSS records of all queues; refused copies are counted in them from the end of the warm-up on.
        """
        return self._admit(self._streams.window(until_ns), left, losses)

    def _admit(
        self, arrivals: npt.NDArray[Any], left: npt.NDArray[Any], losses: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[Any], list[Row], Rows]:
        """Apply subscriptions and ingress limits to drawn arrivals; returns what `window` returns."""
        rows = self.subscriptions.matching(arrivals)
        large = self._large_messages(rows) if self._looks_for_large else []
        if not self._filters:
            return rows, large, _NOTHING
        waiting = int(self._cursor[1] - self._cursor[0])
        if len(self._ring) <= waiting + len(rows):
            order = np.arange(self._cursor[0], self._cursor[1]) % len(self._ring)
            held = self._ring[order]
            self._ring = as_records(np.zeros(2 * (waiting + len(rows)) + 1, BUFFERED))
            self._ring[:waiting] = held
            self._cursor[:2] = 0, waiting
        refusals = as_records(np.zeros(len(rows), REFUSAL))
        turned = as_records(np.zeros(len(rows), ARRIVAL))
        kept, refused, away = admit_ingress(
            rows, len(rows), self._size_max, self._num, self._den, self._share, self._held, self._ring, self._cursor,
            refusals, turned,
        )  # fmt: skip
        events: list[Row] = large + [
            (int(at), -1, -1, int(size), Event.MESSAGE_TOO_BIG if big else Event.INGRESS_DISCARD)
            for at, size, _, big in refusals[:refused].tolist()
        ]
        refused_rows = self._lost(turned[:away], losses)
        return as_records(np.concatenate([left, rows[:kept]])), events, refused_rows

    def _large_messages(self, rows: npt.NDArray[Any]) -> list[Row]:
        """Return the event of each client's first large message, at most one a client and run."""
        large = np.flatnonzero(rows["bytes"] > self._large)
        clients, first = np.unique(rows["client"][large], return_index=True)
        found: list[Row] = []
        for client, place in zip(clients, large[first], strict=True):
            if int(client) not in self._raised_large:
                self._raised_large.add(int(client))
                row = rows[place]
                found.append((int(row["time"]), int(client), -1, int(row["bytes"]), Event.LARGE_MESSAGE))
        return found

    def _lost(self, turned: npt.NDArray[Any], losses: npt.NDArray[Any]) -> Rows:
        """Count refused copies in `losses`, and return their log rows."""
        self.turned_away += len(turned)
        queue = turned["tag"] & 7
        too_big = turned["tag"] >> ARRIVAL_TRAFFIC_SHIFT == TOO_BIG_REASON
        counted = turned["time"] >= self._warm_up_ns
        place = turned["client"].astype(np.int64) * QUEUES + queue
        np.add.at(losses["too_big"], place[counted & too_big], 1)
        np.add.at(losses["ingress_refused"], place[counted & ~too_big], 1)
        refused, first = np.unique(place[counted], return_index=True)  # the first one of a queue is the earliest
        known = losses["first_refused"][refused]
        losses["first_refused"][refused] = np.where(known == 0, turned["time"][counted][first] + 1, known)
        return log_rows(turned, np.where(too_big, TOO_BIG, INGRESS_REFUSED), wait_ns=0)


def log_rows(arrivals: npt.NDArray[Any], outcome: Any, wait_ns: int) -> Rows:
    """Return the log rows of arrivals that never reached a queue."""
    rows = np.zeros(len(arrivals), LOG_ROW)
    rows["enqueued_ns"] = arrivals["time"]
    rows["enter_ns"] = rows["wait_ns"] = wait_ns
    rows["send_ns"] = rows["acknowledge_ns"] = NEVER
    rows["client_id"], rows["topic_id"], rows["size_bytes"] = arrivals["client"], arrivals["topic"], arrivals["bytes"]
    rows["queue"] = arrivals["tag"] & 7
    rows["outcome"] = outcome
    return rows


_NOTHING: Final = np.zeros(0, LOG_ROW)
