"""The simulator's own counters as the figures that Spark computes from the log: summed by client, group or queue.

Histograms with equal buckets can be added exactly, so that percentiles of a group are those of all its waits, to within
the width of a bucket.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from qsctl.sim.done_times import PERCENTILES, DoneTimes
from qsctl.sim.figures import nearest_ranks
from qsctl.summary.run_summary import COUNTS, QUEUE_ORDER, QueueFigures

if TYPE_CHECKING:
    import pyarrow as pa

    from qsctl.sim.scenario.scenario import Scenario

PERCENTILE_ERROR: Final = 2.0**-7
"""Relative width of a histogram's bucket: its width divided by its lower bound."""


@dataclasses.dataclass
class _Sum:
    """The sum of the rows of one group."""

    totals: dict[str, int] = dataclasses.field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    replications: set[int] = dataclasses.field(default_factory=set)
    observed_ns: dict[int, int] = dataclasses.field(default_factory=dict)
    high_water_mark: int = 0
    max_depth: int = 0
    first_discard_ns: int | None = None
    wait_max_ns: int | None = None
    histogram: dict[int, int] = dataclasses.field(default_factory=dict)
    done: DoneTimes | None = None

    def add(self, row: Mapping[str, Any]) -> None:
        """Add the counters of one client's queue in one replication."""
        for name in COUNTS:
            self.totals[name] += row[name]
        self.replications.add(row["replication"])
        self.observed_ns[row["replication"]] = row["observed_ns"]
        self.high_water_mark = max(self.high_water_mark, row["high_water_mark_work_units"])
        self.max_depth = max(self.max_depth, row["max_depth_work_units"])
        first = row["first_discard_ns"]
        if first is not None and (self.first_discard_ns is None or first < self.first_discard_ns):
            self.first_discard_ns = first
        if row["delivered_messages"]:
            self.wait_max_ns = max(self.wait_max_ns or 0, row["wait_max_ns"])
        for bucket, count in zip(row["histogram_bucket"], row["histogram_count"], strict=True):
            self.histogram[bucket] = self.histogram.get(bucket, 0) + count
        if row["done_messages"] is not None:
            self.done = self.done or DoneTimes()
            self.done.add(row)

    def figures(self, client: str | None, queue: str) -> QueueFigures:
        """Return the sums as figures."""
        ranks = nearest_ranks(self.histogram, PERCENTILES.values(), self.wait_max_ns or 0)
        percentiles: dict[str, Any] = {f"wait_{name}_ns": rank for name, rank in zip(PERCENTILES, ranks, strict=True)}
        return QueueFigures(
            run_id=None,
            replication=None,
            client=client,
            queue=queue,
            topic_id=None,
            replications=len(self.replications),
            **{name: self.totals[name] for name in COUNTS},
            high_water_mark_work_units=self.high_water_mark,
            max_depth_work_units=self.max_depth,
            first_discard_ns=self.first_discard_ns,
            wait_max_ns=self.wait_max_ns,
            observed_ns=sum(self.observed_ns.values()),
            **percentiles,
            percentile_error=PERCENTILE_ERROR,
            **self._done(),
        )

    def _done(self) -> dict[str, Any]:
        if self.done is None:
            return {}
        return {
            "done_messages": self.done.done_messages,
            "unfinished_messages": self.done.unfinished_messages,
            "done_mean_ns": self.done.mean_ns(),
            **{f"done_{name}_ns": self.done.percentile(*part) for name, part in PERCENTILES.items()},
            "done_max_ns": self.done.max_ns,
        }


def figures_of_counters(counters: pa.Table, place: Callable[[int, str], str | None]) -> tuple[QueueFigures, ...]:
    """Return the figures by place and queue.

    Args:
        counters: rows of `eventlog.schema.COUNTERS` with a column `replication`.
        place: returns, from a client's number and name, the name that its rows are summed under; None to sum all
            clients.
    """
    sums: dict[tuple[str | None, str], _Sum] = {}
    order: dict[str | None, int] = {}
    for batch in counters.to_batches(max_chunksize=4096):
        for row in batch.to_pylist():
            client = place(row["client_id"], row["client"])
            order.setdefault(client, row["client_id"])
            sums.setdefault((client, row["queue"]), _Sum()).add(row)

    def rank(key: tuple[str | None, str]) -> tuple[int, int, str]:
        client, queue = key
        return (order[client], QUEUE_ORDER.index(queue) if queue in QUEUE_ORDER else len(QUEUE_ORDER), queue)

    return tuple(sums[key].figures(*key) for key in sorted(sums, key=rank))


def group_of(scenario: Scenario) -> Callable[[int, str], str]:
    """Return a function from a client's number and name to its group's name, or to its own without a group."""
    bounds: list[tuple[int, str]] = []
    first = 0
    for group in scenario.groups:
        first += group.count
        bounds.append((first, group.name))

    def name(number: int, client: str) -> str:
        return next((group for end, group in bounds if number < end), client)

    return name


def client_count(scenario: Scenario) -> int:
    """Return the number of clients (of an integration engine, threads); a simulated service counts as one."""
    if scenario.engine is not None:
        return sum(len(process.threads) + 1 for process in scenario.engine.processes)
    return sum(group.count for group in scenario.groups) or 1
