"""The tasks of a sweep as one stream, also if their number is decided by rounds while it runs.

Every point has the same number of repetitions. After each number of a series, all results so far are evaluated and
decide whether they are enough, as if nothing else had been simulated, so that the answer depends neither on the number
of workers nor on the order in which they end. A worker that would be idle until the last result of a round gets a task
of the next round. Its result is returned to the driver, and becomes a part of the folder when that round begins, so
that the folder never has more results than were decided on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from qsctl.sim.sweep import SweepPlan
from qsctl.summary.sweeps._pieces import DonePiece, PartPlace, TaskPiece
from qsctl.summary.sweeps.runner import RepetitionTime, Runner, SweepTasks
from qsctl.summary.sweeps.sweep_folder import PointResult


@dataclass(frozen=True, slots=True)
class Rounds:
    """The numbers of repetitions after which a sweep is evaluated, in ascending order, and the decision to stop."""

    counts: Sequence[int]
    is_enough: Callable[[Sequence[PointResult]], bool]
    """Returns whether the results of all points so far are enough; not called at the last number."""


class RoundStream:
    """A source of the tasks of a round, and of those of the next round for workers that would be idle."""

    def __init__(
        self,
        plans: Sequence[SweepPlan],
        there: set[tuple[str, int]],
        place: PartPlace,
        runner: Runner,
        keep: Callable[[Sequence[PointResult]], None],
    ) -> None:
        """Begin with the first round.

        Args:
            plans: a plan for each round, from the first unfinished one.
            there: keys of points and numbers of replications that are finished.
            place: folder for the parts.
            runner: simulates the tasks.
            keep: writes results that the driver has as a part.
        """
        self._plans = plans
        self._there = there
        self._place = place
        self._runner = runner
        self._keep = keep
        self._round = 0
        self.time: Final = RepetitionTime()
        self._now = self._stream(0, place)
        self._next: SweepTasks | None = None
        self._flying = 0
        """Number of pieces that were handed out and have not ended."""
        self._left = len(self._now.tasks)
        """Number of tasks of this round that have not ended."""
        self._early: list[PointResult] = []
        """Results of the next round."""

    @property
    def left(self) -> int:
        """The number of tasks of this round that have not ended."""
        return self._left

    def give(self) -> TaskPiece | None:
        """Return the next piece; None if there is none at present."""
        piece = self._now.give()
        if piece is None and self._left and self._flying < self._runner.slots * self._runner.jobs_ahead:
            piece = self._following().give() if self._round + 1 < len(self._plans) else None
        self._flying += piece is not None
        return piece

    def note(self, done: DonePiece) -> None:
        """Record the end of a piece of this round or the next one."""
        self._flying -= 1
        self.time.note(done)
        count = self._plans[self._round].replications
        if done.piece.kept is None:
            self._early += done.results
            self._keep_those_of(count)
        self._left -= sum(task.replication < count for task in done.piece.tasks)

    def begin_next(self) -> None:
        """Begin the next round, and write the results of it that exist already."""
        self._now, self._next = self._following(), None
        self._now.kept = self._place
        self._round += 1
        self._left = len(self._now.tasks) - len(self._early)
        self._keep_those_of(self._plans[self._round].replications)

    def _keep_those_of(self, count: int) -> None:
        kept = [each for each in self._early if each.replication < count]
        if kept:
            self._keep(kept)
            self._early = [each for each in self._early if each.replication >= count]

    def _following(self) -> SweepTasks:
        if self._next is None:
            self._next = self._stream(self._round + 1, None)
        return self._next

    def _stream(self, number: int, kept: PartPlace | None) -> SweepTasks:
        first = self._plans[number - 1].replications if number else 0
        tasks = [
            task for task in self._plans[number].tasks()
            if task.replication >= first and (task.point.key, task.replication) not in self._there
        ]  # fmt: skip
        return SweepTasks(tasks, kept, lambda: self._runner.slots, self.time)
