"""A stream and the write-ahead log it is in, damaged: what loads is what was written, and every loss is reported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.records import Record
from qsctl.service.stores._queue_codec import QUEUE_CODEC
from qsctl.storage.base import DatabaseStorage, Extent
from qsctl.storage.damage import DamageReport
from qsctl.storage.log.log_upkeep import keep_short
from qsctl.storage.log.write_ahead_log import WriteAheadLog
from qsctl.storage.streams.logged import LoggedStorage, write_group
from tests.fuzz.stored_samples import WrittenOnce

_SETTINGS = FilesystemSettings(file_max_size_kb=0, synchronization=Synchronization.FULL)


class _Store(LoggedStorage):
    """A stream that has a log for itself, half of it in files of its own."""

    @property
    def damage(self) -> Sequence[DamageReport]:
        """Of both."""
        return [*self.log.damage, *super().damage]

    @property
    def extent(self) -> Extent:
        """Of the log: that of the own files stands in it."""
        return self.log.extent

    def append(self, records: Sequence[Record]) -> None:
        """Append the records and sync."""
        sync = write_group(self.log, [(self, records)])
        assert sync is not None
        sync()

    def close(self) -> None:
        """Checkpoint all but some files of the log, and close both."""
        for _ in keep_short(self.log, lambda: [self], _raise, files_max=8):
            pass
        super().close()
        self.log.close()

    def abandon(self) -> None:
        """Let go of both."""
        super().abandon()
        self.log.abandon()


def _raise(_: LoggedStorage, error: Exception) -> None:
    raise error


def _make(directory: Path, known: Extent | None) -> DatabaseStorage:
    log = WriteAheadLog(directory / "QSlog@qsctl", _SETTINGS, known)
    return _Store(directory / "QSOrder@S@0@qsctl", _SETTINGS, log, QUEUE_CODEC)


_STORE = WrittenOnce(_make)


def one_input(data: bytes) -> None:
    _STORE.check(data)
