"""How often the room on a disk is looked at: with each write where there is little, at times where there is much."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from qsctl.storage.room import AMPLE_BYTES, PLENTY_BYTES, SCARCE_BYTES, Room


class Disk:
    """What the system says of a disk, and how often it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.free_bytes = 0
        self.asked_count = 0
        self.now_ns = 1
        monkeypatch.setattr(os, "statvfs", self._statvfs)

    def _statvfs(self, _path: object) -> SimpleNamespace:
        self.asked_count += 1
        return SimpleNamespace(f_bavail=self.free_bytes, f_frsize=1)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_a_disk_with_little_room_is_looked_at_with_each_write(disk: Disk, tmp_path: Path) -> None:
    room = Room(tmp_path / "reserve", steady=lambda: disk.now_ns)
    disk.free_bytes = AMPLE_BYTES - 1
    room.keep()
    disk.free_bytes = SCARCE_BYTES - 1
    room.keep()
    assert room.is_scarce
    disk.free_bytes = PLENTY_BYTES
    room.keep()
    assert not room.is_scarce
    assert disk.asked_count == 3


def test_a_disk_with_ample_room_is_looked_at_twenty_times_a_second(disk: Disk, tmp_path: Path) -> None:
    room = Room(tmp_path / "reserve", steady=lambda: disk.now_ns)
    disk.free_bytes = AMPLE_BYTES
    for _ in range(1_000):
        room.keep()
        disk.now_ns += 1_000_000
    assert disk.asked_count == 20


def test_the_disk_is_looked_at_again_once_the_reserve_was_given_up(disk: Disk, tmp_path: Path) -> None:
    room = Room(tmp_path / "reserve", steady=lambda: disk.now_ns)
    disk.free_bytes = AMPLE_BYTES
    room.keep()
    assert room.release()
    assert room.is_scarce
    room.keep()
    assert not room.is_scarce
