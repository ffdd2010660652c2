"""The memory store keeps the contract."""

from __future__ import annotations

from pathlib import Path

from tests.storage.contract import StoreContract
from tests.storage.memory import MemoryStorage
from tests.storage.stream_contract import StreamContract


class TestMemoryStorage(StoreContract, StreamContract):
    survives_reopening = False

    def open_stream(self, directory: Path, *, is_truncatable: bool) -> MemoryStorage:
        return MemoryStorage(is_truncatable=is_truncatable)

    def open(self, directory: Path) -> MemoryStorage:
        return MemoryStorage()
