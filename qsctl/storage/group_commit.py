"""Group commit: one sync under way while the next group gathers (manual, section 2.14.2).

Decides: which jobs share a sync. It takes as long for one record as for hundreds, so whatever was submitted while one
ran goes into the next one together. Only the sync, in which the disk works and Python waits, has a thread of its own:
two threads that both write records would wait for the interpreter more than for the disk. Where the disk is quick even
that thread costs more than it gains, and the sync is waited for.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Generic, TypeVar

from qsctl.errors import Damaged
from qsctl.storage.base import Sync

Job = TypeVar("Job")
Done = TypeVar("Done")

QUICK_SYNC_S: Final = 0.002
"""A sync that takes less is waited for: on a busy machine, to hand it to the other thread and back takes as long."""

TRIAL_AFTER: Final = 64
"""After so many syncs in the other thread one is waited for, to learn what the disk itself takes: there, the wait for
the interpreter counts too."""

_LATEST: Final = 1 / 16
"""The part of the latest sync in the typical one."""

_OUTLIER: Final = 4
"""How many times a quick sync one counts at the most: now and then every disk has something else to do."""


class _QuickSyncs:
    """Waits for the syncs of a disk that is quick."""

    def __init__(self, quick_sync_s: float) -> None:
        self._quick_sync_s = quick_sync_s
        self._typical_s = 0.0
        self._left_to_others_count = 0

    def take(self, sync: Sync) -> bool:
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


class GroupCommit(Generic[Job, Done]):
    """Writes groups and has them synced. It belongs to one thread.

    Jobs are committed in the order in which they were submitted. Once a commit has failed, nothing is written any more
    and every call fails with the same error: what comes later may rest on what was lost.

    Args:
        write: writes a group; gives one result a job, and the sync that makes them durable; None: they are.
        on_synced: called in the other thread when `take_done` has something new; must not block.
        quick_sync_s: a disk that syncs in less is waited for; 0: none is.
    """

    def __init__(
        self,
        write: Callable[[Sequence[Job]], tuple[Sequence[Done], Sync | None]],
        on_synced: Callable[[], object] = lambda: None,
        *,
        name: str = "qsctl-sync",
        quick_sync_s: float = QUICK_SYNC_S,
    ) -> None:
        self._write = write
        self._quick_syncs = _QuickSyncs(quick_sync_s)
        self._on_synced = on_synced
        self._gathering: list[Job] = []
        self._written: Sequence[Done] = ()
        self._sync: Future[None] | None = None
        self._done: list[Done] = []
        self._failure: BaseException | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    @property
    def pending_count(self) -> int:
        """Jobs that are not durable yet."""
        return len(self._gathering) + len(self._written)

    @property
    def gathering(self) -> Sequence[Job]:
        """Jobs that wait for the sync under way: the next group."""
        return self._gathering

    @property
    def is_idle(self) -> bool:
        """Whether everything that was submitted has been taken."""
        return not self._gathering and not self._written and not self._done

    def submit(self, job: Job) -> None:
        """Hand in a job; it is written now, or together with others once the sync under way is over."""
        self._gathering.append(job)
        self._go_on()

    def take_done(self) -> list[Done]:
        """The jobs that became durable since the last call, in order."""
        self._go_on()
        done, self._done = self._done, []
        return done

    def wait(self) -> None:
        """Wait for the sync under way, if any, and go on with what gathered."""
        if self._sync is not None:
            self._sync.exception()
        self._go_on()

    def finish(self) -> None:
        """Wait until everything submitted so far is durable; `take_done` gives it."""
        while self._gathering or self._sync is not None:
            self.wait()

    def drain(self) -> list[Done]:
        """Wait until everything submitted so far is durable, and take it."""
        self.finish()
        return self.take_done()

    def close(self) -> None:
        """Commit what is left and end the thread; `take_done` still gives it, or the failure if there was one."""
        with contextlib.suppress(Damaged):
            self.finish()
        self._thread.shutdown()

    def _go_on(self) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            self._look_at_sync()
            while self._gathering and self._sync is None:
                group, self._gathering = self._gathering, []
                self._written, sync = self._write(group)
                if sync is None or self._quick_syncs.take(sync):
                    self._finish()
                else:
                    self._sync = self._thread.submit(sync)
                    self._sync.add_done_callback(lambda _: self._on_synced())
        except BaseException as error:
            self._failure = error
            raise

    def _look_at_sync(self) -> None:
        if self._sync is not None and self._sync.done():
            self._sync.result()
            self._sync = None
            self._finish()

    def _finish(self) -> None:
        self._done += self._written
        self._written = ()
