"""Samples that wait outside a full queue ([QS 2.15.4]: WAIT_WITHOUT_REPLACEMENT).

Decides: the order in which they are let in, and how many may wait. They are not held: no record, no acknowledgment.
The missing acknowledgment is what stops the producer, once its send window is full.
"""

from __future__ import annotations

from collections import OrderedDict
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from qsctl.core.messages import Write
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds, later


class Arrival(NamedTuple):
    """A sample outside the queue, when it came, and when it gives up."""

    write: Write
    received_at_ns: Nanoseconds
    expires_at_ns: Nanoseconds


class ReaderCache:
    """The reader cache of section 2.15.4: first come, first let in."""

    __slots__ = ("_count_max", "_entered_count", "_expiries", "arrivals")

    def __init__(self, count_max: int) -> None:
        self.arrivals: OrderedDict[SampleIdentity, Arrival] = OrderedDict()
        """Producers' samples that wait, in order; true where there are any."""
        self._count_max = count_max
        self._expiries: list[tuple[Nanoseconds, int, SampleIdentity]] = []
        self._entered_count = 0

    def __len__(self) -> int:
        return len(self.arrivals)

    def change(self, count_max: int) -> None:
        """Set the number of samples that may wait, below zero unbounded; those that wait already continue to."""
        self._count_max = count_max

    def knows(self, identity: SampleIdentity) -> bool:
        """Return whether this sample waits already."""
        return identity in self.arrivals

    def is_full(self) -> bool:
        """Return whether the reader's `max_samples` wait; below zero there is no bound."""
        return 0 <= self._count_max <= len(self.arrivals)

    def enter(self, write: Write, now: Nanoseconds) -> Nanoseconds:
        """Let a sample wait, behind all others; returns when it gives up: only a producer's lifespan runs here."""
        expires_at_ns = later(now, write.lifespan_ns)
        self.arrivals[write.identity] = Arrival(write, now, expires_at_ns)
        if expires_at_ns < INFINITE_NS:
            self._entered_count += 1
            heappush(self._expiries, (expires_at_ns, self._entered_count, write.identity))
        return expires_at_ns

    def first(self) -> Arrival | None:
        """Return the sample that is let in next."""
        for arrival in self.arrivals.values():
            return arrival
        return None

    def leave(self, identity: SampleIdentity) -> None:
        """Forget a sample that was let in, or gave up."""
        del self.arrivals[identity]
        if len(self._expiries) > 2 * len(self.arrivals) + 64:
            self._expiries = [entry for entry in self._expiries if self._is_waiting(*entry)]
            heapify(self._expiries)

    def of_writer(self, writer_guid: Guid) -> list[SampleIdentity]:
        """Return what a producer has waiting."""
        return [identity for identity in self.arrivals if identity.writer_guid == writer_guid]

    def next_deadline(self) -> Nanoseconds:
        """Return when the next sample gives up; `INFINITE_NS` when none will."""
        expiries = self._expiries
        while expiries and not self._is_waiting(*expiries[0]):
            heappop(expiries)
        return expiries[0][0] if expiries else INFINITE_NS

    def overdue(self, now: Nanoseconds) -> list[SampleIdentity]:
        """Those whose lifespan is over at `now`, soonest first."""
        late: list[SampleIdentity] = []
        while self._expiries and self._expiries[0][0] <= now:
            entry = heappop(self._expiries)
            if self._is_waiting(*entry):
                late.append(entry[2])
        return late

    def _is_waiting(self, expires_at_ns: Nanoseconds, _turn: int, identity: SampleIdentity) -> bool:
        arrival = self.arrivals.get(identity)
        return arrival is not None and arrival.expires_at_ns == expires_at_ns
