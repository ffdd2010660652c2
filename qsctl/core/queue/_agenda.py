"""The agenda: one heap of the deadlines of all queues of a service.

Decides: which queues to wake, so that a driver needs a single timer and no poll of thousands of queues. A woken queue
itself finds its due response time-outs, lifespans and waiting samples.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Protocol

from qsctl.instant import INFINITE_NS, Nanoseconds


class Sleeper(Protocol):
    """A part with deadlines. Only the agenda changes `wakes_at_ns`, which is never later than the earliest deadline."""

    wakes_at_ns: Nanoseconds

    def next_deadline(self) -> Nanoseconds | None:
        """Return the earliest deadline; None: there is none."""

    def advance(self, now: Nanoseconds) -> None:
        """Do the work that is due at `now`."""


class Agenda:
    """A heap with at most one valid entry per sleeper: the one whose time is the sleeper's `wakes_at_ns`.

    Most deadlines are cancelled, for example when a sample is acknowledged in time, so an entry may be too early but
    never too late. A sleeper whose entry is too early is entered again with its present deadline.
    """

    __slots__ = ("_entries", "_serial")

    def __init__(self) -> None:
        self._entries: list[tuple[Nanoseconds, int, Sleeper]] = []
        self._serial = 0

    def wake(self, sleeper: Sleeper, at_ns: Nanoseconds) -> None:
        """Ensure that the sleeper is woken at `at_ns` or earlier."""
        if at_ns < sleeper.wakes_at_ns:
            sleeper.wakes_at_ns = at_ns
            self._serial += 1
            heappush(self._entries, (at_ns, self._serial, sleeper))

    def forget(self, sleeper: Sleeper) -> None:
        """Stop waking a sleeper whose queue was deleted."""
        sleeper.wakes_at_ns = INFINITE_NS

    def next_deadline(self) -> Nanoseconds | None:
        """Return the earliest deadline of all sleepers; None: there is none."""
        entries = self._entries
        while entries:
            at_ns, _, sleeper = entries[0]
            if sleeper.wakes_at_ns == at_ns:
                actual = sleeper.next_deadline()
                if actual is not None and actual <= at_ns:
                    return at_ns
                self._put_off(sleeper, actual)
            else:
                heappop(entries)
        return None

    def advance(self, now: Nanoseconds) -> None:
        """Wake every sleeper whose deadline has passed, in the order of deadlines, each once.

        A sleeper with more work than one turn allows reports a deadline that is due at once; the next call wakes it
        again, so that others need not wait for all of its work.
        """
        if not self._entries or self._entries[0][0] > now:  # no entry is too late
            return
        woken: list[Sleeper] = []
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            sleeper = heappop(self._entries)[2]
            sleeper.wakes_at_ns = INFINITE_NS
            woken.append(sleeper)
        for sleeper in woken:
            sleeper.advance(now)
        for sleeper in woken:
            self._enter(sleeper, sleeper.next_deadline())

    def _put_off(self, sleeper: Sleeper, actual: Nanoseconds | None) -> None:
        heappop(self._entries)
        sleeper.wakes_at_ns = INFINITE_NS
        self._enter(sleeper, actual)

    def _enter(self, sleeper: Sleeper, deadline: Nanoseconds | None) -> None:
        if deadline is not None:
            self.wake(sleeper, deadline)
