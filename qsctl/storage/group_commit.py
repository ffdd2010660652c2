"""Group commit: one commit under way while the next group gathers (manual, section 2.14.2).

Decides: which jobs share a commit. A sync of the disk takes as long for one record as for hundreds, so whatever was
submitted while one ran goes into the next one together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

Job = TypeVar("Job")
Done = TypeVar("Done")


class GroupCommit(Generic[Job, Done]):
    """A writer thread in front of a commit.

    Jobs are committed in the order in which they were submitted. Once a commit has failed, every later job fails with
    the same error: it may rest on what was lost.

    Args:
        commit: commits a group and gives one result a job; called by one thread only.
    """

    def __init__(self, commit: Callable[[Sequence[Job]], Sequence[Done]], *, name: str = "qsctl-commit") -> None:
        self._commit = commit
        self._pending: list[tuple[Job, Future[Done]]] = []
        self._changed = threading.Condition()
        self._is_committing = False
        self._is_closed = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> Future[Done]:
        """Hand in a job; the future is done when the job is as durable as configured."""
        future: Future[Done] = Future()
        with self._changed:
            assert not self._is_closed, "a closed group commit takes no job"
            self._pending.append((job, future))
            self._changed.notify_all()
        return future

    @property
    def pending_count(self) -> int:
        """Jobs that wait for the next commit."""
        return len(self._pending)

    def drain(self) -> None:
        """Wait until everything submitted so far is committed or has failed."""
        with self._changed:
            self._changed.wait_for(lambda: not self._pending and not self._is_committing)

    def close(self) -> None:
        """Commit what is left and end the thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while group := self._next_group():
            jobs = [job for job, _ in group]
            if self._failure is None:
                try:
                    results = self._commit(jobs)
                except BaseException as error:
                    self._failure = error
                else:
                    for (_, future), result in zip(group, results, strict=True):
                        future.set_result(result)
            if self._failure is not None:
                for _, future in group:
                    if not future.done():
                        future.set_exception(self._failure)
            with self._changed:
                self._is_committing = False
                self._changed.notify_all()

    def _next_group(self) -> list[tuple[Job, Future[Done]]]:
        """Everything that is pending, once there is something; empty when closed."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._pending) or self._is_closed)
            group, self._pending = self._pending, []
            self._is_committing = bool(group)
            return group
