"""A stream's own files as a whole store, which is what qsctl 0.1 had: for tests of what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.records import Record
from qsctl.service.stores._queue_codec import QUEUE_CODEC
from qsctl.storage.base import Extent
from qsctl.storage.streams._checkpoints import Checkpoints
from qsctl.storage.streams._compaction import Whole
from qsctl.storage.streams.logged import DEAD_BODY_COUNT_MIN


class OwnFiles(Checkpoints):
    """They are written to and synced as configured; positions that end are dropped with the sync."""

    def __init__(self, stem: Path, settings: FilesystemSettings, known: Extent | None = None) -> None:
        super().__init__(stem, settings, QUEUE_CODEC, known)
        self._is_full = settings.synchronization is Synchronization.FULL

    def append(self, records: Sequence[Record]) -> None:
        encoded = QUEUE_CODEC.encode(records)
        self.put(encoded)
        self.follow(records)
        if self._is_full or self._dead:
            self._sync(has_data=bool(encoded.positions))

    def write_deferred(self, records: Sequence[Record]) -> None:
        self.put(QUEUE_CODEC.encode(records))
        self.follow(records)

    def _sync(self, *, has_data: bool) -> None:
        try:
            if has_data:
                self._data.log.sync()
            self._metadata.sync()
            self.drop_dead()
        except OSError as error:
            self._failed = True
            raise self._refusal(error) from error

    def sync(self) -> None:
        self._sync(has_data=False)

    def payloads(self, positions: Sequence[int]) -> list[bytes]:
        return list(map(self.payload, positions))

    def worth_compacting(self) -> bool:
        live_count = len(self.held) + self.kept_count
        return self.body_count - live_count > max(live_count, DEAD_BODY_COUNT_MIN)

    def compact(self, keep: Iterable[Record]) -> None:
        for _ in self.compact_in_shares(Whole(keep)):
            pass
