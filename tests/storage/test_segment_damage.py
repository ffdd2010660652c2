"""Segment files that were cut, flipped, lost or never finished: what is whole is restored, the rest is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.records import Enqueued, Record, Remembered
from qsctl.errors import Damaged, InvalidInput
from qsctl.identity import Guid, SampleIdentity
from qsctl.service.stores._queue_codec import QUEUE_CODEC
from qsctl.storage._frames import FRAME_HEADER, Marks, frame, numbered_marks, scan
from qsctl.storage.damage import DamageKind
from qsctl.storage.log.segment_file import HEADER_SIZE_BYTES, decode_header, stream_of
from tests.storage.contract import QUEUE, as_loaded, batches, enqueued, removed
from tests.storage.segment_files import LARGE, file_of, filled, flip, opened, positions

SMALL = FilesystemSettings(file_max_size_kb=1)


def marks_of(path: Path) -> Marks:
    header = decode_header(path.read_bytes(), stream_of(path))
    assert header is not None
    return header.marks


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=batches(), data=strategies.data())
def test_a_log_cut_anywhere_gives_the_records_before_the_cut(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[list[Record]], data: strategies.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("cut")
    store = opened(directory)
    for batch in drawn:
        store.append(batch)
    store.close()
    path = file_of(directory, "m")
    size = path.stat().st_size
    at = data.draw(strategies.integers(0, size), label="cut")
    content = path.read_bytes()
    whole = scan(content[:at], marks_of(path), HEADER_SIZE_BYTES).bodies
    whole_count = sum(len(QUEUE_CODEC.decode(content[start:end])) for start, end in whole)
    os.truncate(path, at)
    records = [record for batch in drawn for record in batch]
    again = opened(directory)
    expected = as_loaded(records[:whole_count])
    assert [each for each in again.load() if not isinstance(each, Enqueued)] == [
        each for each in expected if not isinstance(each, Enqueued)
    ]
    assert positions(list(again.load())) == positions(expected)
    again.append([enqueued(1_000, b"goes on")])
    assert again.payloads([1_000]) == [b"goes on"]
    again.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=strategies.data(), letter=strategies.sampled_from("dm"), small=strategies.booleans())
def test_any_flipped_bit_costs_at_most_one_sample_and_is_reported(
    tmp_path_factory: pytest.TempPathFactory, data: strategies.DataObject, letter: str, small: bool
) -> None:
    directory, filesystem = tmp_path_factory.mktemp("flip"), SMALL if small else LARGE
    filled(directory, 60, filesystem)
    files = sorted(path for path in directory.iterdir() if f"_{letter}" in path.name)
    path = data.draw(strategies.sampled_from(files))
    at = data.draw(strategies.integers(0, path.stat().st_size - 1))
    flip(path, at, data.draw(strategies.integers(0, 7)))
    store = opened(directory, filesystem)
    found = list(store.load())
    assert store.damage
    assert len(found) >= 59
    for record in found:
        assert isinstance(record, Enqueued)
        assert record.payload == b"payload %04d" % record.position
    store.close()


def test_an_unfinished_write_is_cut_and_the_log_goes_on(tmp_path: Path) -> None:
    filled(tmp_path)
    path = file_of(tmp_path, "m")
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(frame([b"x" * 100], marks_of(path), 10)[:20])
    store = opened(tmp_path)
    assert [(each.kind, each.offset, each.size_bytes) for each in store.damage] == [(DamageKind.TORN_TAIL, size, 20)]
    store.append([enqueued(10)])
    store.close()
    again = opened(tmp_path)
    assert positions(list(again.load())) == list(range(11))
    assert not again.damage
    again.close()


def test_room_allocated_and_not_used_is_no_damage(tmp_path: Path) -> None:
    filesystem = FilesystemSettings(synchronization=Synchronization.FULL)
    store = opened(tmp_path, filesystem)
    store.append([enqueued(0)])
    assert file_of(tmp_path, "m").stat().st_size > 60_000, "room is allocated ahead"
    again = opened(tmp_path, filesystem)  # as after a kill: the first was never closed
    assert positions(list(again.load())) == [0]
    assert not again.damage
    again.append([enqueued(1)])
    again.close()
    assert file_of(tmp_path, "m").stat().st_size < 1_000, "closing gives them back"


def test_damage_in_the_middle_costs_the_record_it_hit_and_nothing_behind_it(tmp_path: Path) -> None:
    filled(tmp_path)
    path = file_of(tmp_path, "m")
    flip(path, path.stat().st_size // 2)
    store = opened(tmp_path)
    found = positions(list(store.load()))
    assert len(found) == 9
    assert found[-1] == 9
    (report,) = store.damage
    assert report.kind is DamageKind.CHECKSUM
    assert report.file == path
    assert HEADER_SIZE_BYTES < report.offset < path.stat().st_size
    store.close()


def test_records_about_a_sample_that_damage_took_are_left_out(tmp_path: Path) -> None:
    store = opened(tmp_path)
    later = {"enqueued_at_ns": 2_000}  # a body of its own
    store.append([enqueued(0), enqueued(1, **later)])
    store.append([removed(0), removed(1)])
    store.close()
    flip(file_of(tmp_path, "m"), HEADER_SIZE_BYTES + FRAME_HEADER.size)
    again = opened(tmp_path)
    assert list(again.load()) == [enqueued(1, b"", **later), removed(1)]
    again.close()


def test_a_sample_whose_user_data_is_damaged_is_left_out_and_reported(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    flip(file_of(tmp_path, "d"), HEADER_SIZE_BYTES + FRAME_HEADER.size + 8)
    store = opened(tmp_path)
    assert positions(list(store.load())) == [1, 2]
    assert {report.kind for report in store.damage} == {DamageKind.CHECKSUM, DamageKind.PAYLOAD_MISSING}
    with pytest.raises(KeyError):
        store.payloads([0])
    store.close()


def test_user_data_damaged_while_the_service_runs_is_no_silent_change(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.append([enqueued(0, b"x" * 100)])
    flip(file_of(tmp_path, "d"), HEADER_SIZE_BYTES + FRAME_HEADER.size + 50)
    with pytest.raises(Damaged, match="the user data of sample 0 is damaged"):
        store.payloads([0])
    store.close()


def test_a_lost_metadata_file_is_reported_and_the_others_are_restored(tmp_path: Path) -> None:
    filled(tmp_path, 60, SMALL)
    file_of(tmp_path, "m", 1).unlink()
    store = opened(tmp_path, SMALL)
    found = positions(list(store.load()))
    assert 0 < len(found) < 60
    assert "the file is missing" in [report.what for report in store.damage]
    store.close()


def test_a_file_cut_at_a_record_s_border_is_detected_by_the_next_one(tmp_path: Path) -> None:
    filled(tmp_path, 60, SMALL)
    path = file_of(tmp_path, "m", 0)
    content = path.read_bytes()
    end = scan(content, marks_of(path), HEADER_SIZE_BYTES).bodies[3][1]
    os.truncate(path, end)
    store = opened(tmp_path, SMALL)
    assert ("the end of the file is missing", end) in [(report.what, report.offset) for report in store.damage]
    store.close()


def test_user_data_without_its_metadata_is_reported(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    path = file_of(tmp_path, "m")
    content = path.read_bytes()
    os.truncate(path, scan(content, marks_of(path), HEADER_SIZE_BYTES).bodies[1][1])
    store = opened(tmp_path)
    assert positions(list(store.load())) == [0, 1]
    assert [report.kind for report in store.damage] == [DamageKind.TORN_TAIL]
    store.compact([enqueued(0), enqueued(1)])
    store.close()
    again = opened(tmp_path)
    assert positions(list(again.load())) == [0, 1]
    assert not again.damage
    again.close()


def test_one_damaged_header_is_read_from_its_copy_and_two_from_a_sibling(tmp_path: Path) -> None:
    filled(tmp_path, 60, SMALL)
    flip(file_of(tmp_path, "m", 0), 9)
    for at in (9, HEADER_SIZE_BYTES // 2 + 9):
        flip(file_of(tmp_path, "m", 1), at)
    store = opened(tmp_path, SMALL)
    assert positions(list(store.load())) == list(range(60))
    assert sorted(report.kind for report in store.damage) == [DamageKind.MENDED, DamageKind.UNREADABLE]
    store.close()


def test_a_foreign_file_is_reported_and_kept(tmp_path: Path) -> None:
    file_of(tmp_path, "m").write_bytes(b"not ours" * 50)
    store = opened(tmp_path)
    assert list(store.load()) == []
    assert store.damage
    store.append([enqueued(0)])
    store.compact([enqueued(0)])
    store.close()
    assert file_of(tmp_path, "m").with_name("QSOrder@S@0@qsctl_m0.db.damaged").read_bytes() == b"not ours" * 50


def test_a_crash_before_a_compaction_is_done_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path)
    store = opened(tmp_path)

    def crash(self: Path, target: Path) -> Path:
        raise OSError(5, "crashed here")

    monkeypatch.setattr(Path, "rename", crash)
    with pytest.raises(Damaged, match="crashed here"):
        store.compact([enqueued(3)])
    monkeypatch.undo()
    again = opened(tmp_path)
    assert positions(list(again.load())) == list(range(10))
    assert not again.damage
    again.close()


def test_a_crash_after_a_compaction_s_commit_leaves_the_new_content(tmp_path: Path) -> None:
    filled(tmp_path)
    old = file_of(tmp_path, "m").read_bytes()
    store = opened(tmp_path)
    store.compact([Remembered(QUEUE, 10, ()), enqueued(3, b"payload 0003")])
    store.close()
    file_of(tmp_path, "m").write_bytes(old)  # as if the old file had not been deleted yet
    again = opened(tmp_path)
    assert list(again.load()) == [Remembered(QUEUE, 10, ()), enqueued(3, b"payload 0003")]
    assert not again.damage
    again.close()
    assert not file_of(tmp_path, "m").exists()


def test_no_payload_can_pass_for_a_record(tmp_path: Path) -> None:
    store = opened(tmp_path)
    forged = b"".join(frame([b"\x94\x04\xa1Q\x00\x01"], mark) for mark in map(numbered_marks, range(100)))
    store.append([enqueued(0, forged), enqueued(1, b"after")])
    store.close()
    flip(file_of(tmp_path, "d"), HEADER_SIZE_BYTES + 5)
    again = opened(tmp_path)
    assert positions(list(again.load())) == [1]
    again.close()


def test_a_full_disk_takes_nothing_of_the_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)
    store.append([enqueued(0)])
    real, written = os.pwrite, []

    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        written.append(offset)
        if len(written) % 2 == 0:
            raise OSError(28, "No space left on device")
        return real(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(Damaged, match="No space left on device"):
        store.append([enqueued(1), enqueued(2)])
    monkeypatch.undo()
    store.append([enqueued(3)])
    store.close()
    again = opened(tmp_path)
    assert positions(list(again.load())) == [0, 3]
    assert not again.damage
    again.close()


def test_a_failed_sync_stops_the_store_since_the_disk_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path, FilesystemSettings(synchronization=Synchronization.FULL))
    store.append([enqueued(0)])

    def refuse(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", refuse)
    with pytest.raises(Damaged, match="Input/output error"):
        store.append([enqueued(1)])
    monkeypatch.undo()
    with pytest.raises(Damaged, match="an earlier write may not have reached the disk"):
        store.append([enqueued(2)])


def test_a_link_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_bytes(b"")
    file_of(tmp_path, "m").symlink_to(target)
    with pytest.raises((InvalidInput, Damaged)):
        opened(tmp_path)
    assert target.read_bytes() == b""


def test_synchronization_decides_how_often_the_disk_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {}
    real = os.fdatasync
    for level in Synchronization:
        calls: list[int] = []
        monkeypatch.setattr(
            os, "fdatasync", lambda descriptor, calls=calls: (calls.append(descriptor), real(descriptor))
        )
        directory = tmp_path / level
        directory.mkdir()
        store = opened(directory, FilesystemSettings(synchronization=level))
        for position in range(5):
            store.append([enqueued(position)])
        appended = len(calls)
        store.close()
        counts[level.value] = (appended, len(calls) - appended)
    assert counts == {"FULL": (11, 2), "NORMAL": (1, 2), "OFF": (0, 0)}, "a file that was made is synced"


def test_identities_survive_whatever_their_number(tmp_path: Path) -> None:
    many = tuple(SampleIdentity(Guid(bytes(16)), number) for number in range(20_000))
    store = opened(tmp_path)
    store.compact([Remembered(QUEUE, 5, many)])
    store.close()
    again = opened(tmp_path)
    assert list(again.load()) == [Remembered(QUEUE, 5, many)]
    again.close()
