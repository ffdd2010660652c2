"""The folder of one Spark session, or of processes that simulate beside one another, for temporary files.

It is removed at their end and, where its process was killed, by a later one.

The process holds a lock in its folder. The system releases it however the process ends, so that a folder whose lock is
free belongs to none.
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
"""Age below which a folder is left alone: its process may be about to lock it."""


class PrivateFolder:
    """A new folder for temporary files of a session, which is removed with the process at the latest.

    Raises:
        OSError: the folder for temporary files cannot be written.
    """

    def __init__(self) -> None:
        self._folder = TemporaryFolder(PREFIX)
        self.path = self._folder.path
        self._lock = FileLock(self.path / LOCK_NAME)
        try:
            self._lock.acquire(blocking=False)
        except (OSError, RuntimeError):  # of a file system without locks: without the file no process removes it
            (self.path / LOCK_NAME).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove it with all that it holds."""
        self._folder.remove()
        self._lock.release(force=True)


def remove_abandoned() -> None:
    """Remove the folders of processes that were killed; those of running ones, and what is not ours, stay."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError, RuntimeError, Timeout):
            state = folder.lstat()
            if state.st_uid != os.getuid() or time.time() - state.st_mtime < YOUNGEST_S:
                continue
            if not (folder / LOCK_NAME).is_file():
                continue
            with FileLock(folder / LOCK_NAME).acquire(blocking=False):
                shutil.rmtree(folder, ignore_errors=True)
