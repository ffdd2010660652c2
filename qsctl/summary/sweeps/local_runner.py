"""The tasks of a sweep or a search in this process, or in processes beside it: without Spark, and without Java.

The figures are those that Spark's tasks give: both run `sim.sweep.run_task`, which depends on its arguments alone.
Processes share the arrivals that points have in common: what one has drawn the others map (`sim.arrivals.remembered`).
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

from qsctl.endings import children_without_signals, end_with_parent
from qsctl.errors import Unavailable
from qsctl.sim.arrivals.remembered import share_arrivals
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.sweep import Task
from qsctl.summary.spark.private_folder import PrivateFolder, remove_abandoned
from qsctl.summary.sweeps.batches import Answer, BatchRunner, attempt, result_of
from qsctl.summary.sweeps.sweep_folder import PointResult

POLL_SECONDS: Final = 0.1
BATCH_SECONDS: Final = 1.0

_scenario: Scenario | None = None
"""In a worker: what it simulates."""


def _begin(scenario: Scenario, arrivals: Path | None) -> None:
    end_with_parent()
    if arrivals is not None:
        share_arrivals(arrivals)
    global _scenario  # noqa: PLW0603 - a worker has one
    _scenario = scenario


def _attempt(task: Task) -> Answer:
    assert _scenario is not None
    return attempt(_scenario, task)


class LocalRunner(BatchRunner):
    """Runs tasks of one scenario on this machine; a context manager that ends its processes.

    Args:
        scenario: what is simulated.
        workers: number of processes; 1 stays in this one. More are spawned, never forked: a program that asks for them
            guards its own start by `if __name__ == "__main__"`.
        check: called between tasks, and ten times a second while processes run; what it raises ends the run.
    """

    batch_s = BATCH_SECONDS

    def __init__(self, scenario: Scenario, workers: int = 1, check: Callable[[], None] = lambda: None) -> None:
        self.slots = workers
        self._scenario = scenario
        self._check = check
        self._pool: ProcessPoolExecutor | None = None
        self._arrivals: PrivateFolder | None = None

    def __enter__(self) -> LocalRunner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        if self._arrivals is not None:
            self._arrivals.remove()
            self._arrivals = None

    def run(self, tasks: Sequence[Task]) -> list[PointResult]:
        """Return the results of the tasks, in their order.

        Raises:
            InvalidInput: a task's scenario cannot be simulated; the message names the point.
            Unavailable: a process ended by itself, as where a program spawns processes without a guard.
        """
        if self.slots == 1 or len(tasks) == 1:
            return [self._here(task) for task in tasks]
        try:
            return [result_of(task, answer) for task, answer in zip(tasks, self._in_workers(tasks), strict=True)]
        except BrokenProcessPool:
            self._pool = None
            raise Unavailable(
                "a process that simulates ended by itself",
                remedy='Guard the start of the program with `if __name__ == "__main__":`, or give workers=1.',
            ) from None

    def _here(self, task: Task) -> PointResult:
        self._check()
        return result_of(task, attempt(self._scenario, task))

    def _in_workers(self, tasks: Sequence[Task]) -> list[Answer]:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            if self._arrivals is None:
                remove_abandoned()
                with suppress(OSError):  # without a folder each process draws its own
                    self._arrivals = PrivateFolder()
            shared = None if self._arrivals is None else self._arrivals.path
            self._pool = ProcessPoolExecutor(self.slots, context, _begin, (self._scenario, shared))
        with children_without_signals():
            waiting: set[Future[Answer]] = set()
            futures = [self._pool.submit(_attempt, task) for task in tasks]
            waiting.update(futures)
        while waiting:
            self._check()
            done, waiting = wait(waiting, POLL_SECONDS, FIRST_COMPLETED)
            for each in done:
                each.result()
        return [each.result() for each in futures]
