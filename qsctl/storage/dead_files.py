"""Files in which nothing is held any more: written again by their log, or deleted while nobody waits (section 2.14.2).

Decides: which of the two. To delete a file and to make another one ready costs the file system two notes in its
journal, for which a sync waits; to write the old one again costs none. What is kept is bounded, and goes when nothing
was written for a while. A deletion takes up to a millisecond, and a compacted log leaves dozens of files at once: it
has a thread.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Final

KEPT_BYTES_MAX: Final = 32 * 1024 * 1024
"""How much a log may keep to be written again: what a busy queue leaves from one compaction to the next."""

KEPT_FOR_S: Final = 60.0
"""How long it may: load comes in waves, and the next one finds the files ready."""


@cache
def _thread() -> ThreadPoolExecutor:
    """One thread for the stores of all queues: they share a disk."""
    return ThreadPoolExecutor(1, thread_name_prefix="qsctl-deletions")


class DeadFiles:
    """The dead files of one log. It belongs to one thread. `keeps` False: every file is deleted."""

    def __init__(self, *, keeps: bool) -> None:
        self._keeps = keeps
        self._kept: deque[tuple[Path, int]] = deque()
        self._kept_bytes = 0
        self._used_at_s = 0.0
        self._under_way: list[Future[None]] = []

    def add(self, path: Path) -> None:
        """Take a file that no restart needs; one that cannot be deleted is met again by the next."""
        size_bytes = _size_bytes(path) if self._keeps else 0
        if size_bytes and self._kept_bytes + size_bytes <= KEPT_BYTES_MAX:
            self._kept.append((path, size_bytes))
            self._kept_bytes += size_bytes
            self._used_at_s = time.monotonic()
        else:
            self._delete(path)

    def take(self) -> Path | None:
        """A file to write again, which is the caller's from now on; None when there is none."""
        if not self._kept:
            return None
        path, size_bytes = self._kept.popleft()
        self._kept_bytes -= size_bytes
        self._used_at_s = time.monotonic()
        return path

    def rest(self) -> None:
        """There is nothing to do: keep none that nobody asked for lately."""
        if self._kept and time.monotonic() - self._used_at_s >= KEPT_FOR_S:
            self._clear()

    def finish(self) -> None:
        """Keep none, and wait until all are deleted."""
        self._clear()
        for each in self._under_way:
            each.result()
        self._under_way.clear()

    def _clear(self) -> None:
        while (path := self.take()) is not None:
            self._delete(path)

    def _delete(self, path: Path) -> None:
        self._under_way = [each for each in self._under_way if not each.done()]
        self._under_way.append(_thread().submit(_unlink, path))


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
