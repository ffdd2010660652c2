"""Turns with one sync under way while the next gather.

Decides: when a turn may run ahead of the disk. The engine works on while the disk syncs what it did before; nothing
leaves before it is stored, and in the order of the turns. A sync takes as long for one sample as for hundreds, so the
busier the service, the more share one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from qsctl.core.messages import Inbound
from qsctl.core.ready import Ready
from qsctl.service.loop import ServiceLoop, changes_queues, up_to_each_change
from qsctl.storage.group_commit import QUICK_SYNC_S, GroupCommit

COMPACT_AFTER_RECORDS: Final = 500_000
"""How many records may be stored before a busy service looks whether a store is worth compacting."""

COMPACT_QUIET_AFTER_RECORDS: Final = 5_000
"""How many, when the service has nothing to do."""

TURNS_AHEAD_MAX: Final = 64
"""Turns that may wait for their commit; then `begin` waits too: that is back-pressure."""

RECORDS_AHEAD_MAX: Final = 8_000
"""Records that may wait for their commit, for the same reason: they are written in one go, in which all else waits."""

_NOTHING: Final = object()


class PipelinedLoop:
    """A service loop that works on while the disk syncs. Close it before the stores.

    Args:
        loop: whose engine and stores are used.
        on_finished: called in another thread when `take_finished` has something; must not block.
        turns_ahead_max: how many turns may wait for their commit.
        quick_sync_s: a disk that syncs in less is waited for; 0: none is.
    """

    def __init__(
        self,
        loop: ServiceLoop,
        on_finished: Callable[[], object] = lambda: None,
        *,
        turns_ahead_max: int = TURNS_AHEAD_MAX,
        quick_sync_s: float = QUICK_SYNC_S,
    ) -> None:
        self.loop = loop
        self._turns_ahead_max = turns_ahead_max
        self._commits = GroupCommit(loop.stores.write, on_finished, quick_sync_s=quick_sync_s)
        self._record_count = 0
        self._compaction: Iterator[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether everything that was begun has been taken."""
        return self._commits.is_idle

    def begin(self, inbox: Sequence[Inbound] = ()) -> None:
        """Let the engine take a turn, and have its records stored.

        Raises:
            Damaged: the disk refuses.
        """
        if self.loop.recovery.is_needed:
            self._recover()
        for part in up_to_each_change(inbox):
            ready = self.loop.take(part)
            if changes_queues(ready):
                self._commits.finish()
                opened = self.loop.follow()
                self._commits.submit(ready)
                self._commits.finish()
                if opened:
                    self.loop.adopt(opened)
            elif ready.records or ready.messages or ready.events:
                self._commits.submit(ready)
            self._record_count += len(ready.records)
            stores = self.loop.stores
            if self._compaction is not None or self._record_count >= COMPACT_AFTER_RECORDS:
                self.compact_on()
            elif stores.is_log_long:
                self._compaction = stores.keep_logs_short()
                self.compact_on()
        while self._commits.pending_count > self._turns_ahead_max or self._gathered_count > RECORDS_AHEAD_MAX:
            self._commits.wait()

    def _recover(self) -> None:
        """Bring the engine in step with stores that fail, or have little room. All that it gave is stored before."""
        self._commits.finish()
        self.loop.recovery.heed()
        self.loop.recovery.attempt()

    @property
    def _gathered_count(self) -> int:
        return sum(len(ready.records) for ready in self._commits.gathering)

    def settle(self) -> None:
        """Make durable what waits for a next turn: none may come.

        Raises:
            Damaged: the disk refuses; the service must stop.
        """
        if self.is_idle:
            self.loop.stores.settle()

    def rest(self) -> None:
        """There is nothing to do for a while: settle, and compact what is worth it.

        Raises:
            Damaged: the disk refuses; the service must stop.
        """
        self.settle()
        if self.loop.recovery.is_needed:
            self._recover()
        if self._record_count >= COMPACT_QUIET_AFTER_RECORDS and self.is_idle:
            self.compact_on()

    def take_finished(self) -> list[Ready]:
        """The turns that are stored, in order: send their messages, tell their events.

        Raises:
            Damaged: the disk refused; the service must stop.
        """
        return self._commits.take_done()

    def drain(self) -> list[Ready]:
        """Wait for everything that was begun, and take it.

        Raises:
            Damaged: the disk refused; the service must stop.
        """
        return self._commits.drain()

    def close(self) -> None:
        """Store what was begun and end the thread; `take_finished` still gives what it covers."""
        self._commits.close()

    @property
    def is_compacting(self) -> bool:
        """Whether `compact_on` has more to do."""
        return self._compaction is not None

    def compact_on(self) -> None:
        """Compact a share more of the stores for which it pays; begin with it, if none is under way.

        Raises:
            Damaged: the disk refuses; the service must stop.
        """
        if self._compaction is None:
            self._record_count = 0
            self._compaction = self.loop.compact_in_shares()
        self._commits.finish()
        if next(self._compaction, _NOTHING) is _NOTHING:
            self._compaction = None
