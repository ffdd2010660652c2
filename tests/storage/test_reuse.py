"""Dead files are written again, and what they held before never comes back (section 2.14.2)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.records import Enqueued, Remembered, Removed
from qsctl.storage import dead_files
from qsctl.storage.damage import DamageKind
from qsctl.storage.dead_files import DeadFiles
from qsctl.storage.frames import FRAME_HEADER
from qsctl.storage.segment_file import HEADER_SIZE_BYTES, decode_header, find_bodies
from qsctl.storage.segments import SegmentStorage
from tests.dds.service_process import eventually
from tests.storage.contract import QUEUE, enqueued, removed
from tests.storage.power_loss import kill

SYNCED = FilesystemSettings(file_max_size_kb=2, synchronization=Synchronization.FULL)
UNSYNCED = FilesystemSettings(file_max_size_kb=2)
KEPT = 12
"""Samples that `worked` leaves in the queue."""


def opened(directory: Path, filesystem: FilesystemSettings = SYNCED) -> SegmentStorage:
    return SegmentStorage(directory / "QSOrder@S@0@qsctl", filesystem)


def worked(directory: Path, count: int = 120, filesystem: FilesystemSettings = SYNCED) -> SegmentStorage:
    """A store through which samples went, compacted now and then."""
    store = opened(directory, filesystem)
    for position in range(count):
        store.append([enqueued(position, payload_of(position))])
        if position >= KEPT:
            store.append([removed(position - KEPT)])
        if position % 50 == 49:
            held = range(position - KEPT + 1, position + 1)
            store.compact([Remembered(QUEUE, position + 1, ()), *map(enqueued, held)])
    return store


def payload_of(position: int) -> bytes:
    return b"payload %04d" % position * 10


def held(store: SegmentStorage) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for record in store.load():
        if isinstance(record, Enqueued):
            found[record.position] = record.payload
        elif isinstance(record, Removed):
            found.pop(record.position, None)
    return found


def expected(count: int = 120) -> dict[int, bytes]:
    return {position: payload_of(position) for position in range(count - KEPT, count)}


def files(directory: Path, letter: str) -> list[Path]:
    found = [path for path in directory.iterdir() if f"_{letter}" in path.name]
    return sorted(found, key=lambda path: int(path.stem.rpartition(f"_{letter}")[2]))


def reused(directory: Path, letter: str) -> list[Path]:
    """Files in use that were other files before."""
    headers = {path: decode_header(path.read_bytes()) for path in files(directory, letter)}
    return [path for path, each in headers.items() if each is not None and each.is_reused]


def test_a_dead_file_is_written_again_where_syncs_are_waited_for(tmp_path: Path) -> None:
    store = worked(tmp_path)
    assert reused(tmp_path, "d")
    assert reused(tmp_path, "m")
    count = len(list(tmp_path.iterdir()))
    store.close()
    assert len(list(tmp_path.iterdir())) < count, "what was kept goes when the store is closed"
    again = opened(tmp_path)
    assert held(again) == expected()
    assert not again.damage
    again.close()


def test_elsewhere_dead_files_are_deleted(tmp_path: Path) -> None:
    worked(tmp_path, filesystem=UNSYNCED).close()
    assert not reused(tmp_path, "d")
    assert not reused(tmp_path, "m")


def test_after_a_kill_nothing_of_a_file_s_earlier_life_is_restored(tmp_path: Path) -> None:
    for count in range(100, 130):
        directory = tmp_path / str(count)
        directory.mkdir()
        kill(worked(directory, count))
        again = opened(directory)
        assert held(again) == expected(count)
        assert not again.damage
        again.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=strategies.data(), letter=strategies.sampled_from("dm"))
def test_any_flipped_bit_of_a_file_written_again_costs_at_most_one_sample_and_is_told(
    tmp_path_factory: pytest.TempPathFactory, data: strategies.DataObject, letter: str
) -> None:
    directory = tmp_path_factory.mktemp("flip")
    kill(worked(directory, 70))
    path = data.draw(strategies.sampled_from(reused(directory, letter)))
    content = bytearray(path.read_bytes())
    header = decode_header(bytes(content))
    assert header is not None
    end = find_bodies(bytes(content), header).end + FRAME_HEADER.size
    at = data.draw(strategies.integers(0, min(end, len(content)) - 1), label="at")
    content[at] ^= 1 << data.draw(strategies.integers(0, 7), label="bit")
    path.write_bytes(content)
    again = opened(directory)
    found = held(again)
    wanted = expected(70)
    lost = wanted.keys() - found.keys()
    assert all(found[position] == wanted[position] for position in wanted.keys() & found.keys())
    assert len(lost) <= 1
    assert again.damage
    again.append([enqueued(1_000, b"goes on")])
    again.close()


@pytest.mark.parametrize("letter", ["d", "m"])
def test_a_write_cut_short_in_a_file_written_again_is_cut_off(tmp_path: Path, letter: str) -> None:
    kill(worked(tmp_path))
    path = files(tmp_path, letter)[-1]
    assert path in reused(tmp_path, letter)
    content = bytearray(path.read_bytes())
    header = decode_header(bytes(content))
    assert header is not None
    end = find_bodies(bytes(content), header).end
    content[end : end + 20] = content[HEADER_SIZE_BYTES : HEADER_SIZE_BYTES + 20]
    path.write_bytes(content)
    again = opened(tmp_path)
    assert [(each.kind, each.offset) for each in again.damage] == [(DamageKind.TORN_TAIL, end)]
    assert held(again) == expected()
    again.append([enqueued(1_000, b"goes on")])
    again.close()
    once_more = opened(tmp_path)
    assert held(once_more) == expected() | {1_000: b"goes on"}
    assert not once_more.damage
    once_more.close()


@pytest.mark.parametrize("letter", ["d", "m"])
def test_a_kill_between_the_new_name_and_the_new_header_leaves_a_file_that_holds_nothing(
    tmp_path: Path, letter: str
) -> None:
    kill(worked(tmp_path))
    spare = files(tmp_path, letter)[0]
    last = int(files(tmp_path, letter)[-1].stem.rpartition(f"_{letter}")[2])
    renamed = spare.with_name(spare.name.replace(spare.stem.rpartition("_")[2], f"{letter}{last + 1}"))
    spare.rename(renamed)
    again = opened(tmp_path)
    assert held(again) == expected()
    assert not again.damage
    for position in range(1_000, 1_040):
        again.append([enqueued(position, b"goes on" * 20)])
    again.close()
    once_more = opened(tmp_path)
    assert set(held(once_more)) == {*expected(), *range(1_000, 1_040)}
    once_more.close()


@pytest.mark.parametrize("loss", ["cut", "zeros"])
def test_metadata_that_a_power_failure_took_is_written_again_from_its_copies(tmp_path: Path, loss: str) -> None:
    store = opened(tmp_path)
    for position in range(8):
        store.append([enqueued(position, payload_of(position))])
    sync = store.write_along([removed(1)])
    assert sync is None, "it rides"
    store.append([enqueued(8, payload_of(8))])
    (path,) = files(tmp_path, "m")
    content = path.read_bytes()
    first = find_bodies(content, decode_header(content)).bodies[0][1]
    path.write_bytes(content[:first] + (b"" if loss == "cut" else bytes(len(content) - first)))
    again = opened(tmp_path)
    (report,) = again.damage
    assert (report.file, report.kind, report.offset) == (path, DamageKind.MENDED, first)
    assert "bytes written again" in str(report)
    assert held(again) == {position: payload_of(position) for position in (0, *range(2, 9))}
    assert path.read_bytes()[: len(content)].rstrip(b"\0") == content.rstrip(b"\0")
    again.close()
    once_more = opened(tmp_path)
    assert not once_more.damage, "it is told once"
    once_more.close()


def test_dead_files_are_kept_up_to_a_size_and_for_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr(dead_files.time, "monotonic", lambda: now_s)
    monkeypatch.setattr(dead_files, "KEPT_BYTES_MAX", 250)
    paths = [tmp_path / str(number) for number in range(4)]
    for path in paths:
        path.write_bytes(bytes(100))
    kept = DeadFiles(keeps=True)
    for path in paths[:3]:
        kept.add(path)
    assert eventually(lambda: not paths[2].exists()), "there is no room for it"
    assert kept.take() == paths[0]
    kept.add(paths[3])
    now_s += dead_files.KEPT_FOR_S / 2
    kept.rest()
    assert kept.take() == paths[1]
    now_s += dead_files.KEPT_FOR_S
    kept.rest()
    kept.finish()
    assert kept.take() is None
    assert sorted(tmp_path.iterdir()) == paths[:2], "what was taken is not its business any more"
