"""The estimated cost of a `size` or a `sweep` before it begins: the number of replications, and their duration.

A replication is timed on the runner that will run the others, after one for warming up, which starts Spark's workers
and compiles kernels. The number of a sweep's replications is known; that of a search is estimated from the candidates
that it tries, of which about half are simulated until their targets are shown and half are abandoned early.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qsctl.sim.sizing.targets import VariedSetting
from qsctl.sim.sweep import Task
from qsctl.summary.inference.sequential import EARLIEST_REFUSAL
from qsctl.summary.sweeps.runner import Runner

ASKED_ABOVE_S: Final = 60.0
"""Estimated duration in seconds above which the user is asked for consent on a terminal."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The estimated number of replications, and their duration here in seconds."""

    replications: int
    seconds: float

    def __str__(self) -> str:
        if self.seconds < 2 * ASKED_ABOVE_S:
            return f"about {self.replications} replications, {max(1, round(self.seconds))} s"
        return f"about {self.replications} replications, {round(self.seconds / 60)} minutes"


def seconds_of(tasks: Sequence[Task], runner: Runner) -> float:
    """Run tasks and return the mean duration of a replication in seconds: elapsed time divided by their number."""
    began = time.monotonic()
    runner.run(tasks)
    return (time.monotonic() - began) / len(tasks)


def candidates_of(settings: Sequence[VariedSetting], values: Sequence[Sequence[int]] | None) -> int:
    """Return the estimated number of candidates that a search tries.

    Args:
        settings: the varied settings.
        values: for a scan or a list, the combined values of each setting; None if the search bisects ranges.
    """
    if values is not None:
        return math.prod(len(each) for each in values)
    return 2 + sum(math.ceil(math.log2(max(2, setting.high - setting.low + 1))) for setting in settings)


def cost_of_search(candidates: int, needed: int, seconds: float, *, shown_by_highest: bool = False) -> Cost:
    """Return the cost of a search.

    Args:
        candidates: result of `candidates_of`.
        needed: number of replications that show the targets of a candidate.
        seconds: duration of a replication.
        shown_by_highest: whether results of other candidates follow from those of the highest settings
            (`_known_results.py`).
    """
    early = min(needed, EARLIEST_REFUSAL)
    if shown_by_highest:
        replications = needed + math.ceil((candidates - 1) * early / 2)
    else:
        replications = math.ceil(candidates * (needed + early) / 2)
    return Cost(replications, replications * seconds)
