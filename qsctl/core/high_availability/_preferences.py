"""The members that are preferred as masters: by their priorities, and without those that are drained [QS 7.1.2].

Decides: whose announcement counts, and for how long. A preference never excludes a member from an election, which
decides by logs alone: it delays a candidacy, and lets a master hand over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from qsctl.core.high_availability.frames import Preference
from qsctl.instant import Nanoseconds

PRIORITY_MAX: Final = 100
"""The highest priority; 0 is that of a member that announces none."""

ANNOUNCED_TIMEOUTS: Final = 5
"""Multiple of `master_timeout` for which an announcement counts; a follower sends one in each."""


@dataclass
class OwnPreference:
    """The preference for one process as master, common to all of its replicas."""

    priority: int = 0
    is_drained: bool = False
    """Whether it is to be no master any more, by an operator's command."""


class Preferences:
    """The preferences for the members of one group.

    Args:
        own: that for this process.
        master_timeout_ns: the setting.
    """

    def __init__(self, own: OwnPreference, master_timeout_ns: Nanoseconds) -> None:
        self.own = own
        self._master_timeout_ns = master_timeout_ns
        self._announced: dict[str, tuple[Nanoseconds, Preference]] = {}
        self._announces_from_ns: Nanoseconds = 0

    def note(self, now: Nanoseconds, announced: Preference) -> None:
        """Note what another member announced."""
        self._announced[announced.sender] = now, announced

    def pop_is_due(self, now: Nanoseconds) -> bool:
        """Return whether this process is to announce its preference now; one that announces none has priority 0."""
        if now < self._announces_from_ns or not (self.own.priority or self.own.is_drained):
            return False
        self._announces_from_ns = now + self._master_timeout_ns
        return True

    def announce_again(self) -> None:
        """Let the next announcement be due at once: the preference changed."""
        self._announces_from_ns = 0

    def priority(self, now: Nanoseconds, member: str) -> int:
        """Return the priority of another member."""
        return self.announced_priority(now, member) or 0

    def announced_priority(self, now: Nanoseconds, member: str) -> int | None:
        """Return the priority that another member announced lately; None: it announced none."""
        announced = self._latest(now, member)
        return None if announced is None else announced.priority

    def is_drained(self, now: Nanoseconds, member: str, run: int | None = None) -> bool:
        """Return whether another member is not to be master; `run` is its present process, if that is known."""
        announced = self._latest(now, member)
        return announced is not None and announced.is_drained and run in (None, announced.run)

    def prefers_another(self, now: Nanoseconds, members: Iterable[str]) -> bool:
        """Return whether one of these members is preferred to this process."""
        return bool(self._announced) and any(self.is_preferred(now, each) for each in members)

    def is_preferred(self, now: Nanoseconds, member: str, run: int | None = None) -> bool:
        """Return whether another member is preferred to this process as master."""
        return self.priority(now, member) > self.own.priority and not self.is_drained(now, member, run)

    def _latest(self, now: Nanoseconds, member: str) -> Preference | None:
        at_ns, announced = self._announced.get(member, (0, None))
        return announced if now - at_ns <= ANNOUNCED_TIMEOUTS * self._master_timeout_ns else None
