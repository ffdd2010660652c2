"""The seam to files: what a store asks of a file system, and the one of the operating system.

Decides: through which calls storage reaches files. A store is given a `FileSystem`; `HOST` is the operating system's,
a simulated world has one of its own over a block device that tears, fills and hangs. Whatever is refused is an
`OSError`, as the operating system raises it. A database file is not reached through it: its library opens files itself.
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
    """The status of a file. `name_count` is the number of its names; `is_plain`: neither a link nor a device."""

    device: int
    number: int
    size_bytes: int
    name_count: int
    is_plain: bool

    def is_same(self, other: FileStatus | None) -> bool:
        """Return whether the other one is of the same file."""
        return other is not None and (self.device, self.number) == (other.device, other.number)


class Deletion(Protocol):
    """A deletion that was begun."""

    def done(self) -> bool:
        """Return whether it is over."""

    def result(self) -> object:
        """Wait until it is over."""


class FileSystem(Protocol):
    """Files by path, and open ones by descriptor. Each method raises OSError where it is refused."""

    def open(self, path: Path, flags: int, mode: int = 0) -> int:
        """Return a descriptor, opened with flags of `os.open`; a directory may be opened to be locked."""

    def close(self, descriptor: int) -> None:
        """Let go of a descriptor, and of its lock."""

    def read_at(self, descriptor: int, size_bytes: int, offset: int) -> bytes:
        """Return at most the given number of octets from an offset on."""

    def write_at(self, descriptor: int, data: bytes | memoryview, offset: int) -> int:
        """Write a beginning of the octets at an offset, and return how many."""

    def cut(self, descriptor: int, size_bytes: int) -> None:
        """Let a file be this long; what is added reads as zeros."""

    def allocate(self, descriptor: int, offset: int, size_bytes: int) -> None:
        """Have room, which reads as zeros."""

    def sync(self, descriptor: int) -> None:
        """Make durable the octets of a file, and its length."""

    def sync_all(self, descriptor: int) -> None:
        """Make durable the file with all of its metadata."""

    def sync_directory(self, directory: Path) -> None:
        """Make durable the names in a directory."""

    def lock(self, descriptor: int, *, waits: bool) -> bool:
        """Have the only lock on a file; False: another process has it, and it was not waited for."""

    def status(self, descriptor: int) -> FileStatus:
        """Return the status of an open file."""

    def status_at(self, path: Path) -> FileStatus | None:
        """Return the status of the file, or link, of this name; None: it does not exist."""

    def rename(self, path: Path, target: Path) -> None:
        """Give a file another name, in the place of whatever has that."""

    def link(self, path: Path, target: Path) -> None:
        """Give a file a second name."""

    def unlink(self, path: Path) -> None:
        """Take a name away; nothing where nothing has it."""

    def begin_unlink(self, path: Path) -> Deletion:
        """Remove a file while nothing waits for it; one that cannot be removed stays."""

    def names(self, directory: Path) -> Sequence[str]:
        """Return the names in a directory, in no order."""

    def resolved(self, directory: Path) -> Path | None:
        """Return where a directory really is; None: there is none."""

    def free_bytes(self, directory: Path) -> int:
        """Return how much room there is for those who have no privilege."""

    def draw(self, count: int) -> bytes:
        """Return random octets, which distinguish the content of one file from that of another."""


@cache
def _thread() -> ThreadPoolExecutor:
    """Return the one thread for the deletions of all stores: they are on one disk."""
    return ThreadPoolExecutor(1, thread_name_prefix="qsctl-deletions")


class HostFileSystem:
    """The operating system's file systems."""

    def open(self, path: Path, flags: int, mode: int = 0) -> int:
        """Return a descriptor, opened with flags of `os.open`; a directory may be opened to be locked."""
        return os.open(path, flags, mode)

    def close(self, descriptor: int) -> None:
        """Let go of a descriptor, and of its lock."""
        os.close(descriptor)

    def read_at(self, descriptor: int, size_bytes: int, offset: int) -> bytes:
        """Return at most the given number of octets from an offset on."""
        return os.pread(descriptor, size_bytes, offset)

    def write_at(self, descriptor: int, data: bytes | memoryview, offset: int) -> int:
        """Write a beginning of the octets at an offset, and return how many."""
        return os.pwrite(descriptor, data, offset)

    def cut(self, descriptor: int, size_bytes: int) -> None:
        """Let a file be this long; what is added reads as zeros."""
        os.ftruncate(descriptor, size_bytes)

    def allocate(self, descriptor: int, offset: int, size_bytes: int) -> None:
        """Have room, which reads as zeros."""
        os.posix_fallocate(descriptor, offset, size_bytes)

    def sync(self, descriptor: int) -> None:
        """Make durable what was written to a file, and its length."""
        os.fdatasync(descriptor)

    def sync_all(self, descriptor: int) -> None:
        """Make durable the file with all of its metadata."""
        os.fsync(descriptor)

    def sync_directory(self, directory: Path) -> None:
        """Make durable the names in a directory."""
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, descriptor: int, *, waits: bool) -> bool:
        """Have the only lock on a file; False: another process has it, and it was not waited for.

        It ends with the processes that have it, however they end.
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
        """Return the status of the file, or link, of this name; None: it does not exist."""
        try:
            return _status(path.lstat())
        except (FileNotFoundError, NotADirectoryError):
            return None

    def rename(self, path: Path, target: Path) -> None:
        """Give a file another name, in the place of whatever has that."""
        path.rename(target)

    def link(self, path: Path, target: Path) -> None:
        """Give a file a second name."""
        os.link(path, target)

    def unlink(self, path: Path) -> None:
        """Take a name away; nothing where nothing has it."""
        path.unlink(missing_ok=True)

    def begin_unlink(self, path: Path) -> Deletion:
        """Remove a file while nothing waits for it; one that cannot be removed stays.

        It takes up to a millisecond: there is a thread for it.
        """
        return _thread().submit(self._unlink_quietly, path)

    def names(self, directory: Path) -> Sequence[str]:
        """Return the names in a directory, in no order."""
        return [each.name for each in directory.iterdir()]

    def resolved(self, directory: Path) -> Path | None:
        """Return where a directory really is; None: there is none."""
        return directory.resolve() if directory.is_dir() else None

    def free_bytes(self, directory: Path) -> int:
        """Return how much room there is for those who have no privilege."""
        found = os.statvfs(directory)
        return found.f_bavail * found.f_frsize

    def draw(self, count: int) -> bytes:
        """Return random octets, which distinguish the content of one file from that of another."""
        return os.urandom(count)

    def _unlink_quietly(self, path: Path) -> None:
        with contextlib.suppress(OSError):
            self.unlink(path)


HOST: FileSystem = HostFileSystem()
"""The operating system's."""


def _status(found: os.stat_result) -> FileStatus:
    return FileStatus(found.st_dev, found.st_ino, found.st_size, found.st_nlink, stat.S_ISREG(found.st_mode))
