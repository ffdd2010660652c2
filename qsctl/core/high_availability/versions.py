"""The versions of the members of a cluster: what each understands of the frames that replicas exchange.

Decides: what may be sent to a member, and written to a group's log. A letter contains the version of its sender. Where
that is unknown, since no letter of the member has come or its version writes none, the earliest version is assumed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

EARLIEST: Final = 3
"""Version of members whose letters contain none. They drop a letter with a frame of a kind that they do not know."""

MEMBER_CHANGES: Final = 4
"""Version from which on a member replays changes of the members in the log of a group."""

SNAPSHOT_PIECES: Final = 5
"""Version from which on a member receives a snapshot in pieces."""

CONDITIONS: Final = 6
"""Version from which on a master receives the conditions of its slaves."""

HEARTBEATS: Final = 7
"""Version from which on a member receives `Heartbeat` frames."""

FIRST_MEMBERS: Final = 8
"""Version from which on a member creates a group with the members that the command names."""

PREFERENCES: Final = 9
"""Version from which on a member receives `Preference` frames."""

WITNESSES: Final = 10
"""Version from which on a member follows a list of members with witnesses."""

RUNS: Final = 11
"""Version from which on a member receives the entries of a run of samples as one object."""

VERSION: Final = 11
"""Version of this program. 4: frames of unknown kinds are skipped one by one."""

NOTED_MAX: Final = 256
"""Members of which the version is recorded; those whose letters are oldest are forgotten first."""


class Versions:
    """The versions of the other members, by name, each from the latest letter of the member."""

    def __init__(self) -> None:
        self._noted: dict[str, int] = {}

    def note(self, member: str, version: int) -> bool:
        """Record the version in a letter of a member; return whether another one was known or assumed."""
        is_changed = version != self.of(member)
        self._noted.pop(member, None)
        self._noted[member] = version
        if len(self._noted) > NOTED_MAX:
            del self._noted[next(iter(self._noted))]
        return is_changed

    def of(self, member: str) -> int:
        """Return the version of another member."""
        return self._noted.get(member, EARLIEST)

    def noted(self, member: str) -> int | None:
        """Return the version of another member by its letters; None: none has come."""
        return self._noted.get(member)

    def common(self, others: Iterable[str]) -> int:
        """Return the version that this member and the others all understand: the lowest."""
        return min([VERSION, *map(self.of, others)])
