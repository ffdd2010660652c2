"""The stored form of a queue's statistics, for the next process of the service [QS 6.2].

Decides: the counters and windows that outlive a process. Only a service with a state directory stores them.
"""

from __future__ import annotations

import msgspec

from qsctl.core.statistics._variable import WindowState
from qsctl.core.statistics.status import AdditionalCounters, Counters
from qsctl.errors import UNREADABLE, Damaged
from qsctl.instant import Nanoseconds


class StoredVariables(msgspec.Struct, frozen=True):
    """The windows of each statistic variable, and the values of the sampling period that was not yet over."""

    sending_latency: tuple[WindowState, ...]
    enqueue_throughput: tuple[WindowState, ...]
    dequeue_throughput: tuple[WindowState, ...]
    sending_throughput: tuple[WindowState, ...]
    open_latency: tuple[int, int, int, int, int]
    open_counts: tuple[int, int, int]


class StoredStatistics(msgspec.Struct, frozen=True):
    """The state of a `QueueStatistics` in a snapshot."""

    created_at_ns: Nanoseconds
    sampling_period_ns: Nanoseconds
    period_began_at_ns: Nanoseconds
    total: Counters
    last_read: Counters
    variables: StoredVariables
    additional: AdditionalCounters = AdditionalCounters()


def decode_statistics(snapshot: bytes, queue_name: str) -> StoredStatistics:
    """Decode a snapshot of `QueueStatistics`; the queue's name is for the error.

    Raises:
        Damaged: the bytes are not a snapshot.
    """
    try:
        return msgspec.json.decode(snapshot, type=StoredStatistics)
    except UNREADABLE as error:
        raise Damaged(
            f"the statistics of queue {queue_name!r} cannot be read: {error}",
            remedy="Counting starts again from zero.",
        ) from error
