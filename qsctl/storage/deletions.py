"""Files in which nothing is held any more, deleted while nothing waits for it [QS 2.14.2].

Decides: where files are deleted. A deletion takes up to a millisecond, and a compacted log leaves dozens of files at
once: there is a thread for it.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path


@cache
def _thread() -> ThreadPoolExecutor:
    """Return the one thread for the stores of all queues: they are on one disk."""
    return ThreadPoolExecutor(1, thread_name_prefix="qsctl-deletions")


class Deletions:
    """The deletions of one log. It belongs to one thread."""

    def __init__(self) -> None:
        self._in_progress: list[Future[None]] = []

    def add(self, path: Path) -> None:
        """Delete a file that no restart needs; one that cannot be deleted is met again by the next."""
        self._in_progress = [each for each in self._in_progress if not each.done()]
        self._in_progress.append(_thread().submit(_unlink, path))

    def finish(self) -> None:
        """Wait until all are deleted."""
        for each in self._in_progress:
            each.result()
        self._in_progress.clear()


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
