"""The figures of a recording beside those of its replay: queue by queue, measure by measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from qsctl.eventlog.location import Location
from qsctl.eventlog.reader import counters_of
from qsctl.eventlog.run_folder import read_run_info
from qsctl.sim.figures import Figures, figures_of


@dataclass(frozen=True, slots=True)
class Measured:
    """One measure of one queue; None: there is no such value, as of a wait where nothing was delivered.

    `now` is the mean over the replications of the replay. `unit` is `messages` or `ns`.
    """

    queue: str
    measure: str
    unit: str
    then: float | None
    now: float | None


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
    ("longest wait", "ns", lambda figures: figures.wait_max_ns if figures.delivered_messages else None),
)


def then_and_now(recording: Location, replay: Location) -> list[Measured]:
    """Return every measure that is not 0 on both sides.

    Raises:
        NotFound: one of the folders is no run.
        Damaged: its counters are missing or were changed.
    """
    then = _of_replications(counters_of(recording, read_run_info(recording)))
    now = _of_replications(counters_of(replay, read_run_info(replay)))
    return list(_rows(then, now))


def _rows(then: dict[str, list[Figures]], now: dict[str, list[Figures]]) -> Iterator[Measured]:
    for queue in dict.fromkeys([*then, *now]):
        for name, unit, measure in _MEASURES:
            sides = [_mean([measure(each) for each in side.get(queue, ())]) for side in (then, now)]
            if any(sides):
                yield Measured(queue, name, unit, *sides)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _of_replications(counters: pa.Table) -> dict[str, list[Figures]]:
    """Return the figures of each queue, one for each replication."""
    found: dict[str, list[Figures]] = {}
    rows = counters.to_pylist()
    for replication in sorted({row["replication"] for row in rows}):
        part = pa.Table.from_pylist([row for row in rows if row["replication"] == replication], counters.schema)
        for each in figures_of(part):
            found.setdefault(each.queue, []).append(each)
    return found
