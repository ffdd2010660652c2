"""The virtual clock of a world: a queue of future events, and the fingerprint of everything that happened.

Invariant: events of the same instant run in the order in which they were scheduled, so that one seed gives one history.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from qsctl.instant import INFINITE_NS, Nanoseconds

Action: TypeAlias = Callable[[], None]

RECENT_COUNT: Final = 400
"""Lines of a history that are kept, to be shown with a violation."""


class WorldAgenda:
    """The discrete-event queue of a world: actions ordered by instant, and the present instant `now`."""

    def __init__(self) -> None:
        self.now: Nanoseconds = 0
        self._due: list[tuple[Nanoseconds, int, Action]] = []
        self._planned_count = 0

    def at(self, instant: Nanoseconds, action: Action) -> None:
        """Schedule an action: at once if the instant has passed, never if it is infinite."""
        if instant < INFINITE_NS:
            heapq.heappush(self._due, (max(instant, self.now), self._planned_count, action))
            self._planned_count += 1

    def after(self, duration: Nanoseconds, action: Action) -> None:
        """Schedule an action a duration from now."""
        self.at(self.now + duration, action)

    @property
    def next_instant(self) -> Nanoseconds:
        """Return the instant of the next action; infinite if none is scheduled."""
        return self._due[0][0] if self._due else INFINITE_NS

    def step(self) -> None:
        """Advance the clock to the next action and run it."""
        self.now, _, action = heapq.heappop(self._due)
        action()


class Trace:
    """A running hash of everything that happened, and its last lines as text."""

    def __init__(self, agenda: WorldAgenda) -> None:
        self._agenda = agenda
        self._hash = hashlib.blake2b(digest_size=16)
        self._encode = msgspec.msgpack.Encoder().encode
        self._recent: deque[tuple[Nanoseconds, str, tuple[object, ...]]] = deque(maxlen=RECENT_COUNT)
        self.count = 0

    def note(self, what: str, *of: object) -> None:
        """Add one event to the hash; `of` consists of numbers, texts and messages only."""
        line = (self._agenda.now, what, of)
        self._hash.update(self._encode(line))
        self._recent.append(line)
        self.count += 1

    @property
    def fingerprint(self) -> str:
        """Return the hash so far, in hexadecimal digits: equal for equal histories."""
        return self._hash.hexdigest()

    def recent(self, count: int = RECENT_COUNT) -> list[str]:
        """Return at most `count` last lines, oldest first; each begins with its instant in seconds."""
        lines = list(self._recent)[-count:]
        return [f"{at / 1e9:.6f} {what} {' '.join(str(each) for each in of)}" for at, what, of in lines]
