"""The consumers of a queue and the round robin among them [QS 2.10].

Decides: which consumers may be sent a sample, and which of them is next. Which sample is sent is decided in
`_delivery_groups`, the effect of an answer in `_delivery`.
"""

from __future__ import annotations

from typing import Protocol

from qsctl.core.queue.sample import Sample
from qsctl.identity import Guid


class SentSamples(Protocol):
    """Samples that were sent together and are not objects by themselves."""

    def single_out(self) -> list[Sample]:
        """Make those that are still being delivered objects by themselves, and return them in the order of sending."""


class Consumer:
    """A consumer's reader, with its outstanding samples and its threshold.

    It is eligible while reception is enabled and its number of outstanding samples is at most the threshold; -1 is
    unlimited [QS 2.10.1]. A sample whose delivery failed is no longer outstanding, so a retry can be sent to the same
    consumer.
    """

    __slots__ = (
        "guid",
        "in_runs_count",
        "outstanding",
        "own_threshold",
        "place",
        "reception_enabled",
        "sendings",
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
        """Its outstanding samples, without those of `sendings`."""
        self.sendings: dict[SentSamples, None] = {}
        self.in_runs_count = 0
        """Number of its outstanding samples in `sendings`."""
        self.place = -1
        """Its index in the ring."""

    @property
    def outstanding_count(self) -> int:
        """Return the number of outstanding samples."""
        return len(self.outstanding) + self.in_runs_count

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
            consumer.unacked_threshold < 0
            or len(consumer.outstanding) + consumer.in_runs_count <= consumer.unacked_threshold
        ):
            self._eligible |= 1 << consumer.place
        else:
            self._eligible &= ~(1 << consumer.place)

    def is_eligible(self, consumer: Consumer) -> bool:
        """Return whether a consumer may be sent a sample now."""
        return bool(self._eligible >> consumer.place & 1)

    def turn(self, count_max: int) -> tuple[list[Consumer], int]:
        """Return the eligible consumers in turn, and how many of the next samples each may be sent in this order.

        Args:
            count_max: the number of samples to send.
        """
        eligible, start = self._eligible, self._last + 1
        if not eligible:
            return [], 0
        if not eligible & (eligible - 1):
            able = [self._consumers[eligible.bit_length() - 1]]
        else:
            ring = self._consumers[start:] + self._consumers[:start]
            able = [each for each in ring if eligible >> each.place & 1][:count_max]
        count = count_max
        for each in able:
            if each.unacked_threshold >= 0:
                count = min(count, (each.unacked_threshold + 1 - each.outstanding_count) * len(able))
        return able, count

    def serve(self, consumer: Consumer) -> None:
        """Record the consumer that was served last."""
        self._last = consumer.place

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
