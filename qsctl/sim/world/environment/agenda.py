"""The virtual clock of a world: what is due when, and the fingerprint of everything that was done.

Invariant: what is due at one instant is done in the order in which it was planned, so that one seed gives one history.
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
"""Lines of a history that are kept to be shown with a violation."""


class WorldAgenda:
    """Due work, by instant."""

    def __init__(self) -> None:
        self.now: Nanoseconds = 0
        self._due: list[tuple[Nanoseconds, int, Action]] = []
        self._planned_count = 0

    def at(self, instant: Nanoseconds, action: Action) -> None:
        """Do something at an instant; one that has passed: now. An infinite one never comes."""
        if instant < INFINITE_NS:
            heapq.heappush(self._due, (max(instant, self.now), self._planned_count, action))
            self._planned_count += 1

    def after(self, duration: Nanoseconds, action: Action) -> None:
        """Do something after a while."""
        self.at(self.now + duration, action)

    @property
    def next_instant(self) -> Nanoseconds:
        """Return when something is due next."""
        return self._due[0][0] if self._due else INFINITE_NS

    def step(self) -> None:
        """Do what is due first."""
        self.now, _, action = heapq.heappop(self._due)
        action()


class Trace:
    """Everything that was done, as a hash, and the last of it as text."""

    def __init__(self, agenda: WorldAgenda) -> None:
        self._agenda = agenda
        self._hash = hashlib.blake2b(digest_size=16)
        self._encode = msgspec.msgpack.Encoder().encode
        self._recent: deque[tuple[Nanoseconds, str, tuple[object, ...]]] = deque(maxlen=RECENT_COUNT)
        self.count = 0

    def note(self, what: str, *of: object) -> None:
        """Note one thing that was done; `of` holds numbers, texts and messages only."""
        line = (self._agenda.now, what, of)
        self._hash.update(self._encode(line))
        self._recent.append(line)
        self.count += 1

    @property
    def fingerprint(self) -> str:
        """The hash so far: equal for equal histories."""
        return self._hash.hexdigest()

    def recent(self, count: int = RECENT_COUNT) -> list[str]:
        """Return the last lines, oldest first, in seconds."""
        lines = list(self._recent)[-count:]
        return [f"{at / 1e9:.6f} {what} {' '.join(str(each) for each in of)}" for at, what, of in lines]
