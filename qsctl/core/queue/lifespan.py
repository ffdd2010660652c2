"""How long a sample lives (manual, section 2.9 and Table 3.15).

Decides: which lifespan counts, and which samples are past theirs.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from qsctl.core.queue.sample import Sample, SampleState
from qsctl.instant import INFINITE_NS, Nanoseconds, later

_FIRST_FINAL_STATE = SampleState.DELIVERED


def expiry(
    written_at_ns: Nanoseconds, lifespan_ns: Nanoseconds, enqueued_at_ns: Nanoseconds, queue_lifespan_ns: Nanoseconds
) -> Nanoseconds:
    """The instant at which a sample expires.

    A producer's lifespan, when finite, takes precedence over the queue's, be it longer or shorter. It runs from the
    arrival of the sample, the queue's from the moment it is held: a sample may wait outside a full queue.
    """
    if lifespan_ns < INFINITE_NS:
        return later(written_at_ns, lifespan_ns)
    return later(enqueued_at_ns, queue_lifespan_ns)


class Lifespans:
    """Held samples that will expire, soonest first.

    Producers choose their own lifespans, so this is a heap. Samples that were settled stay in it until they come up or
    outnumber the others; then they are swept out, for a long lifespan must not keep a busy queue's history in memory.
    """

    __slots__ = ("_entries", "_living_count")

    def __init__(self) -> None:
        self._entries: list[tuple[Nanoseconds, int, Sample]] = []
        self._living_count = 0

    def enter(self, sample: Sample) -> None:
        """Watch a sample of finite lifespan."""
        heappush(self._entries, (sample.expires_at_ns, sample.position, sample))
        self._living_count += 1

    def leave(self) -> None:
        """A watched sample reached a final state."""
        self._living_count -= 1
        if len(self._entries) > 2 * self._living_count + 64:
            self._entries = [entry for entry in self._entries if entry[2].state < _FIRST_FINAL_STATE]
            heapify(self._entries)

    def next_deadline(self) -> Nanoseconds:
        """When the next sample expires; `INFINITE_NS` when none will."""
        entries = self._entries
        while entries and entries[0][2].state >= _FIRST_FINAL_STATE:
            heappop(entries)
        return entries[0][0] if entries else INFINITE_NS

    def overdue(self, now: Nanoseconds) -> list[Sample]:
        """The samples past their lifespan at `now`, in the order in which they passed it; they are watched no more."""
        expired: list[Sample] = []
        entries = self._entries
        while entries and entries[0][0] <= now:
            sample = heappop(entries)[2]
            if sample.state < _FIRST_FINAL_STATE:
                expired.append(sample)
        return expired
