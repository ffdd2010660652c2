"""Summary figures of one repetition, one row a queue: its counters summed over all its clients.

Sweeps, comparisons and sizing compute with them: they are small, and mergeable, since latency histograms can be added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from qsctl.eventlog.outcomes import LOSS_COLUMNS, loss_ratio
from qsctl.eventlog.schema import bucket_bounds_ns
from qsctl.instant import HOUR_NS, SECOND_NS, Nanoseconds
from qsctl.sim.done_times import DoneTimes

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from qsctl.eventlog.run_folder import ReplicatedQueue, RuleVerdict, WorkedQueue

SUMMED: Final = (
    "arrived_messages",
    "delivered_messages",
    *LOSS_COLUMNS,
    "elided_messages",
    "evicted_messages",
    "redelivered_messages",
    "delivered_bytes",
    "length_messages",
    "unacknowledged_messages",
    "waiting_messages",
    "wait_sum_ns",
)
_DONE: Final = ("done_sum_ns", "done_max_ns", "unfinished_max_ns")
_NUMBERS: Final = (
    *SUMMED, "wait_max_ns", "high_water_mark_work_units", "max_depth_work_units", "first_discard_ns", "observed_ns",
    "done_messages", *_DONE,
)  # fmt: skip
"""Columns of the counters that are read, besides the histograms."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Summary figures of one queue of one repetition, over all clients that have it.

    Percentiles are those of the wait of delivered messages, read from the histogram: at most 0.8 % too high, None where
    nothing was delivered. `high_water_mark_work_units` and `max_depth_work_units` are maxima over the clients. `done_…`
    are times to the acknowledgment, where messages without one (`unfinished_messages`) are censored (`done_times.py`);
    None where no message is acknowledged. Fields from `time_to_master_ns` on are of clusters: None for other models and
    for a queue without replicas; `broken_rules` is that of the whole cluster. `time_without_master_ns` is the longest
    time until the next master was elected, None where none was needed. Fields from `duplicates` on are of brokers'
    queues (`eventlog.run_folder.WorkedQueue`).
    """

    queue: str
    clients: int
    arrived_messages: int
    delivered_messages: int
    discarded_messages: int
    not_connected_messages: int
    disconnected_messages: int
    spool_refused_messages: int
    ingress_refused_messages: int
    too_big_messages: int
    expired_messages: int
    dead_messages: int
    rejected_messages: int
    elided_messages: int
    evicted_messages: int
    redelivered_messages: int
    delivered_bytes: int
    length_messages: int
    unacknowledged_messages: int
    waiting_messages: int
    wait_sum_ns: int
    wait_max_ns: Nanoseconds
    high_water_mark_work_units: int
    max_depth_work_units: int
    first_discard_ns: Nanoseconds | None
    observed_ns: Nanoseconds
    wait_p50_ns: Nanoseconds | None
    wait_p90_ns: Nanoseconds | None
    wait_p99_ns: Nanoseconds | None
    wait_p999_ns: Nanoseconds | None
    done_messages: int | None = None
    unfinished_messages: int | None = None
    done_mean_ns: float | None = None
    done_p50_ns: Nanoseconds | None = None
    done_p90_ns: Nanoseconds | None = None
    done_p99_ns: Nanoseconds | None = None
    done_p999_ns: Nanoseconds | None = None
    done_max_ns: Nanoseconds | None = None
    time_to_master_ns: Nanoseconds | None = None
    time_without_master_ns: Nanoseconds | None = None
    refused_before_master: int | None = None
    elections: int | None = None
    broken_rules: int | None = None
    duplicates: int | None = None
    parallel_duplicates: int | None = None
    backlog_mean: float | None = None
    backlog_max: int | None = None
    ready_max: int | None = None
    oldest_ns: Nanoseconds | None = None
    drain_ns: Nanoseconds | None = None
    utilization: float | None = None
    within_objective: float | None = None
    requests: int | None = None
    worker_hours: float | None = None
    cost: float | None = None

    @property
    def wait_mean_ns(self) -> float | None:
        """The mean wait of the delivered messages."""
        return self.wait_sum_ns / self.delivered_messages if self.delivered_messages else None

    @property
    def lost_messages(self) -> int:
        """Messages that never reach their client, whatever the cause (`eventlog.outcomes.LOSSES`)."""
        return sum(getattr(self, name) for name in LOSS_COLUMNS)

    @property
    def loss_ratio(self) -> float:
        """Return the lost fraction of all lost, delivered and elided messages; 0 where there are none."""
        return float(loss_ratio(self.lost_messages, self.delivered_messages, self.elided_messages))

    @property
    def delivered_per_second(self) -> float:
        """Delivered messages per second, summed over all clients."""
        return self.delivered_messages * SECOND_NS / self.observed_ns if self.observed_ns else 0.0


def figures_of(
    counters: pa.Table,
    replicated: Sequence[ReplicatedQueue] = (),
    verdicts: Sequence[RuleVerdict] = (),
    worked: Sequence[WorkedQueue] = (),
) -> list[Figures]:
    """Return the figures of a repetition, in the order of its queues.

    Args:
        counters: a table of `eventlog.schema.COUNTERS`.
        replicated: the replicated queues of a cluster.
        verdicts: the verdicts on a cluster's rules.
        worked: the results of a broker's queue.
    """
    found = [_figures(*each) for each in _queues_of(counters)]
    if worked:
        by_name = {each.queue: each for each in worked}
        found = [_of_worked(each, by_name.get(each.queue)) for each in found]
    if not verdicts:
        return found
    broken = sum(each.violations > 0 for each in verdicts)
    masters = {each.queue: each for each in replicated}
    return [_of_cluster(each, masters.get(each.queue), broken) for each in found]


def _of_worked(figures: Figures, worked: WorkedQueue | None) -> Figures:
    if worked is None:
        return figures
    return replace(
        figures,
        duplicates=worked.duplicates,
        parallel_duplicates=worked.parallel_duplicates,
        backlog_mean=worked.backlog_mean,
        backlog_max=worked.backlog_max,
        ready_max=worked.ready_max,
        oldest_ns=worked.oldest_ns,
        drain_ns=worked.drain_ns,
        utilization=worked.utilization,
        within_objective=worked.within_objective,
        requests=worked.requests,
        worker_hours=worked.worker_ns / HOUR_NS,
        cost=worked.cost,
    )


def _of_cluster(figures: Figures, masters: ReplicatedQueue | None, broken_rules: int) -> Figures:
    if masters is None:
        return replace(figures, broken_rules=broken_rules)
    return replace(
        figures,
        time_to_master_ns=masters.first_master_ns,
        time_without_master_ns=masters.longest_without_master_ns or None,
        refused_before_master=masters.refused_before,
        elections=masters.elected,
        broken_rules=broken_rules,
    )


def _queues_of(counters: pa.Table) -> Iterator[tuple[str, dict[str, list[Any]], dict[int, int], DoneTimes | None]]:
    """Yield each queue, in order of the rows, with its columns of numbers, histogram of waits and times to done.

    Columns are read as arrays: converting each row's histogram to a list takes longer than a small simulation.
    """
    places: dict[str, list[int]] = {}
    for place, queue in enumerate(counters.column("queue").to_pylist()):
        places.setdefault(queue, []).append(place)
    numbers = {name: counters.column(name).to_pylist() for name in _NUMBERS}
    waits, done, unfinished = (
        _Histograms(counters, f"{name}_bucket", f"{name}_count") for name in ("histogram", "done", "unfinished")
    )
    for queue, rows in places.items():
        acknowledged = [row for row in rows if numbers["done_messages"][row] is not None]
        times = None
        if acknowledged:
            of = {name: [numbers[name][row] for row in acknowledged] for name in _DONE}
            times = DoneTimes(
                done.merged(acknowledged), unfinished.merged(acknowledged), sum(of["done_sum_ns"]),
                max(of["done_max_ns"]), max(of["unfinished_max_ns"]),
            )  # fmt: skip
        columns = {name: [numbers[name][row] for row in rows] for name in _NUMBERS}
        yield queue, columns, waits.merged(rows), times


class _Histograms:
    """The sparse histograms of a table, one for each row.

    Args:
        counters: the table.
        buckets, counts: the names of the two columns of lists.
    """

    def __init__(self, counters: pa.Table, buckets: str, counts: str) -> None:
        self._offsets, self._buckets = _flat(counters, buckets)
        self._counts = _flat(counters, counts)[1]

    def merged(self, rows: Sequence[int]) -> dict[int, int]:
        """Return the sum of the histograms of some rows, by bucket, ascending."""
        parts = [slice(self._offsets[row], self._offsets[row + 1]) for row in rows]
        bucket = np.concatenate([self._buckets[part] for part in parts])
        count = np.concatenate([self._counts[part] for part in parts])
        if not len(bucket):
            return {}
        total = np.zeros(int(bucket.max()) + 1, np.int64)
        np.add.at(total, bucket, count)
        used = np.flatnonzero(total)
        return dict(zip(used.tolist(), total[used].tolist(), strict=True))


def _flat(counters: pa.Table, name: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the offsets of each row's list (one more than the rows), and the elements of all lists in one array."""
    lists = counters.column(name).combine_chunks()
    return lists.offsets.to_numpy(), lists.values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)


