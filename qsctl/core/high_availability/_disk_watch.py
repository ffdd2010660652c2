"""A watch over the syncs of a replica: its disk may hang [QS 7.1.2].

Decides: when a disk hangs: a write waits, and no sync ended for `master_timeout`. A replica whose disk hangs can commit
nothing, and its votes cannot leave; so it leads no group and begins no election until a sync ends.
"""

from __future__ import annotations

from typing import Final

from qsctl.core.high_availability.outgoing import Outgoing
from qsctl.instant import Nanoseconds

LOOKS_PER_TIMEOUT: Final = 10
"""Number of looks in `master_timeout` that count: one that follows another at once shows nothing new."""


class DiskWatch:
    """One replica's watch over the syncs of its writes.

    Args:
        outgoing: the writes.
        master_timeout_ns: the setting.
    """

    def __init__(self, outgoing: Outgoing, master_timeout_ns: Nanoseconds) -> None:
        self._outgoing = outgoing
        self._timeout_ns = master_timeout_ns
        self._since_ns: Nanoseconds | None = None
        """Since when a write waits and no sync has ended, as far as was seen; None: no write waits."""
        self._looked_at_ns: Nanoseconds = 0
        self.hangs = False

    def synced(self) -> None:
        """Note that a sync ended."""
        self._since_ns = None
        self.hangs = False

    def look(self, now: Nanoseconds) -> bool:
        """Look whether a write waits; return whether the disk is found to hang, and was not before.

        The time since the latest look does not count: the process may have been paused in it, and the end of the sync
        not be reported yet.
        """
        if self._outgoing.is_durable:
            self._since_ns = None
            return False
        if self._since_ns is None:
            self._since_ns = self._looked_at_ns = now
        if self.hangs or now - self._looked_at_ns < self._timeout_ns // LOOKS_PER_TIMEOUT:
            return False
        self.hangs = self._looked_at_ns - self._since_ns > self._timeout_ns
        self._looked_at_ns = now
        return self.hangs
