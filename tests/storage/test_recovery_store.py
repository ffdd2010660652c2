"""The recovery database on a real file: killed at every write, torn, full; what the engine promises holds (show 3)."""

from __future__ import annotations

import random
import shutil
from collections import defaultdict
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

import pytest

from qsctl.config.filesystem import FilesystemSettings, JournalMode, Synchronization
from qsctl.core.integration.database import Database, stored
from qsctl.core.integration.message import Message, MessageId, State
from qsctl.core.integration.messages import Accepted, Outbound
from qsctl.core.integration.records import STREAM, CopyRemovalCause, CopyRemoved, Failed, Moved, Record, Started
from qsctl.errors import Damaged, NotFound, Refused
from qsctl.sim.engine._interruption import recover_and_drain
from qsctl.sim.engine._peers import PeersChanged, StoredRecord
from qsctl.sim.engine.crash_points import _expected, _item, _source
from qsctl.sim.engine.recovery_store import RecoveryStore, read_recovery_database
from qsctl.sim.engine.world import EngineWorld, ReceivedMessage
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from qsctl.storage.damage import DamageKind
from tests.campaigns import trials

UNSYNCED = FilesystemSettings(journal_mode=JournalMode.WAL, synchronization=Synchronization.OFF)
"""What is torn here is cut by the test: what the disk has, and when, does not matter."""


@pytest.fixture(scope="module")
def small() -> Scenario:
    return read_scenario(find_scenario("engine-crash-points"))


def message(serial: int = 1, **others: object) -> Message:
    mid = MessageId(0, 1, serial)
    given: dict[str, object] = {"payload": b"x", **others}
    return Message(serial, mid, mid, State.INBOUND_POST_TPS, serial, "p", "in", "in", "", **given)  # type: ignore[arg-type]


def same(left: Database, right: Database) -> bool:
    return (left.recovery, left.errors, left.start, left.next_serial) == (
        right.recovery,
        right.errors,
        right.start,
        right.next_serial,
    )


def copied(path: Path, to: Path) -> Path:
    to.mkdir()
    for file in path.parent.glob(f"{path.name}*"):
        if not file.name.endswith(".lock"):
            shutil.copyfile(file, to / file.name)
    return to / path.name


class Life:
    """An engine on a database, and what its senders and receivers got by the time its disk refused."""

    def __init__(self, scenario: Scenario, path: Path) -> None:
        self.path = path
        self.store = RecoveryStore(path, UNSYNCED)
        self.batches: list[Sequence[Record]] = []
        self.received: list[ReceivedMessage] = []
        self.accepted: set[tuple[str, int]] = set()
        self.scenario = scenario

    def run(self) -> EngineWorld:
        world = EngineWorld(
            self.scenario,
            database=self.store.database.copy(),
            peers=deepcopy(self.store.peers),
            store=self.append,
            on_release=self.release,
            on_received=self.received.append,
        )
        world.run()
        return world

    def append(self, records: Sequence[StoredRecord]) -> None:
        self.store.append(records)
        self.batches.append([each for each in records if not isinstance(each, PeersChanged)])

    def release(self, sent: Outbound) -> None:
        if isinstance(sent, Accepted):
            self.accepted.add((sent.thread, sent.token))


def check_promise(life: Life, database: Database) -> None:
    """All or nothing of each message of a logged connection, all where its sender was answered, none twice unmarked."""
    expected = _expected(life.scenario)
    settings = EngineWorld(life.scenario).settings
    outcome = recover_and_drain(settings, database, 0)
    found: dict[tuple[str, int], set[tuple[str, str]]] = defaultdict(set)
    unmarked: set[tuple[tuple[str, int], tuple[str, str]]] = set()
    for each in (*life.received, *outcome.received):
        source, item = _source(each.payload), _item(each)
        found[source].add(item)
        if not each.is_possible_duplicate and ".reply" not in item[1]:
            assert (source, item) not in unmarked, "twice, and not marked"
            unmarked.add((source, item))
    for source, items in expected.items():
        if source[0] == "orders_in":
            continue  # without database logging
        wanted = {item for item in items if not item[0].startswith("error")}
        missing = wanted - found[source]
        assert not missing or (missing == wanted and source not in life.accepted), (source, missing)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    store = RecoveryStore(tmp_path / "r.db")
    first, second = message(), message(2, payload=bytes(range(256)), error_text="ü", user_data="{a b}")
    store.append([Started(STREAM, 1, 1), stored(first), stored(second)])
    store.append(
        [Failed(STREAM, 2, 7, State.IN_TRANSLATION, 303, "bad date"), CopyRemoved(STREAM, 1, CopyRemovalCause.KILLED)]
    )
    store.close()
    read = read_recovery_database(tmp_path / "r.db")
    assert not read.damage
    assert [(each.payload, each.error, each.error_text) for each in read.database.failed()] == [
        (bytes(range(256)), 303, "bad date")
    ]
    assert not read.database.messages()
    assert same(read.database, RecoveryStore(tmp_path / "r.db").database)


