"""The database store: the contract under every journal mode, its settings, and damaged files."""

from __future__ import annotations

import os
import sqlite3
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies

from qsctl.config.filesystem import FilesystemSettings, JournalMode, Synchronization, Vacuum
from qsctl.core.records import Enqueued
from qsctl.errors import Damaged, InvalidInput, Refused
from qsctl.service.stores._queue_codec import QUEUE_CODEC
from qsctl.storage.damage import DamageKind
from qsctl.storage.sqlite._trace import redact
from qsctl.storage.sqlite.store import SqliteStorage
from tests.storage.contract import StoreContract, enqueued, removed

NAME = "QSOrder@S@0@qsctl.db"
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


def opened(directory: Path, filesystem: FilesystemSettings | None = None) -> SqliteStorage:
    return SqliteStorage(directory / NAME, filesystem or FilesystemSettings(), QUEUE_CODEC)


def filled(directory: Path, count: int = 40, size: int = 300) -> None:
    store = opened(directory)
    for start in range(0, count, 4):
        store.append([enqueued(at, b"%04d" % at * (size // 4)) for at in range(start, start + 4)])
    store.close()


class TestSqliteStorage(StoreContract):
    def open(self, directory: Path) -> SqliteStorage:
        return opened(directory)


class TestSqliteStorageInWriteAheadMode(StoreContract):
    def open(self, directory: Path) -> SqliteStorage:
        return opened(directory, FilesystemSettings(journal_mode=JournalMode.WAL))


@pytest.mark.parametrize("mode", JournalMode)
def test_every_journal_mode_stores_and_loads(tmp_path: Path, mode: JournalMode) -> None:
    filesystem = FilesystemSettings(journal_mode=mode)
    store = opened(tmp_path, filesystem)
    store.append([enqueued(0, b"zero"), enqueued(1, b"one")])
    store.append([removed(0)])
    store.close()
    again = opened(tmp_path, filesystem)
    assert list(again.load()) == [enqueued(0, b""), enqueued(1, b"one"), removed(0)]
    assert again._connection.execute("PRAGMA journal_mode").fetchone()[0].decode().upper() == mode
    again.close()


def test_settings_are_applied_at_every_open(tmp_path: Path) -> None:
    opened(tmp_path).close()
    levels = {Synchronization.OFF: 0, Synchronization.NORMAL: 1, Synchronization.FULL: 2}
    for level, number in levels.items():
        store = opened(tmp_path, FilesystemSettings(synchronization=level))
        assert store._connection.execute("PRAGMA synchronous").fetchone()[0] == number
        store.close()
    for vacuum, number in {Vacuum.FULL: 1, Vacuum.NONE: 0}.items():
        store = opened(tmp_path, FilesystemSettings(vacuum=vacuum))
        assert store._connection.execute("PRAGMA auto_vacuum").fetchone()[0] == number
        store.close()


def test_full_vacuum_gives_space_back_and_none_keeps_it(tmp_path: Path) -> None:
    sizes = {}
    for vacuum in Vacuum:
        directory = tmp_path / vacuum
        directory.mkdir()
        store = opened(directory, FilesystemSettings(vacuum=vacuum))
        store.append([enqueued(at, b"x" * 1_000) for at in range(200)])
        before = (directory / NAME).stat().st_size
        store.append([removed(at) for at in range(200)])
        sizes[vacuum] = (directory / NAME).stat().st_size / before
        store.close()
    assert sizes[Vacuum.FULL] < 0.3
    assert sizes[Vacuum.NONE] >= 1.0


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    filesystem = FilesystemSettings(journal_mode=JournalMode.WAL)
    store = opened(tmp_path, filesystem)
    store.append([enqueued(0)])
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    store.close()


def test_a_link_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"")
    (tmp_path / NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput, match="is not a plain file"):
        opened(tmp_path)
    assert (tmp_path / "elsewhere").read_bytes() == b""


def test_the_trace_shows_statements_and_no_sample(tmp_path: Path) -> None:
    store = opened(tmp_path, FilesystemSettings(trace_file=Path("trace.log")))
    store.append([enqueued(0, b"secret payload")])
    store.close()
    trace = tmp_path / "trace.log"
    text = trace.read_text()
    assert trace.stat().st_mode & 0o777 == 0o600
    assert "INSERT INTO payload VALUES" in text
    assert "<14 octets>" in text
    assert b"secret".hex().upper() not in text.upper()
    assert "secret" not in text


def test_redacting_leaves_numbers_and_takes_octets_and_text() -> None:
    statement = "INSERT INTO t VALUES (7, X'00ff10',\n 'it''s text', 8)"
    assert redact(statement) == "INSERT INTO t VALUES (7, <3 octets>, <10 characters>, 8)"


def test_a_file_of_a_later_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    filled(tmp_path)
    with sqlite3.connect(tmp_path / NAME) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = (tmp_path / NAME).read_bytes()
    with pytest.raises(Refused, match="has format 99; this version reads formats 1, 3 and 4"):
        opened(tmp_path)
    assert (tmp_path / NAME).read_bytes() == before


def test_a_file_that_another_program_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qsctl.storage.sqlite.file.BUSY_TIMEOUT_S", 0.05)
    filled(tmp_path)
    other = sqlite3.connect(tmp_path / NAME, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(Refused, match="another program keeps the file locked"):
        opened(tmp_path)
    other.execute("ROLLBACK")
    other.close()


def test_an_empty_file_is_a_store_that_was_never_finished(tmp_path: Path) -> None:
    (tmp_path / NAME).touch(0o600)
    store = opened(tmp_path)
    assert [report.kind for report in store.damage] == [DamageKind.TORN_TAIL]
    store.append([enqueued(0)])
    assert list(store.load()) == [enqueued(0)]
    store.close()


def test_a_file_that_is_no_database_is_set_aside_and_reported(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"not ours" * 1_000)
    store = opened(tmp_path)
    assert list(store.load()) == []
    (report,) = store.damage
    assert report.size_bytes == 8_000
    assert report.kept_as == tmp_path / f"{NAME}.damaged"
    assert report.kept_as.read_bytes() == b"not ours" * 1_000
    store.append([enqueued(0)])
    store.close()
    again = opened(tmp_path)
    assert not again.damage
    again.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=strategies.data())
def test_a_damaged_database_gives_whole_records_and_reports_the_rest(
    tmp_path_factory: pytest.TempPathFactory, data: strategies.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("damage")
    filled(directory, 60)
    path = directory / NAME
    content = bytearray(path.read_bytes())
    kind = data.draw(strategies.sampled_from(["cut", "flip", "zeros"]))
    at = data.draw(strategies.integers(0, len(content) - 1))
    if kind == "cut":
        del content[at:]
    elif kind == "flip":
        content[at] ^= 1 << data.draw(strategies.integers(0, 7))
    else:
        content[at : at + 2_000] = bytes(len(content[at : at + 2_000]))
    path.write_bytes(content)
    try:
        store = opened(directory)
    except Refused as error:
        assert 56 <= at < 64, "only the number of the format may make it look like a later one"
        assert "this version reads formats 1, 3 and 4" in error.message
        return
    found = list(store.load())
    for record in found:
        assert isinstance(record, Enqueued)
        assert record.payload == b"%04d" % record.position * 75
    if len(found) < 60:
        assert store.damage
    store.append([enqueued(100, b"goes on")])
    store.compact([*found, enqueued(100, b"")])
    store.close()
    again = opened(directory)
    assert list(again.load()) == [*found, enqueued(100, b"goes on")]
    assert not again.damage
    again.close()


@pytest.mark.parametrize(
    ("was", "became"),
    [
        (b"sqlite_sequence(name,seq)", b"sqlite_sequence(name,sex)"),
        (b"batch (number", b"botch (number"),
        (b"checksum INTEGER", b"checkers INTEGER"),
    ],
)
def test_a_table_that_is_not_what_it_was_is_damage(tmp_path: Path, was: bytes, became: bytes) -> None:
    filled(tmp_path)
    path = tmp_path / NAME
    content = path.read_bytes()
    assert was in content
    path.write_bytes(content.replace(was, became))
    store = opened(tmp_path)
    assert store.damage
    assert sum(isinstance(each, Enqueued) for each in store.load()) in {0, 40}
    store.append([enqueued(100)])
    store.close()


def test_a_full_disk_takes_nothing_of_the_batch(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.append([enqueued(0)])
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(Damaged, match="full"):
        store.append([enqueued(1, b"x" * 100_000)])
    store._connection.execute("PRAGMA max_page_count = 100000")
    store.append([enqueued(2)])
    assert [each.position for each in store.load() if isinstance(each, Enqueued)] == [0, 2]
    store.close()


def test_a_hot_journal_is_rolled_back(tmp_path: Path) -> None:
    filled(tmp_path, 4)
    child = os.fork()
    if child == 0:
        store = opened(tmp_path)
        store._connection.execute("PRAGMA cache_spill = 1")
        store._connection.execute("BEGIN IMMEDIATE")
        store._connection.execute("DELETE FROM payload")
        store._connection.execute("PRAGMA incremental_vacuum")
        os._exit(0)
    os.waitpid(child, 0)
    store = opened(tmp_path)
    assert len(list(store.load())) == 4
    assert store.payloads([3]) == [b"0003" * 75]
    assert not store.damage
    store.close()


def test_a_creation_that_a_power_failure_interrupted_is_no_damage(tmp_path: Path) -> None:
    """The first page is not on the disk, while the journal of the first transaction is: nothing was there before it."""
    path = tmp_path / NAME
    path.write_bytes(bytes(4096))
    first_page_number, sector_bytes, page_bytes = 0, 512, 4096
    head = struct.pack(">8s5I", JOURNAL_MAGIC, 0, 0x30EF96F9, first_page_number, sector_bytes, page_bytes)
    path.with_name(f"{NAME}-journal").write_bytes(head.ljust(sector_bytes, b"\0"))
    store = opened(tmp_path)
    assert [each.kind for each in store.damage] == [DamageKind.TORN_TAIL]
    store.append([enqueued(0)])
    store.close()
    again = opened(tmp_path)
    assert [each.position for each in again.load() if isinstance(each, Enqueued)] == [0]
    assert not again.damage
    again.close()


@pytest.mark.parametrize(
    "head", [b"", b"SQLite format 3\0", b"SQLite format 3\0\x10\0\x03\x01", b"SQLite format 4\0\x10\0\1\1"]
)
def test_another_first_page_without_a_journal_is_damage(tmp_path: Path, head: bytes) -> None:
    filled(tmp_path, 4)
    path = tmp_path / NAME
    rest = path.read_bytes()[20:]
    path.write_bytes(head.ljust(20, b"\0") + rest)
    store = opened(tmp_path)
    assert any(each.kind is DamageKind.CHECKSUM for each in store.damage)
    store.close()
