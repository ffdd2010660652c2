"""The segment store keeps the contract."""

from __future__ import annotations

import errno
import os
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.records import Removed
from qsctl.errors import Refused
from tests.patience import eventually
from tests.storage.contract import StoreContract, enqueued, removed
from tests.storage.own_files import OwnFiles


class TestSegmentStorage(StoreContract):
    def open(self, directory: Path) -> OwnFiles:
        return OwnFiles(directory / "QSOrder@S@0@qsctl", FilesystemSettings())


class TestSegmentStorageInSmallFiles(StoreContract):
    def open(self, directory: Path) -> OwnFiles:
        return OwnFiles(directory / "QSOrder@S@0@qsctl", FilesystemSettings(file_max_size_kb=0))


SMALL = FilesystemSettings(file_max_size_kb=1)
LARGE = FilesystemSettings(file_max_size_kb=1000)


def opened(directory: Path, filesystem: FilesystemSettings = LARGE) -> OwnFiles:
    return OwnFiles(directory / "QSOrder@S@0@qsctl", filesystem)


def file_of(directory: Path, letter: str, index: int = 0) -> Path:
    return directory / f"QSOrder@S@0@qsctl_{letter}{index}.db"


def test_files_roll_at_their_maximum_and_dead_data_files_go(tmp_path: Path) -> None:
    store = opened(tmp_path, SMALL)
    for position in range(100):
        store.append([enqueued(position, b"x" * 100)])
    names = {path.name for path in tmp_path.iterdir()}
    assert {"QSOrder@S@0@qsctl_d0.db", "QSOrder@S@0@qsctl_d5.db", "QSOrder@S@0@qsctl_m3.db"} <= names
    assert all(path.stat().st_size < 1024 + 300 for path in tmp_path.iterdir())
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in tmp_path.iterdir())
    store.append([removed(position) for position in range(50)])
    assert eventually(lambda: not file_of(tmp_path, "d", 0).exists())
    assert file_of(tmp_path, "d", 8).exists()
    store.append([removed(position) for position in range(50, 100)])
    store.close()
    left = [path.name for path in tmp_path.iterdir() if "_d" in path.name]
    assert len(left) == 1, "the newest file stays: the index always increases"
    again = opened(tmp_path, SMALL)
    assert not again.damage
    assert [each.position for each in again.load() if isinstance(each, Removed)] == list(range(100))
    again.close()


def test_sparse_data_files_are_rewritten_as_the_store_is_compacted(tmp_path: Path) -> None:
    store = opened(tmp_path, SMALL)
    for position in range(100):
        store.append([enqueued(position, b"%03d" % position * 40)])
    before = sum(path.stat().st_size for path in tmp_path.iterdir())
    store.append([removed(position) for position in range(100) if position % 10])
    keep = [enqueued(position, b"") for position in range(0, 100, 10)]
    store.compact(keep)
    for position in range(0, 100, 10):
        assert store.payloads([position]) == [b"%03d" % position * 40]
    store.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < before / 4


def test_room_allocated_ahead_is_given_back(tmp_path: Path) -> None:
    """Under FULL the file is longer than what is in it while it is written to, by no more than a file may hold."""
    synced = FilesystemSettings(file_max_size_kb=100, synchronization=Synchronization.FULL)
    store = opened(tmp_path, synced)
    for position in range(12):
        store.append([enqueued(position, b"x" * 20_000)])
        assert all(path.stat().st_size <= 100 * 1024 + 64 * 1024 for path in tmp_path.iterdir())
    store.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 12 * 20_300
    again = opened(tmp_path, synced)
    assert not again.damage
    assert again.payloads(range(12)) == [b"x" * 20_000] * 12
    again.close()


@pytest.mark.parametrize("error", [errno.EOPNOTSUPP, errno.EINVAL, None])
def test_nothing_is_written_twice_whether_or_not_a_file_system_allocates_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int | None
) -> None:
    written: dict[str, list[tuple[int, int]]] = {}
    real = os.pwrite

    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        written.setdefault(os.readlink(f"/proc/self/fd/{descriptor}"), []).append((offset, offset + len(data)))
        return real(descriptor, data, offset)

    def allocate(*_: int) -> None:
        assert error is not None
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "pwrite", pwrite)
    if error is not None:
        monkeypatch.setattr(os, "posix_fallocate", allocate)
    store = opened(tmp_path, FilesystemSettings(file_max_size_kb=4, synchronization=Synchronization.FULL))
    for position in range(200):
        store.append([enqueued(position, b"x" * 100)])
        store.append([removed(position)])
    store.close()
    assert len(written) > 10
    for path, places in written.items():
        assert all(end == start for (_, end), (start, _) in pairwise(places)), f"{path} is only appended to"
    again = opened(tmp_path)
    assert not again.damage
    assert {each.position for each in again.load() if isinstance(each, Removed)} == set(range(200))
    again.close()


@pytest.mark.parametrize("form", ["format_2", "format_2_copies"])
def test_files_of_a_form_that_is_not_read_any_more_are_refused_and_left_alone(tmp_path: Path, form: str) -> None:
    """Of files that were written again, and of copies of metadata: no version that was released wrote them."""
    for path in (Path(__file__).parent / form).iterdir():
        shutil.copy(path, tmp_path / path.name)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(Refused, match="a form that this version does not read"):
        opened(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
