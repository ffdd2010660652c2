"""A store in memory: the model that the others are measured by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from qsctl.service.queue_codec import QUEUE_CODEC
from qsctl.storage.base import Compacted, Extent, StoredHardState, Sync, WritesThenSyncs
from qsctl.storage.codec import Record
from qsctl.storage.damage import DamageReport

DEAD_RECORD_COUNT_MIN: Final = 5_000


class MemoryStorage(WritesThenSyncs):
    """Records in a list. Nothing survives the process, so nothing is ever damaged."""

    def __init__(self, *, is_truncatable: bool = False) -> None:
        self.damage: Sequence[DamageReport] = ()
        self.was_there = False
        self.snapshot_index = 0
        self.hard_state = StoredHardState()
        self._is_truncatable = is_truncatable
        self._committed_index = 0
        self._snapshot: list[Record] = []
        self._records: list[Record] = []
        """Those behind the snapshot."""

    @property
    def extent(self) -> Extent:
        return Extent("memory", 0)

    @property
    def last_index(self) -> int:
        return self.snapshot_index + len(self._records)

    @property
    def committed_index(self) -> int:
        return self._committed_index if self._is_truncatable else self.last_index

    def write(self, records: Sequence[Record]) -> Sync | None:
        self._records.extend(records)
        return None

    def commit(self, index: int) -> None:
        self._committed_index = max(self._committed_index, min(index, self.last_index))

    def truncate(self, from_index: int) -> None:
        if from_index <= self.committed_index:
            raise ValueError(f"record {from_index} was committed")
        del self._records[max(0, from_index - self.snapshot_index - 1) :]

    def set_hard_state(self, state: StoredHardState) -> None:
        self.hard_state = state

    def load(self) -> Iterator[Record]:
        held = self._held()
        for record in [*self._snapshot, *self._records]:
            yield _without_payload(record) if _is_gone(record, held) else record

    def load_from(self, index: int) -> Iterator[Record]:
        if index <= self.snapshot_index:
            raise Compacted("the records were compacted")
        held = self._held()
        found = self._records[index - self.snapshot_index - 1 :]
        return iter([_without_payload(record) if _is_gone(record, held) else record for record in found])

    def payload(self, position: int) -> bytes:
        return self._held()[position]

    def worth_compacting(self) -> bool:
        live_count = 2 * len(self._held()) + sum(not _is_carrier(each) for each in self._snapshot)
        return len(self._snapshot) + len(self._records) - live_count > max(live_count, DEAD_RECORD_COUNT_MIN)

    def compact(self, keep: Iterable[Record]) -> None:
        held = self._held()
        left = self._records[self.committed_index - self.snapshot_index :]
        self._snapshot = [
            replace(each, payload=held.get(each.position, each.payload)) if _is_carrier(each) else each for each in keep
        ]
        self.snapshot_index, self._records = self.committed_index, left

    def renew(self, keep: Iterable[Record]) -> None:
        self.compact(keep)

    def abandon(self) -> None:
        return

    def destroy(self) -> None:
        self._snapshot.clear()
        self._records.clear()

    def close(self) -> None:
        """Nothing to let go of: a closed store can be read on, which is what a test of a restart needs."""

    def _held(self) -> dict[int, bytes]:
        """The payloads of what did not end, or whose end is not committed."""
        held: dict[int, bytes] = {}
        committed = self._records[: self.committed_index - self.snapshot_index]
        for record in [*self._snapshot, *self._records]:
            if _is_carrier(record):
                held[record.position] = record.payload
        for record in [*self._snapshot, *committed]:
            if (position := QUEUE_CODEC.ended_by(record)) is not None:
                held.pop(position, None)
        return held


def _is_carrier(record: Record) -> bool:
    return type(record) is QUEUE_CODEC.carrier


def _is_gone(record: Record, held: dict[int, bytes]) -> bool:
    return _is_carrier(record) and record.position not in held


def _without_payload(record: Record) -> Record:
    return replace(record, payload=b"")
