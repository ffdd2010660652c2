"""What was durable for a replica stays so: truncations, and the epoch and vote, after power failures and damage."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies

from qsctl.config.filesystem import FilesystemSettings, JournalMode, Synchronization
from qsctl.core.records import Record
from qsctl.errors import Refused
from qsctl.service.queue_codec import QUEUE_CODEC
from qsctl.storage.base import StoredHardState
from qsctl.storage.log_upkeep import keep_short
from qsctl.storage.logged import LoggedStorage
from qsctl.storage.sqlite import SqliteStorage
from tests.campaigns import trials
from tests.storage.contract import assigned, enqueued, removed
from tests.storage.power_loss import Disk, PowerFailed, kill
from tests.storage.stream_contract import alive, without_payloads
from tests.storage.two_streams import lose
from tests.storage.with_its_log import WithItsLog

FAILURES = trials("QSCTL_TEST_POWER_FAILURES", 30, 2000)
TINY = FilesystemSettings(file_max_size_kb=1, synchronization=Synchronization.FULL)
DATABASE = FilesystemSettings(journal_mode=JournalMode.WAL, synchronization=Synchronization.FULL)


def logged(directory: Path) -> LoggedStorage:
    return WithItsLog(directory, TINY, is_truncatable=True)


def database(directory: Path) -> SqliteStorage:
    return SqliteStorage(directory / "QSOrder@S@0@qsctl.db", DATABASE, QUEUE_CODEC, is_truncatable=True)


class Replica:
    """Random work on the stream of a replica, and what of it must be there afterwards."""

    def __init__(self, directory: Path, chance: random.Random) -> None:
        self.store = logged(directory)
        self.chance = chance
        self.records: list[Record] = []
        """All there are, from index 1 on."""
        self.committed = 0
        self.state = StoredHardState()
        self.possible: list[tuple[int, list[Record]]] = []
        """What was being appended or truncated when the power failed: how many stay for sure, and what may follow."""
        self.possible_state = self.state
        self.next_position = 0

    def step(self) -> None:
        self.chance.choice([self.append, self.append, self.truncate, self.commit, self.vote, self.checkpoint])()

    def append(self) -> None:
        batch: list[Record] = []
        for _ in range(self.chance.randint(1, 4)):
            batch += [enqueued(self.next_position, self.chance.randbytes(99)), assigned(self.next_position)]
            self.next_position += 1
        held = sorted(alive([*self.records, *batch]))
        batch += [removed(at) for at in self.chance.sample(held, min(len(held), self.chance.randint(0, 3)))]
        self.possible = [(len(self.records), batch)]
        self.store.append(batch)
        self.records += batch
        self.possible = []

    def truncate(self) -> None:
        index = self.chance.randint(self.committed + 1, len(self.records) + 1)
        self.possible = [(index - 1, self.records[index - 1 :])]
        self.store.truncate(index)
        del self.records[index - 1 :]
        self.possible = []

    def commit(self) -> None:
        self.committed = self.chance.randint(self.committed, len(self.records))
        self.store.commit(self.committed)

    def vote(self) -> None:
        self.possible_state = StoredHardState(self.state.epoch + 1, self.chance.choice(["", "1", "2"]))
        self.store.set_hard_state(self.possible_state)
        self.state = self.possible_state

    def checkpoint(self) -> None:
        for _ in keep_short(self.store.log, lambda: [self.store], lose, files_max=1):
            pass

    def check(self, store: LoggedStorage) -> None:
        assert store.hard_state in (self.state, self.possible_state)
        sure, doubtful = self.possible[0] if self.possible else (len(self.records), [])
        assert sure <= store.last_index <= sure + len(doubtful)
        there = [*self.records[:sure], *doubtful][: store.last_index]
        index = store.snapshot_index + 1
        assert index <= self.committed + 1
        assert without_payloads(list(store.load_from(index))) == without_payloads(there[index - 1 :])
        assert alive(store.load()) == alive(there)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(FAILURES))
def test_what_was_durable_for_a_replica_survives_a_power_failure(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    directory, left = tmp_path / "before", tmp_path / "after"
    directory.mkdir()
    with Disk(directory) as disk:
        replica = Replica(directory, chance)
        with contextlib.suppress(PowerFailed):
            for _ in range(chance.randint(0, 60)):
                replica.step()
            disk.fails_after = chance.randint(0, 6)
            for _ in range(30):
                replica.step()
        kill(replica.store)
        disk.leave(left, chance)
    again = logged(left)
    replica.check(again)
    last = again.last_index
    again.append([enqueued(10_000, b"goes on")])
    again.close()
    once_more = logged(left)
    assert list(once_more.load_from(last + 1)) == [enqueued(10_000, b"goes on")]
    once_more.close()


def test_a_truncation_covers_what_its_file_of_the_log_is_checkpointed_from(tmp_path: Path) -> None:
    """A file is read alone when it is checkpointed, and what truncates its records may be in a later one."""
    store = logged(tmp_path)
    for position in range(12):
        store.append([enqueued(position, bytes(200))])
    store.append([removed(0), removed(1), removed(2)])
    store.truncate(14)
    store.append([enqueued(20, bytes(200))])
    for position in range(30, 60):
        store.append([enqueued(position, bytes(200))])
    store.commit(store.last_index)
    for _ in keep_short(store.log, lambda: [store], lose, files_max=1):
        pass
    assert store.snapshot_index > 14
    store.close()
    again = logged(tmp_path)
    assert sorted(alive(again.load())) == [*range(1, 12), 20, *range(30, 60)]
    again.close()


@pytest.mark.parametrize("make", [logged, database])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=strategies.data())
def test_a_flipped_bit_never_changes_what_a_replica_remembers_unreported(
    tmp_path_factory: pytest.TempPathFactory,
    make: Callable[[Path], LoggedStorage | SqliteStorage],
    data: strategies.DataObject,
) -> None:
    directory = tmp_path_factory.mktemp("flip")
    store = make(directory)
    store.append([enqueued(position, b"payload %d" % position) for position in range(4)])
    store.set_hard_state(StoredHardState(3, "1"))
    store.append([removed(0), removed(1), removed(2)])
    store.truncate(6)
    store.append([enqueued(9, b"nine")])
    store.close()
    path = data.draw(strategies.sampled_from(sorted(directory.iterdir())))
    content = bytearray(path.read_bytes())
    content[data.draw(strategies.integers(0, len(content) - 1))] ^= 1 << data.draw(strategies.integers(0, 7))
    path.write_bytes(content)
    try:
        again = make(directory)
    except Refused as error:
        # One bit makes it a file of a later version, which is refused by its name and stays as it is.
        assert "has format" in str(error)
        assert path.read_bytes() == content
        return
    found = alive(again.load())
    damage = [*again.damage, *(again.log.damage if isinstance(again, LoggedStorage) else ())]
    state = (again.hard_state, found)
    assert state == (StoredHardState(3, "1"), {at: b"payload %d" % at for at in (1, 2, 3)} | {9: b"nine"}) or damage
    written = {at: b"payload %d" % at for at in range(4)} | {9: b"nine"}
    assert all(written[position] == payload for position, payload in found.items())
    again.abandon()
    if isinstance(again, LoggedStorage):
        again.log.abandon()
