"""A virtual clock that a program advances."""

from __future__ import annotations

import threading
import time

from qsctl.instant import Nanoseconds


class VirtualClock:
    """A thread-safe clock in Unix nanoseconds that stays constant until it is moved."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = time.time_ns()

    def __call__(self) -> Nanoseconds:
        """Return the current virtual time."""
        with self._lock:
            return self._now

    def move_to(self, instant: Nanoseconds) -> None:
        """Advance to an instant; do nothing if it is in the past."""
        with self._lock:
            self._now = max(self._now, instant)