def test_a_database_in_use_is_refused_to_writers_and_read_by_readers(tmp_path: Path) -> None:
    store = RecoveryStore(tmp_path / "r.db")
    store.append([Started(STREAM, 1, 1), stored(message())])
    with pytest.raises(Refused, match="in use by another process"):
        RecoveryStore(tmp_path / "r.db")
    assert len(read_recovery_database(tmp_path / "r.db").database.messages()) == 1
    store.close()


def test_a_missing_database_is_reported_as_missing(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no recovery database"):
        read_recovery_database(tmp_path / "r.db")
    assert not list(tmp_path.iterdir())


def test_compaction_keeps_messages_and_what_must_not_be_given_twice(tmp_path: Path) -> None:
    store = RecoveryStore(tmp_path / "r.db")
    store.append([Started(STREAM, 1, 3), stored(message())])
    for first in range(0, 6_000, 100):
        numbers = range(first, first + 100)
        flags = message().flags
        store.append([Moved(STREAM, 1, State.PRE_TRANSLATION, n, "p", "x", "", 1, n, flags, 0, 0, 0) for n in numbers])
        store.compact()
    before = store.database.copy()
    store.close()
    assert (tmp_path / "r.db").stat().st_size < 500_000
    again = RecoveryStore(tmp_path / "r.db")
    assert same(again.database, before)
    assert (again.database.start, again.database.next_serial, again.database.latest_ns) == (3, 2, 5_999)
    again.close()


def test_killed_after_every_write_the_file_has_every_record_up_to_there(tmp_path: Path, small: Scenario) -> None:
    life = Life(small, tmp_path / "r.db")
    copies: list[Path] = []
    append = life.append

    def append_and_copy(records: Sequence[StoredRecord]) -> None:
        append(records)
        if len(life.batches) % 9 == 0:
            copies.append(copied(life.path, tmp_path / f"{len(life.batches)}"))

    life.append = append_and_copy  # type: ignore[method-assign]
    life.run()
    life.store.close()
    assert len(copies) > 20
    for path in copies:
        replayed = Database(record for batch in life.batches[: int(path.parent.name)] for record in batch)
        assert same(read_recovery_database(path).database, replayed), path.parent.name


@pytest.mark.campaign
def test_a_torn_write_leaves_whole_turns_and_the_promise_holds(tmp_path: Path, small: Scenario) -> None:
    """The write-ahead file is cut anywhere, as by a loss of power in the middle of a write that nobody waited for."""
    life = Life(small, tmp_path / "r.db")
    sizes: list[tuple[int, int, set[tuple[str, int]], int]] = []
    wal = tmp_path / "r.db-wal"
    append = life.append

    def append_and_measure(records: Sequence[StoredRecord]) -> None:
        append(records)
        sizes.append((wal.stat().st_size, len(life.batches), set(life.accepted), len(life.received)))

    life.append = append_and_measure  # type: ignore[method-assign]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RecoveryStore, "compact", lambda _: None)
        life.run()
    generator = random.Random(7)
    prefixes = [Database()]
    for batch in life.batches:
        prefix = prefixes[-1].copy()
        for record in batch:
            prefix.apply(record)
        prefixes.append(prefix)
    everything = life.received
    for number in range(trials("QSCTL_TEST_POWER_FAILURES", 15, 500)):
        size, count, accepted, received_count = sizes[generator.randrange(len(sizes))]
        before = max((each[0] for each in sizes if each[0] < size), default=0)
        cut = generator.randrange(before, size + 1)
        path = copied(life.path, tmp_path / f"torn{number}")
        with path.with_name("r.db-wal").open("r+b") as file:
            file.truncate(cut)
        database = read_recovery_database(path).database
        reached = next((at for at, prefix in enumerate(prefixes) if same(prefix, database)), None)
        assert reached is not None, "not a prefix of whole turns"
        assert reached >= count - 1
        # What rested on the turn that was torn was not released: the ones before it were answered.
        life.accepted, life.received = accepted, everything[:received_count]
        check_promise(life, database)
    life.store.close()


@pytest.mark.parametrize("pages", [10, 13, 16, 19])
def test_a_full_disk_stops_the_engine_and_nothing_answered_is_lost(tmp_path: Path, small: Scenario, pages: int) -> None:
    life = Life(small, tmp_path / "r.db")
    life.store._storage._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(Damaged, match="full"):
        life.run()
    life.store.abandon()
    again = RecoveryStore(life.path)
    assert same(again.database, Database(record for batch in life.batches for record in batch))
    check_promise(life, again.database.copy())
    again.close()


def test_a_damaged_file_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    store = RecoveryStore(tmp_path / "r.db")
    for serial in range(1, 200):
        store.append([stored(message(serial, payload=b"data" * 100))])
    store.close()
    raw = bytearray((tmp_path / "r.db").read_bytes())
    at = raw.find(b"datadata", len(raw) // 2)
    raw[at : at + 4] = b"DATA"
    (tmp_path / "r.db").write_bytes(raw)
    read = read_recovery_database(tmp_path / "r.db")
    assert any(each.kind is DamageKind.PAYLOAD_MISSING for each in read.damage)
    assert len(read.database.messages()) == 198
