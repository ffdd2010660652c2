"""The writes and frames of a replica: writes in order, and frames that rest on them.

Decides: when a frame may leave: once the writes that were asked for before it are durable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import msgspec

from qsctl.core.high_availability._log import entry_count
from qsctl.core.high_availability.ballot import HardState
from qsctl.core.high_availability.frames import Frame
from qsctl.core.records import QueueRecord, QueueStreamRecord


class SnapshotWrite(msgspec.Struct, frozen=True, gc=False):
    """Records up to `index` that replace the whole log."""

    index: int
    records: Sequence[QueueRecord]


class LogWrite(msgspec.Struct, frozen=True, gc=False):
    """The changes that a driver makes to a store, in this order: hard state, snapshot, truncation, records.

    Each of the four is applied wholly or not at all, but any prefix of the records may be found after a crash. `number`
    counts the writes of a stream; they are durable in this order.
    """

    stream: str
    number: int
    hard_state: HardState | None = None
    snapshot: SnapshotWrite | None = None
    truncate_from: int = 0
    """0: nothing is taken back."""
    first_index: int = 0
    records: Sequence[QueueStreamRecord] = ()


class Outgoing:
    """The writes and frames of one replica.

    Args:
        stream: its stream.
        is_stored: whether there is a store at all; without one everything counts as durable at once.
        number: what the writes are counted from: a stream that is created anew goes on behind its former self.
    """

    def __init__(self, stream: str, *, is_stored: bool, number: int) -> None:
        self._stream = stream
        self._is_stored = is_stored
        self._number = self._durable = number
        self._writes: list[LogWrite] = []
        self._frames: deque[tuple[int, str, Frame]] = deque()
        self._free: list[tuple[str, Frame]] = []
        self._indexes: deque[tuple[int, int]] = deque()
        self.durable_index = 0
        """The log is durable up to here."""

    @property
    def number(self) -> int:
        """That of the last write that was asked for."""
        return self._number

    def write_hard_state(self, state: HardState) -> None:
        """Ask for the epoch and vote to be kept."""
        self._enter(LogWrite(self._stream, self._number + 1, hard_state=state), None)

    def write_records(self, first_index: int, records: Sequence[QueueStreamRecord], *, truncates: bool) -> None:
        """Ask for records to be appended, in the place of those from `first_index` on if it `truncates`."""
        if truncates:
            # What is asked for already and not durable yet reaches no further than this.
            self._indexes = deque((number, min(index, first_index - 1)) for number, index in self._indexes)
            self.durable_index = min(self.durable_index, first_index - 1)
        write = LogWrite(
            self._stream,
            self._number + 1,
            truncate_from=first_index if truncates else 0,
            first_index=first_index,
            records=tuple(records),
        )
        self._enter(write, first_index + entry_count(records) - 1)

    def write_snapshot(self, index: int, records: Sequence[QueueRecord]) -> None:
        """Request that records up to an index replace all entries."""
        self._enter(LogWrite(self._stream, self._number + 1, snapshot=SnapshotWrite(index, records)), index)

    def send(self, recipient: str, frame: Frame, *, rests_on_writes: bool) -> None:
        """Let a frame leave: once all writes so far are durable, or at once."""
        if rests_on_writes and self._durable < self._number:
            self._frames.append((self._number, recipient, frame))
        else:
            self._free.append((recipient, frame))

    def stored(self, number: int) -> None:
        """Note that the writes up to this number are durable."""
        self._durable = max(self._durable, number)
        while self._indexes and self._indexes[0][0] <= self._durable:
            self.durable_index = self._indexes.popleft()[1]
        while self._frames and self._frames[0][0] <= self._durable:
            _, recipient, frame = self._frames.popleft()
            self._free.append((recipient, frame))

    def pop_writes(self) -> list[LogWrite]:
        """Return the writes that were asked for since the last call."""
        writes, self._writes = self._writes, []
        return writes

    def pop_frames(self) -> Iterator[tuple[str, Frame]]:
        """Give the frames that may leave, with their recipients."""
        free, self._free = self._free, []
        return iter(free)

    @property
    def is_durable(self) -> bool:
        """Return whether everything that was asked for is durable."""
        return self._durable == self._number

    def fall_silent(self) -> None:
        """Forget everything that was not handed over: the store failed."""
        self._writes.clear()
        self._frames.clear()
        self._free.clear()

    def _enter(self, write: LogWrite, last_index: int | None) -> None:
        self._number = write.number
        if last_index is not None:
            self._indexes.append((write.number, last_index))
        if self._is_stored:
            self._writes.append(write)
        else:
            self.stored(write.number)
