"""A consumer that left and what it held, until the last of it is taken back [QS 2.9 and 2.13].

Decides: in which order, and what of it is no longer its business. It may have held everything that a queue had.
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
        consumer: the one that left; it is not served any more.
        hands_back: whether it reports that it processed nothing.
        unsent: the positions of samples that it was not sent yet.
    """

    __slots__ = ("_guid", "_left", "_samples", "hands_back", "unsent")

    def __init__(self, consumer: Consumer, hands_back: bool, unsent: Iterable[int] = ()) -> None:
        self._guid = consumer.guid
        self._samples = consumer.outstanding
        self._left = deque(sorted(self._samples))
        self.hands_back = hands_back
        self.unsent = frozenset(unsent)

    def take(self, count_max: int) -> Iterator[Sample]:
        """Yield the next samples, at most the given number, each on request, but those acknowledged or timed out
        meanwhile.
        """
        left = self._left
        for _ in range(min(count_max, len(left))):
            sample = self._samples.pop(left.popleft())
            if sample.state is _SENT and sample.holder == self._guid:
                yield sample

    @property
    def is_over(self) -> bool:
        """Return whether nothing is left."""
        return not self._left
