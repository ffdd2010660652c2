"""What is whole and stands in the wrong place is damage: each checksum covers whose bytes they are, and which."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from qsctl.config.filesystem import FilesystemSettings
from qsctl.core.records import Enqueued
from qsctl.errors import Refused
from qsctl.service.stores._queue_codec import QUEUE_CODEC
from qsctl.storage._frames import scan
from qsctl.storage.base import DatabaseStorage
from qsctl.storage.log.segment_file import HEADER_SIZE_BYTES, decode_header, stream_of
from qsctl.storage.sqlite.store import SqliteStorage
from tests.storage.contract import alive, enqueued
from tests.storage.own_files import OwnFiles

SMALL = FilesystemSettings(file_max_size_kb=1)
LARGE = FilesystemSettings(file_max_size_kb=1000)
ORDERS, BILLS = "QSOrder@S@0@qsctl", "QSBill@S@0@qsctl"


def segments(directory: Path, stem: str = ORDERS, filesystem: FilesystemSettings = LARGE) -> OwnFiles:
    return OwnFiles(directory / stem, filesystem)


def database(directory: Path, stem: str = ORDERS) -> SqliteStorage:
    return SqliteStorage(directory / f"{stem}.db", LARGE, QUEUE_CODEC)


def fill(store: DatabaseStorage, count: int, text: str = "payload") -> None:
    for position in range(count):
        store.append([enqueued(position, f"{text} {position:04}".encode())])
    store.close()


def loaded(store: DatabaseStorage) -> dict[int, bytes]:
    return {each.position: each.payload for each in store.load() if isinstance(each, Enqueued)}


def exchange(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def boundaries(path: Path) -> list[int]:
    """Where each frame of a segment file begins, and where the last one ends."""
    content = path.read_bytes()
    header = decode_header(content, stream_of(path))
    assert header is not None
    found = scan(content, header.marks, HEADER_SIZE_BYTES)
    return [HEADER_SIZE_BYTES, *(end for _, end in found.bodies)]


@pytest.mark.parametrize("letters", ["m", "d", "md"])
def test_files_of_two_queues_exchanged_give_neither_the_other_s_samples(tmp_path: Path, letters: str) -> None:
    fill(segments(tmp_path, ORDERS), 5, "order")
    fill(segments(tmp_path, BILLS), 5, "bill")
    for letter in letters:
        exchange(tmp_path / f"{ORDERS}_{letter}0.db", tmp_path / f"{BILLS}_{letter}0.db")
    for stem in (ORDERS, BILLS):
        store = segments(tmp_path, stem)
        assert loaded(store) == {}
        assert "the file is of another store" in str(store.damage[0])
        store.close()


def test_databases_of_two_queues_exchanged_are_set_aside_whole(tmp_path: Path) -> None:
    fill(database(tmp_path, ORDERS), 5, "order")
    fill(database(tmp_path, BILLS), 5, "bill")
    exchange(tmp_path / f"{ORDERS}.db", tmp_path / f"{BILLS}.db")
    for stem in (ORDERS, BILLS):
        store = database(tmp_path, stem)
        assert loaded(store) == {}
        (report,) = store.damage
        assert "the file is of another store" in report.what
        store.append([enqueued(0, b"goes on")])
        store.close()
    (tmp_path / f"{ORDERS}.db.damaged").rename(tmp_path / f"{BILLS}.db")
    again = database(tmp_path, BILLS)
    assert len(loaded(again)) == 5, "whoever puts the file back where it belongs has lost nothing"
    assert not again.damage
    again.close()


@pytest.mark.parametrize("letter", ["m", "d"])
def test_a_frame_cut_out_of_the_middle_is_reported_and_costs_nothing_else(tmp_path: Path, letter: str) -> None:
    fill(segments(tmp_path), 10)
    path = tmp_path / f"{ORDERS}_{letter}0.db"
    edges, content = boundaries(path), path.read_bytes()
    path.write_bytes(content[: edges[4]] + content[edges[5] :])
    store = segments(tmp_path)
    assert loaded(store) == {at: f"payload {at:04}".encode() for at in range(10) if at != 4}
    assert "records that were written here are missing" in [report.what for report in store.damage]
    store.close()


@pytest.mark.parametrize("letter", ["m", "d"])
def test_frames_that_changed_places_are_reported(tmp_path: Path, letter: str) -> None:
    fill(segments(tmp_path), 10)
    path = tmp_path / f"{ORDERS}_{letter}0.db"
    edges, content = boundaries(path), path.read_bytes()
    third, fourth = content[edges[3] : edges[4]], content[edges[4] : edges[5]]
    path.write_bytes(content[: edges[3]] + fourth + third + content[edges[5] :])
    store = segments(tmp_path)
    assert store.damage
    found = loaded(store)
    assert len(found) >= 9
    assert all(payload == f"payload {at:04}".encode() for at, payload in found.items())
    store.close()


def test_a_segment_under_another_one_s_number_is_reported(tmp_path: Path) -> None:
    fill(segments(tmp_path, filesystem=SMALL), 60)
    exchange(tmp_path / f"{ORDERS}_m0.db", tmp_path / f"{ORDERS}_m1.db")
    store = segments(tmp_path, filesystem=SMALL)
    assert any("it was renamed" in report.what for report in store.damage)
    assert all(payload == f"payload {at:04}".encode() for at, payload in loaded(store).items())
    store.close()


def test_a_segment_lost_at_the_end_is_reported_by_the_seal_of_the_one_before(tmp_path: Path) -> None:
    fill(segments(tmp_path, filesystem=SMALL), 60)
    last = max(tmp_path.glob("*_m*.db"), key=lambda path: int(path.stem.rpartition("_m")[2]))
    last.unlink()
    store = segments(tmp_path, filesystem=SMALL)
    assert (store.damage[0].file, store.damage[0].what) == (last, "the file is missing")
    store.append([enqueued(1_000, b"goes on")])
    store.close()
    again = segments(tmp_path, filesystem=SMALL)
    assert loaded(again)[1_000] == b"goes on"
    again.close()


def altered(change: str) -> Callable[[Path], None]:
    def alter(path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.execute(change)
        connection.commit()
        connection.close()

    return alter


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE payload SET body = (SELECT body FROM payload WHERE position = 2),"
        " checksum = (SELECT checksum FROM payload WHERE position = 2) WHERE position = 4",
        "UPDATE payload SET position = 40 WHERE position = 4",
        "UPDATE payload SET body = 'payload 0004x' WHERE position = 4",
        "UPDATE payload SET body = 17 WHERE position = 4",
        "UPDATE payload SET checksum = 'x' WHERE position = 4",
        "UPDATE batch SET body = 17 WHERE number = 5",
        "UPDATE batch SET body = CAST(x'fffe' AS TEXT) WHERE number = 5",
        "UPDATE batch SET body = (SELECT body FROM batch WHERE number = 3) WHERE number = 5",
        "DELETE FROM batch WHERE number = 5",
        "DELETE FROM payload WHERE position = 4",
    ],
)
def test_a_row_that_is_not_what_was_written_there_costs_its_sample_and_is_reported(tmp_path: Path, change: str) -> None:
    fill(database(tmp_path), 10)
    altered(change)(tmp_path / f"{ORDERS}.db")
    store = database(tmp_path)
    assert loaded(store) == {at: f"payload {at:04}".encode() for at in range(10) if at != 4}
    assert store.damage
    store.close()


@pytest.mark.parametrize(
    "change", ["UPDATE batch SET record_count = 'many'", "UPDATE sqlite_sequence SET seq = 'last'"]
)
def test_a_value_of_another_type_beside_the_samples_costs_none(tmp_path: Path, change: str) -> None:
    fill(database(tmp_path), 10)
    altered(change)(tmp_path / f"{ORDERS}.db")
    store = database(tmp_path)
    assert len(loaded(store)) == 10
    store.append([enqueued(1_000, b"goes on")])
    store.close()


VERSION_0_1 = Path(__file__).parent / "version_0_1"


@pytest.mark.parametrize("make", [segments, database])
def test_a_store_of_version_0_1_is_read_and_goes_on_in_the_new_format(
    tmp_path: Path, make: Callable[[Path], DatabaseStorage]
) -> None:
    for path in VERSION_0_1.iterdir():
        shutil.copy(path, tmp_path / path.name)
        os.chmod(tmp_path / path.name, 0o600)
    expected = {at: f"payload {at:04}".encode() for at in range(10)}
    for count in range(3):
        store = make(tmp_path)
        assert loaded(store) == expected
        assert not store.damage
        store.append([enqueued(100 + count, b"new")])
        expected[100 + count] = b"new"
        store.close()


FORMAT_2 = Path(__file__).parent / "format_2_database"


def test_a_database_of_a_development_version_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / f"{ORDERS}.db"
    shutil.copy(FORMAT_2 / path.name, path)
    before = path.read_bytes()
    with pytest.raises(Refused, match="has format 2; this version reads formats 1, 3 and 4"):
        database(tmp_path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        ("UPDATE batch SET body = x'00' WHERE number = 3", {2}),
        ("DELETE FROM batch WHERE number = 3", {2}),
        ("UPDATE payload SET body = x'00' WHERE position = 4", {4}),
    ],
)
def test_damage_in_a_database_of_version_0_1_is_reported_and_kept_aside(
    tmp_path: Path, change: str, lost: set[int]
) -> None:
    path = tmp_path / f"{ORDERS}.db"
    shutil.copy(VERSION_0_1 / path.name, path)
    altered(change)(path)
    store = database(tmp_path)
    assert alive(store.load()) == {at: f"payload {at:04}".encode() for at in range(10) if at not in lost}
    assert store.damage[0].kept_as is not None
    store.close()
