"""The memory store keeps the contract."""

from __future__ import annotations

from pathlib import Path

from qsctl.storage.memory import MemoryStorage
from tests.storage.contract import StoreContract


class TestMemoryStorage(StoreContract):
    survives_reopening = False

    def open(self, directory: Path) -> MemoryStorage:
        return MemoryStorage()
