"""What a compaction does with damaged files: they are set aside, and their damage is reported no more."""

from __future__ import annotations

from pathlib import Path

from qsctl.config.filesystem import FilesystemSettings
from qsctl.storage._frames import FRAME_HEADER
from qsctl.storage.log.segment_file import HEADER_SIZE_BYTES
from tests.storage.contract import enqueued, removed
from tests.storage.segment_files import file_of, filled, flip, opened, positions
from tests.storage.with_its_log import WithItsLog


def test_compacting_sets_damaged_files_aside_and_reports_where(tmp_path: Path) -> None:
    filled(tmp_path)
    for letter in "dm":
        flip(file_of(tmp_path, letter), HEADER_SIZE_BYTES + FRAME_HEADER.size + 9)
    store = opened(tmp_path)
    kept = list(store.load())
    store.compact(kept)
    assert {report.kept_as and report.kept_as.name for report in store.damage if report.size_bytes} == {
        "QSOrder@S@0@qsctl_d0.db.damaged",
        "QSOrder@S@0@qsctl_m0.db.damaged",
    }
    store.close()
    again = opened(tmp_path)
    assert list(again.load()) == kept
    assert not again.damage
    again.close()


def test_a_damaged_file_of_user_data_in_which_nothing_is_held_is_reported_once(tmp_path: Path) -> None:
    """The newest file stays, for the next sample may go there: its damage must not."""
    filled(tmp_path)
    store = opened(tmp_path)
    store.append([removed(position) for position in range(10)])
    store.close()
    flip(file_of(tmp_path, "d"), HEADER_SIZE_BYTES + FRAME_HEADER.size + 9)
    store = opened(tmp_path)
    assert store.damage
    store.compact([])
    store.close()
    assert file_of(tmp_path, "d").with_name("QSOrder@S@0@qsctl_d0.db.damaged").exists()
    again = opened(tmp_path)
    assert not again.damage
    again.append([enqueued(10)])
    again.close()
    last = opened(tmp_path)
    assert positions(list(last.load())) == [10]
    assert not last.damage
    last.close()


def test_a_file_of_the_log_that_is_missing_is_reported_once(tmp_path: Path) -> None:
    in_small_files = FilesystemSettings(file_max_size_kb=0)
    store = WithItsLog(tmp_path, in_small_files)
    for position in range(3):
        store.append([enqueued(position)])
    oldest, *rest = store.log.files
    assert rest
    missing = store.log.path(oldest)
    store.close()
    missing.unlink()
    store = WithItsLog(tmp_path, in_small_files)
    assert [report.file for report in store.log.damage] == [missing]
    kept = list(store.load())
    store.close()
    again = WithItsLog(tmp_path, in_small_files)
    assert not again.log.damage
    assert list(again.load()) == kept
    again.close()
