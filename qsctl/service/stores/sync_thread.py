"""Syncs in the background, one at a time, while the service works [QS 2.14.2].

Decides: in which thread a sync runs. Only the sync, during which Python waits for the disk, has a thread of its own:
two threads that both write records would wait for the interpreter more than for the disk. On a fast disk even that
thread costs more than it gains, and the sync runs in the calling thread.
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
    """The choice of the thread for each sync, by the measured durations; fast ones run in the calling thread."""

    def __init__(self, quick_sync_s: float) -> None:
        self._quick_sync_s = quick_sync_s
        self._typical_s = 0.0
        self._left_to_others_count = 0

    def do(self, sync: Sync) -> bool:
        """Run a sync now if the disk is fast; return False if the caller must run it."""
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
    """A runner of one sync at a time, used by one thread.

    Args:
        on_synced: called in the other thread when a sync there has finished; must not block.
        quick_sync_s: a faster sync runs in the calling thread; 0: none does.
    """

    def __init__(self, on_synced: Callable[[], object] = lambda: None, *, quick_sync_s: float = QUICK_SYNC_S) -> None:
        self._quick_syncs = _QuickSyncs(quick_sync_s)
        self._on_synced = on_synced
        self._sync: Future[None] | None = None
        self._thread: ThreadPoolExecutor | None = None

    def begin(self, sync: Sync) -> bool:
        """Run a sync, or start it in the other thread; return whether it has finished. None may be in progress.

        Raises:
            Damaged: an I/O error occurs.
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
        """Return whether the sync in the other thread has finished; `end` raises its error."""
        return self._sync is not None and self._sync.done()

    def end(self) -> None:
        """Wait for the sync in the other thread.

        Raises:
            Damaged: an I/O error occurs.
        """
        assert self._sync is not None
        sync, self._sync = self._sync, None
        sync.result()

    def close(self) -> None:
        """End the thread."""
        if self._thread is not None:
            self._thread.shutdown()
