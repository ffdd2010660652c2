"""The disk of a simulated service: sectors under a file system, and what is left when the power fails.

Decides: what a file system may do. What was synced is there; of the rest each sector is the old one or the new one, a
file is as long as before or as now, and each name that was given or taken since the directory was synced is there or
not: a rename as a whole, but in no order among each other where the file system keeps none. A sync that failed has made
durable any part, and a later one does not make up for it. A disk may be slow, hang, have no room, refuse, flip a bit,
or be lost. Nothing here knows a store: stores reach it as they reach the operating system's, see `FileSystem`.
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
"""The one directory of a disk."""

CAPACITY_BYTES: Final = 64 << 20

WAIT_MAX_NS: Final[Nanoseconds] = SECOND_NS
"""A process waits no longer than this for the disk in one pass: what takes longer is a disk that hangs."""

_DEVICE: Final = 1
_STORES: Final = (".db", ".json")
"""Suffixes of stores' files: other files differ from one run to another."""


class DiskState(StrEnum):
    """The way in which a disk answers requests."""

    WORKS = "works"
    FULL = "full"
    """ENOSPC: nothing grows any more, unless something is deleted."""
    FAILS = "fails"
    """EIO: a sync fails, and what was written may be there."""


class PowerFailed(BaseException):
    """The process ended: it does nothing, and receives nothing. No handler of errors is to catch it."""


class ProcessHangs(BaseException):
    """The process waits for the disk for ever, in the middle of what it does."""


