"""Run a sweep: one stream of pieces, whose results the workers write to the sweep's folder as they come.

Results depend on the plan alone: a task's seed comes with it, so that placement, retries and speculation change
nothing. While the sweep runs, this process has the tasks and counts them; it reads the results at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qsctl.errors import Damaged
from qsctl.eventlog.location import Location
from qsctl.sim.sweep import SweepPlan
from qsctl.summary.folder_lock import locked_folder
from qsctl.summary.spark.session import SparkOptions
from qsctl.summary.sweeps.cost import Cost
from qsctl.summary.sweeps.pieces import part_place
from qsctl.summary.sweeps.runner import Runner, SweepTasks
from qsctl.summary.sweeps.spark_runner import SparkRunner
from qsctl.summary.sweeps.sweep_folder import (
    PointResult,
    finished,
    list_parts,
    open_sweep,
    read_results,
    refuse_foreign_folder,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """The progress of a sweep: replications done, their total, and those that existed before."""

    done: int
    total: int
    reused: int


def run_sweep(
    plan: SweepPlan,
    folder: Location,
    options: SparkOptions | None = None,
    progress: Callable[[SweepProgress], None] | None = None,
    *,
    spark: SparkSession | None = None,
    runner: Runner | None = None,
    agree: Callable[[Cost], None] | None = None,
) -> list[PointResult]:
    """Do what is not done yet of a sweep.

    Args:
        plan: checked by `plan_sweep`.
        folder: where results are kept; an earlier part of the same sweep is kept.
        options: where Spark runs.
        progress: called whenever replications are done.
        spark: a session of the caller's own instead of one by `options`: of a notebook, or of `spark-submit`.
        runner: what simulates instead of Spark.
        agree: called once with the estimated cost of the rest, when the first replications were timed; other workers
            go on meanwhile. What it raises ends the sweep, and what is done is kept.

    Returns:
        The results of the plan's points: those that were there and those computed now.

    Raises:
        InvalidInput: the folder holds another sweep, is being written by another command or cannot be written, or a
            point cannot be simulated.
        NotFound: a trace or a recording that a point names does not exist.
        Damaged: a file of the folder was changed or is missing.
    """
    refuse_foreign_folder(folder)  # before a lock file is left in it
    tasks = list(plan.tasks())
    report = progress or (lambda _: None)
    with locked_folder(folder) as folder:
        open_sweep(folder, plan)
        there = read_results(folder)
        done = finished(there)
        left = [task for task in tasks if (task.point.key, task.replication) not in done]
        reused = len(tasks) - len(left)
        report(SweepProgress(reused, len(tasks), reused))
        if left:
            there.clear()
            runner = runner or SparkRunner(plan.scenario, options, spark=spark, variants=plan.variants())
            count, is_asked = reused, agree is None
            try:
                with part_place(folder) as place:
                    stream = SweepTasks(left, place, lambda: runner.slots)
                    for each in runner.ended(stream.give):
                        stream.time.note(each)
                        count += len(each.piece.tasks)
                        report(SweepProgress(count, len(tasks), reused))
                        if agree is not None and not is_asked and stream.time.mean_s is not None and count < len(tasks):
                            is_asked = True
                            rest = len(tasks) - count
                            agree(Cost(rest, rest * stream.time.mean_s / max(1, runner.slots)))
            finally:
                list_parts(folder)
            there = read_results(folder)
    wanted = {(task.point.key, task.replication): place for place, task in enumerate(tasks)}
    found = {(result.point.key, result.replication): result for result in there}
    if lost := wanted.keys() - found.keys():
        raise Damaged(
            f"{folder} lacks {len(lost)} replications that were simulated",
            remedy="Run the same command again: it simulates what is missing.",
        )
    return [found[each] for each in wanted]
