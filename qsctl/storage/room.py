"""Reserved disk space: with a full disk, removals can still be written, and they free more than they use [QS 2.15].

Decides: when the disk counts as full for new samples, and when the reserve is released. The reserve is a small file
that is allocated ahead; it is deleted when the disk is full, and made again once enough space is free.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from qsctl.errors import Damaged, ExitStatus
from qsctl.instant import MILLISECOND_NS, Nanoseconds
from qsctl.storage.file_system import HOST, FileSystem
from qsctl.storage.names import open_private

RESERVE_BYTES: Final = 512 * 1024
"""Reserved space: for the removals of some ten thousand samples, or the journal of a database's transaction."""

SCARCE_BYTES: Final = 512 * 1024
"""With less room than this no new samples are stored."""

PLENTY_BYTES: Final = 2 * (RESERVE_BYTES + SCARCE_BYTES)
"""With this much they are again, and the reserve is made."""

AMPLE_BYTES: Final = 1 << 30
"""With this much no disk is full before the next look, which is later then."""

_AMPLE_FOR_NS: Final[Nanoseconds] = 50 * MILLISECOND_NS

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class DiskFailed(Damaged):
    """The operating system refused a read or a write. Nothing stored is known to be damaged."""

    exit_status = ExitStatus.REFUSED


class DiskFull(DiskFailed):
    """The disk is full and nothing was written: earlier content is untouched."""


_SYSTEM_CODES: Final = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    }
)
"""Primary codes of the database's library for what the operating system refuses it."""

_CONTENT_CODES: Final = frozenset({sqlite3.SQLITE_IOERR_SHORT_READ})
"""Extended codes that are among them by their primary one, and are about what is in the file."""


def is_refused_by_system(error: BaseException) -> bool:
    """Return whether the operating system caused the error, which then does not prove that a file is damaged."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return isinstance(error, OSError)
    return code & 0xFF in _SYSTEM_CODES and code not in _CONTENT_CODES


def refusal(where: Path, error: OSError | sqlite3.Error | MemoryError, *, is_clean: bool) -> Damaged:
    """Return the error to raise for one of the operating system or the database; `is_clean`: no file was changed."""
    if isinstance(error, OSError):
        is_full, text = error.errno in _FULL, f"{error.filename or where}: {error.strerror}"
    else:
        code = getattr(error, "sqlite_errorcode", None)
        # The library has one code for all that is refused when it opens a file, or syncs it.
        is_full = code == sqlite3.SQLITE_FULL or (is_refused_by_system(error) and _has_no_room(where.parent))
        text = f"{where}: {str(error) or 'there is not enough memory for what the file asks for'}"
    if not is_refused_by_system(error):
        return Damaged(text, remedy="Put back a copy of the file, or begin without what is in it: --discard-damaged.")
    kind = DiskFull if is_full and is_clean else DiskFailed
    return kind(text, remedy="Free space on the disk or mend it.")


def _has_no_room(directory: Path) -> bool:
    try:
        found = os.statvfs(directory)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < found.f_bsize or (found.f_files > 0 and found.f_favail == 0)


class Room:
    """The disk space for the stores in one directory. The first call of `keep` makes the reserve.

    Args:
        reserve: the path of the reserve.
        disk: its file system.
        steady: returns nanoseconds of a clock that is never set.
    """

    def __init__(
        self, reserve: Path, disk: FileSystem = HOST, steady: Callable[[], Nanoseconds] = time.monotonic_ns
    ) -> None:
        self._reserve = reserve
        self._steady = steady
        self._disk = disk
        self._is_kept = False
        self._look_at_ns: Nanoseconds = 0
        """When to look again, on the monotonic clock: to ask the system at each write costs every sample's latency."""
        self.is_scarce = False
        """Whether new samples are to be refused."""

    def keep(self) -> None:
        """Update `is_scarce` from the free space, and make the reserve where enough is free."""
        now = self._steady()
        if now < self._look_at_ns:
            return
        try:
            free_bytes = self._disk.free_bytes(self._reserve.parent)
        except OSError:
            return  # the next write raises with the reason
        self._look_at_ns = now + _AMPLE_FOR_NS if free_bytes >= AMPLE_BYTES else 0
        if free_bytes >= PLENTY_BYTES:
            self.is_scarce = False
            if not self._is_kept:
                self._make()
        elif free_bytes < SCARCE_BYTES:
            self.is_scarce = True

    def release(self) -> bool:
        """Delete the reserve to free space for a pending write; return whether it existed."""
        self.is_scarce = True
        self._is_kept = False
        self._look_at_ns = 0
        try:
            found = self._disk.status_at(self._reserve)
            if found is None or not found.size_bytes:
                return False
            self._disk.unlink(self._reserve)
        except OSError:
            return False
        return True

    def _make(self) -> None:
        with contextlib.suppress(OSError):
            descriptor = open_private(self._reserve, os.O_RDWR, self._disk)
            try:
                self._disk.allocate(descriptor, 0, RESERVE_BYTES)
            finally:
                self._disk.close(descriptor)
            self._is_kept = True
