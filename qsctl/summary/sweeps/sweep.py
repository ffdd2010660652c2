"""Run a sweep on Spark: tasks go out, small figures come back, each finished batch is written at once.

Decides: how tasks are divided among Spark's. Results depend on the plan alone: a task's seed comes with it, so that
placement, retries and speculation change nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from qsctl.errors import Unavailable
from qsctl.eventlog.location import Location
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.sweep import SweepPlan, Task
from qsctl.summary.folder_lock import locked_folder
from qsctl.summary.spark.executors import reports_of, self_report
from qsctl.summary.spark.faults import spark_faults
from qsctl.summary.spark.session import SparkOptions, runs_here, spark_session
from qsctl.summary.sweeps.batches import TASKS_A_SLOT, BatchRunner, attempt, result_of
from qsctl.summary.sweeps.cost import Cost
from qsctl.summary.sweeps.sweep_folder import (
    PointResult,
    finished,
    open_sweep,
    read_results,
    refuse_foreign_folder,
    write_results,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH_SECONDS: Final = 5.0
"""A batch is made to last about this long: what a killed driver loses, and how often progress is reported."""


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
    runner: BatchRunner | None = None,
    agree: Callable[[Cost], None] | None = None,
) -> list[PointResult]:
    """Do what is not done yet of a sweep.

    Args:
        plan: checked by `plan_sweep`.
        folder: where results are kept; an earlier part of the same sweep is kept.
        options: where Spark runs.
        progress: called after every batch.
        spark: a session of the caller's own instead of one by `options`: of a notebook, or of `spark-submit`.
        runner: what simulates instead of Spark.
        agree: called with the estimated cost once the first replications were timed; what it raises ends the sweep.

    Returns:
        The results of the plan's points: those that were there and those computed now.

    Raises:
        InvalidInput: the folder holds another sweep or is being written by another command, or a point cannot be
            simulated.
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
            runner = runner or TaskRunner(plan.scenario, options, spark=spark)
            count = reused
            if agree is not None:
                count, left = _timed(runner, left, folder, count, agree)
            for results in runner.batches(left):
                write_results(folder, results)
                count += len(results)
                report(SweepProgress(count, len(tasks), reused))
            there = read_results(folder)
    wanted = {(task.point.key, task.replication): place for place, task in enumerate(tasks)}
    found = [result for result in there if (result.point.key, result.replication) in wanted]
    return sorted(found, key=lambda result: wanted[result.point.key, result.replication])


def _timed(
    runner: BatchRunner, left: list[Task], folder: Location, count: int, agree: Callable[[Cost], None]
) -> tuple[int, list[Task]]:
    """Simulate the first replications, which are kept, and ask whether to go on with the others.

    The first one warms up, and is not timed.
    """
    first = left[:1]
    write_results(folder, runner.run(first))
    timed = left[1 : 1 + runner.slots]
    rest = left[1 + len(timed) :]
    if timed:
        began = time.monotonic()
        results = runner.run(timed)
        seconds = (time.monotonic() - began) / len(timed)
        write_results(folder, results)
        if rest:
            agree(Cost(len(rest), len(rest) * seconds))
    return count + 1 + len(timed), rest


class TaskRunner(BatchRunner):
    """Runs tasks of one scenario on Spark."""

    batch_s = BATCH_SECONDS

    def __init__(
        self, scenario: Scenario, options: SparkOptions | None = None, *, spark: SparkSession | None = None
    ) -> None:
        """Open the session and, where others than this machine's processes run tasks, check that they can.

        Args:
            scenario: what is simulated.
            options: where Spark runs.
            spark: a session of the caller's own instead.

        Raises:
            Unavailable: an executor has another version of qsctl or of Python, or none; the message names it.
        """
        # Java hands out tasks and Python simulates: that compiles quickly is what counts.
        self._spark = spark or spark_session(options, brief=True)
        self._scenario = scenario
        with spark_faults():
            # What a range is split into by default is how many tasks run at once, on a remote session too.
            parts = self._spark.range(_PROBE_ROWS).selectExpr("spark_partition_id() as part").distinct().count()
        self.slots = max(1, parts)
        check_executors(self._spark, self.slots)

    def run(self, tasks: Sequence[Task]) -> list[PointResult]:
        """Return the results of the tasks, in their order.

        Raises:
            InvalidInput: a task's scenario cannot be simulated; the message names the point.
        """
        from pyspark.sql.functions import udf

        slices = min(len(tasks), self.slots * TASKS_A_SLOT)
        scenario, handed = self._scenario, tuple(tasks)
        # A row is a simulation: what a row costs besides is nothing.
        tried = udf(lambda number: attempt(scenario, handed[number]), _ANSWER, useArrow=False)
        with spark_faults():
            numbers = self._spark.range(0, len(tasks), 1, slices)
            rows = numbers.select(numbers["id"], tried(numbers["id"]).alias("answer")).collect()
        return [result_of(tasks[row["id"]], row["answer"]) for row in sorted(rows, key=lambda row: row["id"])]


_PROBE_ROWS: Final = 100_000
_ANSWER: Final = "struct<figures binary, problem string>"


def check_executors(spark: SparkSession, slots: int) -> None:
    """Ask the executors for their Python and their qsctl, unless they are processes of this machine's own Python.

    Raises:
        Unavailable: one has another version of either, or none; the message names it and what is there.
    """
    here = self_report()
    if runs_here(spark):
        return
    with spark_faults():
        reports = reports_of(spark.range(0, slots, 1, slots))
    wanted = here["python"].rpartition(".")[0]
    for each in sorted(reports, key=lambda report: report["host"]):
        place = f"the executor on {each['host']}"
        if each["python"].rpartition(".")[0] != wanted:
            raise Unavailable(
                f"{place} runs Python {each['python']}; this process runs {here['python']}",
                remedy="Set spark.pyspark.python to a Python of the same minor version there, with qsctl installed.",
            )
        if each["version"] != here["version"]:
            what = f"cannot run qsctl ({each['problem']})" if each["problem"] else f"has qsctl {each['version']}"
            raise Unavailable(
                f"{place} {what}; this process has qsctl {here['version']}",
                remedy=f"Install qsctl {here['version']} for the Python that spark.pyspark.python names there.",
            )
