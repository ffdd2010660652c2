"""The log of replicas: what was durable is found again, after kills, power failures and damage [QS 7.1]."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import msgspec
import pytest

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.records import Record
from qsctl.errors import Damaged, Refused
from qsctl.service.replicas._replica_stores import RECORDS
from qsctl.storage._frames import FRAME_HEADER, spans
from qsctl.storage.base import Sync
from qsctl.storage.file_system import HostFileSystem
from qsctl.storage.log.file_sequence import SEAL
from qsctl.storage.log.segment_file import HEADER_SIZE_BYTES
from qsctl.storage.replicas import replica_operations
from qsctl.storage.replicas.log_compaction import LogCompaction
from qsctl.storage.replicas.replica_log import COMPACTED_OVER_BYTES, GROUP_BYTES, ReplicaLog
from qsctl.storage.replicas.replica_operations import BODY_BYTES, RECORDS_AT_ONCE
from qsctl.storage.replicas.replica_stream import (
    Appended,
    Dropped,
    Operation,
    SnapshotPart,
    SnapshotPut,
    StateSet,
    StoredHardState,
    StoredStream,
)
from tests.campaigns import trials
from tests.storage.contract import enqueued
from tests.storage.power_loss import Disk, PowerFailed, kill_log

LONG = FilesystemSettings(synchronization=Synchronization.FULL)
FAILURES = trials("QSCTL_TEST_POWER_FAILURES", 30, 2000)
TINY = FilesystemSettings(file_max_size_kb=1, synchronization=Synchronization.FULL)


def opened(directory: Path, settings: FilesystemSettings = TINY) -> ReplicaLog:
    return ReplicaLog(directory / "replicas@qsctl", settings, RECORDS)


def found(log: ReplicaLog) -> dict[str, StoredStream]:
    return {
        name: StoredStream(each.hard_state, each.snapshot_index, list(each.snapshot_records), list(each.records))
        for name, each in log.pop_found().items()
    }


def do(log: ReplicaLog, *operations: Operation) -> None:
    sync = log.write(operations)
    if sync is not None:
        sync()


def compact(log: ReplicaLog, streams: dict[str, StoredStream]) -> None:
    compaction = log.compact(streams)
    compaction.begin()
    compaction.write()
    compaction.put()


def without_installing(operations: Iterable[Operation]) -> Iterator[Operation]:
    """As earlier versions wrote a snapshot that replaces no later records."""
    for each in operations:
        yield msgspec.structs.replace(each, installs=False) if isinstance(each, SnapshotPut) else each


def records(first: int, count: int, octets: bytes = b"x") -> list[Record]:
    return [enqueued(position, octets) for position in range(first, first + count)]


@dataclass
class Kept:
    """What one stream is, by a plain model."""

    state: StoredHardState = field(default_factory=StoredHardState)
    index: int = 0
    snapshot: list[Record] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)

    def copy(self) -> Kept:
        return Kept(self.state, self.index, self.snapshot, list(self.records))

    @property
    def last(self) -> int:
        return self.index + len(self.records)

    def stored(self) -> StoredStream:
        return StoredStream(self.state, self.index, self.snapshot, self.records)


class Story:
    """Random work on a log of two streams, whose positions overlap, and what of it must be found."""

    def __init__(self, directory: Path, chance: random.Random) -> None:
        self.log = opened(directory)
        self.chance = chance
        self.streams: dict[str, Kept] = {}
        self.possible: list[dict[str, Kept]] = [{}]
        """The states that may be found: the durable one first, then one for each operation in progress."""
        self.next_position = 0
        self.compaction: LogCompaction | None = None
        self.is_base_written = False

    def step(self) -> None:
        if self.chance.random() < 0.2:
            self.go_on_compacting()
            return
        operations: list[Operation] = []
        self.possible = [self.snapshot_of_all()]
        for _ in range(self.chance.randint(1, 4)):
            name = self.chance.choice("ab")
            operations += self.chance.choice([self.append, self.append, self.append, self.vote, self.put])(name)
            self.possible.append(self.snapshot_of_all())
        if self.chance.random() < 0.05:
            operations.append(Dropped("a"))
            self.streams.pop("a", None)
            self.possible.append(self.snapshot_of_all())
        do(self.log, *operations)
        self.possible = [self.snapshot_of_all()]

    def go_on_compacting(self) -> None:
        """Do the next step of a compaction; the log is written to between two of them."""
        if self.compaction is None:
            streams = {name: each.copy().stored() for name, each in self.streams.items()}
            compaction = self.log.compact(streams)
            compaction.begin()
            self.compaction, self.is_base_written = compaction, False
        elif not self.is_base_written:
            self.compaction.write()
            self.is_base_written = True
        else:
            self.compaction.put()
            self.compaction = None

    def snapshot_of_all(self) -> dict[str, Kept]:
        return {name: each.copy() for name, each in self.streams.items()}

    def new_records(self) -> list[Record]:
        count = self.chance.randint(1, 5)
        self.next_position = self.chance.choice([0, self.next_position + count])
        return records(self.next_position, count, self.chance.randbytes(self.chance.choice([3, 90])))

    def append(self, name: str) -> Sequence[Operation]:
        kept = self.streams.setdefault(name, Kept())
        truncates = self.chance.random() < 0.3
        first = self.chance.randint(kept.index + 1, kept.last + 1) if truncates else kept.last + 1
        added = self.new_records()
        kept.records = [*kept.records[: first - kept.index - 1], *added]
        return list(self.log.append(name, first, added, truncates=truncates))

    def vote(self, name: str) -> Sequence[Operation]:
        kept = self.streams.setdefault(name, Kept())
        kept.state = StoredHardState(kept.state.epoch + 1, self.chance.choice(["", "1", "2"]))
        return [StateSet(name, kept.state)]

    def put(self, name: str) -> Sequence[Operation]:
        kept = self.streams.setdefault(name, Kept())
        installs = self.chance.random() < 0.5 or not kept.last
        index = (
            kept.last + self.chance.randint(1, 50) if installs else self.chance.randint(max(1, kept.index), kept.last)
        )
        kept.records = [] if installs else kept.records[index - kept.index :]
        kept.index, kept.snapshot = index, self.new_records()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(replica_operations, "RECORDS_AT_ONCE", 2)  # some are written in parts
            operations = self.log.snapshot(name, index, kept.snapshot)
            return list(operations if installs else without_installing(operations))

    def check(self, left: dict[str, StoredStream]) -> None:
        whole = [{name: each.stored() for name, each in state.items()} for state in self.possible]
        begun = StoredStream(StoredHardState(), 0, [], [])  # parts of its first snapshot, without effect
        assert {name: each for name, each in left.items() if each != begun} in whole


def test_a_log_is_read_back_after_a_kill_and_goes_on(tmp_path: Path) -> None:
    log = opened(tmp_path)
    do(log, StateSet("g", StoredHardState(2, "b")), *log.append("g", 1, records(0, 3), truncates=False))
    do(log, *log.append("g", 3, records(9, 2), truncates=True))
    kill_log(log._log)
    again = opened(tmp_path)
    assert found(again) == {"g": StoredStream(StoredHardState(2, "b"), 0, [], [*records(0, 2), *records(9, 2)])}
    assert not again.is_damaged
    do(again, *again.append("g", 5, records(20, 1), truncates=False))
    again.close()
    assert len(found(opened(tmp_path))["g"].records) == 5


def test_a_snapshot_may_reach_beyond_what_is_stored(tmp_path: Path) -> None:
    log = opened(tmp_path)
    do(log, *log.append("g", 1, records(0, 3), truncates=False))
    do(log, *log.snapshot("g", 70, records(5, 2)), *log.append("g", 71, records(9, 1), truncates=False))
    do(log, *without_installing(log.snapshot("g", 71, records(5, 3))))
    log.close()
    assert found(opened(tmp_path)) == {"g": StoredStream(StoredHardState(), 71, records(5, 3), [])}


def test_a_long_log_is_compacted_to_what_matters(tmp_path: Path) -> None:
    log = opened(tmp_path, FilesystemSettings(synchronization=Synchronization.OFF))
    kept = records(0, 10)
    while not log.is_worth_compacting(lambda: 0):
        do(log, *log.append("g", 1, records(0, 500, bytes(1000)), truncates=True))
    do(log, *log.append("g", 1, kept, truncates=True))
    compact(log, {"g": StoredStream(StoredHardState(7, "a"), 0, (), kept)})
    assert not log.is_worth_compacting(lambda: 0)
    do(log, *log.append("g", 11, records(50, 1), truncates=False))
    log.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < COMPACTED_OVER_BYTES / 100
    assert found(opened(tmp_path)) == {"g": StoredStream(StoredHardState(7, "a"), 0, [], [*kept, *records(50, 1)])}


def test_log_of_which_less_than_half_is_superseded_is_not_worth_compacting(tmp_path: Path) -> None:
    log = opened(tmp_path, FilesystemSettings(synchronization=Synchronization.OFF))
    do(log, *log.append("g", 1, sized(1, *[LARGE] * 20), truncates=False))
    assert log.is_worth_compacting(lambda: 9 * LARGE)
    assert not log.is_worth_compacting(lambda: 11 * LARGE)
    assert log.extent.size_bytes > COMPACTED_OVER_BYTES


def half_compacted(directory: Path) -> tuple[ReplicaLog, LogCompaction]:
    """Return a log that was written to while its base was, and the compaction, which is to be put."""
    log = opened(directory, LONG)
    do(log, StateSet("h", StoredHardState(1, "c")), *log.append("g", 1, records(1, 40), truncates=False))
    compacted = StoredStream(StoredHardState(3, "a"), 30, records(50, 2), records(31, 10))
    compaction = log.compact({"g": compacted, "h": StoredStream(StoredHardState(1, "c"))})
    compaction.begin()
    do(log, *log.append("g", 39, records(60, 4), truncates=True))
    compaction.write()
    do(log, StateSet("g", StoredHardState(4, "b")))
    return log, compaction


@pytest.mark.parametrize("is_put", [False, True])
def test_log_is_written_to_while_it_is_compacted(tmp_path: Path, is_put: bool) -> None:
    log, compaction = half_compacted(tmp_path)
    if is_put:
        compaction.put()
    do(log, *log.append("g", 43, records(90, 1), truncates=False))
    kill_log(log._log)
    again = opened(tmp_path, LONG)
    index, snapshot = (30, records(50, 2)) if is_put else (0, [])
    left = [*records(index + 1, 38 - index), *records(60, 4), *records(90, 1)]
    expected = StoredStream(StoredHardState(4, "b"), index, snapshot, left)
    assert again.damage == []
    assert found(again) == {"g": expected, "h": StoredStream(StoredHardState(1, "c"), 0, [], [])}
    again.close()
    assert len(list(tmp_path.iterdir())) == (2 if is_put else 3), "the base, and what was written behind it"


@pytest.mark.parametrize("file", [0, 1])
def test_compacted_log_that_lost_the_end_of_its_base_or_the_file_behind_is_damaged(tmp_path: Path, file: int) -> None:
    log, compaction = half_compacted(tmp_path)
    compaction.put()
    log.close()
    base, behind = sorted(tmp_path.iterdir())
    if file:
        behind.unlink()
    else:
        *_, (start, _), _ = spans(base.read_bytes(), HEADER_SIZE_BYTES, base.stat().st_size)
        os.truncate(base, start - FRAME_HEADER.size)  # the last operation and the seal, whole
    assert opened(tmp_path, LONG).is_damaged


@pytest.mark.parametrize("is_next_written", [False, True])
def test_seal_that_was_cut_short_is_no_damage(tmp_path: Path, is_next_written: bool) -> None:
    """Found: the power failed between the name of the next file and the sync of the seal, which no record follows."""
    log = opened(tmp_path)
    do(log, *log.append("g", 1, records(1, 3, bytes(4_000)), truncates=False))
    expected = records(1, 3, bytes(4_000))
    do(log, StateSet("g", StoredHardState(2, "b")))
    log.close()
    first, following = sorted(tmp_path.iterdir())
    content, next_content = first.read_bytes(), following.read_bytes() if is_next_written else b""
    for size_bytes in range(1, FRAME_HEADER.size + len(SEAL) + 3):
        first.write_bytes(content[:-size_bytes])
        following.write_bytes(next_content)
        again = opened(tmp_path)
        is_cut_short = size_bytes <= FRAME_HEADER.size + len(SEAL)
        assert again.is_damaged is not is_cut_short, (size_bytes, again.damage)
        assert not is_cut_short or found(again)["g"].records == expected
        kill_log(again._log)


@pytest.mark.parametrize(
    ("step", "refused"), [("begin", "open"), ("write", "open"), ("write", "write_at"), ("put", "rename")]
)
def test_log_is_as_before_where_the_disk_refuses_a_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, refused: str
) -> None:
    log = opened(tmp_path, LONG)
    do(log, *log.append("g", 1, records(1, 40), truncates=False))
    compaction = log.compact({"g": StoredStream(StoredHardState(), 40, records(50, 2), ())})
    steps = {"begin": compaction.begin, "write": compaction.write, "put": compaction.put}
    for name, do_step in steps.items():
        if name == step:
            break
        do_step()
    with monkeypatch.context() as patch:
        patch.setattr(HostFileSystem, refused, refuse)
        with pytest.raises(Damaged, match=os.strerror(errno.ENOSPC)):
            steps[step]()
    assert not log.has_failed
    do(log, *log.append("g", 41, records(41, 2), truncates=False))
    assert not list(tmp_path.glob("*.tmp"))
    compact(log, {"g": StoredStream(StoredHardState(), 0, (), records(1, 42))})
    kill_log(log._log)
    again = opened(tmp_path, LONG)
    assert (again.damage, found(again)) == ([], {"g": StoredStream(StoredHardState(), 0, [], records(1, 42))})


def refuse(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(FAILURES))
def test_what_was_durable_survives_a_power_failure(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    directory, left = tmp_path / "before", tmp_path / "after"
    directory.mkdir()
    with Disk(directory) as disk:
        story = Story(directory, chance)
        with contextlib.suppress(PowerFailed):
            for _ in range(chance.randint(0, 40)):
                story.step()
            disk.fails_after = chance.randint(0, 6)
            for _ in range(30):
                story.step()
        kill_log(story.log._log)
        disk.leave(left, chance)
    again = opened(left)
    assert not again.is_damaged, again.damage
    story.check(found(again))
    do(again, StateSet("c", StoredHardState(9, "")))
    again.close()
    assert found(opened(left))["c"] == StoredStream(StoredHardState(9, ""), 0, [], [])


@pytest.mark.parametrize("syncs", range(8))
def test_power_failure_between_two_compactions_without_a_write_is_no_damage(tmp_path: Path, syncs: int) -> None:
    """Found by the campaign: the name of the next file was durable before the content of the one that is written to."""
    for seed in range(6):
        directory, left = tmp_path / f"before {seed}", tmp_path / f"after {seed}"
        directory.mkdir()
        stored = {"g": StoredStream(StoredHardState(), 40, records(50, 2), ())}
        with Disk(directory) as disk:
            log = opened(directory)
            do(log, *log.append("g", 1, records(1, 40), truncates=False))
            compact(log, stored)
            disk.fails_after = syncs
            with contextlib.suppress(PowerFailed):
                compact(log, stored)
            kill_log(log._log)
            disk.leave(left, random.Random(seed))
        again = opened(left)
        assert not again.is_damaged, (seed, again.damage)
        assert found(again) == {"g": StoredStream(StoredHardState(), 40, records(50, 2), [])}
        again.close()


def test_a_sync_that_failed_is_not_tried_again(tmp_path: Path) -> None:
    with Disk(tmp_path) as disk:
        log = opened(tmp_path)
        do(log, StateSet("g", StoredHardState(1, "a")))
        disk.refuses_next = True
        with pytest.raises(Damaged):
            do(log, StateSet("g", StoredHardState(2, "b")))
        assert log.has_failed
        with pytest.raises(Damaged, match="may not have reached"):
            log.write([StateSet("g", StoredHardState(3, "b"))])
        log.close()


@pytest.mark.parametrize("seed", range(5))
def test_vote_of_a_failed_sync_is_durable_after_a_restart(tmp_path: Path, seed: int) -> None:
    directory, left = tmp_path / "before", tmp_path / "after"
    directory.mkdir()
    with Disk(directory) as disk:
        log = opened(directory)
        do(log, StateSet("g", StoredHardState(1, "a")))
        disk.refuses_next = True
        with pytest.raises(Damaged):  # more than a sector: the last one is written again with whatever comes next
            do(log, StateSet("g", StoredHardState(2, "b")), *log.append("g", 1, records(1, 20), truncates=False))
        kill_log(log._log)
        log = opened(directory)
        assert found(log)["g"].hard_state == StoredHardState(2, "b"), "as the system has it in memory"
        do(log, StateSet("another", StoredHardState(1, "a")))
        kill_log(log._log)
        disk.leave(left, random.Random(seed))
    again = opened(left)
    assert found(again)["g"].hard_state == StoredHardState(2, "b")
    again.close()


def test_a_flipped_bit_never_changes_what_is_found_unreported(tmp_path: Path) -> None:
    whole, flipped = tmp_path / "whole", tmp_path / "flipped"
    whole.mkdir()
    log = opened(whole)
    old, new = records(1, 5), [*records(1, 2), *records(13, 4)]
    for at, record in enumerate(old):
        do(log, *log.append("g", at + 1, [record], truncates=False))
    for at, record in enumerate(new[2:], 2):
        do(log, *log.append("g", at + 1, [record], truncates=at == 2))
        do(log, StateSet("g", StoredHardState(at, "a")))
    log.close()
    (path,) = whole.iterdir()
    content = path.read_bytes()
    for at in range(0, len(content), 5):
        shutil.rmtree(flipped, ignore_errors=True)
        flipped.mkdir()
        (flipped / path.name).write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
        again = opened(flipped)
        left = found(again).get("g", StoredStream())
        assert left.records in (old[: len(left.records)], new[: len(left.records)]), at
        assert (left.hard_state == StoredHardState(5, "a") and left.records == new) or again.damage, at
        again.close()


def sized(first: int, *sizes: int) -> list[Record]:
    return [enqueued(first + at, bytes(size)) for at, size in enumerate(sizes)]


LARGE = BODY_BYTES * 3 // 4
"""Octets of a payload of which a body has one."""


def test_large_snapshot_is_written_in_parts_of_bounded_size(tmp_path: Path) -> None:
    log = opened(tmp_path, LONG)
    snapshot = [*sized(1, LARGE, LARGE, 1, 3 * BODY_BYTES, 1), *records(9, 2 * RECORDS_AT_ONCE)]
    operations = list(log.snapshot("a", 3_000, snapshot))
    assert [type(each) for each in operations] == [SnapshotPart] * (len(operations) - 1) + [SnapshotPut]
    assert max(len(each.data) for each in operations if isinstance(each, SnapshotPart)) < 3 * BODY_BYTES + 1_000
    log.store(iter(operations))()
    do(log, *log.append("a", 3_001, sized(3_001, LARGE, LARGE), truncates=False))
    kill_log(log._log)
    again = opened(tmp_path, LONG)
    expected = StoredStream(StoredHardState(), 3_000, snapshot, sized(3_001, LARGE, LARGE))
    assert (again.is_damaged, found(again)) == (False, {"a": expected})
    compact(again, {"a": expected})
    again.close()
    assert found(opened(tmp_path, LONG)) == {"a": expected}


def test_parts_of_a_snapshot_that_was_not_written_whole_have_no_effect(tmp_path: Path) -> None:
    """A crash in the middle of a long write leaves them, and the next snapshot may follow them at once."""
    log = opened(tmp_path, LONG)
    do(log, *log.append("a", 1, records(1, 3), truncates=False))
    cut_short = list(without_installing(log.snapshot("a", 2, sized(10, *[LARGE] * 4))))
    do(log, *cut_short[:-1])
    kill_log(log._log)
    again = opened(tmp_path, LONG)
    assert found(again) == {"a": StoredStream(StoredHardState(), 0, [], records(1, 3))}
    do(again, *without_installing(again.snapshot("a", 3, sized(20, LARGE, LARGE))))
    kill_log(again._log)
    assert found(opened(tmp_path, LONG)) == {"a": StoredStream(StoredHardState(), 3, sized(20, LARGE, LARGE), [])}


def test_snapshot_that_lacks_a_part_is_damage(tmp_path: Path) -> None:
    log = opened(tmp_path, LONG)
    *_, last = log.snapshot("a", 2, sized(10, *[LARGE] * 3))
    do(log, last)
    kill_log(log._log)
    assert opened(tmp_path, LONG).is_damaged


class Later(msgspec.Struct, frozen=True, array_like=True, tag=99):
    """An operation that this version does not know."""

    stream: str


def test_log_with_an_operation_of_a_later_version_is_refused_and_not_changed(tmp_path: Path) -> None:
    """As damage it would be compacted away, and the samples behind it with it."""
    log = opened(tmp_path)
    do(log, *log.append("g", 1, records(0, 3), truncates=False), cast(Operation, Later("g")))
    do(log, *log.append("g", 4, records(3, 3), truncates=False))
    log.close()
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(Refused, match="has a form that this version does not read"):
        opened(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_many_operations_are_written_in_groups_that_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    write = ReplicaLog.write

    def noted(log: ReplicaLog, operations: Sequence[Operation]) -> Sync | None:
        sizes.append(sum(len(getattr(each, "data", b"")) for each in operations))
        return write(log, operations)

    monkeypatch.setattr(ReplicaLog, "write", noted)
    log = opened(tmp_path, LONG)
    log.store(log.snapshot("a", 2, sized(10, *[LARGE] * 40)))()
    assert len(sizes) == log.progress_count > 3
    assert max(sizes) < GROUP_BYTES + BODY_BYTES


@pytest.mark.parametrize("damage", ["bit", "gap"])
def test_files_from_the_damage_on_are_kept_when_the_log_is_compacted(tmp_path: Path, damage: str) -> None:
    """What is behind the damage may be in no other log, and an operator decides what becomes of it."""
    log = opened(tmp_path)
    for position in (1, 2, 3):
        first_index = position + (damage == "gap" and position > 1)
        do(log, *log.append("g", first_index, records(position, 1, bytes(9_000)), truncates=False))
    log.close()
    whole, damaged, *_ = paths = sorted(tmp_path.iterdir())
    if damage == "bit":
        content = bytearray(damaged.read_bytes())
        content[-100] ^= 1
        damaged.write_bytes(content)
    before = {path.name: path.read_bytes() for path in paths}
    log = opened(tmp_path)
    left = found(log)
    assert len(left["g"].records) == 1
    do(log, StateSet("g", StoredHardState(5, "a")))
    assert log.is_worth_compacting(lambda: 0)
    compact(log, left)
    kept = log.pop_kept()
    log.close()
    assert {path.name: path.read_bytes() for path in kept} == {
        f"{name}.damaged": content for name, content in before.items() if name != whole.name
    }
    assert log.pop_kept() == []
    again = opened(tmp_path)
    assert (again.is_damaged, found(again)["g"].records) == (False, left["g"].records)
    again.close()
    assert all(path.exists() for path in kept)


def test_files_with_records_that_cannot_be_read_are_kept_when_the_log_is_compacted(tmp_path: Path) -> None:
    log = opened(tmp_path)
    do(log, Appended("g", 1, 1, False, b"no record"))
    log.close()
    (path,) = tmp_path.iterdir()
    before = path.read_bytes()
    log = opened(tmp_path)
    compact(log, found(log))
    log.close()
    (kept,) = log.pop_kept()
    assert kept.name == f"{path.name}.damaged"
    assert kept.read_bytes().startswith(before)
