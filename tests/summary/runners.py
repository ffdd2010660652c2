"""What simulates the tasks of a sizing in tests: the simulator in this process, or a law with a known answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from qsctl.instant import SECOND_NS
from qsctl.sim.figures import SUMMED, Figures
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.sweep import Task, run_task
from qsctl.summary.sweeps._pieces import DonePiece
from qsctl.summary.sweeps.runner import Give, Runner
from qsctl.summary.sweeps.sweep_folder import PointResult

Law = Callable[[Mapping[str, int], np.random.Generator], Mapping[str, int]]
"""From the settings, by path, and random numbers, which all settings of a repetition share, to figures by name."""

NO_MARK = 1 << 40
"""A content above every depth: a law shows nothing of another depth."""


class Here(Runner):
    """Runs tasks in this process."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario

    def run(self, tasks: Sequence[Task]) -> list[PointResult]:
        return [
            PointResult(task.point, task.replication, task.seed, tuple(run_task(self.scenario, task))) for task in tasks
        ]

    def ended(self, give: Give) -> Iterator[DonePiece]:
        while (piece := give()) is not None:
            yield DonePiece(piece, tuple(self.run(piece.tasks)), 0.0, is_warm=False)


class ByLaw(Here):
    """Draws the figures of D-1 from a law instead of simulating; counts the replications."""

    def __init__(self, scenario: Scenario, law: Law, arrivals: int = 1000) -> None:
        super().__init__(scenario)
        self.law, self.arrivals, self.count = law, arrivals, 0

    def run(self, tasks: Sequence[Task]) -> list[PointResult]:
        self.count += len(tasks)
        return [PointResult(task.point, task.replication, task.seed, (self._figures(task),)) for task in tasks]

    def _figures(self, task: Task) -> Figures:
        settings = {path: int(value) for path, value in task.point.values}
        drawn = dict(self.law(settings, np.random.default_rng([task.seed, task.replication])))
        arrived = drawn.setdefault("arrived_messages", self.arrivals)
        discarded = drawn.get("discarded_messages", 0)
        known = {
            **dict.fromkeys(SUMMED, 0),
            "delivered_messages": arrived - discarded,
            "wait_max_ns": drawn.get("wait_p99_ns", 0),
            "high_water_mark_work_units": NO_MARK,
            "max_depth_work_units": 0,
            "first_discard_ns": None,
            "wait_p50_ns": 0,
            "wait_p90_ns": 0,
            "wait_p99_ns": 0,
            "wait_p999_ns": 0,
        }
        return Figures(queue="D-1", clients=1, observed_ns=SECOND_NS, **{**known, **drawn})  # type: ignore[arg-type]
