"""The simulated disk: what is left when the power fails, and the stores that run live over it."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from random import Random

import pytest

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.records import EpochBegan
from qsctl.errors import Damaged
from qsctl.instant import INFINITE_NS, MILLISECOND_NS
from qsctl.service.replicas import _replica_stores as replica_stores
from qsctl.sim.world.environment.disk import DIRECTORY, MountedDisk, PowerFailed, ProcessHangs, SimulatedDisk
from qsctl.storage.base import Sync
from qsctl.storage.replicas.replica_log import ReplicaLog
from qsctl.storage.replicas.replica_stream import StateSet, StoredHardState, StoredStream

FILE = DIRECTORY / "file"
SEEDS = range(int(os.environ.get("QSCTL_DISK_SEEDS", "60")))


def made(seed: int = 1) -> tuple[SimulatedDisk, MountedDisk]:
    disk = SimulatedDisk(Random(seed), MILLISECOND_NS)
    return disk, disk.mount()


def written(mounted: MountedDisk, data: bytes, offset: int = 0, path: Path = FILE) -> int:
    descriptor = mounted.open(path, os.O_RDWR | os.O_CREAT)
    assert mounted.write_at(descriptor, data, offset) == len(data)
    return descriptor


def content(disk: SimulatedDisk, path: Path = FILE) -> bytes | None:
    mounted = disk.mount()
    if mounted.status_at(path) is None:
        return None
    descriptor = mounted.open(path, os.O_RDONLY)
    return mounted.read_at(descriptor, mounted.status(descriptor).size_bytes, 0)


def test_what_was_synced_is_there_and_of_the_rest_any_sectors() -> None:
    left = set()
    for seed in SEEDS:
        disk, mounted = made(seed)
        descriptor = written(mounted, b"a" * 10_000)
        mounted.sync(descriptor)
        mounted.sync_directory(DIRECTORY)
        mounted.write_at(descriptor, b"b" * 20_000, 0)
        disk.crash()
        found = content(disk)
        assert found is not None
        assert len(found) in (10_000, 20_000)
        assert set(found) <= set(b"ab\0")
        sectors = {found[at : at + disk.sector_bytes] for at in range(0, 8_192, disk.sector_bytes)}
        assert all(len(set(each)) == 1 for each in sectors), "a sector is the old one or the new one"
        left.add((len(found), len(sectors)))
    assert {(10_000, 1), (20_000, 1), (10_000, 2), (20_000, 2)} <= left


def test_a_name_is_durable_once_its_directory_was_synced_and_a_rename_is_whole() -> None:
    found = set()
    for seed in SEEDS:
        disk, mounted = made(seed)
        mounted.sync(written(mounted, b"old"))
        mounted.sync_directory(DIRECTORY)
        temporary = DIRECTORY / "file.tmp"
        mounted.sync(written(mounted, b"new", path=temporary))
        mounted.rename(temporary, FILE)
        mounted.sync(written(mounted, b"more", path=DIRECTORY / "other"))
        disk.crash()
        names = frozenset(disk.names)
        assert content(disk) in (b"old", b"new"), "it is one of the two"
        found.add((content(disk), "other" in names))
    assert found == {(b"old", False), (b"old", True), (b"new", False), (b"new", True)}


def test_a_sync_that_failed_is_not_made_up_for_by_the_next() -> None:
    lost = 0
    for seed in SEEDS:
        disk, mounted = made(seed)
        descriptor = written(mounted, bytes(8_192))
        mounted.sync(descriptor)
        mounted.sync_directory(DIRECTORY)
        mounted.write_at(descriptor, b"n" * 8_192, 0)
        disk.refuse()
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            mounted.sync(descriptor)
        disk.repair()
        mounted.sync(descriptor)
        assert mounted.read_at(descriptor, 8_192, 0) == b"n" * 8_192, "the system has it in its cache"
        disk.crash()
        lost += content(disk) != b"n" * 8_192
    assert lost > len(SEEDS) // 3


def test_a_full_disk_takes_what_does_not_grow_and_more_once_something_is_deleted() -> None:
    disk, mounted = made()
    descriptor = written(mounted, b"a" * 8_192)
    written(mounted, b"r" * 16_384, path=DIRECTORY / "reserve")
    disk.fill()
    assert mounted.write_at(descriptor, b"b" * 8_192, 0) == 8_192
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        mounted.write_at(descriptor, b"c", 8_192)
    mounted.unlink(DIRECTORY / "reserve")
    assert mounted.write_at(descriptor, b"c" * 4_096, 8_192) == 4_096


def test_a_flipped_bit_is_in_what_was_synced_before_the_last_sync() -> None:
    flipped = set()
    for seed in SEEDS:
        disk, mounted = made(seed)
        path = DIRECTORY / "file.db"
        descriptor = written(mounted, b"a" * 16_384, path=path)
        mounted.sync(descriptor)
        assert disk.flip_bit() == "", "it is what was written last"
        mounted.write_at(descriptor, b"b" * 8_192, 16_384)
        mounted.sync(descriptor)
        assert disk.flip_bit() == path.name
        found = content(disk, path)
        assert found is not None
        (at,) = [at for at, octet in enumerate(found[:16_384]) if octet != ord("a")]
        assert found[16_384:] == b"b" * 8_192
        flipped.add((at, found[at]))
    assert len(flipped) > len(SEEDS) // 2


def test_a_disk_that_hangs_holds_the_process_that_waits_for_it() -> None:
    disk, mounted = made()
    descriptor = written(mounted, b"a")
    mounted.sync(descriptor)
    assert mounted.busy_ns == MILLISECOND_NS
    disk.slow_down(INFINITE_NS)
    with pytest.raises(ProcessHangs):
        mounted.sync(descriptor)


def test_a_process_that_has_lost_its_power_does_nothing_more() -> None:
    disk, mounted = made()
    descriptor = written(mounted, b"a")
    disk.crash()
    with pytest.raises(PowerFailed):
        mounted.write_at(descriptor, b"b", 0)


FULL = FilesystemSettings(DIRECTORY, synchronization=Synchronization.FULL, file_max_size_kb=1)


def log_of(mounted: MountedDisk) -> ReplicaLog:
    return ReplicaLog(DIRECTORY / "replicas@A", FULL, replica_stores.RECORDS, disk=mounted, compacted_over_bytes=20_000)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_log_of_replicas_has_what_was_durable_after_a_power_failure_at_any_operation(seed: int) -> None:
    random = Random(f"log/{seed}")
    disk = SimulatedDisk(random, MILLISECOND_NS)
    durable = pending = 0
    for _ in range(4):
        mounted = disk.mount()
        mounted.fails_after = random.randrange(4, 300)
        try:
            log = log_of(mounted)
            found = log.pop_found()
            assert not log.is_damaged, log.damage
            stream = found.get("S")
            reached = 0 if stream is None else stream.snapshot_index + len(stream.records)
            assert durable <= reached <= pending, (durable, reached, pending)
            durable = pending = reached
            kept = list(stream.records) if stream is not None else []
            steps: list[Sync] = []
            if stream is None:
                log.write([StateSet("S", StoredHardState(1, "A"))])()
            while True:
                record = EpochBegan("S", 1, "x" * random.randrange(700), flags_all=False)
                pending = durable + 1
                sync = log.write(log.append("S", pending, [record], truncates=False))
                assert sync is not None
                sync()
                durable = pending
                kept.append(record)
                if not steps and random.random() < 0.2:
                    compaction = log.compact({"S": StoredStream(StoredHardState(1, "A"), 0, (), list(kept))})
                    compaction.begin()
                    steps = [compaction.put, compaction.write]
                elif steps and random.random() < 0.5:
                    steps.pop()()
        except PowerFailed:
            disk.crash()
    assert pending > 0


def test_a_log_reports_a_failing_disk(tmp_path: Path) -> None:
    disk, mounted = made()
    log = log_of(mounted)
    disk.refuse()
    sync = log.write([StateSet("S", StoredHardState(1, "A"))])
    assert sync is not None
    with pytest.raises(Damaged, match="Input/output error"):
        sync()
    with pytest.raises(Damaged, match="an earlier write"):
        log.write([StateSet("S", StoredHardState(2, "A"))])


def test_what_a_restart_found_after_a_failed_sync_is_written_again() -> None:
    """Found by a world: a later sync of the next process covers only what that one wrote."""
    for seed in SEEDS:
        disk, mounted = made(seed)
        log = log_of(mounted)
        for number in range(1, 4):
            sync = log.write([StateSet("S", StoredHardState(number, "A"))])
            assert sync is not None
            sync()
        disk.refuse()
        sync = log.write([StateSet("S", StoredHardState(9, "B"))])
        assert sync is not None
        with pytest.raises(Damaged):
            sync()
        disk.kill()
        disk.repair()
        found = log_of(disk.mount()).pop_found()
        disk.crash()
        assert log_of(disk.mount()).pop_found() == found


def in_use(disk: SimulatedDisk, name: str) -> bytes:
    """Return a file's content without the octets behind it that its close releases, which no sync covers."""
    return (content(disk, DIRECTORY / name) or b"").rstrip(b"\0")


