"""The result of a summary as dataclasses, which the commands print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from qsctl.eventlog.outcomes import LOSS_COLUMNS, loss_ratio
from qsctl.eventlog.run_folder import Happening, QueueWorker, ReplicatedQueue, RuleVerdict, WorkedQueue
from qsctl.instant import SECOND_NS, Nanoseconds

Rows = Sequence[Mapping[str, Any]]

COUNTS: Final[tuple[str, ...]] = (
    "arrived_messages",
    "delivered_messages",
    *LOSS_COLUMNS,
    "elided_messages",
    "evicted_messages",
    "redelivered_messages",
    "discard_indications",
    "delivered_bytes",
    "length_messages",
    "length_work_units",
    "unacknowledged_messages",
    "waiting_messages",
    "wait_sum_ns",
)
"""Figures that are summed over replications, clients and queues."""


NOTHING_OBSERVED: Final = "No message was observed after the warm-up, so the run does not show whether any is lost."
"""The sentence about losses if no queue has a message."""


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """The figures of one group after the warm-up; with the default grouping, of one client's queue.

    A key that is not grouped by is None. Counts are sums over the replications, marks and maxima the largest values,
    `first_discard_ns` the earliest. Percentiles are of the wait of delivered messages, None if none was delivered; they
    are exact if `percentile_error` is 0, else at most that fraction too high. `done_…` are of the time to the
    acknowledgment, with `unfinished_messages` censored (`sim.done_times`); None if messages are not acknowledged.
    """

    run_id: str | None
    replication: int | None
    client: str | None
    queue: str | None
    topic_id: int | None
    replications: int
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
    discard_indications: int
    delivered_bytes: int
    length_messages: int
    length_work_units: int
    unacknowledged_messages: int
    waiting_messages: int
    high_water_mark_work_units: int | None
    max_depth_work_units: int | None
    first_discard_ns: Nanoseconds | None
    wait_sum_ns: Nanoseconds
    wait_max_ns: Nanoseconds | None
    observed_ns: Nanoseconds
    wait_p50_ns: Nanoseconds | None = None
    wait_p90_ns: Nanoseconds | None = None
    wait_p95_ns: Nanoseconds | None = None
    wait_p99_ns: Nanoseconds | None = None
    wait_p999_ns: Nanoseconds | None = None
    percentile_error: float = 0.0
    done_messages: int | None = None
    unfinished_messages: int | None = None
    done_mean_ns: float | None = None
    done_p50_ns: Nanoseconds | None = None
    done_p90_ns: Nanoseconds | None = None
    done_p95_ns: Nanoseconds | None = None
    done_p99_ns: Nanoseconds | None = None
    done_p999_ns: Nanoseconds | None = None
    done_max_ns: Nanoseconds | None = None

    @property
    def wait_mean_ns(self) -> float | None:
        """The mean wait of the delivered messages."""
        return self.wait_sum_ns / self.delivered_messages if self.delivered_messages else None

    @property
    def has_messages(self) -> bool:
        """Return whether a message was observed: it arrived, left or waited after the warm-up."""
        seen = (self.arrived_messages, self.delivered_messages, self.elided_messages, self.lost_messages)
        return any((*seen, self.length_messages, self.waiting_messages))

    @property
    def lost_messages(self) -> int:
        """Messages that never reach their client, for any cause (`eventlog.outcomes.LOSSES`)."""
        return sum(getattr(self, name) for name in LOSS_COLUMNS)

    @property
    def loss_ratio(self) -> float:
        """Return the ratio of lost messages to lost, delivered and elided messages; 0 without any."""
        return float(loss_ratio(self.lost_messages, self.delivered_messages, self.elided_messages))

    @property
    def delivered_per_second(self) -> float:
        """Delivered messages per second of observed time."""
        return self.delivered_messages * SECOND_NS / self.observed_ns if self.observed_ns else 0.0


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The facts of a summarized run; `run_id` is its name in the tables."""

    run_id: str
    folder: str
    scenario: str
    seed: int
    complete: bool
    level: str
    warm_up_ns: Nanoseconds
    horizon_ns: Nanoseconds
    replications: int


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The summary of one or more runs.

    `queues` has a row for each group, ordered by key. The other tables have the rows of `tables.SCHEMAS` by name; a
    table that was not requested, or that the log's level does not allow, is absent, and `notes` has the reason. For
    several runs `level`, `warm_up_ns` and `horizon_ns` are those of the first; `facts` has those of each run.
    """

    runs: tuple[str, ...]
    by: tuple[str, ...]
    complete: bool
    level: str
    warm_up_ns: Nanoseconds
    horizon_ns: Nanoseconds
    replications: int
    window_ns: Nanoseconds
    queues: tuple[QueueFigures, ...]
    tables: Mapping[str, Rows] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    facts: tuple[RunFacts, ...] = ()
    happenings: tuple[Happening, ...] = ()
    """Events of all runs and replications by kind, at any level of the log."""
    replicated_queues: tuple[ReplicatedQueue, ...] = ()
    """For simulated clusters: counts over all runs and replications, and the longest times."""
    verdicts: tuple[RuleVerdict, ...] = ()
    """For simulated clusters: the checked rules, over all runs and replications."""
    worked_queues: tuple[WorkedQueue, ...] = ()
    """For simulated brokers' queues: their figures over all runs and replications."""
    workers: tuple[QueueWorker, ...] = ()
    """For simulated brokers' queues: their consumers."""


