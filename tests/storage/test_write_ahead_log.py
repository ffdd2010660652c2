"""The log that streams share: what its files say of themselves, what goes when, and what a crash leaves (2.14.2)."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.records import Enqueued, Record, Removed
from qsctl.errors import Damaged
from qsctl.service.stores._queue_codec import QUEUE_CODEC
from qsctl.storage._frames import FRAME_HEADER, scan
from qsctl.storage.damage import DamageKind
from qsctl.storage.log.log_frames import ENTRY_OVERHEAD_BYTES
from qsctl.storage.log.log_upkeep import carry_over, checkpoint_all, existing_logs, keep_short, make_room
from qsctl.storage.log.segment_file import HEADER_SIZE_BYTES, decode_header, stream_of
from qsctl.storage.log.write_ahead_log import WriteAheadLog
from qsctl.storage.streams.logged import LoggedStorage, write_group
from tests.storage.contract import assigned, enqueued, removed
from tests.storage.power_loss import Disk, kill, kill_log
from tests.storage.two_streams import BILLS, FULL, OFF, ORDERS, Both, held, log_files, lose, payload_of, run


def frames_of(path: Path) -> list[tuple[int, int]]:
    """Start and end of every frame of a log file, its header included."""
    content = path.read_bytes()
    header = decode_header(content, stream_of(path))
    assert header is not None
    bodies = scan(content, header.marks, HEADER_SIZE_BYTES).bodies
    return [(start - FRAME_HEADER.size, end) for start, end in bodies]


def count_calls(patches: pytest.MonkeyPatch, name: str) -> list[str]:
    calls: list[str] = []
    real = getattr(os, name)

    def call(descriptor: int, *arguments: object) -> object:
        calls.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        return real(descriptor, *arguments)

    patches.setattr(os, name, call)
    return calls


def test_a_group_of_several_streams_is_one_append_and_one_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = Both(tmp_path, FilesystemSettings(synchronization=Synchronization.FULL))
    both.write([enqueued(0)], [enqueued(0)])
    writes, syncs = count_calls(monkeypatch, "pwrite"), count_calls(monkeypatch, "fdatasync")
    both.write([enqueued(1), enqueued(2)], [enqueued(1), removed(0)])
    assert len(writes) == len(syncs) == 1
    both.close()


@pytest.mark.parametrize(("level", "appended"), [("FULL", 5), ("NORMAL", 0), ("OFF", 0)])
def test_synchronization_decides_how_often_the_disk_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str, appended: int
) -> None:
    both = Both(tmp_path, FilesystemSettings(synchronization=Synchronization(level)))
    both.write([enqueued(100)], [])
    syncs = count_calls(monkeypatch, "fdatasync")
    for position in range(5):
        both.write([enqueued(position)], [])
    assert len(syncs) == appended
    both.close()
    assert bool(syncs) == (level != "OFF"), "to close is a critical moment"


def test_samples_consumed_soon_never_reach_files_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(QUEUE_CODEC), "remembered_count", 4)
    both = Both(tmp_path)
    own = tmp_path / f"{ORDERS}_m0.db"
    size = own.stat().st_size
    for position in range(200):
        both.write([enqueued(position, payload_of(position))], [])
        if position >= 3:
            both.write([removed(position - 3)], [])
        run(both.keep_short(3))
    assert own.stat().st_size == size, "nothing was written there"
    assert not list(tmp_path.glob(f"{ORDERS}_d*"))
    assert len(both.files()) <= 5
    assert both.files()[0].name != "QSlog@qsctl_w0.db"
    both.kill()
    again = Both(tmp_path)
    assert held(again.orders) == {position: payload_of(position) for position in range(197, 200)}
    assert not again.orders.damage
    again.close()


def test_what_is_still_held_moves_to_files_of_its_own_when_its_log_file_goes(tmp_path: Path) -> None:
    both = Both(tmp_path)
    for position in range(100):
        both.write([enqueued(position, payload_of(position)), assigned(position)], [enqueued(position, b"bill")])
    assert len(log_files(tmp_path)) > 4
    run(both.keep_short())
    assert len(both.files()) == 1
    for again in (both, None):
        store = again or Both(tmp_path)
        assert held(store.orders) == {position: payload_of(position) for position in range(100)}
        assert held(store.bills) == dict.fromkeys(range(100), b"bill")
        assert all(store.orders.payloads([position]) == [payload_of(position)] for position in range(100))
        assert not store.orders.damage
        store.kill()


@pytest.mark.parametrize("share_count", range(6))
def test_a_checkpoint_cut_short_is_as_if_it_had_never_begun(tmp_path: Path, share_count: int) -> None:
    both = Both(tmp_path)
    appended: list[Record] = []
    for position in range(60):
        records = [enqueued(position, payload_of(position)), assigned(position)]
        both.write(records, [])
        appended += records
    shares = both.keep_short()
    for _ in range(share_count):
        next(shares, None)
    oldest = both.log.files[0]
    run(both.orders.checkpoint(oldest))  # and not committed
    both.kill()
    again = Both(tmp_path)
    assert list(again.orders.load()) == appended, "neither twice nor out of order"
    run(again.keep_short())
    assert list(again.orders.load()) == appended
    again.kill()
    assert list(Both(tmp_path).orders.load()) == appended


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_checkpoint_that_the_disk_refused_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    both = Both(tmp_path)
    for position in range(60):
        both.write([enqueued(position, payload_of(position))], [])
    real = os.pwrite

    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        if ORDERS in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(error, os.strerror(error))
        return real(descriptor, data, offset)

    count = len(log_files(tmp_path))
    failed: list[LoggedStorage] = []
    monkeypatch.setattr(os, "pwrite", pwrite)
    run(keep_short(both.log, lambda: both.streams, lambda stream, _: failed.append(stream), 1))
    monkeypatch.undo()
    assert failed == ([] if error == errno.ENOSPC else [both.orders])
    assert len(both.files()) == count, "what only they have stays"
    assert both.orders.payloads([0]) == [payload_of(0)]
    run(both.keep_short())
    assert len(both.files()) == 1
    both.kill()
    assert held(Both(tmp_path).orders) == {position: payload_of(position) for position in range(60)}


def test_what_was_not_synced_is_left_as_a_prefix(tmp_path: Path) -> None:
    """Whatever pages of it reached the disk: a dead letter comes before the removal that rests on it."""
    prefixes = set()
    for seed in range(60):
        directory, left = tmp_path / f"before{seed}", tmp_path / f"after{seed}"
        directory.mkdir()
        with Disk(directory) as disk:
            both = Both(directory)
            both.write([enqueued(0)], [enqueued(0)])
            group = [enqueued(position, bytes(700), enqueued_at_ns=position) for position in range(1, 5)]
            write_group(both.log, [(both.bills, group), (both.orders, [removed(0)])])
            both.log._log.flush()
            both.kill()
            disk.leave(left, random.Random(seed))
        again = Both(left)
        bills, orders = held(again.bills), held(again.orders)
        assert list(bills) == list(range(len(bills)))
        assert 0 in orders or len(bills) == 5, "the removal alone is there"
        prefixes.add(len(bills))
        again.close()
    assert len(prefixes) > 2, "failures leave this much and that"


def test_a_hole_before_what_was_synced_later_is_reported_and_read_on_behind(tmp_path: Path) -> None:
    both = Both(tmp_path, FilesystemSettings(synchronization=Synchronization.FULL))
    for position in range(10):
        both.write([enqueued(position, payload_of(position))], [])
    both.kill()
    (path,) = log_files(tmp_path)
    content = bytearray(path.read_bytes())
    at = content.index(payload_of(4))
    content[at - 60 : at + 12] = bytes(72)
    path.write_bytes(content)
    again = Both(tmp_path)
    assert list(held(again.orders)) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    (report,) = again.log.damage
    assert report.kind is DamageKind.CHECKSUM
    again.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=strategies.data())
def test_any_flipped_bit_of_a_closed_log_costs_at_most_one_record_and_is_reported(
    tmp_path_factory: pytest.TempPathFactory, data: strategies.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("flip")
    both = Both(directory)
    for position in range(15):
        both.write([enqueued(position, payload_of(position))], [enqueued(position, payload_of(position))])
    both.close()
    path = data.draw(strategies.sampled_from(log_files(directory)))
    content = bytearray(path.read_bytes())
    content[data.draw(strategies.integers(0, len(content) - 1))] ^= 1 << data.draw(strategies.integers(0, 7))
    path.write_bytes(content)
    again = Both(directory)
    assert again.log.damage
    found = [held(again.orders), held(again.bills)]
    assert sum(map(len, found)) >= 29
    assert all(payload == payload_of(position) for each in found for position, payload in each.items())
    again.kill()


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_log_file_that_is_gone_is_reported(tmp_path: Path, which: int) -> None:
    both = Both(tmp_path)
    for position in range(60):
        both.write([enqueued(position, payload_of(position))], [])
    both.close()
    known = both.log.extent
    log_files(tmp_path)[which].unlink()
    again = WriteAheadLog(tmp_path / "QSlog@qsctl", FULL, known)
    assert any("missing" in report.what for report in again.damage)
    again.close()


def test_a_sync_that_failed_is_cut_off_and_the_log_goes_on_in_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = Both(tmp_path)
    both.write([enqueued(0, b"kept")], [enqueued(0, b"kept")])

    def refuse(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", refuse)
    with pytest.raises(Damaged):
        both.write([enqueued(1, b"lost")], [])
    monkeypatch.undo()
    with pytest.raises(Damaged, match="may not have reached the disk"):
        both.write([enqueued(2)], [])
    both.log.mend()
    both.orders.abandon()
    both.orders = LoggedStorage(tmp_path / ORDERS, FULL, both.log, QUEUE_CODEC)
    assert held(both.orders) == {0: b"kept"}, "what was not durable counts as never written"
    both.write([enqueued(1, b"again")], [enqueued(1, b"goes on")])
    assert len(both.files()) == 2
    both.kill()
    again = Both(tmp_path)
    assert held(again.orders) == {0: b"kept", 1: b"again"}
    assert held(again.bills) == {0: b"kept", 1: b"goes on"}
    assert not again.log.damage
    again.close()


def test_a_stream_that_was_destroyed_leaves_nothing_to_one_of_its_name(tmp_path: Path) -> None:
    both = Both(tmp_path)
    both.write([enqueued(0)], [enqueued(0)])
    both.orders.destroy()
    kill(both.bills)
    again = Both(tmp_path)
    assert held(again.orders) == {}
    assert list(held(again.bills)) == [0]
    again.write([enqueued(5, b"new")], [])
    again.close()
    assert held(Both(tmp_path).orders) == {5: b"new"}


def test_room_of_what_is_held_no_more_is_given_back_at_once(tmp_path: Path) -> None:
    both = Both(tmp_path)
    for position in range(60):
        both.write([enqueued(position, bytes(500))], [])
    both.write([removed(position) for position in range(60)], [])
    make_room(both.log, lambda: both.streams, lose)
    assert sum(path.stat().st_size for path in both.files()) < 10_000
    both.kill()
    assert held(Both(tmp_path).orders) == {}


def test_a_log_under_another_one_s_name_is_reported(tmp_path: Path) -> None:
    both = Both(tmp_path)
    for position in range(40):
        both.write([enqueued(position, payload_of(position))], [enqueued(position, b"bill")])
    both.kill()
    for path in log_files(tmp_path):
        path.rename(path.with_name(path.name.replace("QSlog@qsctl", "QSlog@qsctl@1")))
    (stem,) = existing_logs(tmp_path / "QSlog@qsctl")
    assert stem.name == "QSlog@qsctl@1"
    again = WriteAheadLog(stem, FULL)
    assert any("another store" in report.what for report in again.damage), "the name is part of the checksums"
    assert not again.names()
    again.close()


@pytest.mark.parametrize("filesystem", [FULL, OFF], ids=["FULL", "OFF"])
def test_unopened_streams_are_checkpointed_or_carried_over(tmp_path: Path, filesystem: FilesystemSettings) -> None:
    both = Both(tmp_path, filesystem)
    for position in range(40):
        both.write([enqueued(position, payload_of(position))], [enqueued(position, b"bill")])
    both.kill()
    log = WriteAheadLog(tmp_path / "QSlog@qsctl", filesystem)
    checkpoint_all(log, [BILLS], QUEUE_CODEC)
    kill_log(log._log)
    assert not carry_over(tmp_path / "QSlog@qsctl", filesystem, QUEUE_CODEC, None)
    assert not log_files(tmp_path)
    again = Both(tmp_path, filesystem)
    assert held(again.orders) == {position: payload_of(position) for position in range(40)}
    assert held(again.bills) == dict.fromkeys(range(40), b"bill")
    assert not [*again.orders.damage, *again.bills.damage]
    again.close()


def test_identities_are_remembered_as_long_as_a_queue_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(QUEUE_CODEC), "remembered_count", 10)
    both = Both(tmp_path)
    for position in range(100):
        both.write([enqueued(position, payload_of(position))], [])
        both.write([removed(position)], [])
        run(both.keep_short())
    both.kill()
    again = Both(tmp_path)
    gone = [record.position for record in again.orders.load() if isinstance(record, Removed)]
    came = [record.position for record in again.orders.load() if isinstance(record, Enqueued)]
    assert gone[-10:] == list(range(90, 100))
    assert came[-10:] == list(range(90, 100))
    assert len(gone) < 100, "the others are forgotten"
    again.close()


def test_a_frame_that_changed_places_is_reported(tmp_path: Path) -> None:
    both = Both(tmp_path, FilesystemSettings(synchronization=Synchronization.FULL))
    for position in range(6):
        both.write([enqueued(position, payload_of(position))], [])
    both.close()
    (path,) = log_files(tmp_path)
    frames, content = frames_of(path), path.read_bytes()
    of_samples = [(start, end) for start, end in frames if end - start > ENTRY_OVERHEAD_BYTES + 60]
    (first, first_end), (second, second_end) = of_samples[-2:]
    assert first_end - first == second_end - second
    swapped = content[:first] + content[second:second_end] + content[first_end:second] + content[first:first_end]
    path.write_bytes(swapped + content[second_end:])
    again = Both(tmp_path)
    assert again.log.damage
    assert len(held(again.orders)) >= 4
    again.kill()
