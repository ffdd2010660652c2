"""The database store keeps the contract."""

from __future__ import annotations

from pathlib import Path

from qsctl.config.filesystem import FilesystemSettings
from qsctl.storage.sqlite import SqliteStorage
from tests.storage.contract import StoreContract


class TestSqliteStorage(StoreContract):
    def open(self, directory: Path) -> SqliteStorage:
        return SqliteStorage(directory / "QSOrder@S@0@qsctl.db", FilesystemSettings())
