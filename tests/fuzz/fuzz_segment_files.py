"""The files of a queue with in-memory state, damaged: what loads is what was written, and every loss is reported."""

from __future__ import annotations

from pathlib import Path

from qsctl.config.filesystem import FilesystemSettings
from qsctl.storage.base import DatabaseStorage, Extent
from tests.fuzz.stored_samples import WrittenOnce
from tests.storage.own_files import OwnFiles


def _make(directory: Path, known: Extent | None) -> DatabaseStorage:
    return OwnFiles(directory / "QSOrder@S@0@qsctl", FilesystemSettings(file_max_size_kb=1), known)


_STORE = WrittenOnce(_make)


def one_input(data: bytes) -> None:
    _STORE.check(data)