class _Inode:
    """One file: its content now, and of each sector that was not synced since it was written the durable content."""

    __slots__ = (
        "data", "dirty", "forgotten", "name_count", "number", "settled_bytes", "size_bytes", "synced_bytes",
        "synced_size_bytes",
    )  # fmt: skip

    def __init__(self, number: int) -> None:
        self.number = number
        self.data = bytearray()
        self.size_bytes = 0
        """Size of the file; beyond `data` it reads as zeros."""
        self.synced_size_bytes = 0
        self.synced_bytes = 0
        """Size at the latest sync."""
        self.settled_bytes = 0
        """The same of the sync before: what follows it is durable, and rests on it."""
        self.name_count = 0
        self.dirty: dict[int, bytes] = {}
        self.forgotten: dict[int, bytes] = {}
        """The same of sectors for which a sync failed: no later one is about them unless they are written again."""

    def write(self, data: memoryview, offset: int, sector_bytes: int) -> None:
        """Write octets; what is durable stays so."""
        end = offset + len(data)
        if end > len(self.data):
            self.data.extend(bytes(end - len(self.data)))
        self._touch(offset, end, sector_bytes)
        self.data[offset:end] = data
        self.size_bytes = max(self.size_bytes, end)

    def cut(self, size_bytes: int, sector_bytes: int) -> None:
        """Let it be so long."""
        if size_bytes < len(self.data):
            self._touch(size_bytes, len(self.data), sector_bytes)
            del self.data[size_bytes:]
            self.synced_bytes = min(self.synced_bytes, size_bytes)
            self.settled_bytes = min(self.settled_bytes, size_bytes)
        self.size_bytes = size_bytes

    def read(self, size_bytes: int, offset: int) -> bytes:
        """Return what a process reads."""
        size_bytes = max(0, min(size_bytes, self.size_bytes - offset))
        found = bytes(self.data[offset : offset + size_bytes])
        return found if len(found) == size_bytes else found.ljust(size_bytes, b"\0")

    def synced(self) -> None:
        """Note that all is durable but what was forgotten."""
        self.dirty.clear()
        self.synced_size_bytes = self.size_bytes
        if len(self.data) != self.synced_bytes:
            self.settled_bytes, self.synced_bytes = self.synced_bytes, len(self.data)

    def refuse_sync(self, random: Random) -> None:
        """Let a sync fail: any part of it is durable, and the rest will never be by itself."""
        self.forgotten |= {sector: old for sector, old in self.dirty.items() if random.random() < 0.5}
        self.dirty.clear()

    def lose_power(self, random: Random, sector_bytes: int) -> None:
        """Become what is left."""
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
    """The files that outlive the processes of one service.

    Args:
        random: draws the remains of a power failure, and the kind of disk and file system.
        sync_ns: how long a sync takes.
    """

    def __init__(self, random: Random, sync_ns: Nanoseconds) -> None:
        self.random = random
        self._healthy_sync_ns = sync_ns
        self.sync_ns = sync_ns
        """Duration of a sync; infinite: the disk hangs."""
        self.state = DiskState.WORKS
        self._capacity_bytes = CAPACITY_BYTES
        self.sector_bytes = random.choice((512, 4096))
        self.knows_direct = random.random() < 0.8
        """Whether files can be written past the page cache."""
        self.knows_allocation = random.random() < 0.5
        """Whether room can be allocated ahead."""
        self.keeps_name_order = random.random() < 0.5
        """Whether the names that were given and taken become durable in the order in which that was done."""
        self.databases: dict[str, object] = {}
        """Models of database files, by name: see `database.py`."""
        self._names: dict[str, _Inode] = {}
        self._durable_names: dict[str, _Inode] = {}
        self._changes: list[dict[str, _Inode | None]] = []
        """Of names since the directory was synced: those of one change become durable together."""
        self._inode_count = 0
        self.mounted: MountedDisk | None = None
        self.operation_count = 0

    @property
    def names(self) -> Sequence[str]:
        """The names in its directory."""
        return list(self._names)

    @property
    def free_bytes(self) -> int:
        """Return how much room there is."""
        return max(0, self._capacity_bytes - self._used_bytes)

    @property
    def _used_bytes(self) -> int:
        return sum({each.number: each.size_bytes for each in self._names.values()}.values())

    def mount(self) -> MountedDisk:
        """Return the file system for a new process; that of the one before is of no use from now on."""
        self.mounted = MountedDisk(self)
        return self.mounted

    def crash(self) -> None:
        """Lose the power: what is not durable is there or not."""
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
        """Let the process die and the system go on: what it wrote is there, and becomes durable in time."""
        if self.mounted is not None:
            self.mounted.is_dead = True
            self.mounted = None

    def lose(self, *, but: Sequence[str] = ()) -> None:
        """Lose every file but these."""
        self.crash()
        self._names = {name: each for name, each in self._names.items() if name in but}
        self._durable_names = dict(self._names)
        self.databases.clear()

    def flip_bit(self) -> str:
        """Change one bit of what a file has, and return its name; empty: there is none that has so much.

        Of what was synced last nothing is changed: where it does not match its checksum, that is a write that was cut
        short, as far as anyone can know who reads it.
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
        """Let syncs take longer; infinite: for ever."""
        self.sync_ns = sync_ns

    def fill(self) -> None:
        """Let there be no more room than there is in use."""
        self.state = DiskState.FULL
        self._capacity_bytes = self._used_bytes

    def refuse(self) -> None:
        """Let syncs fail."""
        self.state = DiskState.FAILS

    def repair(self) -> None:
        """Let the disk work as it did at first."""
        self.sync_ns = self._healthy_sync_ns
        self._capacity_bytes = CAPACITY_BYTES
        self.state = DiskState.WORKS

    @property
    def is_sound(self) -> bool:
        """Return whether it refuses nothing."""
        return self.state is DiskState.WORKS and not self.hangs

    @property
    def hangs(self) -> bool:
        """Return whether no sync ever ends."""
        return self.sync_ns >= INFINITE_NS

    # What is done by way of a mounted one.

    def look_up(self, name: str) -> _Inode | None:
        """Return the file of this name; None: there is none."""
        return self._names.get(name)

    def create(self, name: str) -> _Inode:
        """Make a file."""
        self._inode_count += 1
        inode = _Inode(self._inode_count)
        self.change_names({name: inode})
        return inode

    def change_names(self, change: dict[str, _Inode | None]) -> None:
        """Give and take names, together."""
        for name, inode in change.items():
            _enter(self._names, name, inode)
        self._changes.append(change)
        self._count_names()

    def sync_names(self) -> None:
        """Make the names durable."""
        self._durable_names = dict(self._names)
        self._changes.clear()

    def _count_names(self) -> None:
        for inode in self._names.values():
            inode.name_count = 0
        for inode in self._names.values():
            inode.name_count += 1


class MountedDisk:
    """A disk as one process reaches it: a `FileSystem`.

    `busy_ns` is how long the process waited for the disk in what it does now: the owner takes it back to 0.
    """

    def __init__(self, disk: SimulatedDisk) -> None:
        self._disk = disk
        self._opened: dict[int, tuple[_Inode, bool]] = {}
        """File, and whether it is written past the page cache, by descriptor."""
        self._opened_count = 2
        self.is_dead = False
        self.busy_ns: Nanoseconds = 0
        self.fails_after: int | None = None
        """Number of operations from now after which the power fails; None: it does not."""
        self.is_waited_for = True
        """Whether the process waits for a sync that is done now; False: another thread of it does."""

    def open(self, path: Path, flags: int, mode: int = 0) -> int:
        """Return a descriptor, opened with flags of `os.open`; a directory may be opened to be locked."""
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
        """Let go of a descriptor, and of its lock."""
        self._opened.pop(descriptor, None)

    def read_at(self, descriptor: int, size_bytes: int, offset: int) -> bytes:
        """Return at most the given number of octets from an offset on."""
        self._step()
        return self._opened[descriptor][0].read(size_bytes, offset)

    def write_at(self, descriptor: int, data: bytes | memoryview, offset: int) -> int:
        """Write a beginning of the octets at an offset, and return how many."""
        inode, is_direct = self._opened[descriptor]
        view = memoryview(data)
        disk = self._disk
        if is_direct and (len(view) % disk.sector_bytes or offset % disk.sector_bytes):
            raise _refusal(errno.EINVAL)
        if disk.state is DiskState.FULL and (grown := offset + len(view) - inode.size_bytes) > 0:
            if (free_bytes := disk.free_bytes // disk.sector_bytes * disk.sector_bytes) == 0:
                raise _refusal(errno.ENOSPC)
            view = view[: len(view) - max(0, grown - free_bytes)]
        if self.fails_after == 0:  # a part of it is on its way
            view = view[: disk.random.randint(0, len(view))]
            inode.write(view, offset, disk.sector_bytes)
        self._step()
        inode.write(view, offset, disk.sector_bytes)
        return len(view)

    def cut(self, descriptor: int, size_bytes: int) -> None:
        """Let a file be this long; what is added reads as zeros."""
        self._step()
        self._opened[descriptor][0].cut(size_bytes, self._disk.sector_bytes)

    def allocate(self, descriptor: int, offset: int, size_bytes: int) -> None:
        """Have room, which reads as zeros."""
        self._step()
        if not self._disk.knows_allocation:
            raise _refusal(errno.EOPNOTSUPP)
        inode = self._opened[descriptor][0]
        if offset + size_bytes > inode.size_bytes:
            if offset + size_bytes - inode.size_bytes > self._disk.free_bytes:
                raise _refusal(errno.ENOSPC)
            inode.size_bytes = offset + size_bytes

    def sync(self, descriptor: int) -> None:
        """Make durable what was written to a file, and its length."""
        self._wait()
        inode = self._opened[descriptor][0]
        if self._disk.state is DiskState.FAILS:
            inode.refuse_sync(self._disk.random)
            raise _refusal(errno.EIO)
        inode.synced()

    def sync_all(self, descriptor: int) -> None:
        """Make durable the file with all of its metadata."""
        self.sync(descriptor)

    def sync_directory(self, directory: Path) -> None:
        """Make durable the names in a directory."""
        self._wait()
        if self._disk.state is DiskState.FAILS:
            raise _refusal(errno.EIO, directory)
        self._disk.sync_names()

    def lock(self, descriptor: int, *, waits: bool) -> bool:
        """Have the only lock on a file; False: another process has it, and it was not waited for.

        A disk has one process at a time.
        """
        return True

    def status(self, descriptor: int) -> FileStatus:
        """Return the status of an open file."""
        return _status(self._opened[descriptor][0])

    def status_at(self, path: Path) -> FileStatus | None:
        """Return the status of the file, or link, of this name; None: it does not exist."""
        inode = self._disk.look_up(path.name)
        return None if inode is None else _status(inode)

    def rename(self, path: Path, target: Path) -> None:
        """Give a file another name, in the place of whatever has that."""
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
        """Take a name away; nothing where nothing has it."""
        self._step()
        if self._disk.look_up(path.name) is not None:
            self._disk.change_names({path.name: None})

    def begin_unlink(self, path: Path) -> _Done:
        """Remove a file while nothing waits for it; one that cannot be removed stays."""
        self.unlink(path)
        return _DONE

    def names(self, directory: Path) -> Sequence[str]:
        """Return the names in a directory, in no order."""
        return self._disk.names

    def resolved(self, directory: Path) -> Path | None:
        """Return where a directory really is; None: there is none."""
        return directory if directory == DIRECTORY else None

    def free_bytes(self, directory: Path) -> int:
        """Return how much room there is for those who have no privilege."""
        return self._disk.free_bytes

    def draw(self, count: int) -> bytes:
        """Return random octets, which distinguish the content of one file from that of another."""
        return self._disk.random.randbytes(count)

    def step(self) -> None:
        """Do one operation on the model of a database file, durably.

        Raises:
            OSError: the disk refuses.
        """
        self._wait()
        if self._disk.state is DiskState.FULL and not self._disk.free_bytes:
            raise _refusal(errno.ENOSPC)
        if self._disk.state is DiskState.FAILS:
            raise _refusal(errno.EIO)

    def _step(self) -> None:
        """Count an operation; do none once the process is dead."""
        if self.is_dead:
            raise PowerFailed
        self._disk.operation_count += 1
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                raise PowerFailed

    def _wait(self) -> None:
        """Wait for a sync, if the process itself does."""
        self._step()
        if self.is_waited_for:
            if self._disk.hangs:
                raise ProcessHangs
            self.busy_ns = min(self.busy_ns + self._disk.sync_ns, WAIT_MAX_NS)


class _Done:
    """A deletion that is over."""

    def done(self) -> bool:
        """Return whether it is over."""
        return True

    def result(self) -> None:
        """Wait until it is over."""


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
