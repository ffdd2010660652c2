"""Files in which nothing is held any more, deleted while nothing waits for it [QS 2.14.2].

Decides: when a log waits for them. A compacted log leaves dozens of files at once, and each takes up to a millisecond.
"""

from __future__ import annotations

from pathlib import Path

from qsctl.storage.file_system import Deletion, FileSystem


class Deletions:
    """The deletions of one log. It belongs to one thread."""

    def __init__(self, disk: FileSystem) -> None:
        self._disk = disk
        self._in_progress: list[Deletion] = []

    def add(self, path: Path) -> None:
        """Delete a file that no restart needs; one that cannot be deleted is met again by the next."""
        self._in_progress = [each for each in self._in_progress if not each.done()]
        self._in_progress.append(self._disk.begin_unlink(path))

    def finish(self) -> None:
        """Wait until all are deleted."""
        for each in self._in_progress:
            each.result()
        self._in_progress.clear()
