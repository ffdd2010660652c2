"""A stream of the write-ahead log keeps the contract, whatever of it went to its own files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qsctl.config.filesystem import FilesystemSettings
from qsctl.core.records import Record
from qsctl.storage.streams.logged import LoggedStorage
from tests.storage.contract import StoreContract
from tests.storage.with_its_log import WithItsLog


class TestLoggedStorage(StoreContract):
    def open(self, directory: Path) -> WithItsLog:
        return WithItsLog(directory, FilesystemSettings())


class TestLoggedStorageInSmallFiles(StoreContract):
    def open(self, directory: Path) -> WithItsLog:
        return WithItsLog(directory, FilesystemSettings(file_max_size_kb=0))


class Checkpointed(WithItsLog):
    """Everything but the last file of the log goes to its own files after every append."""

    def append(self, records: Sequence[Record]) -> None:
        super().append(records)
        if not self.is_compacting:
            checkpoint_all(self)


def checkpoint_all(store: LoggedStorage) -> None:
    log = store.log
    for file in list(log.files[:-1]):
        for _ in store.checkpoint(file):
            pass
        store.checkpointed(file)
        log.commit((), oldest_file=file + 1)
        store.drop_dead()


class TestCheckpointedStorage(StoreContract):
    def open(self, directory: Path) -> WithItsLog:
        return Checkpointed(directory, FilesystemSettings(file_max_size_kb=0))
