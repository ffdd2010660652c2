"""The division of a service's loop time: samples first, and a fraction for each other kind of work while samples move.

Decides: how much time one peer can cost the others. Work that a peer can cause without limit, namely commands,
endpoints that appear and vanish, and endpoints that match nothing, is processed in short slices; while samples move, a
kind of work that has used up its credit waits until its use is back at its fraction. The credit lets rare work, such as
a consumer that joins or a command, be done at once. Without samples nothing waits, and nothing is lost.

Each time the loop wakes costs as much as ten endpoints that appear, and a thread that wakes often is scheduled late on
a busy machine. So while samples move, short work is done only a few times an interval, and the loop does not wake
before that work may continue.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Final

from qsctl.instant import MICROSECOND_NS, MILLISECOND_NS, SECOND_NS, Nanoseconds

BUSY_NS: Final[Nanoseconds] = SECOND_NS
"""Time after a sample, or an answer to one, in which others still count as waiting for theirs."""

BEHIND_MAX_NS: Final[Nanoseconds] = 5 * SECOND_NS
"""Time for which announcements may accumulate before processing them gets more of the time."""

SHORTEST_WAIT_NS: Final[Nanoseconds] = MILLISECOND_NS
"""Work that may go on now may be another's turn: the loop does not look all the time."""

PAUSE_MAX_NS: Final[Nanoseconds] = SECOND_NS
"""Longest wait of a kind of work, however long the last of its kind took: administration is always possible."""


class TimeShare:
    """The fraction of the loop's time for one kind of work, and the order of the workers that use it.

    Args:
        loop: knows whether samples move.
        fraction: of the time, while they do.
        credit_ns: what may be done at once, where little was done before.
        slice_ns: how long the work goes on at a time, while they do.
        rest_ns: how long a worker that had less to do than that rests then, while they do.

    Attributes:
        taken_ns: the time that it has taken since the start.
    """

    def __init__(
        self,
        loop: LoopTime,
        fraction: float,
        credit_ns: Nanoseconds,
        slice_ns: Nanoseconds,
        rest_ns: Nanoseconds = 0,
    ) -> None:
        self.fraction = fraction
        self.taken_ns: Nanoseconds = 0
        self._loop = loop
        self._slice_ns = slice_ns
        self._rest_ns = rest_ns
        self._credit_max_ns = credit_ns
        self._credit_ns: float = credit_ns
        """May be negative, by a pause's worth at most."""
        self._credited_at = loop.clock()
        self._began_at: Nanoseconds | None = None
        self._worker: Hashable = None
        self._waiting: dict[Hashable, bool] = {}
        """Those that may not begin, in order, and whether the loop wakes for them."""
        self._rests_until: dict[Hashable, Nanoseconds] = {}
        self._woken_for: set[Hashable] = set()
        """Those of the resting that have something to do."""

    def begins(self, worker: Hashable, *, wakes: bool = True) -> bool:
        """Begin a slice, which `end` ends; False: not yet, or another worker has waited for longer.

        Args:
            worker: whose.
            wakes: whether it has something to do, for which the loop is to wake once it may.
        """
        now = self._loop.clock()
        if self._loop.is_contended(now):
            if now < self._rests_until.get(worker, 0):
                if wakes:
                    self._woken_for.add(worker)
                return False
            self._waiting[worker] = self._waiting.get(worker, False) or wakes
            self._credit(now)
            if self._credit_ns < 0 or next(iter(self._waiting)) != worker:
                return False
        self.leave(worker)
        self._began_at, self._worker = now, worker
        return True

    def wait(self, worker: Hashable) -> None:
        """Let a worker that has more to do be in line, and the loop wake for it."""
        self._waiting[worker] = True

    @property
    def is_over(self) -> bool:
        """Return whether the slice has lasted long enough, while others wait."""
        now = self._loop.clock()
        return self._began_at is not None and now - self._began_at >= self._slice_ns and self._loop.is_contended(now)

    def goes_on_at(self) -> Nanoseconds | None:
        """Return when work that waits for its time may go on; None: none waits."""
        rests = [self._rests_until[worker] for worker in self._woken_for]
        if any(self._waiting.values()):
            rests.append(self._credited_at + int(max(0.0, -self._credit_ns) / self.fraction))
        return min(rests, default=None)

    def end(self) -> None:
        """End a slice, if one has begun."""
        if self._began_at is None:
            return
        now = self._loop.clock()
        took_ns, self._began_at = now - self._began_at, None
        self.taken_ns += took_ns
        self._credit(now)
        self._credit_ns = max(self._credit_ns - took_ns, -PAUSE_MAX_NS * self.fraction)
        if self._rest_ns and took_ns < self._slice_ns and self._loop.is_contended(now):
            self._rests_until[self._worker] = now + self._rest_ns

    def _credit(self, now: Nanoseconds) -> None:
        """Credit the share of the time since the last time."""
        earned_ns = (now - self._credited_at) * self.fraction
        self._credit_ns = min(self._credit_max_ns, self._credit_ns + earned_ns)
        self._credited_at = now

    def leave(self, worker: Hashable) -> None:
        """Wait no more for a worker: it begins, or is closed."""
        self._waiting.pop(worker, None)
        self._rests_until.pop(worker, None)
        self._woken_for.discard(worker)


