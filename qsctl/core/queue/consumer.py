"""The consumers of a queue and the round robin among them [QS 2.10].

Decides: which consumers may be sent a sample, and which of them is next. Which sample is sent is decided in
`_delivery_groups`, the effect of an answer in `_delivery`.
"""

from __future__ import annotations

from qsctl.core.queue.sample import Sample
from qsctl.identity import Guid


class Consumer:
    """A consumer's reader, with its outstanding samples and its threshold.

    It is eligible while reception is enabled and its number of outstanding samples is at most the threshold; -1 is
    unlimited [QS 2.10.1]. A sample whose delivery failed is no longer outstanding, so a retry can be sent to the same
    consumer.
    """

    __slots__ = (
        "guid",
        "outstanding",
        "own_threshold",
        "place",
        "reception_enabled",
        "source_guid",
        "unacked_threshold",
    )

    def __init__(self, guid: Guid, source_guid: Guid, unacked_threshold: int) -> None:
        self.guid = guid
        self.source_guid = source_guid
        self.reception_enabled = True
        self.unacked_threshold = unacked_threshold
        self.own_threshold: int | None = -1
        """Threshold that its reader requested on joining, -1: none; None: replaced by a report [QS 2.10.2]."""
        self.outstanding: dict[int, Sample] = {}
        self.place = -1
        """Its index in the ring."""

    def bound(self, queue_threshold: int) -> None:
        """Set the threshold to the smaller of the queue's and the reader's own of its joining; -1: no bound."""
        own = self.own_threshold
        if own is not None:
            self.unacked_threshold = (
                max(own, queue_threshold) if min(own, queue_threshold) < 0 else min(own, queue_threshold)
            )


class Ring:
    """Consumers in order of joining, served round robin, beginning behind the one served last.

    The eligible consumers are the set bits of one integer, so that finding the next one among thousands of busy
    consumers costs a shift instead of a walk.
    """

    __slots__ = ("_consumers", "_eligible", "_last")

    def __init__(self) -> None:
        self._consumers: list[Consumer] = []
        self._eligible = 0
        self._last = -1

    def __len__(self) -> int:
        return len(self._consumers)

    def add(self, consumer: Consumer) -> None:
        """Append a consumer to the ring."""
        consumer.place = len(self._consumers)
        self._consumers.append(consumer)
        self.review(consumer)

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer; the turn of the others does not change."""
        place = consumer.place
        del self._consumers[place]
        for follower in self._consumers[place:]:
            follower.place -= 1
        before = self._eligible & ((1 << place) - 1)
        self._eligible = before | (self._eligible >> (place + 1) << place)
        if self._last >= place:
            self._last -= 1

    def review(self, consumer: Consumer) -> None:
        """Recompute whether a consumer is eligible, after its outstanding samples, threshold or reception changed."""
        if consumer.reception_enabled and (
            consumer.unacked_threshold < 0 or len(consumer.outstanding) <= consumer.unacked_threshold
        ):
            self._eligible |= 1 << consumer.place
        else:
            self._eligible &= ~(1 << consumer.place)

    def is_eligible(self, consumer: Consumer) -> bool:
        """Return whether a consumer may be sent a sample now."""
        return bool(self._eligible >> consumer.place & 1)

    def choose(self, other_than: Consumer | None = None) -> Consumer | None:
        """Return the next eligible consumer and record it as the one served last; None: no consumer is eligible.

        `other_than` is chosen only if no other is eligible ([QS 2.9]: to a different consumer).
        """
        eligible = self._eligible
        if other_than is not None:
            eligible = (eligible & ~(1 << other_than.place)) or eligible
        if not eligible:
            return None
        beyond = eligible >> (self._last + 1)
        if beyond:
            self._last += (beyond & -beyond).bit_length()
        else:
            self._last = (eligible & -eligible).bit_length() - 1
        return self._consumers[self._last]
