"""Run a sweep on Spark: tasks go out, small figures come back, each finished batch is written at once.

Decides: how many tasks a batch has. Results depend on the plan alone: a task's seed comes with it, so that placement,
retries and speculation change nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qsctl.errors import InvalidInput, QsctlError
from qsctl.sim.figures import Figures
from qsctl.sim.scenario import Scenario
from qsctl.sim.sweep import SweepPlan, Task, run_task
from qsctl.summary.faults import spark_faults
from qsctl.summary.session import SparkOptions, spark_session
from qsctl.summary.sweep_folder import PointResult, finished, open_sweep, read_results, write_results

if TYPE_CHECKING:
    from pyspark import SparkContext

BATCH_SECONDS: Final = 5.0
"""A batch is made to last about this long: what a killed driver loses, and how often progress is told."""

TASKS_A_SLOT: Final = 4
"""Tasks of Spark a processor and batch: enough to even out long and short replications."""


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """How far a sweep is: replications done, of how many, and how many were there before."""

    done: int
    total: int
    reused: int


def run_sweep(
    plan: SweepPlan,
    folder: Path,
    options: SparkOptions | None = None,
    progress: Callable[[SweepProgress], None] | None = None,
) -> list[PointResult]:
    """Do what is not done yet of a sweep.

    Args:
        plan: checked by `plan_sweep`.
        folder: where results are kept; an earlier part of the same sweep is taken over.
        options: where Spark runs.
        progress: called after every batch.

    Returns:
        The results of the plan's points: those that were there and those computed now.

    Raises:
        InvalidInput: the folder holds another sweep, or a point cannot be simulated.
    """
    open_sweep(folder, plan)
    there = read_results(folder)
    done = finished(there)
    tasks = list(plan.tasks())
    left = [task for task in tasks if (task.point.key, task.replication) not in done]
    reused = len(tasks) - len(left)
    told = progress or (lambda _: None)
    told(SweepProgress(reused, len(tasks), reused))
    if left:
        runner = TaskRunner(plan.scenario, options)
        count = reused
        for results in runner.batches(left):
            write_results(folder, results)
            count += len(results)
            told(SweepProgress(count, len(tasks), reused))
        there = read_results(folder)
    wanted = {(task.point.key, task.replication): place for place, task in enumerate(tasks)}
    found = [result for result in there if (result.point.key, result.replication) in wanted]
    return sorted(found, key=lambda result: wanted[result.point.key, result.replication])


class TaskRunner:
    """Runs tasks of one scenario on Spark; the scenario travels once."""

    def __init__(self, scenario: Scenario, options: SparkOptions | None = None) -> None:
        with spark_faults():
            self._context: SparkContext = spark_session(options).sparkContext
            self._scenario = self._context.broadcast(scenario)
            self.slots: int = self._context.defaultParallelism

    def batches(self, tasks: Sequence[Task]) -> Iterable[list[PointResult]]:
        """Results of the tasks, batch by batch, in their order; a batch's size follows the speed."""
        size = self.slots * TASKS_A_SLOT
        at = 0
        while at < len(tasks):
            batch = tasks[at : at + size]
            began = time.monotonic()
            yield self.run(batch)
            at += len(batch)
            lasted = max(time.monotonic() - began, 0.01)
            size = max(self.slots, min(2 * size, int(size * BATCH_SECONDS / lasted)))

    def run(self, tasks: Sequence[Task]) -> list[PointResult]:
        """Results of the tasks, in their order.

        Raises:
            InvalidInput: a task's scenario cannot be simulated; the message names the point.
        """
        scenario = self._scenario
        slices = min(len(tasks), self.slots * TASKS_A_SLOT)
        with spark_faults():
            numbered = self._context.parallelize(list(enumerate(tasks)), slices)
            answers = numbered.map(lambda each: (each[0], _attempt(scenario.value, each[1]))).collect()
        results = []
        for number, answer in sorted(answers):
            task = tasks[number]
            if isinstance(answer, str):
                raise InvalidInput(f"{task.point}: {answer}")
            results.append(PointResult(task.point, task.replication, task.seed, tuple(answer)))
        return results


def _attempt(scenario: Scenario, task: Task) -> list[Figures] | str:
    """The figures, or the message of what is wrong with the scenario: Spark would try that again in vain."""
    try:
        return run_task(scenario, task)
    except QsctlError as error:
        return error.message
