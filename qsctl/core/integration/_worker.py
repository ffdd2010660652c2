"""Timed work of a thread of the engine, one job at a time [CLOVERLEAF].

Decides: when a job continues; an aborted job never does. A job is a generator of durations; INFINITE_NS is a procedure
that never returns.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from typing import TypeAlias

from qsctl.instant import INFINITE_NS, Nanoseconds

Job: TypeAlias = Generator[Nanoseconds, None, None]


class WorkerAgenda:
    """Due work by instant; work of the same instant is done in the order in which it was added."""

    def __init__(self) -> None:
        self._due: list[tuple[Nanoseconds, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, instant: Nanoseconds, action: Callable[[], None]) -> None:
        """Schedule an action at an instant; at INFINITE_NS it is never done."""
        if instant < INFINITE_NS:
            self._count += 1
            heapq.heappush(self._due, (instant, self._count, action))

    def next_instant(self) -> Nanoseconds | None:
        """Return the instant of the next action; None: there is none."""
        return self._due[0][0] if self._due else None

    def take(self, now: Nanoseconds) -> Callable[[], None] | None:
        """Remove and return one action that is due now; None: there is none."""
        if self._due and self._due[0][0] <= now:
            return heapq.heappop(self._due)[2]
        return None


class Worker:
    """The execution of one job at a time.

    Args:
        resume: called with a duration and a function to call after it.
        on_idle: called when a job is over.
    """

    def __init__(self, resume: Callable[[Nanoseconds, Callable[[], None]], None], on_idle: Callable[[], None]) -> None:
        self._resume = resume
        self._on_idle = on_idle
        self._job: Job | None = None

    @property
    def is_busy(self) -> bool:
        """Return whether a job is in progress, or never returns."""
        return self._job is not None

    def begin(self, job: Job) -> None:
        """Begin a job; it continues by itself."""
        assert self._job is None, "one job at a time"
        self._job = job
        self._go_on(job)

    def abort(self) -> None:
        """Abort the job, if there is one."""
        if self._job is not None:
            job, self._job = self._job, None
            job.close()

    def _go_on(self, job: Job) -> None:
        while self._job is job:
            try:
                duration_ns = next(job)
            except StopIteration:
                if self._job is job:
                    self._job = None
                    self._on_idle()
                return
            if duration_ns > 0:
                self._resume(duration_ns, lambda: self._go_on(job) if self._job is job else None)
                return
