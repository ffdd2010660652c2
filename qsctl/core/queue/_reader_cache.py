"""The reader cache: samples that wait outside a full queue ([QS 2.15.4]: WAIT_WITHOUT_REPLACEMENT).

Decides: the order of their admission, and the number that may wait. They are not held: they have no record and no
acknowledgment. The missing acknowledgment stops the producer once its send window is full.
"""

from __future__ import annotations

from collections import OrderedDict
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from qsctl.core.messages import Write
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds, later


class Arrival(NamedTuple):
    """A sample outside the queue, with the instants of its arrival and of its expiry."""

    write: Write
    received_at_ns: Nanoseconds
    expires_at_ns: Nanoseconds


class ReaderCache:
    """The reader cache of [QS 2.15.4], first in, first out."""

    __slots__ = ("_count_max", "_entered_count", "_expiries", "arrivals")

    def __init__(self, count_max: int) -> None:
        self.arrivals: OrderedDict[SampleIdentity, Arrival] = OrderedDict()
        """The waiting samples of producers, in order of arrival."""
        self._count_max = count_max
        self._expiries: list[tuple[Nanoseconds, int, SampleIdentity]] = []
        self._entered_count = 0

    def __len__(self) -> int:
        return len(self.arrivals)

    def change(self, count_max: int) -> None:
        """Set the number of samples that may wait, below zero: unbounded; those already waiting remain."""
        self._count_max = count_max

    def knows(self, identity: SampleIdentity) -> bool:
        """Return whether a sample of this identity waits already."""
        return identity in self.arrivals

    def is_full(self) -> bool:
        """Return whether the maximum number of samples waits; below zero there is no maximum."""
        return 0 <= self._count_max <= len(self.arrivals)

    def enter(self, write: Write, now: Nanoseconds) -> Nanoseconds:
        """Append a sample, and return its instant of expiry: here only a producer's lifespan applies."""
        expires_at_ns = later(now, write.lifespan_ns)
        self.arrivals[write.identity] = Arrival(write, now, expires_at_ns)
        if expires_at_ns < INFINITE_NS:
            self._entered_count += 1
            heappush(self._expiries, (expires_at_ns, self._entered_count, write.identity))
        return expires_at_ns

    def first(self) -> Arrival | None:
        """Return the sample to admit next; None: none waits."""
        for arrival in self.arrivals.values():
            return arrival
        return None

    def leave(self, identity: SampleIdentity) -> None:
        """Remove a sample that was admitted or refused."""
        del self.arrivals[identity]
        if len(self._expiries) > 2 * len(self.arrivals) + 64:
            self._expiries = [entry for entry in self._expiries if self._is_waiting(*entry)]
            heapify(self._expiries)

    def of_writer(self, writer_guid: Guid) -> list[SampleIdentity]:
        """Return the identities of a producer's waiting samples."""
        return [identity for identity in self.arrivals if identity.writer_guid == writer_guid]

    def next_deadline(self) -> Nanoseconds:
        """Return the instant at which the next sample expires; `INFINITE_NS`: none will."""
        expiries = self._expiries
        while expiries and not self._is_waiting(*expiries[0]):
            heappop(expiries)
        return expiries[0][0] if expiries else INFINITE_NS

    def overdue(self, now: Nanoseconds) -> list[SampleIdentity]:
        """Return the identities of the samples that have expired at `now`, earliest first."""
        late: list[SampleIdentity] = []
        while self._expiries and self._expiries[0][0] <= now:
            entry = heappop(self._expiries)
            if self._is_waiting(*entry):
                late.append(entry[2])
        return late

    def _is_waiting(self, expires_at_ns: Nanoseconds, _turn: int, identity: SampleIdentity) -> bool:
        arrival = self.arrivals.get(identity)
        return arrival is not None and arrival.expires_at_ns == expires_at_ns
