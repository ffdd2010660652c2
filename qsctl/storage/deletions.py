"""Files that nobody needs any more, deleted while nobody waits (manual, section 2.14.2).

A deletion takes up to a millisecond, and a compacted log leaves dozens of files at once: every producer would wait that
long for its acknowledgment.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path


@cache
def _thread() -> ThreadPoolExecutor:
    """One thread for the stores of all queues: they share a disk."""
    return ThreadPoolExecutor(1, thread_name_prefix="qsctl-deletions")


class Deletions:
    """The deletions of one log. It belongs to one thread."""

    def __init__(self) -> None:
        self._under_way: list[Future[None]] = []

    def delete(self, path: Path) -> None:
        """Have a file deleted that no restart needs; one that cannot be deleted is met again by the next."""
        self._under_way = [each for each in self._under_way if not each.done()]
        self._under_way.append(_thread().submit(_delete, path))

    def finish(self) -> None:
        """Wait for all of them."""
        for each in self._under_way:
            each.result()
        self._under_way.clear()


def _delete(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
