"""How a service divides the time of its loop: samples first, and a share each for everything else while they move.

Decides: how much of the others' time one peer can take. What a peer can ask for without end, namely commands, endpoints
that come and go, and endpoints that match nothing, is processed in short slices; while samples move, a kind of work
that has used up its credit waits until it has had no more than its share. The credit lets what happens now and then,
such as a consumer that comes or a command, be done at once. Without samples nothing waits, and nothing is lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Final

from qsctl.instant import MICROSECOND_NS, MILLISECOND_NS, SECOND_NS, Nanoseconds

BUSY_NS: Final[Nanoseconds] = SECOND_NS
"""How long after a sample, or an answer to one, others still count as waiting for theirs."""

PAUSE_MAX_NS: Final[Nanoseconds] = SECOND_NS
"""How long work waits at most, however long the last of its kind took: administration is always possible."""


class TimeShare:
    """The share of the loop's time for one kind of work, and who of several is next to do it.

    Args:
        loop: says whether samples move.
        fraction: of the time, while they do.
        credit_ns: what may be done at once, where little was done before.
        slice_ns: how long the work goes on at a time, while they do.

    Attributes:
        taken_ns: the time that it has taken since the start.
    """

    def __init__(self, loop: LoopTime, fraction: float, credit_ns: Nanoseconds, slice_ns: Nanoseconds) -> None:
        self.fraction = fraction
        self.taken_ns: Nanoseconds = 0
        self._loop = loop
        self._slice_ns = slice_ns
        self._credit_max_ns = credit_ns
        self._credit_ns: float = credit_ns
        """May be negative, by a pause's worth at most."""
        self._credited_at = loop.clock()
        self._began_at: Nanoseconds | None = None
        self._waiting: dict[Hashable, None] = {}

    def begins(self, worker: Hashable) -> bool:
        """Begin a slice, which `end` ends; False: not yet, or another worker has waited for longer."""
        now = self._loop.clock()
        if self._loop.is_contended(now):
            self._waiting.setdefault(worker)
            self._credit(now)
            if self._credit_ns < 0 or next(iter(self._waiting)) != worker:
                return False
        self._waiting.pop(worker, None)
        self._began_at = now
        return True

    @property
    def is_over(self) -> bool:
        """Whether the slice has lasted long enough, while others wait."""
        now = self._loop.clock()
        return self._began_at is not None and now - self._began_at >= self._slice_ns and self._loop.is_contended(now)

    @property
    def is_waited_for(self) -> bool:
        """Whether somebody's work waits for its time."""
        return bool(self._waiting)

    def end(self) -> None:
        """End a slice, if one has begun."""
        if self._began_at is None:
            return
        now = self._loop.clock()
        took_ns, self._began_at = now - self._began_at, None
        self.taken_ns += took_ns
        self._credit(now)
        self._credit_ns = max(self._credit_ns - took_ns, -PAUSE_MAX_NS * self.fraction)

    def _credit(self, now: Nanoseconds) -> None:
        """Credit the share of the time since the last time."""
        earned_ns = (now - self._credited_at) * self.fraction
        self._credit_ns = min(self._credit_max_ns, self._credit_ns + earned_ns)
        self._credited_at = now

    def leave(self, worker: Hashable) -> None:
        """Wait no more for a worker that is closed."""
        self._waiting.pop(worker, None)


class LoopTime:
    """The time of one loop.

    Args:
        clock: monotonic nanoseconds.

    Attributes:
        commands: for administration.
        discovery: for readers and writers that appear and vanish.
        diagnosis: for finding out why a reader or writer matches nothing.
    """

    def __init__(self, clock: Callable[[], Nanoseconds] = time.monotonic_ns) -> None:
        self.clock = clock
        self._busy_until: Nanoseconds = 0
        self.commands = TimeShare(self, 0.25, 200 * MILLISECOND_NS, MILLISECOND_NS)
        self.discovery = TimeShare(self, 0.2, 500 * MILLISECOND_NS, MILLISECOND_NS)
        self.diagnosis = TimeShare(self, 0.05, 50 * MILLISECOND_NS, 500 * MICROSECOND_NS)

    def note_samples(self) -> None:
        """Samples, or answers to them, have come: for a moment everything else keeps to its share."""
        self._busy_until = self.clock() + BUSY_NS

    def is_contended(self, now: Nanoseconds) -> bool:
        """Whether samples moved lately."""
        return now < self._busy_until

    @property
    def is_waited_for(self) -> bool:
        """Whether some work waits for its time: look again soon."""
        return self.commands.is_waited_for or self.discovery.is_waited_for or self.diagnosis.is_waited_for

    def shares(self) -> dict[str, TimeShare]:
        """Return the kinds of work by name, as metrics call them."""
        return {"commands": self.commands, "discovery": self.discovery, "diagnosis": self.diagnosis}
