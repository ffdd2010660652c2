"""Under FULL, what an append returned for survives a power failure, whatever else the disk forgot [QS 2.14.2]."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.records import Assigned, Enqueued, Record, Remembered, Removed
from qsctl.errors import Damaged
from qsctl.identity import Guid
from qsctl.storage.log.log_upkeep import keep_short
from qsctl.storage.streams.logged import LoggedStorage
from tests.campaigns import trials
from tests.storage.contract import QUEUE, KeptInTwos, enqueued, removed
from tests.storage.own_files import OwnFiles
from tests.storage.power_loss import Disk, PowerFailed, kill
from tests.storage.with_its_log import WithItsLog

FAILURES = trials("QSCTL_TEST_POWER_FAILURES", 40, 2000)
STORIES = trials("QSCTL_TEST_POWER_FAILURES", 20, 2000)
TINY = FilesystemSettings(file_max_size_kb=2, synchronization=Synchronization.FULL)
CONSUMER = Guid(b"c" * 16)


def opened(directory: Path) -> OwnFiles:
    return OwnFiles(directory / "QSOrder@S@0@qsctl", TINY)


def logged(directory: Path) -> WithItsLog:
    return WithItsLog(directory, TINY)


Open: TypeAlias = Callable[[Path], OwnFiles | WithItsLog]
KINDS = pytest.mark.parametrize("make", [opened, logged], ids=["own files", "log"])


def alive(records: Iterator[Record]) -> dict[int, bytes]:
    """The samples that are held when the records were replayed."""
    held: dict[int, bytes] = {}
    for record in records:
        if isinstance(record, Enqueued):
            held[record.position] = record.payload
        elif isinstance(record, Removed):
            held.pop(record.position, None)
    return held


class Story:
    """Random work on a store, and what may be left of it."""

    def __init__(self, directory: Path, chance: random.Random, make: Open) -> None:
        self.directory = directory
        self.make = make
        self.store = make(directory)
        self.upkeep: Iterator[None] = iter(())
        self.chance = chance
        self.settles = chance.choice([0, 8])
        """How often metadata is synced for its own sake; never: only copies stand for it, until its file is full."""
        self.held: dict[int, bytes] = {}
        self.ever: dict[int, bytes] = {}
        """Every sample that was to be stored."""
        self.critical: set[int] = set()
        """What was held when a compaction, which is a critical moment, was over, and was not settled since."""
        self.unsure: set[int] = set()
        """Samples that may be there or not: of the batch under way, or settled without a sync."""
        self.next_position = 0
        self.kept = KeptInTwos()
        self.shares: Iterator[None] | None = None

    def step(self) -> None:
        """One thing a queue does; when the power fails in it, `unsure` says what it was about."""
        doing = self.chance.choices(
            [
                self.enqueue,
                self.settle_some,
                self.settle_along,
                self.compact,
                self.compact_on,
                self.sync,
                self.restart,
                self.keep_log_short,
            ],
            weights=[20, self.settles, self.settles, 2, 8, self.settles // 4, 1, 8],
        )
        doing[0]()

    def sync(self) -> None:
        if isinstance(self.store, WithItsLog):
            self.store.log.sync()
        else:
            self.store.sync()

    def enqueue(self) -> None:
        records: list[Record] = []
        fresh: dict[int, bytes] = {}
        for _ in range(self.chance.randint(1, 4)):
            payload = self.chance.randbytes(self.chance.randint(0, 300))
            fresh[self.next_position] = payload
            records.append(enqueued(self.next_position, payload))
            if self.chance.random() < 0.7:
                records.append(Assigned(QUEUE, self.next_position, CONSUMER, 1))
            self.next_position += 1
        gone = self.some(2 if self.settles else 6)
        records += [removed(position) for position in gone]
        self.held |= fresh
        self.ever |= fresh
        before, self.unsure = self.unsure, self.unsure | fresh.keys() | gone
        self.store.append(records)
        self.unsure = before - gone
        self.forget(gone)

    def settle_some(self) -> None:
        gone = self.some(6)
        self.unsure |= gone
        self.store.append([removed(position) for position in gone])
        self.unsure -= gone
        self.forget(gone)

    def settle_along(self) -> None:
        gone = self.some(6)
        self.unsure |= gone
        self.store.write_deferred([removed(position) for position in gone])

    def compact(self) -> None:
        kept = {position: payload for position, payload in self.held.items() if position not in self.unsure}
        self.store.compact([Remembered(QUEUE, self.next_position, ()), *map(enqueued, kept)])
        self.held, self.unsure = kept, set()
        self.critical = set(kept)

    def compact_on(self) -> None:
        """A share more of a compaction that goes on beside all the rest; a new one where there is none."""
        for _ in self.upkeep:  # one after the other
            pass
        if self.shares is None:
            self.kept = KeptInTwos()
            self.shares = self.store.compact_in_shares(self.kept)
        known = {position: payload for position, payload in self.held.items() if position not in self.unsure}
        self.kept.held = {position: [enqueued(position, payload)] for position, payload in known.items()}
        self.kept.next_position = self.next_position
        was_over = self.kept.is_over
        if next(self.shares, self) is self:
            self.shares = None
        if self.kept.is_over and not was_over:
            self.held, self.unsure = known, set()

    def keep_log_short(self) -> None:
        """A share more of what lets the oldest files of the log go."""
        store = self.store
        if isinstance(store, LoggedStorage) and not store.is_compacting and next(self.upkeep, self) is self:
            self.upkeep = keep_short(store.log, lambda: [store], fail, files_max=self.chance.choice([1, 2]))

    def restart(self) -> None:
        """The process is killed and started again; the disk keeps what it was given."""
        kill(self.store)
        self.shares = None
        self.upkeep = iter(())
        self.store = self.make(self.directory)
        found = alive(self.store.load())
        gone = self.unsure - found.keys()
        assert found == {position: payload for position, payload in self.held.items() if position not in gone}

    def some(self, most: int) -> set[int]:
        """Held samples that are not on their way out, the older ones rather."""
        known = sorted(self.held.keys() - self.unsure)[:12]
        return set(self.chance.sample(known, min(len(known), self.chance.randint(0, most))))

    def forget(self, gone: set[int]) -> None:
        for position in gone:
            del self.held[position]


def fail(_: LoggedStorage, error: Damaged) -> None:
    raise error


@KINDS
@pytest.mark.parametrize("seed", range(20))
def test_what_is_stored_anew_after_a_failed_sync_survives_a_power_failure(
    tmp_path: Path, seed: int, make: Open
) -> None:
    chance = random.Random(seed)
    directory, left = tmp_path / "before", tmp_path / "after"
    directory.mkdir()
    held = {position: chance.randbytes(300) for position in range(8)}
    with Disk(directory) as disk:
        store = make(directory)
        store.append([enqueued(position, held[position]) for position in range(3)])
        disk.refuses_next = True
        with pytest.raises(Damaged):
            store.append([enqueued(position, held[position]) for position in range(3, 8)])
        with pytest.raises(Damaged, match="may not have reached the disk"):
            store.append([enqueued(9, b"more")])
        store.abandon()
        store = make(directory)
        kept = alive(store.load())
        assert kept == held, "as the system has it in memory"
        store.renew([Remembered(QUEUE, 8, ()), *map(enqueued, kept)])
        store.append([enqueued(9, b"goes on")])
        kill(store)
        disk.leave(left, chance)
    again = make(left)
    assert alive(again.load()) == held | {9: b"goes on"}
    again.close()


@pytest.mark.parametrize("synced_count", [0, 1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_group_of_a_failed_sync_is_durable_after_a_restart(tmp_path: Path, seed: int, synced_count: int) -> None:
    chance = random.Random(seed)
    directory, left = tmp_path / "before", tmp_path / "after"
    directory.mkdir()
    held = {position: chance.randbytes(300) for position in range(5)}
    with Disk(directory) as disk:
        store = logged(directory)
        for position in range(synced_count):
            store.append([enqueued(position, held[position])])
        disk.refuses_next = True
        with pytest.raises(Damaged):
            store.append([enqueued(position, held[position]) for position in range(synced_count, 5)])
        kill(store)
        store = logged(directory)
        assert alive(store.load()) == held, "as the system has it in memory"
        store.append([enqueued(9, b"rests on all of it")])
        kill(store)
        disk.leave(left, chance)
    again = logged(left)
    assert alive(again.load()) == held | {9: b"rests on all of it"}
    again.close()


@pytest.mark.slow(beyond=20)
@pytest.mark.campaign
@KINDS
@pytest.mark.parametrize("seed", range(FAILURES))
def test_what_an_append_returned_for_survives_a_power_failure(tmp_path: Path, seed: int, make: Open) -> None:
    chance = random.Random(seed)
    directory, left = tmp_path / "before", tmp_path / "after"
    directory.mkdir()
    with Disk(directory) as disk:
        story = Story(directory, chance, make)
        with contextlib.suppress(PowerFailed):
            for _ in range(chance.randint(0, 120)):
                story.step()
            disk.fails_after = chance.randint(0, 6)
            for _ in range(30):
                story.step()
        kill(story.store)
        disk.leave(left, chance)
    again = make(left)
    found = alive(again.load())
    for position, payload in story.held.items():
        assert position in story.unsure or found.get(position) == payload, position
    assert all(found[position] == story.held.get(position) for position in found), "nothing comes back, nothing is new"
    again.append([enqueued(10_000, b"goes on")])
    again.close()
    once_more = make(left)
    assert alive(once_more.load()) == found | {10_000: b"goes on"}
    once_more.close()


def normal(directory: Path) -> LoggedStorage:
    return WithItsLog(directory, replace(TINY, synchronization=Synchronization.NORMAL))


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(STORIES))
def test_under_normal_what_was_there_at_a_critical_moment_survives_a_power_failure(tmp_path: Path, seed: int) -> None:
    """Of what came since any part may be gone, whole samples only; what was settled may come again."""
    chance = random.Random(seed)
    directory, left = tmp_path / "before", tmp_path / "after"
    directory.mkdir()
    with Disk(directory) as disk:
        story = Story(directory, chance, normal)
        with contextlib.suppress(PowerFailed):
            for _ in range(chance.randint(0, 120)):
                story.step()
            disk.fails_after = chance.randint(0, 6)
            for _ in range(30):
                story.step()
        kill(story.store)
        disk.leave(left, chance)
    again = normal(left)
    found = alive(again.load())
    assert all(found[position] == story.ever.get(position) for position in found), "nothing is new"
    lost = story.critical & story.held.keys() - story.unsure - found.keys()
    assert not lost, "of what was there at a critical moment"
    again.append([enqueued(10_000, b"goes on")])
    again.close()
    once_more = normal(left)
    assert alive(once_more.load()) == found | {10_000: b"goes on"}
    once_more.close()
