"""The time of a member: its driver's clock, that goes on where the clock is set back.

A master delivers as long as a quorum heard of it lately. Were a clock that is set back taken as standing still, this
would last until the clock has caught up, and another master would be elected meanwhile.
"""

from __future__ import annotations

from qsctl.instant import Nanoseconds


class SteadyTime:
    """Time that never runs backwards, and never stands still while the clock runs.

    Args:
        now: the clock at first.
    """

    def __init__(self, now: Nanoseconds) -> None:
        self._clock = now
        self._ahead_ns = 0
        """How far the clock was set back, in all."""

    @property
    def now(self) -> Nanoseconds:
        """The latest instant."""
        return self._clock + self._ahead_ns

    def at(self, clock: Nanoseconds) -> Nanoseconds:
        """Return the instant that it is by the clock as it is now."""
        if clock < self._clock:
            self._ahead_ns += self._clock - clock
        self._clock = clock
        return clock + self._ahead_ns

    def on_clock(self, instant: Nanoseconds) -> Nanoseconds:
        """Return what the clock shows at an instant."""
        return max(0, instant - self._ahead_ns)
