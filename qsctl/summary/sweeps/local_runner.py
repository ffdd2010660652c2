"""The runner of sweeps and searches in this process or in worker processes, without Spark and Java.

The figures equal those of Spark's tasks: both call `sim.sweep.run_task`, which depends on its arguments alone.
Processes share the arrivals that points have in common: arrivals drawn by one process are memory-mapped by the others
(`sim.arrivals.remembered`).
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator, Sequence
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
from qsctl.summary.sweeps._pieces import DonePiece, PieceAnswer, TaskPiece, ended, work
from qsctl.summary.sweeps.runner import Give, Runner
from qsctl.summary.sweeps.sweep_folder import PointResult

POLL_SECONDS: Final = 0.1
_PIECES_AHEAD: Final = 2
"""Number of pieces submitted to a process, so that it begins the next one without waiting for this process."""

_scenario: Scenario | None = None
"""In a worker process: the scenario that it simulates."""


def _begin(scenario: Scenario, arrivals: Path | None) -> None:
    end_with_parent()
    if arrivals is not None:
        share_arrivals(arrivals)
    global _scenario  # noqa: PLW0603 - a worker has one
    _scenario = scenario


def _work(piece: TaskPiece) -> PieceAnswer:
    assert _scenario is not None
    return work(_scenario, piece)


class LocalRunner(Runner):
    """A runner of tasks of one scenario on this machine; a context manager that ends its processes.

    If the operating system kills a worker process, for instance for lack of memory, its pieces are simulated again by
    new processes.

    Args:
        scenario: the scenario to simulate.
        workers: number of processes; 1: this process alone. More are spawned, never forked: a program that uses them
            guards its own start by `if __name__ == "__main__"`.
        check: called between tasks, and ten times a second while processes run; an exception that it raises ends the
            run.
    """

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
        """Return the results of the tasks, in their order; a single one is simulated in this process.

        Raises:
            InvalidInput: as for `ended`.
            Unavailable: as for `ended`.
        """
        if len(tasks) > 1:
            return super().run(tasks)
        return [result for task in tasks for result in self._here(TaskPiece((task,))).results]

    def ended(self, give: Give) -> Iterator[DonePiece]:
        """Simulate the pieces that `give` returns, and yield each when it ends.

        Raises:
            InvalidInput: a scenario cannot be simulated, with the point in the message; or the folder of a sweep cannot
                be written.
            Unavailable: processes end by themselves, as if a program spawns processes without a guard.
        """
        if self.slots > 1:
            yield from self._in_workers(give)
            return
        while (piece := give()) is not None:
            yield self._here(piece)

    def _here(self, piece: TaskPiece) -> DonePiece:
        return ended(piece, work(self._scenario, piece, self._check))

    def _in_workers(self, give: Give) -> Iterator[DonePiece]:
        waiting: dict[Future[PieceAnswer], TaskPiece] = {}
        again: deque[TaskPiece] = deque()
        """Pieces to be simulated again, since their processes were killed."""
        done_in_pool = 0
        try:
            while True:
                while len(waiting) < _PIECES_AHEAD * self.slots:
                    piece = again.popleft() if again else give()
                    if piece is None:
                        break
                    future = self._submit(piece)
                    if future is None:
                        again.append(piece)
                        break
                    waiting[future] = piece
                if not waiting and not again:
                    return
                self._check()
                for future in wait(waiting, POLL_SECONDS, FIRST_COMPLETED).done:
                    piece = waiting.pop(future)
                    try:
                        answer = future.result()
                    except BrokenProcessPool:
                        again.append(piece)
                        continue
                    done_in_pool += 1
                    yield ended(piece, answer)
                if again:
                    self._end_broken()
                    if not done_in_pool:
                        raise Unavailable(
                            "a process that simulates ended unexpectedly",
                            remedy='Guard the start of the program with `if __name__ == "__main__":`, or give '
                            "workers=1.",
                        )
                    again.extend(waiting.values())
                    waiting.clear()
                    done_in_pool = 0
        finally:
            for future in waiting:
                future.cancel()

    def _end_broken(self) -> None:
        """Kill the remaining processes of a broken pool.

        The pool ends them by a signal that they ignore. One of them may wait for a lock that the killed process held,
        and this process would wait for it forever at its end.
        """
        assert self._pool is not None
        for process in list((self._pool._processes or {}).values()):  # no public name before Python 3.14
            process.kill()
        self._pool = None

    def _submit(self, piece: TaskPiece) -> Future[PieceAnswer] | None:
        """Submit a piece to the processes; return None if one of them was killed."""
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            if self._arrivals is None:
                remove_abandoned()
                with suppress(OSError):  # without a shared folder each process draws its own arrivals
                    self._arrivals = PrivateFolder()
            shared = None if self._arrivals is None else self._arrivals.path
            self._pool = ProcessPoolExecutor(self.slots, context, _begin, (self._scenario, shared))
        try:
            with children_without_signals():
                return self._pool.submit(_work, piece)
        except BrokenProcessPool:
            return None
