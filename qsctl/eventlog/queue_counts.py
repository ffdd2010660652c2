"""The counters of one queue, updated as messages enter and leave, and those of many queues as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from qsctl.eventlog.columns import WORK_UNIT_SHIFT
from qsctl.eventlog.outcomes import LOSSES, Outcome, column_of
from qsctl.eventlog.schema import bucket_of
from qsctl.instant import Nanoseconds

NEVER: Final = -1
"""A duration of something that did not happen: null in the event log."""


def work_units(size_bytes: int) -> int:
    """Return the work units of a message of this length."""
    return -(-size_bytes >> WORK_UNIT_SHIFT) or 1


@dataclass(slots=True)
class QueueCounts:
    """The counters of one queue, after the warm-up.

    `unfinished_since_ns` are the arrival times of messages without an acknowledgment so far: those held or waiting, and
    those delivered without one.
    """

    warm_up_ns: Nanoseconds
    arrived: int = 0
    by_outcome: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    redelivered: int = 0
    returned: int = 0
    delivered_bytes: int = 0
    work_units: int = 0
    high_water_mark: int = 0
    first_discard_ns: Nanoseconds = NEVER
    wait_sum_ns: int = 0
    wait_max_ns: int = 0
    histogram: dict[int, int] = field(default_factory=dict)
    done_sum_ns: int = 0
    done_max_ns: int = 0
    done: dict[int, int] = field(default_factory=dict)
    """The number of acknowledged messages by bucket of the time from arrival to acknowledgment."""
    unfinished_since_ns: list[Nanoseconds] = field(default_factory=list)
    tries: bool = False
    """A message delivered without an acknowledgment is redelivered, and is not unfinished itself."""

    def grow(self, size_bytes: int) -> None:
        """Count a message that entered the queue."""
        self.grow_by(work_units(size_bytes))

    def grow_by(self, units: int) -> None:
        """Count messages of these work units in total that entered the queue."""
        self.work_units += units
        if self.work_units > self.high_water_mark:
            self.high_water_mark = self.work_units

    def shrink(self, size_bytes: int) -> None:
        """Count a message that left the queue."""
        self.work_units -= work_units(size_bytes)

    def shrink_by(self, units: int) -> None:
        """Count messages of these work units in total that left the queue."""
        self.work_units -= units

    def warm_up(self) -> None:
        """Reset the statistics but not the state: the high-water mark restarts at the present depth."""
        self.high_water_mark = self.work_units
        self.returned = 0
        self.redelivered = 0

    def count(
        self,
        enqueued_ns: Nanoseconds,
        size_bytes: int,
        wait_ns: int,
        outcome: Outcome,
        acknowledge_ns: int = NEVER,
        messages: int = 1,
    ) -> None:
        """Count the outcome of a message, or the common outcome of several; `wait_ns` NEVER: still in the queue.

        Args:
            enqueued_ns: the instant of arrival.
            size_bytes: the length, in total.
            wait_ns: the time until they left the queue.
            outcome: the outcome.
            acknowledge_ns: the time until they were acknowledged; NEVER: they were not.
            messages: the number of messages.
        """
        if enqueued_ns >= self.warm_up_ns:
            self.arrived += messages
        if wait_ns == NEVER:
            self.by_outcome[outcome] += messages
            self.unfinished_since_ns += [enqueued_ns] * messages
            return
        left_ns = enqueued_ns + wait_ns
        if left_ns < self.warm_up_ns:
            return
        self.by_outcome[outcome] += messages
        if outcome is Outcome.DELIVERED:
            self.delivered_bytes += size_bytes
            self.wait_sum_ns += wait_ns * messages
            if wait_ns > self.wait_max_ns:
                self.wait_max_ns = wait_ns
            bucket = bucket_of(wait_ns)
            self.histogram[bucket] = self.histogram.get(bucket, 0) + messages
            if acknowledge_ns != NEVER:
                self._count_done(acknowledge_ns, messages)
            elif not self.tries:
                self.unfinished_since_ns += [enqueued_ns] * messages
        elif outcome is Outcome.DISCARDED and (self.first_discard_ns == NEVER or left_ns < self.first_discard_ns):
            self.first_discard_ns = left_ns

    def _count_done(self, time_ns: int, messages: int) -> None:
        self.done_sum_ns += time_ns * messages
        if time_ns > self.done_max_ns:
            self.done_max_ns = time_ns
        bucket = bucket_of(time_ns)
        self.done[bucket] = self.done.get(bucket, 0) + messages


def counter_columns(
    counts: Sequence[QueueCounts],
    client_ids: Sequence[int],
    clients: Sequence[str],
    names: Sequence[str],
    max_depths: Sequence[int],
    observed_ns: Nanoseconds,
    acknowledged: Sequence[bool] | None = None,
) -> dict[str, Any]:
    """Return the columns of `eventlog.schema.COUNTERS` without the run's id, one row a queue.

    Args:
        counts: the counters of each queue.
        client_ids: the client's number, by queue.
        clients: the client's name, by queue.
        names: the queues' names.
        max_depths: the maximum depth, by queue.
        observed_ns: the duration from the end of the warm-up to now.
        acknowledged: whether the messages are acknowledged, by queue; None: all are.
    """

    def column(values: Sequence[int]) -> Any:
        return np.array(values, np.int64)

    def outcome(kind: Outcome) -> Any:
        return column([each.by_outcome[kind] for each in counts])

    buckets = [sorted(each.histogram) for each in counts]
    return {
        "client_id": np.array(client_ids, np.int32),
        "client": list(clients),
        "queue": list(names),
        "arrived_messages": column([each.arrived for each in counts]),
        "delivered_messages": outcome(Outcome.DELIVERED),
        **{column_of(each): outcome(each) for each in LOSSES},
        "elided_messages": outcome(Outcome.ELIDED),
        "evicted_messages": column([0] * len(counts)),
        "redelivered_messages": column([each.redelivered for each in counts]),
        "discard_indications": column([0] * len(counts)),
        "delivered_bytes": column([each.delivered_bytes for each in counts]),
        "length_messages": outcome(Outcome.HELD),
        "length_work_units": column([each.work_units for each in counts]),
        "unacknowledged_messages": column([0] * len(counts)),
        "waiting_messages": outcome(Outcome.WAITING),
        "high_water_mark_work_units": column([each.high_water_mark for each in counts]),
        "max_depth_work_units": column(max_depths),
        "first_discard_ns": column([each.first_discard_ns for each in counts]),
        "wait_sum_ns": column([each.wait_sum_ns for each in counts]),
        "wait_max_ns": column([each.wait_max_ns for each in counts]),
        "observed_ns": column([observed_ns] * len(counts)),
        "histogram_bucket": [np.array(keys, np.int32) for keys in buckets],
        "histogram_count": [
            column([each.histogram[key] for key in keys]) for each, keys in zip(counts, buckets, strict=True)
        ],
        **_times_to_done(counts, observed_ns, acknowledged or [True] * len(counts)),
    }


def _times_to_done(
    counts: Sequence[QueueCounts], observed_ns: Nanoseconds, acknowledged: Sequence[bool]
) -> dict[str, Any]:
    """Return the columns of times to acknowledgment, and of the present ages of unacknowledged messages."""

    def column(values: Sequence[int]) -> Any:
        return np.array([value if own else NEVER for value, own in zip(values, acknowledged, strict=True)], np.int64)

    ages: list[dict[int, int]] = []
    oldest: list[int] = []
    for each, own in zip(counts, acknowledged, strict=True):
        end_ns = each.warm_up_ns + observed_ns
        buckets: dict[int, int] = {}
        for since_ns in each.unfinished_since_ns if own else ():
            bucket = bucket_of(max(0, end_ns - since_ns))
            buckets[bucket] = buckets.get(bucket, 0) + 1
        ages.append(buckets)
        oldest.append(max(0, end_ns - min(each.unfinished_since_ns, default=end_ns)))
    done = [each.done if own else {} for each, own in zip(counts, acknowledged, strict=True)]
    return {
        "done_messages": column([sum(each.values()) for each in done]),
        "done_sum_ns": column([each.done_sum_ns for each in counts]),
        "done_max_ns": column([each.done_max_ns for each in counts]),
        "done_bucket": [np.array(sorted(each), np.int32) for each in done],
        "done_count": [np.array([each[key] for key in sorted(each)], np.int64) for each in done],
        "unfinished_messages": column([sum(each.values()) for each in ages]),
        "unfinished_max_ns": column(oldest),
        "unfinished_bucket": [np.array(sorted(each), np.int32) for each in ages],
        "unfinished_count": [np.array([each[key] for key in sorted(each)], np.int64) for each in ages],
    }
