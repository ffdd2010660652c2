"""The figures of a recording beside those of its replay, by queue and measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from qsctl.eventlog.location import Location
from qsctl.eventlog.outcomes import Outcome
from qsctl.eventlog.reader import batches_of, counters_of
from qsctl.eventlog.run_folder import RunInfo, read_run_info
from qsctl.eventlog.schema import LogLevel
from qsctl.sim.done_times import DoneTimes
from qsctl.sim.figures import Figures, figures_of


@dataclass(frozen=True, slots=True)
class Measured:
    """One measure of one queue; a value is None where it does not exist, such as a wait without a delivery.

    `now` is that of the first repetition, which has the recorded load; `low` and `high` are the ends of the central 95
    % of the other repetitions, whose loads are drawn from the recording (`resampled.py`), None without these. `unit` is
    `messages` or `ns`.
    """

    queue: str
    measure: str
    unit: str
    then: float | None
    now: float | None
    low: float | None = None
    high: float | None = None


_NOT_LOST: Final = frozenset({Outcome.DELIVERED.value, Outcome.HELD.value, Outcome.WAITING.value})
_MEASURES: Final[tuple[tuple[str, str, Callable[[Figures], float | None]], ...]] = (
    ("arrived", "messages", lambda figures: figures.arrived_messages),
    ("delivered", "messages", lambda figures: figures.delivered_messages),
    ("discarded", "messages", lambda figures: figures.discarded_messages),
    ("expired", "messages", lambda figures: figures.expired_messages),
    ("dead", "messages", lambda figures: figures.dead_messages),
    ("redelivered", "messages", lambda figures: figures.redelivered_messages),
    ("still there", "messages", lambda figures: figures.length_messages + figures.waiting_messages),
    ("longest queue", "work units", lambda figures: figures.high_water_mark_work_units),
    ("wait p50", "ns", lambda figures: figures.wait_p50_ns),
    ("wait p99", "ns", lambda figures: figures.wait_p99_ns),
    ("wait p99.9", "ns", lambda figures: figures.wait_p999_ns),
    ("done p50", "ns", lambda figures: figures.done_p50_ns),
    ("done p99", "ns", lambda figures: figures.done_p99_ns),
    ("longest wait", "ns", lambda figures: figures.wait_max_ns if figures.delivered_messages else None),
)


def then_and_now(recording: Location, replay: Location) -> list[Measured]:
    """Return every measure that is not 0 on both sides.

    Raises:
        NotFound: one of the folders is not a run.
        Damaged: its counters are missing or were changed.
    """
    info = read_run_info(recording)
    then = _of_replications(counters_of(recording, info))
    if any(each.done_messages is None for rows in then.values() for each in rows):
        then = _with_times_to_done(then, recording, info)
    now = _of_replications(counters_of(replay, read_run_info(replay)))
    return list(_rows(then, now))


def _with_times_to_done(then: dict[str, list[Figures]], recording: Location, info: RunInfo) -> dict[str, list[Figures]]:
    """Return the figures with times to acknowledgment from the messages: earlier versions did not count them."""
    if info.log_level == LogLevel.COUNTERS:
        return then
    times: dict[str, DoneTimes] = {}
    for batch in batches_of(recording, info, "messages", ("queue", "enqueued_ns", "acknowledge_ns", "outcome")):
        for row in batch.to_pylist():
            if row["outcome"] in _NOT_LOST:
                of_queue = times.setdefault(row["queue"], DoneTimes())
                of_queue.note(row["acknowledge_ns"], info.horizon_ns - row["enqueued_ns"])
    return {
        queue: [replace(each, **(times[queue].figures() if queue in times else {})) for each in rows]
        for queue, rows in then.items()
    }


def _rows(then: dict[str, list[Figures]], now: dict[str, list[Figures]]) -> Iterator[Measured]:
    for queue in dict.fromkeys([*then, *now]):
        for name, unit, measure in _MEASURES:
            values = [[measure(each) for each in side.get(queue, ())] for side in (then, now)]
            first = [side[0] if side else None for side in values]
            if any(first):
                low, high = _central(values[1][1:])
                yield Measured(queue, name, unit, first[0], first[1], low, high)


_LEFT_OUT: Final = 0.025
"""Of the resamples, on either side."""


def _central(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """Return the ends of the central 95 % of values."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return None, None
    beyond = int(_LEFT_OUT * len(known))
    return known[beyond], known[-1 - beyond]


def _of_replications(counters: pa.Table) -> dict[str, list[Figures]]:
    """Return the figures of each queue, one for each repetition."""
    found: dict[str, list[Figures]] = {}
    rows = counters.to_pylist()
    for replication in sorted({row["replication"] for row in rows}):
        part = pa.Table.from_pylist([row for row in rows if row["replication"] == replication], counters.schema)
        for each in figures_of(part):
            found.setdefault(each.queue, []).append(each)
    return found
