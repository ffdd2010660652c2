"""Batches of the tasks of a sweep, and what a task gives back, wherever it runs."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from qsctl.errors import InvalidInput, QsctlError
from qsctl.sim.figures import Figures
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.sweep import Task, run_task
from qsctl.summary.sweeps.sweep_folder import PointResult

TASKS_A_SLOT: Final = 4
"""Tasks a processor and batch: enough to even out long and short replications."""

Answer = tuple[bytes | None, str | None]
"""What a task gives back: its figures, or the message of what is wrong with its scenario."""


class BatchRunner:
    """Base of what runs the tasks of one scenario: several at once, in batches that last about as long.

    `slots` is how many run at once, `batch_s` how many seconds a batch is made to last: what a killed program loses,
    and how often progress is reported.
    """

    slots: int = 1
    batch_s: float

    @abstractmethod
    def run(self, tasks: Sequence[Task]) -> list[PointResult]:
        """Return the results of the tasks, in their order.

        Raises:
            InvalidInput: a task's scenario cannot be simulated; the message names the point.
        """

    def batches(self, tasks: Sequence[Task]) -> Iterable[list[PointResult]]:
        """Yield the results of the tasks, batch by batch, in their order; a batch's size follows the speed."""
        size = self.slots * TASKS_A_SLOT
        at = 0
        while at < len(tasks):
            batch = tasks[at : at + size]
            began = time.monotonic()
            yield self.run(batch)
            at += len(batch)
            lasted = max(time.monotonic() - began, 0.01)
            size = max(self.slots, min(2 * size, int(size * self.batch_s / lasted)))


def attempt(scenario: Scenario, task: Task) -> Answer:
    """Return the figures, or the message of what is wrong with the scenario: trying again would be in vain."""
    try:
        return msgspec.msgpack.encode(run_task(scenario, task)), None
    except QsctlError as error:
        return None, error.message


def result_of(task: Task, answer: Answer) -> PointResult:
    """Return the result of a task from what it gave back.

    Raises:
        InvalidInput: its scenario cannot be simulated.
    """
    figures, problem = answer
    if figures is None:
        raise InvalidInput(f"{task.point}: {problem}")
    read = msgspec.msgpack.decode(bytes(figures), type=tuple[Figures, ...])
    return PointResult(task.point, task.replication, task.seed, read)
