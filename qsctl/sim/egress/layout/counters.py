"""The counters of an egress run: the rows of the event log's counters, and the totals reported as events at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from qsctl.instant import Nanoseconds
from qsctl.sim.egress.layout.arrays import EgressArrays
from qsctl.sim.kernel import records as r
from qsctl.sim.model import Event

_COMMON_LOSSES: Final = ("discarded", "elided", "evicted")
"""Fields of the TALLY record."""

_RARE_LOSSES: Final = (
    "not_connected",
    "disconnected",
    "spool_refused",
    "ingress_refused",
    "too_big",
    "expired",
    "dead",
    "rejected",
)
"""Fields of the LOSS record, each the name of an outcome."""


_MOVED: Final = {
    Event.EXPIRED_TO_DMQ: "expired_moved",
    Event.REDELIVERED_TO_DMQ: "dead_moved",
    Event.REJECTED_TO_DMQ: "rejected_moved",
}
"""Fields of the DURABLE record: what was moved to the dead message queue, by cause."""


def counter_columns(
    names: Sequence[str], queue_names: Sequence[str], arrays: EgressArrays, observed_ns: Nanoseconds
) -> dict[str, Any]:
    """Return the columns of `eventlog.schema.COUNTERS` except the run's id, for queues that carried traffic."""
    arrays.flush_waits()
    queues, tallies, rare = arrays.queues, arrays.tallies, arrays.losses
    turned_away = rare["ingress_refused"] + rare["too_big"]
    arrived = queues["arrived"] + turned_away
    carried = (arrived > 0) | (queues["delivered"] > 0) | (queues["length"] > 0) | (rare["waiting"] > 0)
    # What arrived before the warm-up ended may be lost after it, and be all that is counted of its queue.
    for lost in (*(tallies[name] for name in _COMMON_LOSSES), *(rare[name] for name in _RARE_LOSSES)):
        carried |= lost > 0
    moved = sum(arrays.durables[field] for field in _MOVED.values()) > 0  # all of whose messages may count elsewhere
    carried[arrays.durables["number"][moved] * r.QUEUES] = True
    used = np.flatnonzero(carried)
    rows, losses = queues[used], tallies[used]
    redelivered = np.where(used % r.QUEUES == 0, arrays.endpoints["redelivered"][used // r.QUEUES], 0)
    client = (used // r.QUEUES).astype(np.int32)
    named, place = np.unique(client, return_inverse=True)
    labels = [names[c] for c in named.tolist()]
    buckets, counts = arrays.histograms(used, rows["delivered"])
    return {
        "client_id": client,
        "client": [labels[at] for at in place.tolist()],
        "queue": [queue_names[queue] for queue in (used % r.QUEUES).tolist()],
        "arrived_messages": arrived[used],
        "delivered_messages": rows["delivered"].copy(),
        "discarded_messages": losses["discarded"].copy(),
        **{f"{name}_messages": rare[name][used] for name in _RARE_LOSSES},
        "elided_messages": losses["elided"].copy(),
        "evicted_messages": losses["evicted"].copy(),
        "redelivered_messages": redelivered,
        "discard_indications": losses["indications"].copy(),
        "delivered_bytes": rows["delivered_bytes"].copy(),
        "length_messages": rows["length"].astype(np.int64),
        "length_work_units": rows["work"].copy(),
        "unacknowledged_messages": rare["unacknowledged"][used],
        "waiting_messages": rare["waiting"][used],
        "high_water_mark_work_units": rows["high_water"].copy(),
        "max_depth_work_units": rows["max_depth"].astype(np.int64),
        "first_discard_ns": _first_discards(losses["first_discard"], rare["first_refused"][used]),
        "wait_sum_ns": losses["wait_sum"].copy(),
        "wait_max_ns": losses["wait_max"].copy(),
        "observed_ns": np.full(len(used), observed_ns, np.int64),
        "histogram_bucket": buckets,
        "histogram_count": counts,
        **_times_to_done(arrays, used),
    }


def _first_discards(egress: Any, ingress: Any) -> Any:
    """Return the earlier instant of the first loss at egress or ingress; NONE where neither lost a message.

    The arguments are instants plus one nanosecond, or 0 without a loss.
    """
    first = np.minimum(np.where(egress == 0, r.FOREVER, egress), np.where(ingress == 0, r.FOREVER, ingress))
    return np.where(first == r.FOREVER, r.NONE, first - 1)


def _times_to_done(arrays: EgressArrays, used: Any) -> dict[str, Any]:
    """Return the columns of times to acknowledgment; NONE and empty lists for queues that nothing acknowledges.

    They exist for G-1, and for all queues of TIBCO.
    """
    state, dones = arrays.state, arrays.dones
    client = used // r.QUEUES
    own = arrays.acknowledged[client] & ((used % r.QUEUES == 0) | bool(state["acknowledging"]))
    nothing = (np.zeros(0, np.int32), np.zeros(0, np.int64))
    columns: dict[str, Any] = {
        name: np.where(own, dones[field][client], r.NONE)
        for name, field in (
            ("done_messages", "messages"), ("done_sum_ns", "total"), ("done_max_ns", "longest"),
            ("unfinished_messages", "unfinished"), ("unfinished_max_ns", "oldest"),
        )
    }  # fmt: skip
    for name, place, field in (
        ("done", state["done_place"], "messages"), ("unfinished", state["unfinished_place"], "unfinished"),
    ):  # fmt: skip
        buckets, counts = [nothing[0]] * len(client), [nothing[1]] * len(client)
        there = np.flatnonzero(own)
        found = arrays.histograms(int(place) + client[there], dones[field][client[there]])
        for at, bucket, count in zip(there.tolist(), *found, strict=True):
            buckets[at], counts[at] = bucket, count
        columns[f"{name}_bucket"], columns[f"{name}_count"] = buckets, counts
    return columns


def total_events(
    now_ns: Nanoseconds, arrays: EgressArrays, slow_percent: Any, blocked_ns: Any
) -> Iterator[tuple[int, int, int, int, Event]]:
    """Yield the totals at the end: discards by cause, messages moved or returned, connections, slowness.

    Where not zero.
    """
    tallies, losses, more = arrays.tallies, arrays.losses, arrays.more
    for event, values in (
        (Event.CONGESTION_DISCARDS, tallies["discarded"]),
        (Event.NOT_CONNECTED_DISCARDS, losses["not_connected"]),
        (Event.DISCONNECT_DISCARDS, losses["disconnected"]),
        (Event.SPOOL_DISCARDS, losses["spool_refused"]),
        (Event.RETURNED, tallies["evicted"]),
    ):
        for queue in np.flatnonzero(values):
            yield now_ns, int(queue) // r.QUEUES, int(queue) % r.QUEUES, int(values[queue]), event
    for event, field in _MOVED.items():
        for durable in arrays.durables[arrays.durables[field] > 0]:
            yield now_ns, int(durable["number"]), 0, int(durable[field]), event
    for c in np.flatnonzero(more["retransmissions"]):
        yield now_ns, int(c), -1, int(more["retransmissions"][c]), Event.RETRANSMISSIONS
    lossy = np.flatnonzero(more["loss"])
    time_outs = arrays.connections["time_outs"][more["connection"][lossy]]
    for c, count in zip(lossy, time_outs, strict=True):
        if count:
            yield now_ns, int(c), -1, int(count), Event.TIME_OUTS
    for c in np.flatnonzero(slow_percent):
        yield now_ns, int(c), -1, round(100 * slow_percent[c]), Event.SLOW_PERCENT
    for c in np.flatnonzero(blocked_ns):
        yield now_ns, int(c), -1, int(blocked_ns[c]), Event.BLOCKED_TIME
