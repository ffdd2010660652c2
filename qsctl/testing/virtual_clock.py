"""Virtual time: a clock that a program moves."""

from __future__ import annotations

import threading
import time

from qsctl.instant import Nanoseconds


class VirtualClock:
    """Unix nanoseconds, the same until they are moved; any thread may read and move them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = time.time_ns()

    def __call__(self) -> Nanoseconds:
        """Return the time."""
        with self._lock:
            return self._now

    def move_to(self, instant: Nanoseconds) -> None:
        """Move forward to an instant; one that is past changes nothing."""
        with self._lock:
            self._now = max(self._now, instant)
