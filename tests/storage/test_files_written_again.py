"""Stores of the first form of format 2, which wrote dead files again, are read and carried on (section 2.14.2).

`format_2` is such a store, killed: what its files held in their earlier life never comes back.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.records import Enqueued, Removed
from qsctl.storage.damage import DamageKind
from qsctl.storage.frames import FRAME_HEADER, frame
from qsctl.storage.segment_file import decode_header, find_bodies, stream_of
from tests.storage.contract import enqueued, removed
from tests.storage.own_files import OwnFiles
from tests.storage.power_loss import kill

SYNCED = FilesystemSettings(file_max_size_kb=2, synchronization=Synchronization.FULL)
KEPT = 12
"""Samples that were left in the queue."""


def opened(directory: Path, filesystem: FilesystemSettings = SYNCED) -> OwnFiles:
    return OwnFiles(directory / "QSOrder@S@0@qsctl", filesystem)


def copied(directory: Path, store: str) -> None:
    for path in (Path(__file__).parent / store).iterdir():
        shutil.copy(path, directory / path.name)
        os.chmod(directory / path.name, 0o600)


def store_of_files_written_again(directory: Path) -> Path:
    """A copy of the store through which 70 samples went, with files kept that were to be written again."""
    copied(directory, "format_2")
    return directory


def payload_of(position: int) -> bytes:
    return b"payload %04d" % position * 10


def held(store: OwnFiles) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for record in store.load():
        if isinstance(record, Enqueued):
            found[record.position] = record.payload
        elif isinstance(record, Removed):
            found.pop(record.position, None)
    return found


def expected(count: int = 70) -> dict[int, bytes]:
    return {position: payload_of(position) for position in range(count - KEPT, count)}


def files(directory: Path, letter: str) -> list[Path]:
    found = [path for path in directory.iterdir() if f"_{letter}" in path.name]
    return sorted(found, key=lambda path: int(path.stem.rpartition(f"_{letter}")[2]))


def reused(directory: Path, letter: str) -> list[Path]:
    """Files in use that were other files before."""
    headers = {path: decode_header(path.read_bytes(), stream_of(path)) for path in files(directory, letter)}
    return [path for path, each in headers.items() if each is not None and each.is_reused]


def test_a_store_of_files_written_again_is_restored_and_carried_on(tmp_path: Path) -> None:
    store_of_files_written_again(tmp_path)
    assert reused(tmp_path, "d")
    assert reused(tmp_path, "m")
    store = opened(tmp_path)
    assert held(store) == expected()
    assert not store.damage
    for position in range(1_000, 1_040):
        store.append([enqueued(position, b"goes on" * 20)])
    kill(store)
    again = opened(tmp_path)
    assert held(again) == expected() | dict.fromkeys(range(1_000, 1_040), b"goes on" * 20)
    assert not again.damage
    again.append([removed(position) for position in held(again)])
    again.compact([])
    again.close()
    assert not reused(tmp_path, "m"), "no file is written again any more"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=strategies.data(), letter=strategies.sampled_from("dm"))
def test_any_flipped_bit_of_a_file_written_again_costs_at_most_one_sample_and_is_told(
    tmp_path_factory: pytest.TempPathFactory, data: strategies.DataObject, letter: str
) -> None:
    directory = tmp_path_factory.mktemp("flip")
    store_of_files_written_again(directory)
    path = data.draw(strategies.sampled_from(reused(directory, letter)))
    content = bytearray(path.read_bytes())
    header = decode_header(bytes(content), stream_of(path))
    assert header is not None
    end = find_bodies(bytes(content), header).end + FRAME_HEADER.size
    at = data.draw(strategies.integers(0, min(end, len(content)) - 1), label="at")
    content[at] ^= 1 << data.draw(strategies.integers(0, 7), label="bit")
    path.write_bytes(content)
    again = opened(directory)
    found = held(again)
    wanted = expected()
    lost = wanted.keys() - found.keys()
    assert all(found[position] == wanted[position] for position in wanted.keys() & found.keys())
    assert len(lost) <= 1
    assert again.damage
    again.append([enqueued(1_000, b"goes on")])
    again.close()


@pytest.mark.parametrize("letter", ["d", "m"])
def test_a_write_cut_short_in_a_file_written_again_is_cut_off(tmp_path: Path, letter: str) -> None:
    store_of_files_written_again(tmp_path)
    path = files(tmp_path, letter)[-1]
    assert path in reused(tmp_path, letter)
    content = bytearray(path.read_bytes())
    header = decode_header(bytes(content), stream_of(path))
    assert header is not None
    found = find_bodies(bytes(content), header)
    end = found.end
    content[end : end + 20] = frame([b"x" * 100], header.marks, found.next_number)[:20]
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
    store_of_files_written_again(tmp_path)
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
    copied(tmp_path, "format_2_copies")
    (path,) = files(tmp_path, "m")
    content = path.read_bytes()
    header = decode_header(content, stream_of(path))
    assert header is not None
    first = find_bodies(content, header).bodies[0][1]
    path.write_bytes(content[:first] + (b"" if loss == "cut" else bytes(len(content) - first)))
    again = opened(tmp_path)
    (report,) = again.damage
    assert (report.file, report.kind, report.offset) == (path, DamageKind.MENDED, first)
    assert "bytes written again" in str(report)
    assert held(again) == {position: payload_of(position) for position in (0, *range(2, 9))}
    assert path.read_bytes()[: len(content)].rstrip(b"\0")[:-20] == content.rstrip(b"\0")[:-20]
    again.close()
    once_more = opened(tmp_path)
    assert not once_more.damage, "it is told once"
    once_more.close()
