"""The file of a queue without in-memory state, damaged: what loads is what was written, and every loss is reported."""

from __future__ import annotations

from pathlib import Path

from qsctl.config.filesystem import FilesystemSettings
from qsctl.service.stores._queue_codec import QUEUE_CODEC
from qsctl.storage.base import DatabaseStorage, Extent
from qsctl.storage.sqlite.store import SqliteStorage
from tests.fuzz.stored_samples import WrittenOnce

SHORT_COUNT = 150


def _make(directory: Path, known: Extent | None) -> DatabaseStorage:
    return SqliteStorage(directory / "QSOrder@S@0@qsctl.db", FilesystemSettings(), QUEUE_CODEC, known)


_STORE = WrittenOnce(_make)


def one_input(data: bytes) -> None:
    _STORE.check(data)
