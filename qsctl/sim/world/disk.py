"""The disk of a simulated service: what is synced survives a crash, and of the rest a beginning at most.

What is written together is one group of operations, in order. While its sync is in progress none of it is sure: a crash
keeps a drawn number of them, the last append perhaps in part, as a torn write leaves it; the files of the service's own
stores and the log of the replicas each for itself. A disk may be slow, have no room, refuse a sync, or be lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import TypeAlias, assert_never

from qsctl.core.high_availability.ballot import HardState
from qsctl.core.records import Record
from qsctl.instant import Nanoseconds


class DiskState(StrEnum):
    """What a disk does with the next group."""

    WORKS = "works"
    FULL = "full"
    """ENOSPC: it is not written."""
    FAILS = "fails"
    """EIO: the sync fails, and what was written may be there."""


class DiskRefuses(Exception):
    """The operating system refused a write or a sync; `reason` is ENOSPC or EIO."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Append:
    """Records behind those of a stream."""

    stream: str
    first_index: int
    records: Sequence[Record]


@dataclass(frozen=True, slots=True)
class Truncate:
    """The records of a stream from an index on go."""

    stream: str
    from_index: int


@dataclass(frozen=True, slots=True)
class Compact:
    """The records up to an index are replaced by those of a snapshot."""

    stream: str
    up_to: int
    snapshot: Sequence[Record]


@dataclass(frozen=True, slots=True)
class Install:
    """A whole stream is replaced by a snapshot that stands for its records up to an index."""

    stream: str
    up_to: int
    snapshot: Sequence[Record]


@dataclass(frozen=True, slots=True)
class SetHardState:
    """The epoch and the vote of a replica."""

    stream: str
    state: HardState


@dataclass(frozen=True, slots=True)
class Drop:
    """A stream is no more: its queue was deleted."""

    stream: str


Operation: TypeAlias = Append | Truncate | Compact | Install | SetHardState | Drop


@dataclass(slots=True)
class StreamFile:
    """One stream as it would be found after a crash."""

    snapshot: list[Record] = field(default_factory=list)
    snapshot_index: int = 0
    records: list[Record] = field(default_factory=list)
    hard_state: HardState = HardState()

    @property
    def last_index(self) -> int:
        """The index of the last record."""
        return self.snapshot_index + len(self.records)

    @property
    def is_of_replica(self) -> bool:
        """Whether it is a stream of the replicas' log, which begins with their hard state."""
        return self.hard_state != HardState()

    def load(self) -> list[Record]:
        """Every record, those of the snapshot first."""
        return [*self.snapshot, *self.records]


class Disk:
    """What one service has stored.

    Args:
        random: draws what a crash leaves of a group whose sync was in progress.
        sync_ns: how long a sync takes.
    """

    def __init__(self, random: Random, sync_ns: Nanoseconds) -> None:
        self._random = random
        self._healthy_sync_ns = sync_ns
        self.sync_ns = sync_ns
        self.state = DiskState.WORKS
        self.streams: dict[str, StreamFile] = {}
        self._in_progress: tuple[Sequence[Operation], ...] = ()
        """Of each file."""
        self.was_lost = False
        """Whether everything was lost once: a stream that is not there was there before."""

    def write(self, *files: Sequence[Operation]) -> None:
        """Begin to write a group: what is done to each of the files.

        Raises:
            DiskRefuses: there is no room; nothing of it was written.
        """
        if self.state is DiskState.FULL:
            raise DiskRefuses("ENOSPC")
        self._in_progress = files

    def sync(self) -> None:
        """End the sync of the group: it is durable.

        Raises:
            DiskRefuses: the sync failed; a part of the group is there.
        """
        if self.state is DiskState.FAILS:
            raise DiskRefuses("EIO")
        for operations in self._in_progress:
            for operation in operations:
                self._do(operation)
        self._in_progress = ()

    def crash(self) -> list[Operation]:
        """Lose the power, and return what is there of a group whose sync is in progress: of each file a beginning."""
        kept: list[Operation] = []
        for operations in self._in_progress:
            if operations:
                kept += self._beginning(operations)
        self._in_progress = ()
        for operation in kept:
            self._do(operation)
        return kept

    def _beginning(self, operations: Sequence[Operation]) -> list[Operation]:
        kept = list(operations[: self._random.randint(0, len(operations))])
        if kept and isinstance(last := kept[-1], Append):
            kept[-1] = Append(last.stream, last.first_index, last.records[: self._random.randint(0, len(last.records))])
        return kept

    def lose(self) -> None:
        """Lose everything that was stored."""
        self.streams = {}
        self._in_progress = ()
        self.was_lost = True

    def slow_down(self, sync_ns: Nanoseconds) -> None:
        """Let syncs take longer."""
        self.sync_ns = sync_ns

    def repair(self) -> None:
        """Let the disk work as it did at first."""
        self.sync_ns = self._healthy_sync_ns
        self.state = DiskState.WORKS

    def stream(self, name: str) -> StreamFile:
        """The stream of this name, empty where nothing was stored."""
        found = self.streams.get(name)
        if found is None:
            found = self.streams[name] = StreamFile()
        return found

    def _do(self, operation: Operation) -> None:
        match operation:
            case Append(name, first_index, records):
                stream = self.stream(name)
                assert first_index == stream.last_index + 1, (name, first_index, stream.last_index)
                stream.records += records
            case Truncate(name, from_index):
                stream = self.stream(name)
                assert from_index > stream.snapshot_index, (name, from_index, stream.snapshot_index)
                del stream.records[from_index - stream.snapshot_index - 1 :]
            case Compact(name, up_to, snapshot):
                stream = self.stream(name)
                stream.records = stream.records[max(0, up_to - stream.snapshot_index) :]
                stream.snapshot, stream.snapshot_index = list(snapshot), up_to
            case Install(name, up_to, snapshot):
                stream = self.stream(name)
                stream.snapshot, stream.snapshot_index, stream.records = list(snapshot), up_to, []
            case SetHardState(name, state):
                self.stream(name).hard_state = state
            case Drop(name):
                self.streams.pop(name, None)
            case _:
                assert_never(operation)
