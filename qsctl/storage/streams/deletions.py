"""Background deletion of files that no restart needs [QS 2.14.2].

Decides: when a log waits for deletions. A compaction makes dozens of files obsolete at once, and deleting each takes up
to a millisecond.
"""

from __future__ import annotations

from pathlib import Path

from qsctl.storage.file_system import Deletion, FileSystem


class Deletions:
    """The deletions of one log; not thread-safe."""

    def __init__(self, disk: FileSystem) -> None:
        self._disk = disk
        self._in_progress: list[Deletion] = []

    def add(self, path: Path) -> None:
        """Delete a file in the background; one that cannot be deleted is tried again after the next restart."""
        self._in_progress = [each for each in self._in_progress if not each.done()]
        self._in_progress.append(self._disk.begin_unlink(path))

    def finish(self) -> None:
        """Wait until all files are deleted."""
        for each in self._in_progress:
            each.result()
        self._in_progress.clear()
