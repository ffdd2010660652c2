"""The members of a cluster [QS 7.2 and 7.3]: the services that were named, or those that were discovered.

Decides: when the members are known. [QS 7.2] sets their number (`<queue_instances>`) and gives each instance an
application name; it does not specify how they discover each other. Our reading: without names on the command line the
members are the first services of this configuration's name, up to that number, that are in the domain together. From
then on they are fixed, and kept with the replicas' log: the quorum must not depend on which services are present.
A service without names adopts those of another one, if its own is among them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from qsctl.instant import SECOND_NS, Nanoseconds

UNCHANGED_NS: Final[Nanoseconds] = SECOND_NS // 2
"""Time for which the discovered services must be unchanged before they count as complete."""

_STAND_IN: Final = "?"


class Membership:
    """The names of a cluster's members, known or still to be discovered.

    Args:
        name: this service's application name.
        count: the number of members.
        names: the names of all members; empty: to be discovered.
    """

    def __init__(self, name: str, count: int, names: Sequence[str] = ()) -> None:
        self.name = name
        self.count = count
        self.names: tuple[str, ...] = tuple(sorted(names))
        self._found: frozenset[str] = frozenset()
        self._found_at_ns: Nanoseconds = 0

    @property
    def is_known(self) -> bool:
        """Return whether the names of all members are known."""
        return bool(self.names)

    @property
    def stand_ins(self) -> tuple[str, ...]:
        """The names of the members; until they are known, the own name and names that no service can have."""
        return self.names or (self.name, *(f"{_STAND_IN}{number}" for number in range(2, self.count + 1)))

    def find(self, now: Nanoseconds, others: Collection[str]) -> bool:
        """Update the discovered services; return whether this made the members known."""
        if self.is_known:
            return False
        found = frozenset(others) | {self.name}
        if found != self._found:
            self._found, self._found_at_ns = found, now
        if len(found) != self.count or now - self._found_at_ns < UNCHANGED_NS:
            return False
        self.names = tuple(sorted(found))
        return True

    def next_deadline(self) -> Nanoseconds | None:
        """Return when `find` must be called without a change of services; None: never."""
        return None if self.is_known or len(self._found) != self.count else self._found_at_ns + UNCHANGED_NS

    def learn(self, names: Sequence[str]) -> bool:
        """Adopt the names known to another member; return whether they were unknown before."""
        if self.is_known or len(names) != self.count or self.name not in names:
            return False
        self.names = tuple(sorted(names))
        return True

    def agrees(self, names: Sequence[str]) -> bool:
        """Return whether another service's member names are the same, or either side does not know them."""
        return not names or not self.is_known or tuple(sorted(names)) == self.names

    @property
    def lack(self) -> str:
        """The reason, for people, why the members are not known yet; empty: they are known."""
        if self.is_known:
            return ""
        found = ", ".join(sorted(self._found or {self.name}))
        if len(self._found) > self.count:
            return f"{len(self._found)} services are there ({found}), and queue_instances is {self.count}"
        return f"{max(1, len(self._found))} of {self.count} members were found so far: {found}"