def file_index(name: str) -> int:
    return int(name.removesuffix(".db").rpartition("_r")[2])


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_log_is_left_under_one_name_or_another_by_a_power_failure_at_any_operation(seed: int) -> None:
    random = Random(f"kept/{seed}")
    disk = SimulatedDisk(random, MILLISECOND_NS)
    log = log_of(disk.mount())
    log.pop_found()
    for index in range(1, 40):
        record = EpochBegan("S", 1, "x" * 700, flags_all=False)
        sync = log.write(log.append("S", index, [record], truncates=False))
        assert sync is not None
        sync()
    log.close()
    damaged = file_index(disk.flip_bit())
    names = list(disk.names)
    contents = {name: in_use(disk, name) for name in names}
    mounted = disk.mount()
    log = log_of(mounted)
    streams = log.pop_found()
    assert log.is_damaged, "a bit of a record, a seal or a header"
    read_count = len(streams["S"].records) if "S" in streams else 0
    mounted.fails_after = random.randrange(1, 60)
    try:
        while True:
            compaction = log.compact(streams)
            for step in (compaction.begin, compaction.write, compaction.put):
                step()
    except PowerFailed:
        disk.crash()
    found = log_of(disk.mount()).pop_found()
    assert len(found["S"].records if "S" in found else ()) == read_count
    left = [in_use(disk, name) for name in disk.names]
    assert [name for name in names if file_index(name) >= damaged and contents[name] not in left] == []
