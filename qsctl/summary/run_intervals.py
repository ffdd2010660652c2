"""Intervals of the waits of a run: over its replications, or within one, with what of it is start-up.

In: a run folder and its counters. Out: `RunInterval`, one a queue and measure. `steady.py` has the method of one run,
`statistics.py` that of several.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from qsctl.eventlog.location import Location
from qsctl.sim.figures import figures_of
from qsctl.summary.one_run import messages_of
from qsctl.summary.points import MEASURES
from qsctl.summary.statistics import Interval, interval_of
from qsctl.summary.steady import is_short, mean_of_run, percentile_of_run, start_up

if TYPE_CHECKING:
    import pyarrow as pa

_PARTS: Final = {"latency_mean": None, "latency_p50": 0.5, "latency_p90": 0.9, "latency_p99": 0.99}


@dataclass(frozen=True, slots=True)
class RunInterval:
    """The interval of a measure of a queue, and what it rests on.

    `messages` of one run, of which `left_out_messages` are its start-up; 0 of several. `warning` is empty where nothing
    speaks against the interval.
    """

    queue: str
    measure: str
    interval: Interval
    messages: int
    left_out_messages: int
    warning: str


def run_intervals(folder: Location, counters: pa.Table, confidence: float) -> tuple[RunInterval, ...]:
    """Return the intervals of the waits of each queue; none where one run did not log its messages."""
    numbers = sorted(set(counters["replication"].to_pylist()))
    if len(numbers) == 1:
        return tuple(_within(folder, confidence))
    rows = [figures_of(counters.filter(pc.equal(counters["replication"], number))) for number in numbers]
    found = []
    for queue in dict.fromkeys(figures.queue for row in rows for figures in row):
        for name in _PARTS:
            mine = [MEASURES[name](figures) for row in rows for figures in row if figures.queue == queue]
            values = [value for value in mine if value is not None]
            if values:
                found.append(RunInterval(queue, name, interval_of(values, confidence), 0, 0, ""))
    return tuple(found)


def _within(folder: Location, confidence: float) -> list[RunInterval]:
    found = []
    for queue, messages in messages_of(folder).items():
        waits = messages.wait_ns[messages.wait_ns >= 0]
        if not len(waits):
            continue
        start = start_up(waits)
        rest = waits[start.left_out :]
        warning = ""
        if start.spoils:
            warning = f"the first {100 * start.left_out / start.count:.0f} % are start-up" + (
                ", or the waits drift to the end" if start.drifts else ""
            )
        elif is_short(rest):
            warning = "the run is too short for an interval: its waits depend on each other for too long"
        for name, part in _PARTS.items():
            interval = mean_of_run(rest, confidence) if part is None else percentile_of_run(rest, part, confidence)
            found.append(RunInterval(queue, name, interval, start.count, start.left_out, warning))
    return found
