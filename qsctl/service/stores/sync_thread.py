"""One sync in progress while the service works on [QS 2.14.2].

Decides: where a sync is done. Only the sync, in which the disk works and Python waits, has a thread of its own: two
threads that both write records would wait for the interpreter more than for the disk. Where the disk is quick even that
thread costs more than it gains, and the sync is waited for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from qsctl.storage.base import Sync

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

QUICK_SYNC_S: Final = 0.002
"""A sync that takes less is waited for: on a busy machine, to hand it to the other thread and back takes as long."""

TRIAL_AFTER: Final = 64
"""Number of syncs in the other thread after which one is waited for, to measure the disk itself: there, the wait for
the interpreter counts too.
"""

_LATEST: Final = 1 / 16
"""The part of the latest sync in the typical one."""

_OUTLIER: Final = 4
"""Largest multiple of a quick sync that one measurement counts: every disk is delayed now and then."""


class _QuickSyncs:
    """Waits for the syncs of a disk that is quick."""

    def __init__(self, quick_sync_s: float) -> None:
        self._quick_sync_s = quick_sync_s
        self._typical_s = 0.0
        self._left_to_others_count = 0

    def do(self, sync: Sync) -> bool:
        """Do a sync at once where that is worth it. False: it is still to be done."""
        is_trial = self._typical_s >= self._quick_sync_s
        if is_trial:
            self._left_to_others_count += 1
            if self._left_to_others_count <= TRIAL_AFTER or not self._quick_sync_s:
                return False
            self._left_to_others_count = 0
        began = time.perf_counter()
        sync()
        took_s = time.perf_counter() - began
        if is_trial:
            self._typical_s = took_s
        else:
            self._typical_s += (min(took_s, _OUTLIER * self._quick_sync_s) - self._typical_s) * _LATEST
        return True


class SyncThread:
    """Does one sync at a time. It belongs to one thread.

    Args:
        on_synced: called in the other thread when a sync that `begin` left to it is over; must not block.
        quick_sync_s: a disk that syncs in less is waited for; 0: none is.
    """

    def __init__(self, on_synced: Callable[[], object] = lambda: None, *, quick_sync_s: float = QUICK_SYNC_S) -> None:
        self._quick_syncs = _QuickSyncs(quick_sync_s)
        self._on_synced = on_synced
        self._sync: Future[None] | None = None
        self._thread: ThreadPoolExecutor | None = None

    def begin(self, sync: Sync) -> bool:
        """Do a sync, or leave it to the other thread; whether it is done. None may be in progress.

        Raises:
            Damaged: the disk refuses.
        """
        if self._quick_syncs.do(sync):
            return True
        if self._thread is None:
            from concurrent.futures import ThreadPoolExecutor  # a command that needs no thread starts without it

            self._thread = ThreadPoolExecutor(1, thread_name_prefix="qsctl-sync")
        self._sync = self._thread.submit(sync)
        self._sync.add_done_callback(lambda _: self._on_synced())
        return False

    @property
    def is_done(self) -> bool:
        """Return whether the sync that was left to the other thread is over; `end` gives how."""
        return self._sync is not None and self._sync.done()

    def end(self) -> None:
        """Wait for the sync in the other thread.

        Raises:
            Damaged: the disk refuses.
        """
        assert self._sync is not None
        sync, self._sync = self._sync, None
        sync.result()

    def close(self) -> None:
        """End the thread."""
        if self._thread is not None:
            self._thread.shutdown()
