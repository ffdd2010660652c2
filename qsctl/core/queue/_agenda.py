"""The agenda: one heap of deadlines over every part of a service that has one.

Decides: how a driver's single timer is found among thousands of queues without polling each. The woken part finds its
due work: a queue checks its response time-outs, lifespans and waiting samples.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Protocol

from qsctl.instant import INFINITE_NS, Nanoseconds


class Sleeper(Protocol):
    """Something with deadlines. `wakes_at_ns` is the agenda's: no later than the earliest deadline."""

    wakes_at_ns: Nanoseconds

    def next_deadline(self) -> Nanoseconds | None:
        """Return the earliest deadline; None when there is none."""

    def advance(self, now: Nanoseconds) -> None:
        """Do what is due at `now`."""


class Agenda:
    """A heap with at most one valid entry a sleeper: the one whose time is the sleeper's `wakes_at_ns`.

    Deadlines mostly go away (a sample is acknowledged in time), so an entry may be too early, never too late; a sleeper
    found too early is asked again and moved on.
    """

    __slots__ = ("_entries", "_serial")

    def __init__(self) -> None:
        self._entries: list[tuple[Nanoseconds, int, Sleeper]] = []
        self._serial = 0

    def wake(self, sleeper: Sleeper, at_ns: Nanoseconds) -> None:
        """See to it that the sleeper is woken by `at_ns`."""
        if at_ns < sleeper.wakes_at_ns:
            sleeper.wakes_at_ns = at_ns
            self._serial += 1
            heappush(self._entries, (at_ns, self._serial, sleeper))

    def forget(self, sleeper: Sleeper) -> None:
        """Never wake it again: its queue was deleted."""
        sleeper.wakes_at_ns = INFINITE_NS

    def next_deadline(self) -> Nanoseconds | None:
        """Return the earliest deadline of all; None when there is no deadline."""
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
        """Wake every part whose deadline has passed, in the order of deadlines, each once.

        A part with more work than one turn allows is due at once, and woken by the next call: others do not wait for
        all of it.
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
