"""The disk of a simulated service: sectors under a file system, and what is left of them after a power failure.

Decides what a file system may do. Synced data survive. Of unsynced data each sector is the old or the new one, the file
has its old or its new length, and each name that was created or removed since the directory was last synced may or may
not exist: a rename as a whole, but several changes in any order where the file system keeps none. A sync that failed
may have made any part durable, and a later sync does not repair it. A disk may be slow, hang, be full, refuse, flip a
bit, or be lost. Independent of any store: stores use it through `FileSystem`, as they use the operating system.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Final

from qsctl.instant import INFINITE_NS, SECOND_NS, Nanoseconds
from qsctl.storage.file_system import FileStatus

DIRECTORY: Final = Path("/simulated")
"""The only directory of a disk."""

CAPACITY_BYTES: Final = 64 << 20

WAIT_MAX_NS: Final[Nanoseconds] = SECOND_NS
"""The longest time that a process waits for the disk in one pass; a disk that takes longer counts as hanging."""

_DEVICE: Final = 1
_STORES: Final = (".db", ".json")
"""Suffixes of the files that a bit may be flipped in; other files differ from one run to another."""


class DiskState(StrEnum):
    """The way in which a disk answers requests."""

    WORKS = "works"
    FULL = "full"
    """ENOSPC: files cannot grow until something is deleted."""
    FAILS = "fails"
    """EIO: syncs fail; the written data may or may not be durable."""


class PowerFailed(BaseException):
    """The end of the process by a power failure; derived from BaseException so that no error handler catches it."""


class ProcessHangs(BaseException):
    """A process that waits for the disk for ever, in the middle of an operation."""


class _Inode:
    """One file: its present content, and the durable content of each sector that was written but not synced."""

    __slots__ = (
        "data", "dirty", "forgotten", "name_count", "number", "settled_bytes", "size_bytes", "synced_bytes",
        "synced_size_bytes",
    )  # fmt: skip

    def __init__(self, number: int) -> None:
        self.number = number
        self.data = bytearray()
        self.size_bytes = 0
        """Size of the file; octets beyond `data` are read as zeros."""
        self.synced_size_bytes = 0
        self.synced_bytes = 0
        """Size at the latest sync."""
        self.settled_bytes = 0
        """Size at the sync before: since durable data follow, damage below it cannot pass for an unfinished write."""
        self.name_count = 0
        self.dirty: dict[int, bytes] = {}
        self.forgotten: dict[int, bytes] = {}
        """The durable content of sectors whose sync failed; a later sync makes them durable only if rewritten."""

    def write(self, data: memoryview, offset: int, sector_bytes: int) -> None:
        """Write octets at an offset; the durable content of the sectors is kept until the next sync."""
        end = offset + len(data)
        if end > len(self.data):
            self.data.extend(bytes(end - len(self.data)))
        self._touch(offset, end, sector_bytes)
        self.data[offset:end] = data
        self.size_bytes = max(self.size_bytes, end)

    def cut(self, size_bytes: int, sector_bytes: int) -> None:
        """Set the file's size."""
        if size_bytes < len(self.data):
            self._touch(size_bytes, len(self.data), sector_bytes)
            del self.data[size_bytes:]
            self.synced_bytes = min(self.synced_bytes, size_bytes)
            self.settled_bytes = min(self.settled_bytes, size_bytes)
        self.size_bytes = size_bytes

    def read(self, size_bytes: int, offset: int) -> bytes:
        """Return at most `size_bytes` octets from an offset on, as a process reads them; holes are zeros."""
        size_bytes = max(0, min(size_bytes, self.size_bytes - offset))
        found = bytes(self.data[offset : offset + size_bytes])
        return found if len(found) == size_bytes else found.ljust(size_bytes, b"\0")

    def synced(self) -> None:
        """Make all written sectors durable, except those whose sync failed before."""
        self.dirty.clear()
        self.synced_size_bytes = self.size_bytes
        if len(self.data) != self.synced_bytes:
            self.settled_bytes, self.synced_bytes = self.synced_bytes, len(self.data)

    def refuse_sync(self, random: Random) -> None:
        """Fail a sync: a random part of the sectors is durable; the rest has to be written again to become so."""
        self.forgotten |= {sector: old for sector, old in self.dirty.items() if random.random() < 0.5}
        self.dirty.clear()

    def lose_power(self, random: Random, sector_bytes: int) -> None:
        """Set the content to what a power failure leaves: of each unsynced sector, the old or the new one."""
        likely_new = random.choice((0.0, 0.5, 1.0))
        cut_at = self.size_bytes
        if self.size_bytes != self.synced_size_bytes and random.random() < 0.5:
            self.size_bytes = self.synced_size_bytes
        for sector, old in [*self.dirty.items(), *self.forgotten.items()]:
            start = sector * sector_bytes
            is_cut = cut_at <= start < self.size_bytes  # it was cut off, and that is not durable
            if is_cut or random.random() >= likely_new:
                self.data.extend(bytes(max(0, start + sector_bytes - len(self.data))))
                self.data[start : start + sector_bytes] = old.ljust(sector_bytes, b"\0")
        del self.data[self.size_bytes :]
        self.dirty.clear()
        self.forgotten.clear()
        self.synced_size_bytes = self.size_bytes

    def _touch(self, start: int, end: int, sector_bytes: int) -> None:
        dirty = self.dirty
        for sector in range(start // sector_bytes, -(-end // sector_bytes)):
            if sector not in dirty:
                at = sector * sector_bytes
                old = self.forgotten.pop(sector, None)
                dirty[sector] = bytes(self.data[at : at + sector_bytes]) if old is None else old


class SimulatedDisk:
    """The files of one service, which outlive its processes.

    Args:
        random: draws the sector size, the properties of the file system, and the remains of a power failure.
        sync_ns: duration of a sync.
    """

    def __init__(self, random: Random, sync_ns: Nanoseconds) -> None:
        self.random = random
        self._healthy_sync_ns = sync_ns
        self.sync_ns = sync_ns
        """Duration of a sync; infinite if the disk hangs."""
        self.state = DiskState.WORKS
        self._capacity_bytes = CAPACITY_BYTES
        self.sector_bytes = random.choice((512, 4096))
        self.knows_direct = random.random() < 0.8
        """Whether the file system supports direct I/O (O_DIRECT)."""
        self.knows_allocation = random.random() < 0.5
        """Whether the file system supports preallocation."""
        self.keeps_name_order = random.random() < 0.5
        """Whether changes of names become durable in the order in which they were made."""
        self.databases: dict[str, object] = {}
        """Models of database files, by file name; their class is in `database.py`."""
        self._names: dict[str, _Inode] = {}
        self._durable_names: dict[str, _Inode] = {}
        self._changes: list[dict[str, _Inode | None]] = []
        """Changes of names since the directory was last synced; the names of one change become durable together."""
        self._inode_count = 0
        self.mounted: MountedDisk | None = None
        self.operation_count = 0

    @property
    def names(self) -> Sequence[str]:
        """Return the names of the files in the directory."""
        return list(self._names)

    @property
    def free_bytes(self) -> int:
        """Return the number of free octets."""
        return max(0, self._capacity_bytes - self._used_bytes)

    @property
    def _used_bytes(self) -> int:
        return sum({each.number: each.size_bytes for each in self._names.values()}.values())

    def mount(self) -> MountedDisk:
        """Return the file system for a new process; that of the previous process must not be used any more."""
        self.mounted = MountedDisk(self)
        return self.mounted

    def crash(self) -> None:
        """Lose the power: end the process, and keep of unsynced data and names a random part."""
        if self.mounted is not None:
            self.mounted.is_dead = True
            self.mounted = None
        random = self.random
        likely_new = random.choice((0.0, 0.5, 1.0))
        changes = self._changes
        if self.keeps_name_order:
            changes = changes[: random.randint(0, len(changes))]
        for change in changes:
            if self.keeps_name_order or random.random() < likely_new:
                for name, inode in change.items():
                    _enter(self._durable_names, name, inode)
        for inode in {each.number: each for each in (*self._names.values(), *self._durable_names.values())}.values():
            inode.lose_power(random, self.sector_bytes)
        self._names = dict(self._durable_names)
        self._changes.clear()
        self._count_names()

    def kill(self) -> None:
        """Kill the process but not the operating system: everything that it wrote survives."""
        if self.mounted is not None:
            self.mounted.is_dead = True
            self.mounted = None

    def lose(self, *, but: Sequence[str] = ()) -> None:
        """Lose the power and every file except those named by `but`."""
        self.crash()
        self._names = {name: each for name, each in self._names.items() if name in but}
        self._durable_names = dict(self._names)
        self.databases.clear()

    def flip_bit(self) -> str:
        """Flip one bit of a store's file, and return the file's name; empty if no file is long enough.

        The data of the last sync are spared: a reader cannot distinguish a wrong checksum there from a write that was
        cut short.
        """
        sector_bytes = self.sector_bytes
        old_bytes = {
            name: each.settled_bytes - each.settled_bytes % sector_bytes - sector_bytes
            for name, each in sorted(self._names.items())
            if name.endswith(_STORES)
        }
        names = [name for name, size_bytes in old_bytes.items() if size_bytes > 0]
        if not names:
            return ""
        name = self.random.choice(names)
        at = self.random.randrange(old_bytes[name])
        self._names[name].data[at] ^= 1 << self.random.randrange(8)
        return name

    def slow_down(self, sync_ns: Nanoseconds) -> None:
        """Set the duration of a sync; infinite makes the disk hang."""
        self.sync_ns = sync_ns

    def fill(self) -> None:
        """Reduce the capacity to the octets in use, so that no file can grow."""
        self.state = DiskState.FULL
        self._capacity_bytes = self._used_bytes

    def refuse(self) -> None:
        """Let syncs fail from now on."""
        self.state = DiskState.FAILS

    def repair(self) -> None:
        """Restore the initial capacity and sync duration, and end all refusals."""
        self.sync_ns = self._healthy_sync_ns
        self._capacity_bytes = CAPACITY_BYTES
        self.state = DiskState.WORKS

    @property
    def is_sound(self) -> bool:
        """Return whether the disk neither refuses operations nor hangs."""
        return self.state is DiskState.WORKS and not self.hangs

    @property
    def hangs(self) -> bool:
        """Return whether no sync ever ends."""
        return self.sync_ns >= INFINITE_NS

    # Operations of a mounted disk.

    def look_up(self, name: str) -> _Inode | None:
        """Return the file of this name; None if it does not exist."""
        return self._names.get(name)

    def create(self, name: str) -> _Inode:
        """Create an empty file of this name and return it."""
        self._inode_count += 1
        inode = _Inode(self._inode_count)
        self.change_names({name: inode})
        return inode

    def change_names(self, change: dict[str, _Inode | None]) -> None:
        """Create, replace or (None) remove names as one change, which becomes durable as a whole."""
        for name, inode in change.items():
            _enter(self._names, name, inode)
        self._changes.append(change)
        self._count_names()

    def sync_names(self) -> None:
        """Make the present names durable, as a sync of the directory does."""
        self._durable_names = dict(self._names)
        self._changes.clear()

    def _count_names(self) -> None:
        for inode in self._names.values():
            inode.name_count = 0
        for inode in self._names.values():
            inode.name_count += 1


class MountedDisk:
    """A `FileSystem` through which one process accesses a simulated disk.

    `busy_ns` is the time that the process has waited for the disk during its present pass; its owner resets it to 0.
    """

    def __init__(self, disk: SimulatedDisk) -> None:
        self._disk = disk
        self._opened: dict[int, tuple[_Inode, bool]] = {}
        """The file, and whether it was opened for direct I/O, by descriptor."""
        self._opened_count = 2
        self.is_dead = False
        self.busy_ns: Nanoseconds = 0
        self.fails_after: int | None = None
        """Number of operations until the power fails; None if it does not."""
        self.is_waited_for = True
        """Whether the process itself waits for a sync; False while another of its threads syncs."""

    def open(self, path: Path, flags: int, mode: int = 0) -> int:
        """Open a file with flags of `os.open` and return a descriptor; a directory may be opened to be locked."""
        self._step()
        self._opened_count += 1
        if path == DIRECTORY:
            return self._opened_count
        inode = self._disk.look_up(path.name)
        if inode is None:
            if not flags & os.O_CREAT:
                raise _refusal(errno.ENOENT, path)
            inode = self._disk.create(path.name)
        elif flags & os.O_TRUNC:
            inode.cut(0, self._disk.sector_bytes)
        if flags & os.O_DIRECT and not self._disk.knows_direct:
            raise _refusal(errno.EINVAL, path)
        self._opened[self._opened_count] = inode, bool(flags & os.O_DIRECT)
        return self._opened_count

    def close(self, descriptor: int) -> None:
        """Close a descriptor and release its lock."""
        self._opened.pop(descriptor, None)

    def read_at(self, descriptor: int, size_bytes: int, offset: int) -> bytes:
        """Return at most the given number of octets from an offset on."""
        self._step()
        return self._opened[descriptor][0].read(size_bytes, offset)

    def write_at(self, descriptor: int, data: bytes | memoryview, offset: int) -> int:
        """Write some of the octets, from the first on, at an offset, and return the number written."""
        inode, is_direct = self._opened[descriptor]
        view = memoryview(data)
        disk = self._disk
        if is_direct and (len(view) % disk.sector_bytes or offset % disk.sector_bytes):
            raise _refusal(errno.EINVAL)
        if disk.state is DiskState.FULL and (grown := offset + len(view) - inode.size_bytes) > 0:
            if (free_bytes := disk.free_bytes // disk.sector_bytes * disk.sector_bytes) == 0:
                raise _refusal(errno.ENOSPC)
            view = view[: len(view) - max(0, grown - free_bytes)]
        if self.fails_after == 0:  # a part of it is written
            view = view[: disk.random.randint(0, len(view))]
            inode.write(view, offset, disk.sector_bytes)
        self._step()
        inode.write(view, offset, disk.sector_bytes)
        return len(view)

    def cut(self, descriptor: int, size_bytes: int) -> None:
        """Set a file's size; added octets are read as zeros."""
        self._step()
        self._opened[descriptor][0].cut(size_bytes, self._disk.sector_bytes)

    def allocate(self, descriptor: int, offset: int, size_bytes: int) -> None:
        """Allocate room for a file, which is read as zeros."""
        self._step()
        if not self._disk.knows_allocation:
            raise _refusal(errno.EOPNOTSUPP)
        inode = self._opened[descriptor][0]
        if offset + size_bytes > inode.size_bytes:
            if offset + size_bytes - inode.size_bytes > self._disk.free_bytes:
                raise _refusal(errno.ENOSPC)
            inode.size_bytes = offset + size_bytes

    def sync(self, descriptor: int) -> None:
        """Make durable the written data of a file, and its size."""
        self._wait()
        inode = self._opened[descriptor][0]
        if self._disk.state is DiskState.FAILS:
            inode.refuse_sync(self._disk.random)
            raise _refusal(errno.EIO)
        inode.synced()

    def sync_all(self, descriptor: int) -> None:
        """Make a file durable with all of its metadata."""
        self.sync(descriptor)

    def sync_directory(self, directory: Path) -> None:
        """Make durable the names of the files in a directory."""
        self._wait()
        if self._disk.state is DiskState.FAILS:
            raise _refusal(errno.EIO, directory)
        self._disk.sync_names()

    def lock(self, descriptor: int, *, waits: bool) -> bool:
        """Lock a file exclusively; return False if another process holds the lock and `waits` is false.

        Always True here: a simulated disk is used by one process at a time.
        """
        return True

    def status(self, descriptor: int) -> FileStatus:
        """Return the status of an open file."""
        return _status(self._opened[descriptor][0])

    def status_at(self, path: Path) -> FileStatus | None:
        """Return the status of the file or link of this name; None if it does not exist."""
        inode = self._disk.look_up(path.name)
        return None if inode is None else _status(inode)

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file, replacing a file that has the target's name."""
        self._step()
        inode = self._disk.look_up(path.name)
        if inode is None:
            raise _refusal(errno.ENOENT, path)
        self._disk.change_names({path.name: None, target.name: inode})

    def link(self, path: Path, target: Path) -> None:
        """Give a file a second name."""
        self._step()
        inode = self._disk.look_up(path.name)
        if inode is None:
            raise _refusal(errno.ENOENT, path)
        self._disk.change_names({target.name: inode})

    def unlink(self, path: Path) -> None:
        """Remove a name, if it exists."""
        self._step()
        if self._disk.look_up(path.name) is not None:
            self._disk.change_names({path.name: None})

    def begin_unlink(self, path: Path) -> _Done:
        """Remove a file without blocking the caller; a file that cannot be removed is kept."""
        self.unlink(path)
        return _DONE

    def names(self, directory: Path) -> Sequence[str]:
        """Return the names of the files in a directory, in no order."""
        return [*self._disk.names, *self._disk.databases]

    def resolved(self, directory: Path) -> Path | None:
        """Return the real path of a directory; None if it does not exist."""
        return directory if directory == DIRECTORY else None

    def free_bytes(self, directory: Path) -> int:
        """Return the free octets of the file system that an unprivileged process may use."""
        return self._disk.free_bytes

    def draw(self, count: int) -> bytes:
        """Return random octets, which distinguish the content of one file from that of another."""
        return self._disk.random.randbytes(count)

    def step(self) -> None:
        """Perform one durable operation of a model of a database file.

        Raises:
            OSError: an I/O error occurs.
        """
        self._wait()
        if self._disk.state is DiskState.FULL and not self._disk.free_bytes:
            raise _refusal(errno.ENOSPC)
        if self._disk.state is DiskState.FAILS:
            raise _refusal(errno.EIO)

    def _step(self) -> None:
        """Count one operation of the process; raise PowerFailed if the process is dead or dies in this operation."""
        if self.is_dead:
            raise PowerFailed
        self._disk.operation_count += 1
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                raise PowerFailed

    def _wait(self) -> None:
        """Count a sync, and add its duration to `busy_ns` if the process itself waits for it."""
        self._step()
        if self.is_waited_for:
            if self._disk.hangs:
                raise ProcessHangs
            self.busy_ns = min(self.busy_ns + self._disk.sync_ns, WAIT_MAX_NS)


class _Done:
    """The completed future that `begin_unlink` returns."""

    def done(self) -> bool:
        """Return True: the deletion is complete."""
        return True

    def result(self) -> None:
        """Return at once: the deletion is complete."""


_DONE: Final = _Done()


def _enter(names: dict[str, _Inode], name: str, inode: _Inode | None) -> None:
    if inode is None:
        names.pop(name, None)
    else:
        names[name] = inode


def _status(inode: _Inode) -> FileStatus:
    return FileStatus(_DEVICE, inode.number, inode.size_bytes, inode.name_count, is_plain=True)


def _refusal(number: int, path: Path | None = None) -> OSError:
    return OSError(number, os.strerror(number), *(() if path is None else (str(path),)))
