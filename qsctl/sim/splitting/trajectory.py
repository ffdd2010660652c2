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
    """In work units."""


class Trajectory(Protocol):
    """One run of a scenario, from its beginning to its horizon.

    The importance is a whole number that grows as the state nears the rare event: it is `most` where the queue loses
    its next message, or is as deep as asked for. The estimate is unbiased for every importance; the number of runs it
    needs depends on it.
    """

    most: int
    """The largest importance that is of interest; 0: there is no limit that could be reached."""

    @property
    def messages(self) -> int:
        """Arrivals of this trajectory so far."""
        ...

    def importance(self) -> int:
        """Return the importance of the state."""
        ...

    def advance(self, low: int, high: int) -> bool:
        """Go on while low ≤ importance < high; return False at the horizon."""
        ...

    def skip(self, until_ns: Nanoseconds) -> None:
        """Go on to an instant, whatever the importance is."""
        ...

    def tally(self) -> QueueTally:
        """Return what has been counted on the way to the present state."""
        ...

    def save(self) -> Any:
        """Return the state."""
        ...

    def resume(self, saved: Any, branch: int | None) -> None:
        """Go back to a state that `save` gave.

        Args:
            saved: the state.
            branch: what is random from there on is drawn by this number, which no other branch of the run has; None:
                it is what it was.
        """
        ...
