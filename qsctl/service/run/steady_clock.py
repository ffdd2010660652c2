"""The clock of a service whose queues are replicated: the wall clock at its start, advanced by the elapsed time.

Elections and a master's lease depend on the time since the last message [QS 7.1.2]. If the wall clock was set forward,
replicas would vote against a live master; if it was set back, a dead master would keep its lease.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from qsctl.instant import Nanoseconds

_ELAPSED: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The clock that also runs while the machine is suspended, where the system has one: the other members did not wait."""


def steady_clock() -> Callable[[], Nanoseconds]:
    """Return a clock of Unix nanoseconds that follows no change of the wall clock after this call."""
    ahead_ns = time.time_ns() - time.clock_gettime_ns(_ELAPSED)
    return lambda: ahead_ns + time.clock_gettime_ns(_ELAPSED)
