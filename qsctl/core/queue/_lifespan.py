"""The lifespan of samples [QS 2.9 and Table 3.15].

Decides: whether the producer's or the queue's lifespan applies, and which samples have expired.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush

from qsctl.core.queue._run import Run
from qsctl.core.queue.sample import Sample, SampleState
from qsctl.instant import INFINITE_NS, Nanoseconds, later

_FIRST_FINAL_STATE = SampleState.DELIVERED


class QueueLifespan:
    """The lifespan of a queue, which yields each sample's instant of expiry.

    Samples enqueued at one instant share one integer object: a million of them may wait at a time.
    """

    __slots__ = ("_at_ns", "_expiry_ns", "_lifespan_ns", "is_finite")

    def __init__(self, lifespan_ns: Nanoseconds) -> None:
        self.is_finite = lifespan_ns < INFINITE_NS
        self._lifespan_ns = lifespan_ns
        self._at_ns = self._expiry_ns = -1

    def expiry(self, written_at_ns: Nanoseconds, lifespan_ns: Nanoseconds, enqueued_at_ns: Nanoseconds) -> Nanoseconds:
        """Return the instant at which a sample expires.

        A producer's lifespan, if finite, takes precedence over the queue's, whether longer or shorter. It runs from the
        arrival of the sample; the queue's runs from the moment of enqueueing, as a sample may wait outside a full
        queue.
        """
        if lifespan_ns < INFINITE_NS:
            return later(written_at_ns, lifespan_ns)
        if enqueued_at_ns != self._at_ns:
            self._at_ns = enqueued_at_ns
            self._expiry_ns = later(enqueued_at_ns, self._lifespan_ns)
        return self._expiry_ns


class Lifespans:
    """The held samples with a finite lifespan, by instant of expiry.

    Under the queue's own lifespan samples expire in the order of arrival, so most of them are in one deque; only those
    that expire before the last one of the deque, by a producer's choice, are in a heap. Entries of removed samples stay
    until they reach the front or outnumber the others, and are then dropped, so that a long lifespan does not keep a
    busy queue's past samples in memory.
    """

    __slots__ = ("_heap", "_living_count", "_row")

    def __init__(self) -> None:
        self._row: deque[Sample | Run] = deque()
        self._heap: list[tuple[Nanoseconds, int, Sample | Run]] = []
        self._living_count = 0

    def enter(self, sample: Sample | Run, count: int = 1) -> None:
        """Add a sample of finite lifespan, or a run of `count` of them."""
        if not self._row or sample.expires_at_ns >= self._row[-1].expires_at_ns:
            self._row.append(sample)
        else:
            heappush(self._heap, (sample.expires_at_ns, sample.position, sample))
        self._living_count += count

    def leave(self, count: int = 1) -> None:
        """Count samples of finite lifespan as removed, after they reached a final state."""
        self._living_count -= count
        if len(self._row) + len(self._heap) > 2 * self._living_count + 64:
            self._row = deque(sample for sample in self._row if sample.state < _FIRST_FINAL_STATE)
            self._heap = [entry for entry in self._heap if entry[2].state < _FIRST_FINAL_STATE]
            heapify(self._heap)

    def next_deadline(self) -> Nanoseconds:
        """Return the instant at which the next sample expires; `INFINITE_NS`: none will."""
        row, heap = self._row, self._heap
        while row and row[0].state >= _FIRST_FINAL_STATE:
            row.popleft()
        while heap and heap[0][2].state >= _FIRST_FINAL_STATE:
            heappop(heap)
        return min(row[0].expires_at_ns if row else INFINITE_NS, heap[0][0] if heap else INFINITE_NS)

    def overdue(self, now: Nanoseconds, count_max: int = INFINITE_NS) -> list[Sample]:
        """Remove and return the samples that have expired at `now`, in the order of expiry.

        `count_max` bounds their number; the others remain due.
        """
        expired: list[Sample] = []
        while len(expired) < count_max and self.next_deadline() <= now:
            first = self._pop_first()
            if type(first) is Sample:
                expired.append(first)
            elif isinstance(first, Run):
                expired += first.single_out_living(count_max - len(expired))
                if len(expired) >= count_max:
                    # Some of its samples may be left; if not, it is found to be over next time.
                    heappush(self._heap, (first.expires_at_ns, first.position, first))
        return expired

    def _pop_first(self) -> Sample | Run:
        row, heap = self._row, self._heap
        if row and not (heap and heap[0][:2] < (row[0].expires_at_ns, row[0].position)):
            return row.popleft()
        return heappop(heap)[2]