def queue_figures(queues: Rows, delays: Rows, dones: Rows = ()) -> tuple[QueueFigures, ...]:
    """Return rows of `QUEUES` with their percentiles from `DELAYS` and the figures of `TIMES_TO_DONE`."""
    keys = _KEYS
    waits = {tuple(row[key] for key in keys): row for row in delays}
    times = {tuple(row[key] for key in keys): row for row in dones}
    figures = []
    for row in queues:
        wait = waits.get(tuple(row[key] for key in keys))
        percentiles: dict[str, Any] = {}
        if wait is not None:
            percentiles = {f"wait_p{rank}_ns": wait[f"p{rank}_ns"] for rank in ("50", "90", "95", "99", "999")}
            percentiles["percentile_error"] = wait["relative_error"]
        time = times.get(tuple(row[key] for key in keys))
        if time is not None:
            percentiles |= {name: time[name] for name in ("done_messages", "unfinished_messages")}
            percentiles |= {f"done_{name}_ns": time[f"{name}_ns"] for name in _OF_DONE}
        figures.append(QueueFigures(**{**row, **percentiles}))
    return tuple(sorted(figures, key=lambda each: _order({key: getattr(each, key) for key in keys})))


def in_order(rows: Rows) -> list[dict[str, Any]]:
    """Return a table's rows sorted by key, then by the other columns, since Spark returns them in any order.

    Args:
        rows: rows of one table, each with the same columns in the same order.
    """

    def columns(row: Mapping[str, Any]) -> dict[str, Any]:
        return {**{key: row[key] for key in _KEYS if key in row}, **row}

    return sorted((dict(row) for row in rows), key=lambda row: _order(columns(row)))


_KEYS: Final = ("run_id", "replication", "client", "queue", "topic_id")
_OF_DONE: Final = ("mean", "p50", "p90", "p95", "p99", "p999", "max")
QUEUE_ORDER = ("G-1", "D-1", "D-2", "D-3", "C-1")
"""The order of egress queues, from the lowest to the highest priority, as in the broker's listings [SOL-QUEUES]."""


def _order(columns: Mapping[str, Any]) -> tuple[tuple[bool, int, Any], ...]:
    """Return the sort key of a row: null before values, egress queues by priority, other columns by value."""

    def place(key: str, value: Any) -> tuple[bool, int, Any]:
        if key == "queue" and value in QUEUE_ORDER:
            return (True, QUEUE_ORDER.index(value), "")
        return (value is not None, len(QUEUE_ORDER), "" if value is None else value)

    return tuple(place(key, value) for key, value in columns.items())
