"""The memory limit of a service's process: its bound, backpressure on producers, and the return of free memory.

Decides: that the process's resident memory counts, by which the system would also kill it. Above the bound each sample
of a producer is refused (answered 0), and producers that get no answers are not read; held samples are still delivered,
acknowledged and removed, commands are answered, and dead letters and replicas are stored. Below the low mark samples
are accepted again. Free memory is first returned to the system, and the size is measured again.

Free memory that cannot be returned, because each page still has a sample, is reused before the process grows. So
samples are also accepted once enough held samples have left; they are refused again only if the process grows further.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import time
from collections.abc import Callable, Sequence, Sized
from pathlib import Path
from typing import Any, Final

from qsctl.config.budgets import ServiceLimits
from qsctl.core.queue.settings import UNLIMITED
from qsctl.instant import MILLISECOND_NS, SECOND_NS, Nanoseconds
from qsctl.transport.dds.boundary import PeerLimits

LOOK_EVERY_NS: Final[Nanoseconds] = 100 * MILLISECOND_NS
GIVE_BACK_EVERY_NS: Final[Nanoseconds] = 2 * SECOND_NS
LOW_PERCENT: Final = 90
"""Of the bound: producers go on below it."""

GROWTH_PERCENT: Final = 2
"""Of the bound: how much the process may grow beyond what it was when producers went on in free memory."""

WORTH_BYTES: Final = 16 * 1024 * 1024
"""Growth of the process above its former size from which on memory is returned to the system."""

COUNTED_AT_ONCE: Final = 1_000
"""Queues whose samples one look counts."""

_CGROUP_FILES: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def available_bytes() -> int:
    """Return the memory of the machine, or the container's limit; 0: unknown."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0
    for path in _CGROUP_FILES:
        with contextlib.suppress(OSError, ValueError):
            total = min(total, int(path.read_text(encoding="ascii")))
    return total


def resident_bytes() -> int:
    """Return the resident memory of this process; 0: unknown."""
    try:
        pages = Path("/proc/self/statm").read_bytes().split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def bound_of(limits: ServiceLimits, process_count: int = 1) -> int:
    """Return the bound in bytes of one of the service's `process_count` processes; 0: unlimited."""
    total = available_bytes()
    bounds = [total * limits.max_memory_percent // 100] if limits.max_memory_percent < 100 and total else []
    if limits.max_memory_bytes != UNLIMITED:
        bounds.append(limits.max_memory_bytes)
    return min(bounds) // process_count if bounds and resident_bytes() else 0


def peer_limits_of(limits: ServiceLimits) -> PeerLimits:
    """Return the limits that the transport applies to each peer."""
    return PeerLimits(limits.max_endpoints_per_peer, limits.max_consumers_per_peer)


def give_back() -> None:
    """Return the C library's free memory to the system, where it supports that."""
    if (trim := _trim()) is not None:
        trim(0)


@functools.cache
def _trim() -> Any:
    try:
        function = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_size_t]
    function.restype = ctypes.c_int
    return function


class HeldCount:
    """The number of samples in the queues, counted a part of the queues a call: the result is at most a few calls old.

    With a thousand queues or fewer it is exact. Ten thousand are counted in ten calls, each of which takes as long as
    reading the memory's size; that is soon enough for decisions that take seconds.

    Args:
        queues: returns the queues' current contents, each with a length.
    """

    def __init__(self, queues: Callable[[], Sequence[Sized]]) -> None:
        self._queues = queues
        self._round: Sequence[Sized] = ()
        self._at = 0
        self._counted = 0
        self._latest = 0

    def __call__(self) -> int:
        """Count the next part of the queues; return the result of the last complete count."""
        if self._at >= len(self._round):
            self._round, self._at, self._counted = self._queues(), 0, 0
        end = self._at + COUNTED_AT_ONCE
        self._counted += sum(map(len, self._round[self._at : end]))
        self._at = end
        if end >= len(self._round):
            self._latest = self._counted
            self._round = ()
        return self._latest


class MemoryGuard:
    """The high and low watermarks of one process's memory.

    Args:
        bound_bytes: the resident memory above which producers are held back; 0: never.
        held_count: returns the number of samples in the queues.
        resident: returns the resident memory in bytes.
        free: returns free memory to the system.
        clock: returns monotonic nanoseconds.

    Attributes:
        bound_bytes: the bound above which producers are held back.
        resident_bytes: the resident memory at the last check.
        is_high: whether producers are held back.
        held_back_count: the number of times that producers began to be held back, since the start.
    """

    def __init__(
        self,
        bound_bytes: int,
        held_count: Callable[[], int],
        *,
        resident: Callable[[], int] = resident_bytes,
        free: Callable[[], None] = give_back,
        clock: Callable[[], Nanoseconds] = time.monotonic_ns,
    ) -> None:
        self.bound_bytes = bound_bytes
        self.resident_bytes = 0
        self.is_high = False
        self.held_back_count = 0
        self._held_count = held_count
        self._resident = resident
        self._free = free
        self._clock = clock
        self._look_at: Nanoseconds = 0
        self._give_back_at: Nanoseconds = 0
        self._peak_count = 0
        """The most samples held since memory was given back."""
        self._least_bytes = 0
        """The least resident memory seen: what the process has without samples."""
        self._count_when_high = 0
        self._grown_bytes = 0
        """Memory above the bound that is tolerated: it was not returned to the system although it is free."""

    def look(self) -> bool:
        """Check the memory, at most ten times a second; return whether `is_high` changed."""
        now = self._clock()
        if now < self._look_at:
            return False
        self._look_at = now + LOOK_EVERY_NS
        count = self._held_count()
        self._peak_count = max(self._peak_count, count)
        self.resident_bytes = self._resident()
        self._least_bytes = min(self._least_bytes or self.resident_bytes, self.resident_bytes)
        is_above = self._is_above()
        if now >= self._give_back_at and (self._peak_count > count if is_above else self._is_worth_it(count)):
            self._give_back_at = now + GIVE_BACK_EVERY_NS
            self._free()
            self._peak_count = count
            self.resident_bytes = self._resident()
            is_above = self._is_above()
        was_high = self.is_high
        if was_high:
            self._let_go_on(count)
        elif is_above:
            self.is_high = True
            self.held_back_count += 1
            self._count_when_high = count
        return self.is_high is not was_high

    def _is_worth_it(self, count: int) -> bool:
        """Return whether half of the samples have left since memory was last returned, and the process is still much
        larger.
        """
        has_left = count < self._peak_count and 2 * count <= self._peak_count
        return has_left and self.resident_bytes >= self._least_bytes + WORTH_BYTES

    def _is_above(self) -> bool:
        return bool(self.bound_bytes) and self.resident_bytes > max(self.bound_bytes, self._grown_bytes)

    def _let_go_on(self, count: int) -> None:
        """Stop holding producers back where memory, or the free part of it, reaches the low mark."""
        if self.resident_bytes <= self.bound_bytes * LOW_PERCENT // 100:
            self.is_high = False
            self._grown_bytes = 0
        elif count <= self._count_when_high * LOW_PERCENT // 100:
            self.is_high = False
            self._grown_bytes = self.resident_bytes + self.bound_bytes * GROWTH_PERCENT // 100