class LoopTime:
    """The time of one loop.

    Args:
        clock: monotonic nanoseconds.

    Attributes:
        busy_ns: time after a sample in which other work keeps to its fraction; 0 where no peer has to be held back.
        commands: for administration.
        connection: for opening what readers and writers need that appear.
        discovery: for noticing readers and writers that appear and vanish, whatever they are.
        diagnosis: for finding out why a reader or writer matches nothing.
    """

    def __init__(self, clock: Callable[[], Nanoseconds] = time.monotonic_ns) -> None:
        self.clock = clock
        self.busy_ns: Nanoseconds = BUSY_NS
        self._busy_until: Nanoseconds = 0
        self._behind_since: dict[Hashable, Nanoseconds] = {}
        """Since when those that notice readers and writers have had more to do than they had time for."""
        self.commands = TimeShare(self, 0.25, 200 * MILLISECOND_NS, MILLISECOND_NS)
        self.connection = TimeShare(self, 0.2, 500 * MILLISECOND_NS, MILLISECOND_NS)
        self.discovery = TimeShare(self, 0.02, 20 * MILLISECOND_NS, MILLISECOND_NS, 50 * MILLISECOND_NS)
        self.diagnosis = TimeShare(self, 0.01, 20 * MILLISECOND_NS, 500 * MICROSECOND_NS)

    def noticing(self, worker: Hashable) -> TimeShare:
        """Return the share in which a worker notices readers and writers: a larger one where it is long behind.

        What is not noticed yet takes memory: a peer that announces more than the small share allows has it used up.
        """
        since = self._behind_since.get(worker)
        if since is None or self.clock() - since < BEHIND_MAX_NS:
            self.connection.leave(worker)
            return self.discovery
        self.discovery.leave(worker)
        return self.connection

    def note_left(self, worker: Hashable, *, is_left: bool) -> None:
        """Note whether more is left to be noticed than a slice had time for."""
        if is_left:
            self._behind_since.setdefault(worker, self.clock())
        else:
            self._behind_since.pop(worker, None)

    def leave(self, worker: Hashable) -> None:
        """Wait no more for a worker that notices readers and writers, and is closed."""
        self.note_left(worker, is_left=False)
        self.discovery.leave(worker)
        self.connection.leave(worker)

    def note_samples(self) -> None:
        """Note that samples, or answers to them, have come: for a moment everything else keeps to its share."""
        self._busy_until = self.clock() + self.busy_ns

    def is_contended(self, now: Nanoseconds) -> bool:
        """Return whether samples moved lately."""
        return now < self._busy_until

    def waits_ns(self) -> Nanoseconds | None:
        """Return how long to wait at most, for then some work may go on; None: none waits for its time."""
        ends = [at for share in self.shares().values() if (at := share.goes_on_at()) is not None]
        return max(SHORTEST_WAIT_NS, min(ends) - self.clock()) if ends else None

    def shares(self) -> dict[str, TimeShare]:
        """Return the kinds of work by name, as metrics call them."""
        return {
            "commands": self.commands,
            "connection": self.connection,
            "discovery": self.discovery,
            "diagnosis": self.diagnosis,
        }
