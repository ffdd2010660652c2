"""A private folder for the temporary files of a Spark session or of parallel simulation processes.

The folder is removed at their end; if its process was killed, a later process removes it. The process holds a lock in
its folder, which the operating system releases however the process ends, so that a folder with a free lock is unused.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from qsctl.endings import TemporaryFolder

PREFIX: Final = "qsctl-spark-"
LOCK_NAME: Final = "in-use.lock"
YOUNGEST_S: Final = 60.0
"""Age in seconds below which a folder is not removed, since its process may be about to lock it."""


class PrivateFolder:
    """A new folder for temporary files of a session, which is removed at the latest at the end of the process.

    Raises:
        OSError: the folder for temporary files cannot be written.
    """

    def __init__(self) -> None:
        self._folder = TemporaryFolder(PREFIX)
        self.path = self._folder.path
        self._lock = FileLock(self.path / LOCK_NAME)
        try:
            self._lock.acquire(blocking=False)
        except (OSError, RuntimeError):  # no locks here: without the file, no other process removes the folder
            (self.path / LOCK_NAME).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder with its content."""
        self._folder.remove()
        self._lock.release(force=True)


def remove_abandoned() -> None:
    """Remove the folders of processes that were killed; leave those of running processes and other files."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError, RuntimeError, Timeout):
            state = folder.lstat()
            if state.st_uid != os.getuid() or time.time() - state.st_mtime < YOUNGEST_S:
                continue
            if not (folder / LOCK_NAME).is_file():
                continue
            with FileLock(folder / LOCK_NAME).acquire(blocking=False):
                shutil.rmtree(folder, ignore_errors=True)
