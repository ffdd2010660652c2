"""The base class of runners, which simulate tasks of a sweep or a search in parallel, and the order of the tasks.

There is no barrier: a runner requests the next piece when a worker may need one, and pieces end in any order. Decisions
from their results must depend on the positions of the results, never on their order of arrival.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from qsctl.sim.sweep import Task
from qsctl.summary.sweeps._pieces import DonePiece, PartPlace, TaskPiece
from qsctl.summary.sweeps.sweep_folder import PointResult

Give = Callable[[], TaskPiece | None]
"""Returns the next piece; None if there is none at present, which may change when a piece ends."""


class Runner(ABC):
    """Base class of runners of one scenario; `slots` is the number of pieces that run at once, as far as is known."""

    slots: int = 1
    jobs_ahead: int = 1
    """Pieces for each slot that must have been handed out to keep every slot busy: 2 if results arrive by job."""

    @abstractmethod
    def ended(self, give: Give) -> Iterator[DonePiece]:
        """Simulate the pieces that `give` returns, and yield each when it ends, in any order, until `give` returns
        None.

        If the iteration is left early, pieces that have not begun are not simulated.

        Raises:
            InvalidInput: a scenario cannot be simulated, with the point in the message; or the folder of a sweep cannot
                be written.
        """

    def run(self, tasks: Sequence[Task]) -> list[PointResult]:
        """Return the results of the tasks, in their order.

        Raises:
            InvalidInput: as for `ended`.
        """
        pieces = iter(TaskPiece((task,)) for task in tasks)
        found = {each.piece.tasks[0]: each.results[0] for each in self.ended(lambda: next(pieces, None))}
        return [found[task] for task in tasks]


_SHARE: Final = 3
"""A piece has at most the remaining work of each slot divided by this, so that the last pieces are short."""
_PIECES_A_SLOT: Final = 24
"""Number of pieces for each slot in a long sweep: more would make many small files, fewer lose more work at a crash."""
_SHORTEST_S: Final = 0.5
"""Duration in seconds below which the overhead of handing out a piece is too large."""
_LONGEST_S: Final = 10.0
"""Duration in seconds after which a worker writes its results."""


class RepetitionTime:
    """The mean duration of a repetition, measured on workers that had simulated before."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._count = 0

    @property
    def mean_s(self) -> float | None:
        """The mean so far in seconds; None if it is unknown."""
        return self._seconds / self._count if self._count else None

    def note(self, done: DonePiece) -> None:
        """Add the duration of a piece's repetitions to the mean."""
        if done.is_warm:
            self._seconds += done.seconds
            self._count += len(done.piece.tasks)


class SweepTasks:
    """The tasks of a sweep, handed out in order, in pieces that become smaller towards the end.

    This is guided self-scheduling: C. D. Polychronopoulos and D. J. Kuck, IEEE Transactions on Computers C-36 (12),
    1987. Until the duration of a repetition is known, each piece is a single one.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        kept: PartPlace | None,
        slots: Callable[[], int],
        time: RepetitionTime | None = None,
    ) -> None:
        """Initialize with the tasks.

        Args:
            tasks: all tasks.
            kept: folder for the parts; None: results are returned.
            slots: returns the number of pieces that run at once, as far as is known.
            time: the mean duration of a repetition so far; None: a new one.
        """
        self.tasks: Final = tasks
        self.kept = kept
        """The folder for the parts of pieces that are handed out from now on."""
        self._slots = slots
        self._at = 0
        self.time: Final = time or RepetitionTime()
        """Determines the size of the pieces; the caller adds the durations of completed ones."""

    def give(self) -> TaskPiece | None:
        """Return the next piece; None if all have been handed out."""
        left = len(self.tasks) - self._at
        if not left:
            return None
        tasks = tuple(self.tasks[self._at : self._at + self._size(left)])
        self._at += len(tasks)
        return TaskPiece(tasks, self.kept)

    def _size(self, left: int) -> int:
        seconds, slots = self.time.mean_s, max(1, self._slots())
        if seconds is None:
            return 1
        seconds = max(seconds, 1e-6)
        longest_s = max(_SHORTEST_S, min(_LONGEST_S, len(self.tasks) * seconds / (slots * _PIECES_A_SLOT)))
        guided = math.ceil(left / (_SHARE * slots))
        shortest = min(max(1, int(_SHORTEST_S / seconds)), math.ceil(left / slots))
        return max(shortest, min(guided, max(1, int(longest_s / seconds))))


class JobWindow:
    """The window of jobs that a scheduler works on at once, the first job first.

    A job ends with its slowest piece; so that no slot waits for it, pieces of further jobs are submitted meanwhile. The
    window is sized by the number of slots at each job, so that a scheduler that adds executors while tasks wait has
    waiting tasks.
    """

    AHEAD: Final = 8
    """Number of pieces in unfinished jobs, for each slot."""
    JOB_S: Final = 2.0
    """Seconds of work for each slot below which the overhead of a job is too large."""

    def __init__(self) -> None:
        self._jobs: dict[int, int] = {}
        self._last = 0
        self._piece_s = self.JOB_S
        """The duration of a piece of the last job."""

    def next_job(self, give: Give, slots: int) -> tuple[int, list[TaskPiece]] | None:
        """Return the number and the pieces of the next job; None if the window is full, or no piece is left."""
        room = self.AHEAD * slots - sum(self._jobs.values())
        a_slot = min(self.AHEAD // 2, math.ceil(self.JOB_S / max(self._piece_s, 1e-3)))
        pieces: list[TaskPiece] = []
        while len(pieces) < min(room, a_slot * slots) and (piece := give()) is not None:
            pieces.append(piece)
        if not pieces:
            return None
        self._last += 1
        self._jobs[self._last] = len(pieces)
        return self._last, pieces

    def end(self, job: int, seconds: float) -> None:
        """Record the end of a job, and the total duration of its pieces."""
        self._piece_s = seconds / self._jobs.pop(job)
