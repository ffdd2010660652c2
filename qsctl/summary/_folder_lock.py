"""Mutual exclusion of commands that write into a folder: `--out` of a summary, and a sweep's folder."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from filelock import BaseFileLock, FileLock, Timeout

from qsctl.errors import InvalidInput
from qsctl.eventlog.location import Location

LOCK_FILE: Final = ".qsctl.lock"
REMEDY: Final = "Name another folder with --out."


def _lock(folder: Location) -> BaseFileLock:
    """Return the lock of a folder; for a remote filesystem it excludes only the commands of this machine."""
    if isinstance(folder, Path):
        return FileLock(folder / LOCK_FILE)
    name = hashlib.blake2b(str(folder).encode(), digest_size=8).hexdigest()
    return FileLock(Path(tempfile.gettempdir()) / f"{LOCK_FILE}-{name}")


@contextmanager
def locked_folder(folder: Location) -> Iterator[Location]:
    """Create the folder, and exclude other commands from writing into it during the block.

    Yields:
        The absolute path, since Java has another working directory.

    Raises:
        InvalidInput: the folder cannot be created or written, or another command is writing it.
    """
    try:
        folder = folder.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        lock = _lock(folder)
        lock.acquire(blocking=False)
    except Timeout:
        raise InvalidInput(f"{folder} is being written by another qsctl command", remedy=REMEDY) from None
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written: {error.strerror}", remedy=REMEDY) from None
    try:
        yield folder
    finally:
        lock.release()
