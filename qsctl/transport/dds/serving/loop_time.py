"""The division of a service's loop time: samples first, and a fraction for each other kind of work while samples move.

Decides: how much time one peer can cost the others. Work that a peer can cause without limit, namely commands,
endpoints that appear and vanish, and endpoints that match nothing, is processed in short slices. While samples move, a
kind of work that has used up its credit waits until its average use has fallen to its fraction. The credit lets rare
work, such as a joining consumer or a command, be done at once. Without samples nothing waits, and nothing is lost.

Each wake-up of the loop costs as much as ten endpoints that appear, and a thread that wakes often is scheduled late on
a busy machine. So while samples move, short work is done only a few times per interval, and the loop does not wake
before that work may continue.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Final

from qsctl.instant import MICROSECOND_NS, MILLISECOND_NS, SECOND_NS, Nanoseconds

BUSY_NS: Final[Nanoseconds] = SECOND_NS
"""Time after a sample, or an answer to one, during which the service still counts as contended."""

BEHIND_MAX_NS: Final[Nanoseconds] = 5 * SECOND_NS
"""Time for which announcements may accumulate before they get a larger share."""

SHORTEST_WAIT_NS: Final[Nanoseconds] = MILLISECOND_NS
"""Shortest wait for work that may continue: it may be another worker's turn, and the loop must not spin."""

PAUSE_MAX_NS: Final[Nanoseconds] = SECOND_NS
"""Longest pause of a kind of work, however long its last slice took, so that administration is always possible."""


class TimeShare:
    """The fraction of the loop's time for one kind of work, and the order of the workers that use it.

    `fraction`, `slice_ns` and `rest_ns` apply only while samples move.

    Args:
        loop: determines whether samples are moving.
        fraction: of the loop's time.
        credit_ns: time that may be used at once after a period of little use.
        slice_ns: duration of one slice of work.
        rest_ns: time for which a worker rests after it needed less than a slice.

    Attributes:
        taken_ns: the time used since the start.
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
        """The present credit; it may be negative, down to the credit earned in the longest pause."""
        self._credited_at = loop.clock()
        self._began_at: Nanoseconds | None = None
        self._worker: Hashable = None
        self._waiting: dict[Hashable, bool] = {}
        """Workers that may not begin yet, in order, and whether the loop wakes for them."""
        self._rests_until: dict[Hashable, Nanoseconds] = {}
        self._woken_for: set[Hashable] = set()
        """The resting workers that have work to do."""

    def begins(self, worker: Hashable, *, wakes: bool = True) -> bool:
        """Begin a slice, which `end` ends; return False if the credit is used up, or another worker has waited longer.

        Args:
            worker: the worker.
            wakes: whether it has work to do, for which the loop must wake once it may begin.
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
        """Put a worker with more work into the line, and let the loop wake for it."""
        self._waiting[worker] = True

    @property
    def is_over(self) -> bool:
        """Return whether the slice has lasted long enough, while samples are moving."""
        now = self._loop.clock()
        return self._began_at is not None and now - self._began_at >= self._slice_ns and self._loop.is_contended(now)

    def goes_on_at(self) -> Nanoseconds | None:
        """Return the instant at which waiting work may continue; None: none waits."""
        rests = [self._rests_until[worker] for worker in self._woken_for]
        if any(self._waiting.values()):
            rests.append(self._credited_at + int(max(0.0, -self._credit_ns) / self.fraction))
        return min(rests, default=None)

    def end(self) -> None:
        """End the present slice, if there is one."""
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
        """Add the credit earned since the last call."""
        earned_ns = (now - self._credited_at) * self.fraction
        self._credit_ns = min(self._credit_max_ns, self._credit_ns + earned_ns)
        self._credited_at = now

    def leave(self, worker: Hashable) -> None:
        """Remove a worker from the line: it begins, or is closed."""
        self._waiting.pop(worker, None)
        self._rests_until.pop(worker, None)
        self._woken_for.discard(worker)


class LoopTime:
    """The time of one loop.

    Args:
        clock: returns monotonic nanoseconds.

    Attributes:
        busy_ns: time after a sample in which other work is limited to its fraction; 0: it is never limited.
        commands: for administration.
        connection: for opening the entities that appeared readers and writers need.
        discovery: for processing appeared and vanished readers and writers of any kind.
        diagnosis: for explaining why a reader or writer matches nothing.
    """

    def __init__(self, clock: Callable[[], Nanoseconds] = time.monotonic_ns) -> None:
        self.clock = clock
        self.busy_ns: Nanoseconds = BUSY_NS
        self._busy_until: Nanoseconds = 0
        self._behind_since: dict[Hashable, Nanoseconds] = {}
        """Instant since which each worker of discovery has had more announcements than time."""
        self.commands = TimeShare(self, 0.25, 200 * MILLISECOND_NS, MILLISECOND_NS)
        self.connection = TimeShare(self, 0.2, 500 * MILLISECOND_NS, MILLISECOND_NS)
        self.discovery = TimeShare(self, 0.02, 20 * MILLISECOND_NS, MILLISECOND_NS, 50 * MILLISECOND_NS)
        self.diagnosis = TimeShare(self, 0.01, 20 * MILLISECOND_NS, 500 * MICROSECOND_NS)

    def noticing(self, worker: Hashable) -> TimeShare:
        """Return the share in which a worker processes announcements: a larger one if it has been behind for long.

        Unprocessed announcements use memory; a peer that announces more than the small share allows uses up the larger
        one.
        """
        since = self._behind_since.get(worker)
        if since is None or self.clock() - since < BEHIND_MAX_NS:
            self.connection.leave(worker)
            return self.discovery
        self.discovery.leave(worker)
        return self.connection

    def note_left(self, worker: Hashable, *, is_left: bool) -> None:
        """Record whether announcements are left after a slice."""
        if is_left:
            self._behind_since.setdefault(worker, self.clock())
        else:
            self._behind_since.pop(worker, None)

    def leave(self, worker: Hashable) -> None:
        """Remove a worker of discovery, which is closed."""
        self.note_left(worker, is_left=False)
        self.discovery.leave(worker)
        self.connection.leave(worker)

    def note_samples(self) -> None:
        """Record that samples, or answers to them, have arrived: other work is limited to its shares for a moment."""
        self._busy_until = self.clock() + self.busy_ns

    def is_contended(self, now: Nanoseconds) -> bool:
        """Return whether samples moved recently."""
        return now < self._busy_until

    def waits_ns(self) -> Nanoseconds | None:
        """Return the time after which some waiting work may continue; None: none waits."""
        ends = [at for share in self.shares().values() if (at := share.goes_on_at()) is not None]
        return max(SHORTEST_WAIT_NS, min(ends) - self.clock()) if ends else None

    def shares(self) -> dict[str, TimeShare]:
        """Return the shares by the names of their kinds of work, as in metrics."""
        return {
            "commands": self.commands,
            "connection": self.connection,
            "discovery": self.discovery,
            "diagnosis": self.diagnosis,
        }
