"""The stored state of a world's service for its judges: the operations on each stream, and the permitted remains.

Decides the records that a restart may find: all synced operations, and of the unsynced ones any prefix. It is an
independent fold without files; the stores that it judges are the live ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from qsctl.core.high_availability.ballot import HardState
from qsctl.core.records import Enqueued, Record, Removed


@dataclass(frozen=True, slots=True)
class Append:
    """The operation that appends records to a stream."""

    stream: str
    first_index: int
    records: Sequence[Record]


@dataclass(frozen=True, slots=True)
class Truncate:
    """The operation that removes the records of a stream from an index on."""

    stream: str
    from_index: int


@dataclass(frozen=True, slots=True)
class Compact:
    """The operation that replaces the records up to an index by a snapshot."""

    stream: str
    up_to: int
    snapshot: Sequence[Record]


@dataclass(frozen=True, slots=True)
class Install:
    """The operation that replaces a whole stream by a snapshot of the records up to an index."""

    stream: str
    up_to: int
    snapshot: Sequence[Record]


@dataclass(frozen=True, slots=True)
class SetHardState:
    """The operation that stores the epoch and the vote of a replica."""

    stream: str
    state: HardState


@dataclass(frozen=True, slots=True)
class Drop:
    """The operation that removes a stream whose queue was deleted."""

    stream: str


Operation: TypeAlias = Append | Truncate | Compact | Install | SetHardState | Drop


@dataclass(slots=True)
class StreamFile:
    """The content of one stream that a restart would find."""

    snapshot: list[Record] = field(default_factory=list)
    snapshot_index: int = 0
    records: list[Record] = field(default_factory=list)
    hard_state: HardState = HardState()

    @property
    def last_index(self) -> int:
        """Return the index of the last record."""
        return self.snapshot_index + len(self.records)

    @property
    def is_of_replica(self) -> bool:
        """Return whether the stream is in the replicas' log, where each has a hard state."""
        return self.hard_state != HardState()

    def load(self) -> list[Record]:
        """Return all records, those of the snapshot first."""
        return [*self.snapshot, *self.records]


