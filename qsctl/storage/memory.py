"""A store in memory: what a volatile queue needs, and the model that the others are measured by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from qsctl.core.records import Enqueued, Record, Removed
from qsctl.storage.base import Extent, Sync, WritesThenSyncs
from qsctl.storage.damage import DamageReport

DEAD_RECORD_COUNT_MIN: Final = 5_000


class MemoryStorage(WritesThenSyncs):
    """Records in a list. Nothing survives the process, so nothing is ever damaged."""

    def __init__(self) -> None:
        self.damage: Sequence[DamageReport] = ()
        self.was_there = False
        self._records: list[Record] = []
        self._held: dict[int, bytes] = {}
        self._kept_count = 0

    @property
    def extent(self) -> Extent:
        """See `Storage.extent`."""
        return Extent("memory", 0)

    def write(self, records: Sequence[Record]) -> Sync | None:
        """See `Storage.write`."""
        self._records.extend(records)
        for record in records:
            if isinstance(record, Enqueued):
                self._held[record.position] = record.payload
            elif isinstance(record, Removed):
                self._held.pop(record.position, None)
        return None

    def load(self) -> Iterator[Record]:
        """See `Storage.load`."""
        for record in list(self._records):
            if isinstance(record, Enqueued) and record.position not in self._held:
                yield replace(record, payload=b"")
            else:
                yield record

    def payload(self, position: int) -> bytes:
        """See `Storage.payload`.

        Raises:
            KeyError: no such sample is held.
        """
        return self._held[position]

    def worth_compacting(self) -> bool:
        """See `Storage.worth_compacting`."""
        live_count = 2 * len(self._held) + self._kept_count
        return len(self._records) - live_count > max(live_count, DEAD_RECORD_COUNT_MIN)

    def compact(self, keep: Iterable[Record]) -> None:
        """See `Storage.compact`."""
        records: list[Record] = []
        held: dict[int, bytes] = {}
        for record in keep:
            if isinstance(record, Enqueued):
                held[record.position] = self._held.get(record.position, record.payload)
                record = replace(record, payload=held[record.position])
            records.append(record)
        self._records, self._held = records, held
        self._kept_count = len(records) - len(held)

    def renew(self, keep: Iterable[Record]) -> None:
        """See `Storage.renew`."""
        self.compact(keep)

    def abandon(self) -> None:
        """Nothing to let go of."""

    def destroy(self) -> None:
        """See `Storage.destroy`."""
        self._records.clear()
        self._held.clear()

    def close(self) -> None:
        """Nothing to let go of: a closed store can be read on, which is what a test of a restart needs."""
