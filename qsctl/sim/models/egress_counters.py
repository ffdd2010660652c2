"""What an egress run counted: the rows of the event log's counters, and the totals told as events at its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from qsctl.instant import Nanoseconds
from qsctl.sim.kernel import records as r
from qsctl.sim.models.base import Event
from qsctl.sim.models.egress_arrays import EgressArrays
from qsctl.sim.scenario import QUEUE_ORDER


def counter_columns(names: list[str], arrays: EgressArrays, observed_ns: Nanoseconds) -> dict[str, Any]:
    """The columns of `eventlog.schema.COUNTERS`, less the run's id, for queues that carried traffic."""
    queues = arrays.queues
    used = np.flatnonzero((queues["arrived"] > 0) | (queues["delivered"] > 0) | (queues["length"] > 0))
    rows = queues[used]
    client = (used // r.QUEUES).astype(np.int32)
    zero = np.zeros(len(used), np.int64)
    histograms = [_histogram(arrays, int(queue)) for queue in used]
    return {
        "client_id": client,
        "client": [names[c] for c in client],
        "queue": [QUEUE_ORDER[queue % r.QUEUES].value for queue in used],
        "arrived_messages": rows["arrived"].copy(),
        "delivered_messages": rows["delivered"].copy(),
        "discarded_messages": rows["discarded"].copy(),
        "elided_messages": rows["elided"].copy(),
        "expired_messages": zero,
        "dead_messages": zero,
        "redelivered_messages": rows["redelivered"].copy(),
        "discard_indications": rows["indications"].copy(),
        "delivered_bytes": rows["delivered_bytes"].copy(),
        "length_messages": rows["length"].astype(np.int64),
        "length_work_units": rows["work"].copy(),
        "high_water_mark_work_units": rows["high_water"].copy(),
        "max_depth_work_units": rows["max_depth"].copy(),
        "first_discard_ns": rows["first_discard"].copy(),
        "wait_sum_ns": rows["wait_sum"].copy(),
        "wait_max_ns": rows["wait_max"].copy(),
        "observed_ns": np.full(len(used), observed_ns, np.int64),
        "histogram_bucket": [buckets for buckets, _ in histograms],
        "histogram_count": [counts for _, counts in histograms],
    }


def _histogram(arrays: EgressArrays, queue: int) -> tuple[Any, Any]:
    """Sparse buckets and counts of one queue; waits of zero are what the blocks did not count."""
    octaves = arrays.rare.octaves[queue]
    buckets, counts = [], []
    for octave in np.flatnonzero(octaves >= 0):
        block = arrays.rare.blocks[octaves[octave]]
        here = np.flatnonzero(block)
        buckets.append(here + (int(octave) << 7))
        counts.append(block[here])
    bucket = np.concatenate(buckets) if buckets else np.zeros(0, np.int64)
    count = np.concatenate(counts) if counts else np.zeros(0, np.int64)
    zeros = int(arrays.queues["delivered"][queue]) - int(count.sum())
    if zeros > 0:
        bucket, count = np.concatenate([[0], bucket]), np.concatenate([[zeros], count])
    return bucket.astype(np.int32), count.astype(np.int64)


def total_events(
    now_ns: Nanoseconds, arrays: EgressArrays, slow_percent: Any
) -> Iterator[tuple[int, int, int, int, Event]]:
    """Discards by cause, messages that went back to their endpoint, retransmissions and slowness, where not zero."""
    queues = arrays.queues
    congestion = queues["discarded"] - queues["not_connected"] - queues["refused"]
    for event, values in (
        (Event.CONGESTION_DISCARDS, congestion),
        (Event.NOT_CONNECTED_DISCARDS, queues["not_connected"]),
        (Event.SPOOL_DISCARDS, queues["refused"]),
        (Event.RETURNED, queues["returned"]),
    ):
        for queue in np.flatnonzero(values):
            yield now_ns, int(queue) // r.QUEUES, int(queue) % r.QUEUES, int(values[queue]), event
    for c in np.flatnonzero(arrays.rare.more["retransmissions"]):
        yield now_ns, int(c), -1, int(arrays.rare.more["retransmissions"][c]), Event.RETRANSMISSIONS
    for c in np.flatnonzero(slow_percent):
        yield now_ns, int(c), -1, round(100 * slow_percent[c]), Event.SLOW_PERCENT
