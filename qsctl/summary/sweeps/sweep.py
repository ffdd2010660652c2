"""The execution of a sweep: one stream of pieces, whose results the workers write to the sweep's folder.

Results depend on the plan alone: a task contains its seed, so that placement, retries and speculation change nothing.
While the sweep runs, this process hands out the tasks and counts them; it reads the results at the end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qsctl.errors import Damaged
from qsctl.eventlog.location import Location
from qsctl.sim.sweep import SweepPlan
from qsctl.summary._folder_lock import locked_folder
from qsctl.summary.spark.session import SparkOptions
from qsctl.summary.sweeps._pieces import part_place
from qsctl.summary.sweeps._spark_runner import SparkRunner
from qsctl.summary.sweeps.cost import Cost
from qsctl.summary.sweeps.runner import Runner
from qsctl.summary.sweeps.sweep_folder import (
    PointResult,
    encode_part,
    finished,
    list_parts,
    open_sweep,
    read_results,
    refuse_foreign_folder,
    store_part,
    written,
)
from qsctl.summary.sweeps.sweep_rounds import Rounds, RoundStream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """The progress of a sweep: completed replications, their total, and those that existed before."""

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
    rounds: Rounds | None = None,
) -> list[PointResult]:
    """Run the tasks of a sweep that have no result yet.

    Args:
        plan: a plan of `plan_sweep`.
        folder: folder of the results; earlier results of the same sweep are kept.
        options: master and settings of Spark.
        progress: called whenever replications are completed.
        spark: a session of the caller, instead of `options`: of a notebook, or of `spark-submit`.
        runner: simulates the tasks instead of Spark.
        agree: called once with the estimated cost of the rest, after the first replications were timed, while other
            workers continue. An exception that it raises ends the sweep, and results are kept.
        rounds: determines the number of replications of every point instead of the plan. An exception of `is_enough`
            ends the sweep, and results are kept.

    Returns:
        The results of the plan's points, earlier and new ones; with `rounds` as many for every point as were decided.

    Raises:
        InvalidInput: the folder holds another sweep, is being written by another command or cannot be written, or a
            point cannot be simulated.
        NotFound: a trace or a recording that a point names does not exist.
        Damaged: a file of the folder was changed or is missing.
    """
    refuse_foreign_folder(folder)  # before a lock file is left in it
    report = progress or (lambda _: None)
    plans = [plan] if rounds is None else [dataclasses.replace(plan, replications=count) for count in rounds.counts]
    with locked_folder(folder) as folder:
        open_sweep(folder, plans[0])
        there = read_results(folder)
        before = finished(there)
        while True:
            total, reused = plans[0].task_count, _count_finished(plans[0], before)
            report(SweepProgress(reused, total, reused))
            if reused < total:
                there.clear()
                runner = runner or SparkRunner(plan.scenario, options, spark=spark, variants=plan.variants())
                return _simulated(plans, folder, before, runner, report, agree, rounds)
            found = _results_of(plans[0], there, folder)
            if rounds is None or len(plans) == 1 or rounds.is_enough(found):
                return found
            plans = plans[1:]
            open_sweep(folder, plans[0])


def _simulated(
    plans: list[SweepPlan],
    folder: Location,
    before: set[tuple[str, int]],
    runner: Runner,
    report: Callable[[SweepProgress], None],
    agree: Callable[[Cost], None] | None,
    rounds: Rounds | None,
) -> list[PointResult]:
    """Simulate the missing tasks of the first plan, and of those after it until the results are enough."""
    is_asked = agree is None
    reused = _count_finished(plans[0], before)

    def keep(results: Sequence[PointResult]) -> None:
        with written(folder):
            store_part(folder, encode_part(results, place.identity))

    def show() -> None:
        total = plans[0].task_count
        report(SweepProgress(total - stream.left, total, reused))

    try:
        with part_place(folder) as place:
            stream = RoundStream(plans, before, place, runner, keep)
            for each in runner.ended(stream.give):
                stream.note(each)
                show()
                if agree is not None and not is_asked and stream.time.mean_s is not None and stream.left:
                    is_asked = True
                    agree(Cost(stream.left, stream.left * stream.time.mean_s / max(1, runner.slots)))
                while not stream.left:
                    list_parts(folder)
                    found = _results_of(plans[0], read_results(folder), folder)
                    if rounds is None or len(plans) == 1 or rounds.is_enough(found):
                        return found
                    plans = plans[1:]
                    open_sweep(folder, plans[0])
                    reused = _count_finished(plans[0], before)
                    stream.begin_next()
                    show()
    finally:
        list_parts(folder)
    return _results_of(plans[0], read_results(folder), folder)


def _count_finished(plan: SweepPlan, there: set[tuple[str, int]]) -> int:
    """Return the number of finished tasks of a plan.

    Args:
        plan: a plan of the sweep.
        there: keys of points and numbers of replications that are finished.
    """
    keys = {point.key for point in plan.points()}
    return sum(key in keys and replication < plan.replications for key, replication in there)


def _results_of(plan: SweepPlan, there: Sequence[PointResult], folder: Location) -> list[PointResult]:
    """Return the results of a plan's tasks, in their order.

    Raises:
        Damaged: a result is missing.
    """
    found = {(result.point.key, result.replication): result for result in there}
    wanted = [(task.point.key, task.replication) for task in plan.tasks()]
    if lost := [each for each in wanted if each not in found]:
        raise Damaged(
            f"{folder} lacks {len(lost)} replications that were simulated",
            remedy="Run the same command again: it simulates what is missing.",
        )
    return [found[each] for each in wanted]