class StoredState:
    """The judges' account of the stored streams of one service."""

    def __init__(self) -> None:
        self.streams: dict[str, StreamFile] = {}
        """The durable records, by stream."""
        self._of_replicas: list[Operation] = []
        """Operations written to the replica log that are not known to be durable."""
        self._of_queues: list[Append] = []
        """Operations written to the files of unreplicated queues that are not known to be durable."""

    def stream(self, name: str) -> StreamFile:
        """Return the stream of this name; a new, empty one if nothing was stored."""
        found = self.streams.get(name)
        if found is None:
            found = self.streams[name] = StreamFile()
        return found

    def begin_replicas(self, operations: Sequence[Operation]) -> None:
        """Note operations that are written to the replica log."""
        self._of_replicas += operations

    def begin_queues(self, operations: Sequence[Append]) -> None:
        """Note operations that are written to the files of unreplicated queues."""
        self._of_queues += operations

    def end_replicas(self) -> list[Operation]:
        """Apply the operations written to the replica log, which are durable now, and return them."""
        done, self._of_replicas = self._of_replicas, []
        for operation in done:
            self.do(operation)
        return done

    def end_queues(self, failed: Iterable[str]) -> list[Operation]:
        """Apply the operations written to the files of queues, which are durable now, and return them.

        Operations on failed streams are excepted: they may or may not be durable.
        """
        failed = set(failed)
        done: list[Operation] = [each for each in self._of_queues if each.stream not in failed]
        self._of_queues = [each for each in self._of_queues if each.stream in failed]
        for operation in done:
            self.do(operation)
        return done

    def next_index(self, name: str) -> int:
        """Return the index of the next record that is written to a queue's stream."""
        pending_count = sum(len(each.records) for each in self._of_queues if each.stream == name)
        return self.stream(name).last_index + pending_count + 1

    @property
    def is_anything_deferred(self) -> bool:
        """Return whether operations on the files of queues are not known to be durable."""
        return bool(self._of_queues)

    def forget_pending(self, name: str) -> None:
        """Drop the pending operations of a queue, whose complete content was stored instead."""
        self._of_queues = [each for each in self._of_queues if each.stream != name]

    def lose(self) -> None:
        """Forget everything, as after the loss of the disk."""
        self.streams.clear()
        self._of_replicas.clear()
        self._of_queues.clear()

    def found_in_log(self, found: Mapping[str, StreamFile]) -> tuple[list[Operation], list[str]]:
        """Adopt the replica streams that a restart found.

        Returns:
            The pending operations that turned out to be durable, and descriptions of inadmissible differences.
        """
        pending, self._of_replicas = self._of_replicas, []
        before = {name: each for name, each in self.streams.items() if each.is_of_replica}
        for count in range(len(pending) + 1):
            if all(_is_same(before.get(name), found.get(name)) for name in before.keys() | found.keys()):
                self._replace(found)
                return pending[:count], []
            if count < len(pending):
                operation = pending[count]
                before[operation.stream] = _copy(before.get(operation.stream))
                _do(before, operation)
        durable = {name: each for name, each in self.streams.items() if each.is_of_replica}
        wrong = [
            f"{name}: of {_shown(durable.get(name))} durable, and {len(pending)} writes not, a restart found "
            f"{_shown(found.get(name))}"
            for name in sorted(durable.keys() | found.keys())
            if not _is_same(durable.get(name), found.get(name))
        ]
        self._replace(found)
        return [], wrong

    def found_in_queue(self, name: str, records: Sequence[Record]) -> tuple[list[Operation], list[str]]:
        """Adopt the records of an unreplicated queue that a restart found; return the same as `found_in_log`."""
        pending = [record for each in self._of_queues if each.stream == name for record in each.records]
        self._of_queues = [each for each in self._of_queues if each.stream != name]
        held, durable = held_positions(records), self.streams.get(name, StreamFile()).load()
        must = held_positions([*durable, *(each for each in pending if isinstance(each, Removed))])
        may = held_positions(durable) | {each.position for each in pending if isinstance(each, Enqueued)}
        ended = {each.position for each in records if isinstance(each, Removed)}
        kept = [
            each
            for each in pending
            if (isinstance(each, Enqueued) and each.position in held | ended)
            or (isinstance(each, Removed) and each.position not in held)
        ]
        stream = self.stream(name)
        first_index = stream.last_index + 1
        stream.snapshot, stream.snapshot_index, stream.records = list(records), first_index - 1 + len(kept), []
        wrong = []
        if missing := must - held:
            wrong.append(f"{name}: positions {sorted(missing)[:5]} were durable, and a restart did not find them")
        if extra := held - may:
            wrong.append(f"{name}: a restart found positions {sorted(extra)[:5]}, which were not held")
        return ([Append(name, first_index, tuple(kept))] if kept else []), wrong

    def do(self, operation: Operation) -> None:
        """Apply an operation that is durable."""
        _do(self.streams, operation)

    def _replace(self, found: Mapping[str, StreamFile]) -> None:
        for name in [name for name, each in self.streams.items() if each.is_of_replica]:
            del self.streams[name]
        self.streams |= found


def _do(streams: dict[str, StreamFile], operation: Operation) -> None:
    stream = streams.get(operation.stream)
    if stream is None:
        stream = streams[operation.stream] = StreamFile()
    match operation:
        case Append(name, first_index, records):
            assert first_index == stream.last_index + 1, (name, first_index, stream.last_index)
            stream.records += records
        case Truncate(name, from_index):
            assert from_index > stream.snapshot_index, (name, from_index, stream.snapshot_index)
            del stream.records[from_index - stream.snapshot_index - 1 :]
        case Compact(_, up_to, snapshot):
            stream.records = stream.records[max(0, up_to - stream.snapshot_index) :]
            stream.snapshot, stream.snapshot_index = list(snapshot), up_to
        case Install(_, up_to, snapshot):
            stream.snapshot, stream.snapshot_index, stream.records = list(snapshot), up_to, []
        case SetHardState(_, state):
            stream.hard_state = state
        case Drop(name):
            del streams[name]
        case _:
            assert_never(operation)


def _copy(stream: StreamFile | None) -> StreamFile:
    if stream is None:
        return StreamFile()
    return StreamFile(list(stream.snapshot), stream.snapshot_index, list(stream.records), stream.hard_state)


def _is_same(one: StreamFile | None, other: StreamFile | None) -> bool:
    return (one or StreamFile()) == (other or StreamFile())


def _shown(stream: StreamFile | None) -> str:
    if stream is None:
        return "nothing"
    return f"{len(stream.records)} entries behind {stream.snapshot_index} of epoch {stream.hard_state.epoch}"


def held_positions(records: Iterable[Record]) -> set[int]:
    """Return the queue positions that records enqueue and do not remove."""
    held: set[int] = set()
    for record in records:
        if isinstance(record, Enqueued):
            held.add(record.position)
        elif isinstance(record, Removed):
            held.discard(record.position)
    return held
