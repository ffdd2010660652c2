"""The statistics of a queue as they are stored between two processes [QS 6.2].

Decides: what of them outlives a process. Only those of a service that lives in a state directory do.
"""

from __future__ import annotations

import msgspec

from qsctl.core.statistics._variable import WindowState
from qsctl.core.statistics.status import AdditionalCounters, Counters
from qsctl.errors import UNREADABLE, Damaged
from qsctl.instant import Nanoseconds


class StoredVariables(msgspec.Struct, frozen=True):
    """Stored windows, by variable, and the values of the sampling period that was open."""

    sending_latency: tuple[WindowState, ...]
    enqueue_throughput: tuple[WindowState, ...]
    dequeue_throughput: tuple[WindowState, ...]
    sending_throughput: tuple[WindowState, ...]
    open_latency: tuple[int, int, int, int, int]
    open_counts: tuple[int, int, int]


class StoredStatistics(msgspec.Struct, frozen=True):
    """A stored `QueueStatistics`."""

    created_at_ns: Nanoseconds
    sampling_period_ns: Nanoseconds
    period_began_at_ns: Nanoseconds
    total: Counters
    last_read: Counters
    variables: StoredVariables
    additional: AdditionalCounters = AdditionalCounters()


def decode_statistics(snapshot: bytes, queue_name: str) -> StoredStatistics:
    """Read the statistics of a queue.

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
