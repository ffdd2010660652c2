"""Segment files to damage."""

from __future__ import annotations

from pathlib import Path

from qsctl.config.filesystem import FilesystemSettings
from qsctl.core.records import Enqueued, Record
from tests.storage.contract import enqueued
from tests.storage.own_files import OwnFiles

LARGE = FilesystemSettings(file_max_size_kb=1000)


def opened(directory: Path, filesystem: FilesystemSettings = LARGE) -> OwnFiles:
    return OwnFiles(directory / "QSOrder@S@0@qsctl", filesystem)


def file_of(directory: Path, letter: str, index: int = 0) -> Path:
    return directory / f"QSOrder@S@0@qsctl_{letter}{index}.db"


def flip(path: Path, at: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


def filled(directory: Path, count: int = 10, filesystem: FilesystemSettings = LARGE) -> None:
    store = opened(directory, filesystem)
    for position in range(count):
        store.append([enqueued(position, b"payload %04d" % position)])
    store.close()


def positions(records: list[Record]) -> list[int]:
    return [each.position for each in records if isinstance(each, Enqueued)]
