"""The slowness of each subscriber: its blocked seconds of the last minute, with penalties for connection problems.

[SOL-QUEUES], "Data Buffer Management": the seconds of the last minute in which a client had data to send and could not,
plus a penalty for retransmissions and missed keepalives, as a percentage. Our reading: a second counts when the client
was blocked for at least half of it; each retransmission and missed keepalive adds the configured percentage for a
minute; the sum is at most 100. Retransmissions are counted in segments. An idle connection is probed each second after
three (the profile's defaults); a probe is missed with the link's loss probability.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.sim.kernel.random import stream_key, uniform_bits
from qsctl.sim.kernel.records import ABSENT

SECONDS: Final = 60
KEEPALIVE_IDLE_SECONDS: Final = 3


class SlowSubscribers:
    """The slowness of every client, second by second."""

    def __init__(self, seed: int, replication: int, count: int, penalty_percent: float, threshold: float) -> None:
        self._blocked = np.zeros((count, SECONDS), np.bool_)
        self._penalties = np.zeros((count, SECONDS), np.int32)
        self._seen = np.zeros(count, np.int64)
        self._blocked_ns = np.zeros(count, np.int64)
        self._sent = np.zeros(count, np.int64)
        self._idle = np.zeros(count, np.int64)
        self._second = 0
        self._penalty = penalty_percent
        self._threshold = threshold
        self._key = np.uint64(stream_key(seed, replication, "keepalive"))
        self.percent = np.zeros(count, np.float64)
        self.slow = np.zeros(count, np.bool_)
        self.missed_keepalives = 0

    def tick(self, now_ns: Nanoseconds, clients: npt.NDArray[Any], more: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Update all clients at `now_ns`, the end of a second; return the clients that became slow or no longer are."""
        blocked = clients["blocked"] != 0
        more["blocked_ns"][blocked] += now_ns - more["blocked_since"][blocked]
        more["blocked_since"][blocked] = now_ns
        place = self._second % SECONDS
        self._second += 1
        self._blocked[:, place] = 2 * more["blocked_ns"] >= SECOND_NS
        self._blocked_ns += more["blocked_ns"]
        more["blocked_ns"] = 0
        self._penalties[:, place] = more["retransmissions"] - self._seen
        self._seen[:] = more["retransmissions"]
        self._probe(place, clients, more)
        share = self._blocked.sum(axis=1) * (100.0 / SECONDS)
        self.percent = np.minimum(100.0, share + self._penalty * self._penalties.sum(axis=1))
        before = self.slow
        self.slow = self.percent >= self._threshold
        return np.flatnonzero(self.slow != before)

    def blocked_ns(self, now_ns: Nanoseconds, clients: npt.NDArray[Any], more: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the nanoseconds for which each client was blocked since the end of the warm-up."""
        found: npt.NDArray[Any] = self._blocked_ns + more["blocked_ns"]
        found[clients["blocked"] != 0] += now_ns - more["blocked_since"][clients["blocked"] != 0]
        return found

    def warm_up(self, now_ns: Nanoseconds, clients: npt.NDArray[Any], more: npt.NDArray[Any]) -> None:
        """Reset the count of blocked nanoseconds at the end of the warm-up; the slowness of the last minute is kept."""
        self._blocked_ns -= self.blocked_ns(now_ns, clients, more)

    def _probe(self, place: int, clients: npt.NDArray[Any], more: npt.NDArray[Any]) -> None:
        lossy = np.flatnonzero(more["loss"])
        for c in lossy:
            moved = more["sent"][c] != self._sent[c] or clients["inflight"][c] > 0 or clients["traits"][c] & ABSENT
            self._sent[c] = more["sent"][c]
            self._idle[c] = 0 if moved else self._idle[c] + 1
            if self._idle[c] < KEEPALIVE_IDLE_SECONDS:
                continue
            with np.errstate(over="ignore"):
                drawn = uniform_bits(self._key ^ more["key"][c], self._second)
            if drawn < more["loss"][c]:
                self._penalties[c, place] += 1
                self.missed_keepalives += 1
