"""The kernel's counts, as the counters of the event log, and its figures beside them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsctl.eventlog.outcomes import LOSSES, Outcome, column_of
from qsctl.eventlog.run_folder import QueueWorker, WorkedQueue
from qsctl.eventlog.schema import BUCKET_COUNT
from qsctl.instant import HOUR_NS, Nanoseconds
from qsctl.sim.broker_queue import _records as r
from qsctl.sim.broker_queue._arrays import QueueArrays
from qsctl.sim.broker_queue._fate import LETTERS, MAIN
from qsctl.sim.scenario.parts.broker_queue import BrokerQueue

_FIELDS: Final = {
    Outcome.DISCARDED: "discarded", Outcome.NOT_CONNECTED: "not_connected", Outcome.DISCONNECTED: "disconnected",
    Outcome.SPOOL_REFUSED: "refused", Outcome.INGRESS_REFUSED: "ingress", Outcome.TOO_BIG: "too_big",
    Outcome.EXPIRED: "expired", Outcome.DEAD: "dead", Outcome.REJECTED: "rejected",
}  # fmt: skip


def counter_columns_of(queue: BrokerQueue, arrays: QueueArrays, observed_ns: Nanoseconds) -> dict[str, Any]:
    """Return the columns of `eventlog.schema.COUNTERS`: a row for the queue, one for its dead letters."""
    shown = [MAIN, LETTERS] if queue.dead_letters is not None else [MAIN]
    counts = arrays.counts[shown]
    histograms = np.asarray(arrays.buckets).view(np.int64).reshape(2, r.HISTOGRAMS, BUCKET_COUNT)[shown]
    acknowledged = np.array([which == MAIN for which in shown])

    def column(name: str) -> npt.NDArray[Any]:
        return np.array(counts[name], np.int64)

    def own(name: str) -> npt.NDArray[Any]:
        return np.where(acknowledged, counts[name], r.NONE)

    buckets = [[np.flatnonzero(each) for each in of_one] for of_one in histograms]
    for of_one, is_own in zip(buckets, acknowledged, strict=True):
        if not is_own:
            of_one[1] = of_one[2] = np.zeros(0, np.int64)

    def sparse(which: int) -> tuple[list[Any], list[Any]]:
        found = [of_one[which] for of_one in buckets]
        amounts = [histograms[row, which][each] for row, each in enumerate(found)]
        return [each.astype(np.int32) for each in found], amounts

    waits, done, unfinished = sparse(0), sparse(1), sparse(2)
    count = len(shown)
    limits = [queue.limits.max_messages, queue.dead_letters.max_messages if queue.dead_letters is not None else -1]
    zero = np.zeros(count, np.int64)
    return {
        "client_id": np.zeros(count, np.int32),
        "client": [queue.name] * count,
        "queue": [(queue.name, queue.dead_name)[which] for which in shown],
        "arrived_messages": column("arrived"),
        "delivered_messages": column("delivered"),
        **{column_of(each): column(_FIELDS[each]) for each in LOSSES},
        "elided_messages": zero,
        "evicted_messages": zero,
        "redelivered_messages": column("redelivered"),
        "discard_indications": zero,
        "delivered_bytes": column("bytes"),
        "length_messages": column("held"),
        "length_work_units": column("work"),
        "unacknowledged_messages": column("unacknowledged"),
        "waiting_messages": column("waiting"),
        "high_water_mark_work_units": column("mark"),
        "max_depth_work_units": np.array([max(0, limits[which]) for which in shown], np.int64),
        "first_discard_ns": column("first_discard"),
        "wait_sum_ns": column("wait_sum"),
        "wait_max_ns": column("wait_max"),
        "observed_ns": np.full(count, observed_ns, np.int64),
        "histogram_bucket": waits[0],
        "histogram_count": waits[1],
        "done_messages": own("done"),
        "done_sum_ns": own("done_sum"),
        "done_max_ns": own("done_max"),
        "done_bucket": done[0],
        "done_count": done[1],
        "unfinished_messages": own("unfinished"),
        "unfinished_max_ns": own("unfinished_max"),
        "unfinished_bucket": unfinished[0],
        "unfinished_count": unfinished[1],
    }


def worked_queue_of(queue: BrokerQueue, arrays: QueueArrays, observed_ns: Nanoseconds) -> WorkedQueue:
    """Return the figures of the queue beside its counters."""
    state, count, consumers = arrays.state, arrays.counts[MAIN], arrays.consumers
    requests, worker_ns = int(state["requests"]), int(consumers["paid_ns"].sum())
    drain_ns = int(state["drain_max"])
    within = missed = None
    if queue.objective is not None:
        lost = sum(int(count[name]) for name in _FIELDS.values())
        within = int(count["within"])
        missed = int(count["done"]) - within + lost + int(count["overdue"])
    return WorkedQueue(
        queue=queue.name,
        duplicates=int(state["duplicates"]),
        parallel_duplicates=int(state["parallel"]),
        backlog_mean=float(state["area"]) / observed_ns if observed_ns else 0.0,
        backlog_max=int(state["inside_max"]),
        ready_max=int(state["ready_max"]),
        oldest_ns=int(state["oldest"]),
        drain_ns=None if drain_ns == r.NONE else drain_ns,
        busy_ns=int(consumers["busy_ns"].sum()),
        served_ns=int((consumers["present_ns"] * consumers["servers"]).sum()),
        worker_ns=worker_ns,
        requests=requests,
        cost=requests / 1e6 * queue.prices.million_requests + worker_ns / HOUR_NS * queue.prices.worker_hour,
        within=within,
        missed=missed,
    )


def workers_of(queue: BrokerQueue, arrays: QueueArrays, names: list[str]) -> tuple[QueueWorker, ...]:
    """Return the figures of each consumer, in their order."""
    return tuple(
        QueueWorker(
            consumer=name,
            group=queue.workers[int(row["group"])].name,
            present_ns=int(row["present_ns"]),
            busy_ns=int(row["busy_ns"]),
            paid_ns=int(row["paid_ns"]),
            servers=int(row["servers"]),
            succeeded=int(row["succeeded"]),
            failed=int(row["failed"]),
        )
        for name, row in zip(names, arrays.consumers, strict=True)
    )
