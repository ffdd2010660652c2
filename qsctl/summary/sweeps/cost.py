"""The cost of a `size` or a `sweep`, before it begins: replications, and their duration here.

A replication is timed where the others will run, after one that warms up: Spark's workers start and kernels are
compiled once. The number of a sweep's is known; that of a search is the candidates that it tries, of which about half
are simulated until their targets are shown and half are abandoned early.
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
"""Seconds above which a user is asked on a terminal."""


@dataclass(frozen=True, slots=True)
class Cost:
    """About how many replications there will be, and for how many seconds they run here."""

    replications: int
    seconds: float

    def __str__(self) -> str:
        if self.seconds < 2 * ASKED_ABOVE_S:
            return f"about {self.replications} replications, {max(1, round(self.seconds))} s"
        return f"about {self.replications} replications, {round(self.seconds / 60)} minutes"


def seconds_of(tasks: Sequence[Task], runner: Runner) -> float:
    """Return how many seconds a replication takes on average, where these run together."""
    began = time.monotonic()
    runner.run(tasks)
    return (time.monotonic() - began) / len(tasks)


def candidates_of(settings: Sequence[VariedSetting], values: Sequence[Sequence[int]] | None) -> int:
    """Return about how many candidates a search looks at.

    Args:
        settings: what is varied.
        values: of a scan or a list, those of each setting that are combined; None where the search halves ranges.
    """
    if values is not None:
        return math.prod(len(each) for each in values)
    return 2 + sum(math.ceil(math.log2(max(2, setting.high - setting.low + 1))) for setting in settings)


def cost_of_search(candidates: int, needed: int, seconds: float, *, shown_by_highest: bool = False) -> Cost:
    """Return the cost of a search.

    Args:
        candidates: of `candidates_of`.
        needed: replications that show the targets of a candidate.
        seconds: of a replication.
        shown_by_highest: whether the highest settings' runs show those of others that meet (`known_results.py`).
    """
    early = min(needed, EARLIEST_REFUSAL)
    if shown_by_highest:
        replications = needed + math.ceil((candidates - 1) * early / 2)
    else:
        replications = math.ceil(candidates * (needed + early) / 2)
    return Cost(replications, replications * seconds)
