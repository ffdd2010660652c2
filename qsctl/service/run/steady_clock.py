"""The clock of a service whose queues are replicated: the wall clock at its start, advanced by the elapsed time.

Elections and the right to deliver depend on the time since the last message [QS 7.1.2]. A wall clock that is set
forward would make a replica vote against a live master; one that is set back would keep a dead master's lease.
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
