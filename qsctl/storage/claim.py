"""The lock on an application's stores in a directory: one service at a time writes them [QS 2.14].

Decides: which files are locked, and by which process. Directory, file prefix and application name are part of the name
of every file [QS 2.14.1, 2.14.2], so services that differ in one of them share no file and may run side by side. It is
a lock of the operating system, which releases it when the last process that holds it ends, in whatever way. Processes
that a service starts inherit it, and hold it until they end.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from multiprocessing import reduction
from pathlib import Path
from typing import Final, Protocol

import msgspec

from qsctl.errors import UNREADABLE, Damaged, Refused
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.storage.file_system import HOST, FileSystem
from qsctl.storage.names import claim_file, open_private

WAIT_S: Final = 5.0
"""Time that a service waits for another one to end: sessions outlive a killed service by a second or two."""

_POLL_S: Final = 0.05
_HOLDER_SIZE_BYTES_MAX: Final = 4_096
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Holder(msgspec.Struct, frozen=True):
    """The service that holds the lock, as recorded in the lock file, and the time of locking."""

    pid: int
    application_name: str
    since_ns: Nanoseconds

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since_ns / SECOND_NS, tz=UTC)
        return f"service {self.application_name!r}, process {self.pid} (since {since:%Y-%m-%d %H:%M:%S} UTC)"


class Claim:
    """The right to write the files `[prefix]…@[appName]…` of a directory; it can be sent to a process that is started.

    Args:
        directory, prefix, application_name: the parts of the files' names.
        disk: the file system of the directory.

    Raises:
        InvalidInput: the directory does not exist, or a name cannot be part of a file name.
    """

    def __init__(self, directory: Path, prefix: str, application_name: str, disk: FileSystem = HOST) -> None:
        self._descriptor = -1
        self._disk = disk
        self.is_held = False
        self.path = claim_file(directory, prefix, application_name, disk)
        self._application_name = application_name

    def hold(self, wait_s: float = WAIT_S) -> None:
        """Lock the files, so that only this service writes them, and check that the directory is writable.

        Raises:
            InvalidInput: a link or a device is in the lock file's place.
            Refused: another service held the lock until the wait was over, or the directory is not writable.
        """
        if self.is_held:
            return
        try:
            self._open()
            until = time.monotonic() + wait_s
            while not self._lock():
                if time.monotonic() >= until:
                    raise Refused(
                        f"{self._holder() or 'another process'} uses the stores of application "
                        f"{self._application_name!r} in {self.path.parent}",
                        remedy="Stop it, or give this service another -appName, file prefix or storage directory.",
                    )
                time.sleep(_POLL_S)
            self._write_holder()
        except OSError as error:
            self.release()
            raise Refused(
                f"the storage directory {self.path.parent} cannot be written: {error.strerror}",
                remedy="Make it writable for this service, or name another one.",
            ) from error
        self.is_held = True

    def hold_again(self) -> None:
        """Check, before stores are reopened, that the directory is still the one that was locked.

        The lock is renewed on a file system that was mounted again. While it is not mounted, its mount point is empty
        or missing; the records must not be considered lost then.

        Raises:
            Damaged: the directory is missing, is another one, is used by another service, or is not writable.
        """
        if not self.is_held:
            return
        try:
            if self._disk.status(self._descriptor).is_same(self._disk.status_at(self.path)):
                return
            self._move_to(self._disk.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW))
        except OSError as error:
            raise Damaged(
                f"the stores in {self.path.parent} are not there: {self.path.name}: {error.strerror}",
                remedy="Mount the file system again, or put the directory back.",
            ) from error

    def _move_to(self, descriptor: int) -> None:
        """Lock another lock file instead: the one of the same directory, on a file system that was mounted again."""
        former, self._descriptor = self._descriptor, descriptor
        if self._lock():
            self._disk.close(former)
            self._write_holder()
            return
        holder = self._holder()
        self._descriptor = former
        self._disk.close(descriptor)
        raise Damaged(
            f"{holder or 'another process'} uses the stores in {self.path.parent} now",
            remedy="Stop one of the two services.",
        )

    def release(self) -> None:
        """Release the lock."""
        self.is_held = False
        if self._descriptor >= 0:
            self._disk.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.release()

    def __reduce__(self) -> tuple[Callable[..., Claim], tuple[object, ...]]:
        """Return the pickled form for a process that is started, which shares the lock and its state."""
        with contextlib.suppress(OSError):
            self._open()
        sent = reduction.DupFd(self._descriptor) if self._descriptor >= 0 else None
        return _received, (self.path, self._application_name, sent, self.is_held)

    def _open(self) -> None:
        if self._descriptor < 0:
            self._descriptor = open_private(self.path, os.O_RDWR, self._disk)

    def _lock(self) -> bool:
        return self._disk.lock(self._descriptor, waits=False)

    def _write_holder(self) -> None:
        """Record in the lock file which service holds it; this also shows whether the directory is writable.

        It needs no free space.
        """
        text = msgspec.json.encode(Holder(os.getpid(), self._application_name, time.time_ns()))
        try:
            self._disk.cut(self._descriptor, 0)
            self._disk.write_at(self._descriptor, text, 0)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise

    def _holder(self) -> Holder | None:
        try:
            return msgspec.json.decode(self._disk.read_at(self._descriptor, _HOLDER_SIZE_BYTES_MAX, 0), type=Holder)
        except (OSError, *UNREADABLE):
            return None  # it is being written, or there was no room for it


class _Descriptor(Protocol):
    """A file descriptor that is sent from one process to another."""

    def detach(self) -> int:
        """Return the descriptor's number in the receiving process."""


def _received(path: Path, application_name: str, sent: _Descriptor | None, is_held: bool) -> Claim:
    claim = Claim.__new__(Claim)
    claim.path = path
    claim._application_name = application_name
    claim._disk = HOST
    claim._descriptor = sent.detach() if sent is not None else -1
    claim.is_held = is_held
    return claim
