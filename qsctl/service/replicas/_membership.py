"""The members that a cluster was formed with [QS 7.2 and 7.3]: those named, or those that were discovered.

Decides: when the members are known. [QS 7.2] sets their number (`<queue_instances>`) and gives each instance an
application name; it does not specify how they discover each other. Our reading: without names on the command line the
members are the first services of this configuration's name, up to that number, that are in the domain together. From
then on they are kept with the replicas' log: the quorum must not depend on which services are present. A service
without names adopts those of another one, if its own is among them, or if it joins a running cluster. They identify the
cluster and do not change; which members there are now is in the replicas' logs, see `core.high_availability`.
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
        joins: whether the service is new to a cluster that was formed: it never forms one.
    """

    def __init__(self, name: str, count: int, names: Sequence[str] = (), *, joins: bool = False) -> None:
        self.name = name
        self.count = count
        self.names: tuple[str, ...] = tuple(sorted(names))
        self._joins = joins
        self._found: frozenset[str] = frozenset()
        self._found_at_ns: Nanoseconds = 0

    @property
    def is_known(self) -> bool:
        """Return whether the names of all members are known."""
        return bool(self.names)

    @property
    def is_joining(self) -> bool:
        """Return whether the service was not a member when the cluster was formed."""
        return self.name not in self.names if self.names else self._joins

    @property
    def stand_ins(self) -> tuple[str, ...]:
        """The names of the members; until they are known, the own name and names that no service can have."""
        first = 1 if self._joins else 2
        own = () if self._joins else (self.name,)
        return self.names or (*own, *(f"{_STAND_IN}{number}" for number in range(first, self.count + 1)))

    def find(self, now: Nanoseconds, others: Collection[str]) -> bool:
        """Update the discovered services; return whether this made the members known."""
        if self.is_known or self._joins:
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
        if self.is_known or len(names) != self.count or not (self._joins or self.name in names):
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
        if self._joins:
            return "no member of the cluster that it joins was found so far"
        found = ", ".join(sorted(self._found or {self.name}))
        if len(self._found) > self.count:
            return f"{len(self._found)} services are there ({found}), and queue_instances is {self.count}"
        return f"{max(1, len(self._found))} of {self.count} members were found so far: {found}"
