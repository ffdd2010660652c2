"""The replications of a search's candidates as one stream, so that no worker waits for a particular candidate.

A candidate is evaluated ("looked at") after given numbers of replications. If all replications for the next evaluations
have been handed out, an idle worker gets a replication that the evaluation after it may need. Whether a candidate needs
that evaluation is decided by its first replications alone, as if the others did not exist.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from qsctl.sim.figures import Figures
from qsctl.sim.sweep import Task
from qsctl.summary.sweeps._pieces import DonePiece, TaskPiece
from qsctl.summary.sweeps.runner import RepetitionTime, Runner

Values = tuple[int, ...]

_PIECE_S: Final = 0.1
"""Duration of a piece in seconds up to which short replications are grouped, since handing out has an overhead."""


@dataclass(slots=True, eq=False)
class _OpenCandidate:
    """A candidate that is not decided yet."""

    values: Values
    aim: int
    """The number of its replications at the next evaluation."""
    early: dict[int, tuple[Figures, ...]]
    """Results after the last evaluation, by replication number."""
    looked: int
    """The number of its replications at the last evaluation."""
    given: int = field(init=False)
    """All replications below this number have been handed out, or are known."""

    def __post_init__(self) -> None:
        self.given = self.looked

    @property
    def is_complete(self) -> bool:
        """Return whether all results for the next evaluation have arrived."""
        return all(number in self.early for number in range(self.looked, self.aim))


class CandidateStream:
    """A source of replications for a runner, until all candidates are decided."""

    def __init__(
        self,
        runner: Runner,
        looks: Sequence[int],
        task: Callable[[Values, int], Task],
        known: Callable[[Values, int], tuple[Figures, ...] | None],
    ) -> None:
        """Make a stream without candidates.

        Args:
            runner: simulates the replications.
            looks: the numbers of replications after which a candidate is evaluated, in ascending order.
            task: returns a candidate's replication by its number.
            known: returns the figures of a replication that need not be simulated; else None.
        """
        self._runner = runner
        self._looks = looks
        self._task = task
        self._known = known
        self._open: dict[Values, _OpenCandidate] = {}
        self._ready: deque[_OpenCandidate] = deque()
        """Candidates with replications to hand out for their next evaluation."""
        self._places: dict[Task, tuple[_OpenCandidate, int]] = {}
        """The candidates and numbers of the tasks that are being simulated."""
        self._time = RepetitionTime()
        self._looked_at: Callable[[Values, int], int | None] = lambda _, __: None

    def add(self, values: Values, looked: int, aim: int, early: dict[int, tuple[Figures, ...]]) -> None:
        """Add a candidate.

        Args:
            values: its settings.
            looked: the number of replications at its last evaluation.
            aim: the number at its next evaluation.
            early: results of further replications by number; results are added here, and removed by an evaluation.
        """
        self._open[values] = candidate = _OpenCandidate(values, aim, early, looked)
        self._ready.append(candidate)

    def run(self, looked_at: Callable[[Values, int], int | None]) -> None:
        """Simulate until every candidate is decided.

        Args:
            looked_at: called when the results of a candidate up to its aim have arrived; it removes them and returns
                the next aim, or None if the candidate is decided.
        """
        self._looked_at = looked_at
        self._look_at_known()
        if not self._open:
            return
        for done in self._runner.ended(self._give):
            self._note(done)
            if not self._open:
                return

    def _give(self) -> TaskPiece | None:
        while self._ready:
            candidate = self._ready[0]
            numbers = self._numbers(candidate, candidate.aim)
            if candidate.given >= candidate.aim:
                self._ready.popleft()
            if numbers:
                return self._piece(candidate, numbers)
            if candidate.is_complete:
                self._look(candidate)
        slots = self._runner.slots * self._runner.jobs_ahead
        if 0 < len(self._places) < slots:
            for candidate in self._open.values():
                later = bisect_right(self._looks, candidate.aim)
                if later < len(self._looks) and candidate.aim > 1 and candidate.given < self._looks[later]:
                    numbers = self._numbers(candidate, self._looks[later])
                    if numbers:
                        return self._piece(candidate, numbers)
        return None

    def _numbers(self, candidate: _OpenCandidate, limit: int) -> list[int]:
        """Return the numbers of a candidate's next replications for one piece."""
        found: list[int] = []
        most = self._most(limit - candidate.given)
        while candidate.given < limit and len(found) < most:
            number = candidate.given
            candidate.given += 1
            if number in candidate.early:
                continue
            figures = self._known(candidate.values, number)
            if figures is None:
                found.append(number)
            else:
                candidate.early[number] = figures
        return found

    def _most(self, left: int) -> int:
        """Return the largest number of replications of a piece: about `_PIECE_S` of work, and at most a slot's share of
        `left`.
        """
        mean_s = self._time.mean_s
        if mean_s is None:
            return 1
        by_time = int(_PIECE_S / max(mean_s, 1e-9))
        return max(1, min(by_time, math.ceil(left / max(1, self._runner.slots))))

    def _piece(self, candidate: _OpenCandidate, numbers: Sequence[int]) -> TaskPiece:
        tasks = tuple(self._task(candidate.values, number) for number in numbers)
        self._places.update(zip(tasks, ((candidate, number) for number in numbers), strict=True))
        return TaskPiece(tasks)

    def _note(self, done: DonePiece) -> None:
        self._time.note(done)
        for result in done.results:
            candidate, number = self._places.pop(Task(result.point, result.replication, result.seed))
            candidate.early[number] = result.figures
            if candidate.values in self._open and candidate.is_complete:
                self._look(candidate)

    def _look(self, candidate: _OpenCandidate) -> None:
        """Evaluate a candidate with all results up to its aim, repeatedly while results are complete."""
        while candidate.is_complete:
            reached = candidate.aim
            following = self._looked_at(candidate.values, reached)
            if following is None:
                del self._open[candidate.values]
                if candidate in self._ready:
                    self._ready.remove(candidate)
                return
            candidate.looked, candidate.aim = reached, following
        if candidate.given < candidate.aim and candidate not in self._ready:
            self._ready.append(candidate)

    def _look_at_known(self) -> None:
        """Evaluate the candidates whose results are all known, before any simulation."""
        for candidate in [*self._open.values()]:
            if candidate.is_complete:
                self._look(candidate)
