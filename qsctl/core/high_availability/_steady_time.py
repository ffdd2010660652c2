"""The time of a member: its driver's clock, which continues where the clock is set back.

A master delivers as long as a quorum confirmed it lately. If time stopped where the clock is set back, this would last
until the clock has caught up, and another master would be elected meanwhile. How much time passed between the two
readings is unknown: the process may have been paused there.
"""

from __future__ import annotations

from collections.abc import Callable

from qsctl.instant import Nanoseconds


class SteadyTime:
    """Time that never runs backwards, and always advances while the clock runs.

    Args:
        now: the clock at first.
        on_set_back: called with the instant when the clock was set back.
    """

    def __init__(self, now: Nanoseconds, on_set_back: Callable[[Nanoseconds], None]) -> None:
        self._clock = now
        self._on_set_back = on_set_back
        self._ahead_ns = 0
        """Total time by which the clock was set back."""

    @property
    def now(self) -> Nanoseconds:
        """The latest instant."""
        return self._clock + self._ahead_ns

    def at(self, clock: Nanoseconds) -> Nanoseconds:
        """Return the instant that it is by the clock as it is now."""
        set_back_ns = self._clock - clock
        self._clock = clock
        if set_back_ns > 0:
            self._ahead_ns += set_back_ns
            self._on_set_back(self.now)
        return self.now

    def on_clock(self, instant: Nanoseconds) -> Nanoseconds:
        """Return what the clock shows at an instant."""
        return max(0, instant - self._ahead_ns)
