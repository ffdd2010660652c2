"""Confidence intervals of a run's times in the queue and times to done, over replications or within a single run.

In: a run folder and its counters. Out: a `RunInterval` for each queue and measure. `_steady.py` has the method for a
single run, which excludes its start-up; `statistics.py` has that for several replications.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from qsctl.eventlog.location import Location
from qsctl.sim.figures import figures_of
from qsctl.summary.comparison.one_run import messages_of
from qsctl.summary.inference._steady import fewest_values, mean_of_run, percentile_of_run, start_up
from qsctl.summary.inference.statistics import Interval, interval_of
from qsctl.summary.sweeps.points import MEASURES

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_FIGURES: Final = {"mean": None, "p50": 0.5, "p90": 0.9, "p99": 0.99}
_IN_QUEUE: Final = "time_in_queue"
_TO_DONE: Final = "time_to_done"
UNFINISHED: Final = 0.001
"""Largest fraction of unfinished messages without a warning."""


@dataclass(frozen=True, slots=True)
class RunInterval:
    """The interval of a measure of a queue, and the data on which it is based.

    For a single run, `messages` is its number of messages, of which `left_out_messages` are its start-up; both are 0
    for several replications. `warning` is empty if the interval is reliable.
    """

    queue: str
    measure: str
    interval: Interval
    messages: int
    left_out_messages: int
    warning: str


def run_intervals(folder: Location, counters: pa.Table, confidence: float) -> tuple[RunInterval, ...]:
    """Return the intervals of the times of each queue; empty for a single run without a message log."""
    numbers = sorted(set(counters["replication"].to_pylist()))
    if len(numbers) == 1:
        return tuple(_within(folder, counters, confidence))
    rows = [figures_of(counters.filter(pc.equal(counters["replication"], number))) for number in numbers]
    found = []
    for queue in dict.fromkeys(figures.queue for row in rows for figures in row):
        for name in (f"{time}_{figure}" for time in (_IN_QUEUE, _TO_DONE) for figure in _FIGURES):
            mine = [MEASURES[name](figures) for row in rows for figures in row if figures.queue == queue]
            values = [value for value in mine if value is not None]
            if values:
                found.append(RunInterval(queue, name, interval_of(values, confidence), 0, 0, ""))
    return tuple(found)


def _within(folder: Location, counters: pa.Table, confidence: float) -> list[RunInterval]:
    acknowledged = {figures.queue: figures.unfinished_messages for figures in figures_of(counters)}
    found = []
    for queue, messages in messages_of(folder).items():
        found += _of_one_run(queue, _IN_QUEUE, messages.wait_ns[messages.wait_ns >= 0], confidence, 0)
        unfinished = acknowledged.get(queue)
        if unfinished is not None:
            found += _of_one_run(queue, _TO_DONE, messages.done_ns[messages.done_ns >= 0], confidence, unfinished)
    return found


def _of_one_run(queue: str, time: str, values: np.ndarray, confidence: float, unfinished: int) -> list[RunInterval]:
    """Return the intervals of one time of a queue, from its messages in the order of arrival."""
    if not len(values):
        return []
    start = start_up(values)
    rest = values[start.left_out :]
    warning = ""
    if start.spoils:
        warning = f"the first {100 * start.left_out / start.count:.0f} % are start-up" + (
            ", or the times drift to the end" if start.drifts else ""
        )
    elif len(rest) < (fewest := fewest_values(rest)):
        warning = (
            f"the run is too short for an interval: messages depend on each other for so long that {fewest} are "
            f"needed, and there are {len(rest)}"
        )
    elif unfinished > UNFINISHED * len(values):
        warning = f"{unfinished} messages are unfinished when the run ends: their times to done are not in the interval"
    intervals = {
        name: mean_of_run(rest, confidence) if part is None else percentile_of_run(rest, part, confidence)
        for name, part in _FIGURES.items()
    }
    return [
        RunInterval(queue, f"{time}_{name}", interval, start.count, start.left_out, warning)
        for name, interval in intervals.items()
    ]
