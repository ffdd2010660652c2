"""The operations stored for one replica, and the stream that results from replaying them [QS 7.1].

Decides: which earlier records an operation supersedes. Records stay encoded until all operations were read, because
most are superseded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from qsctl.storage.codec import Record


class StoredHardState(msgspec.Struct, frozen=True, array_like=True):
    """The durable state of a replica's votes: the latest epoch that it has seen, and its vote in that epoch.

    `floor_epoch` and `floor_index` are the least log that a candidate must have to get its vote; further fields are the
    incarnation of its group, those of earlier groups of this name, and the members that the group was created with.
    """

    epoch: int = 0
    vote: str = ""
    floor_epoch: int = 0
    floor_index: int = 0
    incarnation: int = 0
    left: tuple[int, ...] = ()
    voters: tuple[str, ...] = ()
    learners: tuple[str, ...] = ()


class StateSet(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The operation that sets a replica's epoch and vote."""

    stream: str
    state: StoredHardState


class SnapshotPart(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Part `number`, counted from 0, of the records of the next `SnapshotPut`, which alone gives it an effect."""

    stream: str
    number: int
    data: bytes


class SnapshotPut(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The operation that replaces the records up to `index` by those of `part_count` parts before it and by its own;
    with `installs` also the later ones. Only earlier versions wrote one without it.
    """

    stream: str
    index: int
    installs: bool
    data: bytes
    part_count: int = 0


class Appended(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The operation that appends records from `first_index` on; with `truncates` it replaces those from there on."""

    stream: str
    first_index: int
    count: int
    truncates: bool
    data: bytes


class Dropped(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The operation that deletes the stream."""

    stream: str


class MembersKnown(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """The operation that sets the names of all members of the cluster."""

    names: list[str]


Operation: TypeAlias = StateSet | SnapshotPart | SnapshotPut | Appended | Dropped | MembersKnown


class StoredStream(msgspec.Struct, frozen=True):
    """A stream as stored; `snapshot_records` replace the records up to `snapshot_index`."""

    hard_state: StoredHardState = StoredHardState()
    snapshot_index: int = 0
    snapshot_records: Sequence[Record] = ()
    records: Sequence[Record] = ()


class _Part(msgspec.Struct):
    """The records of one operation that are still valid: `count` of them, after the first `skipped_count`."""

    first_index: int
    skipped_count: int
    count: int
    data: bytes


class StreamReader:
    """One stream during the replay of its operations."""

    def __init__(self) -> None:
        self.hard_state = StoredHardState()
        """The epoch and vote."""
        self._snapshot_index = 0
        self._snapshot: list[bytes] = []
        self._snapshot_parts: list[bytes] = []
        """Those that no `SnapshotPut` has followed: after a crash it never will."""
        self._parts: list[_Part] = []

    @property
    def last_index(self) -> int:
        """The index of the last record."""
        last = self._parts[-1] if self._parts else None
        return self._snapshot_index if last is None else last.first_index + last.count - 1

    def do(self, operation: StateSet | SnapshotPart | SnapshotPut | Appended) -> None:
        """Replay one operation.

        Raises:
            LookupError: it does not follow on the operations before it: one is missing.
        """
        match operation:
            case StateSet(_, state):
                self.hard_state = state
            case SnapshotPart(_, number, data):
                del self._snapshot_parts[number:]
                self._snapshot_parts.append(data)
            case SnapshotPut(_, index, installs, data, part_count):
                parts, self._snapshot_parts = self._snapshot_parts[:part_count], []
                if len(parts) < part_count:
                    raise LookupError(f"{len(parts)} of {part_count} parts of a snapshot up to {index}")
                if not installs and not self._snapshot_index <= index <= self.last_index:
                    raise LookupError(f"a snapshot up to {index} of the records up to {self.last_index}")
                self._cut_before(index + 1)
                if installs:
                    self._parts.clear()
                self._snapshot_index, self._snapshot = index, [*parts, data]
            case Appended(_, first_index, count, truncates, data):
                if truncates and first_index > self._snapshot_index:
                    self._cut_from(first_index)
                if first_index != self.last_index + 1:
                    raise LookupError(f"record {first_index} behind record {self.last_index}")
                self._parts.append(_Part(first_index, 0, count, data))

    def remember(self, state: StoredHardState) -> None:
        """Keep the epoch and vote of an operation behind damage, unless later ones are known."""
        if state.epoch >= self.hard_state.epoch:
            self.hard_state = state

    def read(self, decode: Callable[[bytes], Sequence[Record]]) -> StoredStream:
        """Return the stream that results from all operations."""
        records: list[Record] = []
        for part in self._parts:
            records += decode(part.data)[part.skipped_count : part.skipped_count + part.count]
        snapshot: list[Record] = []
        for data in self._snapshot if self._snapshot_index else ():
            snapshot += decode(data)
        return StoredStream(self.hard_state, self._snapshot_index, snapshot, records)

    def _cut_from(self, index: int) -> None:
        while self._parts and self._parts[-1].first_index >= index:
            self._parts.pop()
        if self._parts:
            last = self._parts[-1]
            last.count = min(last.count, index - last.first_index)

    def _cut_before(self, index: int) -> None:
        kept = [part for part in self._parts if part.first_index + part.count > index]
        if kept and (over := index - kept[0].first_index) > 0:
            first = kept[0]
            kept[0] = _Part(index, first.skipped_count + over, first.count - over, first.data)
        self._parts = kept
