"""The interface of a model for multilevel splitting: one run that can be saved at an instant and continued from
there.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from qsctl.instant import Nanoseconds


class QueueTally(NamedTuple):
    """The counters of a queue since the end of the warm-up; all 0 before."""

    lost: int
    """Messages lost."""
    ended: int
    """Messages lost, delivered or elided."""
    high_water_mark: int
    """The high-water mark in work units."""


class Trajectory(Protocol):
    """One run of a scenario, from its beginning to its horizon.

    The importance is an integer that increases as the state approaches the rare event: it is `most` where the queue
    loses its next message, or has the depth in question. The estimate is unbiased for every importance; the number of
    runs it needs depends on it.
    """

    most: int
    """The importance of the rare event; 0 where the queue has no limit that could be reached."""

    @property
    def messages(self) -> int:
        """Arrivals of this trajectory so far."""
        ...

    def importance(self) -> int:
        """Return the importance of the present state."""
        ...

    def advance(self, low: int, high: int) -> bool:
        """Simulate while low ≤ importance < high; return False at the horizon."""
        ...

    def skip(self, until_ns: Nanoseconds) -> None:
        """Simulate to an instant, regardless of the importance."""
        ...

    def tally(self) -> QueueTally:
        """Return the losses, messages and high-water mark counted on the path to the present state."""
        ...

    def save(self) -> Any:
        """Return a copy of the present state."""
        ...

    def resume(self, saved: Any, branch: int | None) -> None:
        """Return to a saved state.

        Args:
            saved: a result of `save`.
            branch: the number of a branch, unique in the run, whose random streams are used from there on; None
                continues with the run's own.
        """
        ...
