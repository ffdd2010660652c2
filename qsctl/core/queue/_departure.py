"""The return of the samples that a consumer held when it left [QS 2.9 and 2.13].

Decides: the order of their return, and which of them it no longer concerns. A consumer may have held every sample of a
queue, so the return may take several turns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from qsctl.core.queue.consumer import Consumer
from qsctl.core.queue.sample import Sample, SampleState

_SENT = SampleState.SENT


class Departure:
    """The samples that a consumer held when it left, in queue order.

    Args:
        consumer: the consumer that left; it is not served any more.
        hands_back: whether it reports that it processed nothing.
        unsent: the positions of assigned samples that were not sent yet.
    """

    __slots__ = ("_guid", "_left", "_samples", "hands_back", "unsent")

    def __init__(self, consumer: Consumer, hands_back: bool, unsent: Iterable[int] = ()) -> None:
        self._guid = consumer.guid
        self._samples = consumer.outstanding
        self._left = deque(sorted(self._samples))
        self.hands_back = hands_back
        self.unsent = frozenset(unsent)

    def take(self, count_max: int) -> Iterator[Sample]:
        """Yield the next samples lazily, out of `count_max`, without those acknowledged or timed out meanwhile."""
        left = self._left
        for _ in range(min(count_max, len(left))):
            sample = self._samples.pop(left.popleft())
            if sample.state is _SENT and sample.holder == self._guid:
                yield sample

    @property
    def is_over(self) -> bool:
        """Return whether no sample is left to return."""
        return not self._left
