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
    arrays.settle_waits()
    queues, tallies = arrays.queues, arrays.tallies
    used = np.flatnonzero((queues["arrived"] > 0) | (queues["delivered"] > 0) | (queues["length"] > 0))
    rows, losses = queues[used], tallies[used]
    redelivered = np.where(used % r.QUEUES == 0, arrays.endpoints["redelivered"][used // r.QUEUES], 0)
    client = (used // r.QUEUES).astype(np.int32)
    zero = np.zeros(len(used), np.int64)
    histograms = [_histogram(arrays, int(queue)) for queue in used]
    return {
        "client_id": client,
        "client": [names[c] for c in client],
        "queue": [QUEUE_ORDER[queue % r.QUEUES].value for queue in used],
        "arrived_messages": rows["arrived"].copy(),
        "delivered_messages": rows["delivered"].copy(),
        "discarded_messages": losses["discarded"].copy(),
        "elided_messages": losses["elided"].copy(),
        "expired_messages": zero,
        "dead_messages": zero,
        "redelivered_messages": redelivered,
        "discard_indications": losses["indications"].copy(),
        "delivered_bytes": rows["delivered_bytes"].copy(),
        "length_messages": rows["length"].astype(np.int64),
        "length_work_units": rows["work"].copy(),
        "high_water_mark_work_units": rows["high_water"].copy(),
        "max_depth_work_units": rows["max_depth"].astype(np.int64),
        "first_discard_ns": losses["first_discard"].copy(),
        "wait_sum_ns": losses["wait_sum"].copy(),
        "wait_max_ns": losses["wait_max"].copy(),
        "observed_ns": np.full(len(used), observed_ns, np.int64),
        "histogram_bucket": [buckets for buckets, _ in histograms],
        "histogram_count": [counts for _, counts in histograms],
    }


def _histogram(arrays: EgressArrays, queue: int) -> tuple[Any, Any]:
    """Sparse buckets and counts of one queue, waits of zero among them."""
    bucket, count = arrays.histogram(queue)
    zeros = int(arrays.queues["delivered"][queue]) - int(count.sum())
    if zeros > 0:
        bucket, count = np.concatenate([[0], bucket]), np.concatenate([[zeros], count])
    return bucket.astype(np.int32), count.astype(np.int64)


def total_events(
    now_ns: Nanoseconds, arrays: EgressArrays, slow_percent: Any
) -> Iterator[tuple[int, int, int, int, Event]]:
    """Discards by cause, messages that went back to their endpoint, retransmissions and slowness, where not zero."""
    tallies, endpoints, more = arrays.tallies, arrays.endpoints, arrays.more
    refused = np.zeros(len(tallies), np.int64)
    returned = np.zeros(len(tallies), np.int64)
    refused[:: r.QUEUES], returned[:: r.QUEUES] = endpoints["refused"], endpoints["returned"]
    for event, values in (
        (Event.CONGESTION_DISCARDS, tallies["discarded"] - tallies["not_connected"] - refused),
        (Event.NOT_CONNECTED_DISCARDS, tallies["not_connected"]),
        (Event.SPOOL_DISCARDS, refused),
        (Event.RETURNED, returned),
    ):
        for queue in np.flatnonzero(values):
            yield now_ns, int(queue) // r.QUEUES, int(queue) % r.QUEUES, int(values[queue]), event
    for c in np.flatnonzero(more["retransmissions"]):
        yield now_ns, int(c), -1, int(more["retransmissions"][c]), Event.RETRANSMISSIONS
    for c in np.flatnonzero(slow_percent):
        yield now_ns, int(c), -1, round(100 * slow_percent[c]), Event.SLOW_PERCENT
