"""The segment store keeps the contract."""

from __future__ import annotations

from pathlib import Path

from qsctl.config.filesystem import FilesystemSettings
from qsctl.storage.segments import SegmentStorage
from tests.storage.contract import StoreContract


class TestSegmentStorage(StoreContract):
    def open(self, directory: Path) -> SegmentStorage:
        return SegmentStorage(directory / "QSOrder@S@0@qsctl", FilesystemSettings())


class TestSegmentStorageInSmallFiles(StoreContract):
    def open(self, directory: Path) -> SegmentStorage:
        return SegmentStorage(directory / "QSOrder@S@0@qsctl", FilesystemSettings(file_max_size_kb=0))
