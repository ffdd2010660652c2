"""The interface through which storage reaches files, and its implementation by the operating system.

Decides: the calls. A store receives a `FileSystem`; `HOST` is the operating system's, and the simulated world has one
over a simulated block device that tears writes, fills up and hangs. Each failure is an `OSError`, as the operating
system raises it. Database files bypass this interface: SQLite opens them itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol


class FileStatus(NamedTuple):
    """The status of a file; `name_count` is its number of hard links, `is_plain` excludes links and devices."""

    device: int
    number: int
    size_bytes: int
    name_count: int
    is_plain: bool

    def is_same(self, other: FileStatus | None) -> bool:
        """Return whether both are of the same file, by device and inode."""
        return other is not None and (self.device, self.number) == (other.device, other.number)


class Deletion(Protocol):
    """A deletion in progress."""

    def done(self) -> bool:
        """Return whether the deletion has finished."""

    def result(self) -> object:
        """Wait until the deletion has finished."""


class FileSystem(Protocol):
    """The operations on files, by path or by descriptor; each raises OSError where it fails."""

    def open(self, path: Path, flags: int, mode: int = 0) -> int:
        """Open a file, or a directory to lock it, with flags of `os.open`; return its descriptor."""

    def close(self, descriptor: int) -> None:
        """Close a descriptor, which releases its lock."""

    def read_at(self, descriptor: int, size_bytes: int, offset: int) -> bytes:
        """Return at most the given number of octets from an offset on."""

    def write_at(self, descriptor: int, data: bytes | memoryview, offset: int) -> int:
        """Write octets at an offset; return the number written, which may be smaller than asked."""

    def cut(self, descriptor: int, size_bytes: int) -> None:
        """Truncate or extend a file to the given size; an extension reads as zeros."""

    def allocate(self, descriptor: int, offset: int, size_bytes: int) -> None:
        """Allocate disk blocks for a range of a file; the range reads as zeros."""

    def sync(self, descriptor: int) -> None:
        """Make the octets and the length of a file durable, as `fdatasync`."""

    def sync_all(self, descriptor: int) -> None:
        """Make a file with all of its metadata durable, as `fsync`."""

    def sync_directory(self, directory: Path) -> None:
        """Make the entries of a directory durable."""

    def lock(self, descriptor: int, *, waits: bool) -> bool:
        """Lock a file exclusively; return False where another process has the lock and `waits` is False."""

    def status(self, descriptor: int) -> FileStatus:
        """Return the status of an open file."""

    def status_at(self, path: Path) -> FileStatus | None:
        """Return the status of a path, without following a symbolic link; None where nothing has the name."""

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file, replacing a file of the new name."""

    def link(self, path: Path, target: Path) -> None:
        """Create a hard link `target` to a file."""

    def unlink(self, path: Path) -> None:
        """Delete a file; do nothing where it does not exist."""

    def begin_unlink(self, path: Path) -> Deletion:
        """Start to delete a file in the background; one that cannot be deleted stays."""

    def names(self, directory: Path) -> Sequence[str]:
        """Return the names in a directory, in any order."""

    def resolved(self, directory: Path) -> Path | None:
        """Return the path of a directory with symbolic links resolved; None where it does not exist."""

    def free_bytes(self, directory: Path) -> int:
        """Return the free octets of the file system that an unprivileged process may use."""

    def draw(self, count: int) -> bytes:
        """Return random octets, from which a file's magic numbers are derived."""


@cache
def _thread() -> ThreadPoolExecutor:
    """Return the only thread for the deletions of all stores: they share one disk."""
    return ThreadPoolExecutor(1, thread_name_prefix="qsctl-deletions")


class HostFileSystem:
    """The file systems of the operating system."""

    def open(self, path: Path, flags: int, mode: int = 0) -> int:
        """Open a file, or a directory to lock it, with flags of `os.open`; return its descriptor."""
        return os.open(path, flags, mode)

    def close(self, descriptor: int) -> None:
        """Close a descriptor, which releases its lock."""
        os.close(descriptor)

    def read_at(self, descriptor: int, size_bytes: int, offset: int) -> bytes:
        """Return at most the given number of octets from an offset on."""
        return os.pread(descriptor, size_bytes, offset)

    def write_at(self, descriptor: int, data: bytes | memoryview, offset: int) -> int:
        """Write octets at an offset; return the number written, which may be smaller than asked."""
        return os.pwrite(descriptor, data, offset)

    def cut(self, descriptor: int, size_bytes: int) -> None:
        """Truncate or extend a file to the given size; an extension reads as zeros."""
        os.ftruncate(descriptor, size_bytes)

    def allocate(self, descriptor: int, offset: int, size_bytes: int) -> None:
        """Allocate disk blocks for a range of a file; the range reads as zeros."""
        os.posix_fallocate(descriptor, offset, size_bytes)

    def sync(self, descriptor: int) -> None:
        """Make the octets and the length of a file durable, as `fdatasync`."""
        os.fdatasync(descriptor)

    def sync_all(self, descriptor: int) -> None:
        """Make a file with all of its metadata durable, as `fsync`."""
        os.fsync(descriptor)

    def sync_directory(self, directory: Path) -> None:
        """Make the entries of a directory durable."""
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, descriptor: int, *, waits: bool) -> bool:
        """Lock a file exclusively; return False where another process has the lock and `waits` is False.

        The lock ends with the processes that have it, however they end.
        """
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def status(self, descriptor: int) -> FileStatus:
        """Return the status of an open file."""
        return _status(os.fstat(descriptor))

    def status_at(self, path: Path) -> FileStatus | None:
        """Return the status of a path, without following a symbolic link; None where nothing has the name."""
        try:
            return _status(path.lstat())
        except (FileNotFoundError, NotADirectoryError):
            return None

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file, replacing a file of the new name."""
        path.rename(target)

    def link(self, path: Path, target: Path) -> None:
        """Create a hard link `target` to a file."""
        os.link(path, target)

    def unlink(self, path: Path) -> None:
        """Delete a file; do nothing where it does not exist."""
        path.unlink(missing_ok=True)

    def begin_unlink(self, path: Path) -> Deletion:
        """Start to delete a file in the background; one that cannot be deleted stays.

        A deletion takes up to a millisecond, so a thread of its own does it.
        """
        return _thread().submit(self._unlink_quietly, path)

    def names(self, directory: Path) -> Sequence[str]:
        """Return the names in a directory, in any order."""
        return [each.name for each in directory.iterdir()]

    def resolved(self, directory: Path) -> Path | None:
        """Return the path of a directory with symbolic links resolved; None where it does not exist."""
        return directory.resolve() if directory.is_dir() else None

    def free_bytes(self, directory: Path) -> int:
        """Return the free octets of the file system that an unprivileged process may use."""
        found = os.statvfs(directory)
        return found.f_bavail * found.f_frsize

    def draw(self, count: int) -> bytes:
        """Return random octets, from which a file's magic numbers are derived."""
        return os.urandom(count)

    def _unlink_quietly(self, path: Path) -> None:
        with contextlib.suppress(OSError):
            self.unlink(path)


HOST: FileSystem = HostFileSystem()
"""The operating system's."""


def _status(found: os.stat_result) -> FileStatus:
    return FileStatus(found.st_dev, found.st_ino, found.st_size, found.st_nlink, stat.S_ISREG(found.st_mode))
