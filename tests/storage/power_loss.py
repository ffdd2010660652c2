"""A disk that forgets what nobody asked it to keep: what is left of a directory when the power fails.

`fsync` and `fdatasync` are watched. What a sync covered is there afterwards; of the rest, any part: each sector of 512
octets is the old one or the new one, a name given since the directory was last synced may be there or not.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import stat
from pathlib import Path
from typing import Self

import pytest

from qsctl.storage.log.segment_log import SegmentLog
from qsctl.storage.streams.logged import LoggedStorage
from tests.storage.own_files import OwnFiles

SECTOR_BYTES = 512


class PowerFailed(Exception):
    """Nothing is done any more."""


def kill(store: OwnFiles | LoggedStorage) -> None:
    """Let go of the files as a process does that is killed."""
    if isinstance(store, LoggedStorage):
        kill_log(store.log._log)
        store = store._own
    kill_log(store._data.log)
    kill_log(store._metadata)
    if store._compaction is not None:
        store._compaction.base._close()


def kill_log(log: SegmentLog) -> None:
    """The same with one log."""
    log._release()
    log._deletions.finish()  # the thread that deletes dies with a process


class Disk:
    """Watches, as a context, the syncs of files in one directory, which must hold no other directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.fails_after: int | None = None
        """So many syncs from now the power fails: that one is not done."""
        self.refuses_next = False
        """Whether the next sync fails. What it was to cover counts as written for the system, and never will be."""
        self._forgotten: dict[int, set[int]] = {}
        """By file, where the sectors begin that a sync that failed was to cover, and that were not written since."""
        self._synced: dict[int, bytes] = {}
        self._names: list[dict[str, int]] = [{}]
        """As of the last sync of the directory, and as they were at each sync since."""
        self._held: dict[int, int] = {}
        """A descriptor of every file ever seen: its number is not given to another file meanwhile."""
        self._patches = pytest.MonkeyPatch()

    def __enter__(self) -> Self:
        self._patches.setattr(os, "fsync", self._sync)
        self._patches.setattr(os, "fdatasync", self._sync)
        self._pwrite = os.pwrite
        self._patches.setattr(os, "pwrite", self._write)
        return self

    def __exit__(self, *_: object) -> None:
        self._patches.undo()
        for descriptor in self._held.values():
            os.close(descriptor)

    def leave(self, directory: Path, chance: random.Random) -> None:
        """What is left, in another directory."""
        self._look()
        directory.mkdir()
        for name, number in chance.choice(self._names).items():
            (directory / name).write_bytes(self._left(number, chance))

    def _sync(self, descriptor: int) -> None:
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                raise PowerFailed
        self._look()
        status = os.fstat(descriptor)
        content = os.pread(descriptor, status.st_size, 0) if not stat.S_ISDIR(status.st_mode) else b""
        if self.refuses_next:
            self.refuses_next = False
            self._forget(status.st_ino, content)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if stat.S_ISDIR(status.st_mode):
            self._names = self._names[-1:]
        else:
            self._synced[status.st_ino] = self._written(status.st_ino, content)

    def _look(self) -> None:
        names = {}
        for path in self.directory.iterdir():
            with contextlib.suppress(FileNotFoundError):  # deleted at this moment, by the thread that does
                number = path.stat().st_ino
                if number not in self._held:
                    self._held[number] = os.open(path, os.O_RDONLY)
                names[path.name] = number
        self._names.append(names)

    def _write(self, descriptor: int, data: bytes | memoryview, offset: int) -> int:
        count = self._pwrite(descriptor, data, offset)
        if forgotten := self._forgotten.get(os.fstat(descriptor).st_ino):
            forgotten.difference_update(range(offset - offset % SECTOR_BYTES, offset + count, SECTOR_BYTES))
        return count

    def _forget(self, number: int, content: bytes) -> None:
        """Count what a sync was to cover as written: no later sync covers it, unless it is written again."""
        old = self._synced.get(number, b"").ljust(len(content), b"\0")
        sectors = (slice(at, at + SECTOR_BYTES) for at in range(0, len(content), SECTOR_BYTES))
        self._forgotten.setdefault(number, set()).update(each.start for each in sectors if content[each] != old[each])

    def _written(self, number: int, content: bytes) -> bytes:
        """Return what a sync makes durable: all but the sectors that a failed one has forgotten."""
        old, written = self._synced.get(number, b"").ljust(len(content), b"\0"), bytearray(content)
        for at in self._forgotten.get(number, ()):
            here = slice(at, min(at + SECTOR_BYTES, len(content)))
            written[here] = old[here]
        return bytes(written)

    def _left(self, number: int, chance: random.Random) -> bytes:
        old = self._synced.get(number, b"")
        new = os.pread(self._held[number], os.fstat(self._held[number]).st_size, 0)
        size = chance.choice([len(old), len(new)])
        likely_new = chance.choice([0.0, 0.5, 1.0])
        left = bytearray()
        for at in range(0, size, SECTOR_BYTES):
            source = new if chance.random() < likely_new else old
            left += source[at : at + SECTOR_BYTES].ljust(SECTOR_BYTES, b"\0")
        return bytes(left[:size])