def _figures(queue: str, columns: dict[str, list[Any]], histogram: dict[int, int], times: DoneTimes | None) -> Figures:
    longest = max(columns["wait_max_ns"], default=0)
    ranks = nearest_ranks(histogram, ((50, 100), (90, 100), (99, 100), (999, 1000)), longest)
    return Figures(
        queue=queue,
        clients=len(columns["wait_max_ns"]),
        **{name: sum(columns[name]) for name in SUMMED},
        wait_max_ns=longest,
        high_water_mark_work_units=max(columns["high_water_mark_work_units"]),
        max_depth_work_units=max(columns["max_depth_work_units"]),
        first_discard_ns=min((each for each in columns["first_discard_ns"] if each is not None), default=None),
        observed_ns=max(columns["observed_ns"]),
        wait_p50_ns=ranks[0],
        wait_p90_ns=ranks[1],
        wait_p99_ns=ranks[2],
        wait_p999_ns=ranks[3],
        **({} if times is None else times.figures()),
    )


def nearest_ranks(
    histogram: dict[int, int], fractions: Iterable[tuple[int, int]], longest_ns: Nanoseconds
) -> list[Nanoseconds | None]:
    """Return the duration at the nearest rank of each fraction (part, whole), given in ascending order.

    Each is the upper bound of its bucket, limited to the longest duration.
    """
    total = sum(histogram.values())
    if not total:
        return [None for _ in fractions]
    found: list[Nanoseconds | None] = []
    buckets = iter(sorted(histogram.items()))
    bucket, up_to = next(buckets)[0], 0
    up_to = histogram[bucket]
    for part, whole in fractions:
        rank = -(-total * part // whole)
        while up_to < rank:
            bucket, count = next(buckets)
            up_to += count
        found.append(min(bucket_bounds_ns(bucket)[1], longest_ns))
    return found
