"""What every store owes to a stream whose records are found by index, and to a replica that takes some of them back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, strategies

from qsctl.core.records import Enqueued, Record, Remembered, Removed
from qsctl.storage.base import Compacted, Storage, StoredHardState
from tests.storage.contract import QUEUE, as_loaded, assigned, batches, enqueued, one_suite_many_stores, removed

STATE = StoredHardState(7, "replica 2")


def without_payloads(records: Sequence[Record]) -> list[Record]:
    return as_loaded([*records, *[removed(each.position) for each in records if isinstance(each, Enqueued)]])[
        : len(records)
    ]


def alive(records: Iterator[Record] | Sequence[Record]) -> dict[int, bytes]:
    held: dict[int, bytes] = {}
    for record in records:
        if isinstance(record, Enqueued):
            held[record.position] = record.payload
        elif isinstance(record, Removed):
            held.pop(record.position, None)
    return held


class StreamContract:
    """Subclasses give `open_stream`; the same directory gives the same store."""

    survives_reopening = True

    def open_stream(self, directory: Path, *, is_truncatable: bool) -> Storage:
        raise AssertionError("a subclass says which store is meant")

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Iterator[Callable[..., Storage]]:
        """Opens a store of a replica, or closes it and opens it again."""
        opened: list[Storage] = []

        def reopen(store: Storage | None = None) -> Storage:
            if store is not None and not self.survives_reopening:
                return store
            if store is not None:
                opened.remove(store)
                store.close()
            opened.append(self.open_stream(tmp_path, is_truncatable=True))
            return opened[-1]

        yield reopen
        for each in opened:
            each.close()

    def test_records_are_numbered_from_1_and_found_by_index(self, reopen: Callable[..., Storage]) -> None:
        store = reopen()
        assert (store.snapshot_index, store.last_index) == (0, 0)
        records = [enqueued(0), assigned(0), enqueued(1), removed(0), removed(1), enqueued(2)]
        store.append(records[:3])
        store.append(records[3:])
        for _ in range(2):
            assert (store.snapshot_index, store.last_index) == (0, 6)
            for index in range(1, 8):
                assert without_payloads(list(store.load_from(index))) == without_payloads(records[index - 1 :])
            store = reopen(store)

    def test_a_snapshot_stands_for_the_records_up_to_the_last_one_committed(
        self, reopen: Callable[..., Storage]
    ) -> None:
        store = reopen()
        store.append([enqueued(0, b"zero"), enqueued(1, b"one"), removed(0), removed(1), enqueued(2, b"two")])
        store.commit(3)
        keep = [enqueued(1, b""), Remembered(QUEUE, 2, ())]
        store.compact(keep)
        for _ in range(2):
            assert (store.snapshot_index, store.last_index) == (3, 5)
            with pytest.raises(Compacted):
                store.load_from(3)
            assert list(store.load_from(4)) == [removed(1), enqueued(2, b"two")]
            assert list(store.load()) == [enqueued(1, b"one"), keep[1], removed(1), enqueued(2, b"two")]
            assert store.payload(1) == b"one", "its end may be taken back"
            store = reopen(store)
        store.truncate(4)
        store.append([enqueued(3, b"three")])
        store = reopen(store)
        assert alive(store.load()) == {1: b"one", 3: b"three"}
        assert not store.damage

    def test_what_is_truncated_is_as_if_it_had_never_been(self, reopen: Callable[..., Storage]) -> None:
        store = reopen()
        store.append([enqueued(0, b"zero"), enqueued(1, b"one"), enqueued(2, b"two")])
        store.append([removed(0), removed(1), removed(2)])
        store.append([enqueued(3, b"three")])
        store.truncate(5)
        for _ in range(2):
            assert store.last_index == 4
            assert list(store.load_from(4)) == [removed(0)], "one of three that stand together"
            assert [store.payload(at) for at in (1, 2)] == [b"one", b"two"]
            with pytest.raises(KeyError):
                store.payload(3)
            store = reopen(store)
        store.append([enqueued(3, b"another")])
        store = reopen(store)
        assert store.last_index == 5
        assert alive(store.load()) == {1: b"one", 2: b"two", 3: b"another"}
        assert not store.damage

    def test_what_was_committed_is_never_truncated(self, reopen: Callable[..., Storage]) -> None:
        store = reopen()
        store.append([enqueued(0), removed(0), enqueued(1)])
        store.commit(2)
        with pytest.raises(KeyError):
            store.payload(0)
        for index in (0, 1, 2):
            with pytest.raises(ValueError, match="committed"):
                store.truncate(index)
        store.truncate(3)
        assert store.last_index == 2
        store.truncate(9)
        assert store.last_index == 2, "there is nothing to take back"

    def test_records_of_a_stream_that_is_not_a_replica_s_are_committed_as_they_are_appended(
        self, tmp_path: Path
    ) -> None:
        store = self.open_stream(tmp_path, is_truncatable=False)
        store.append([enqueued(0), removed(0)])
        with pytest.raises(ValueError, match="committed"):
            store.truncate(2)
        store.compact([enqueued(5)])
        assert (store.snapshot_index, store.last_index) == (2, 2)
        store.append([enqueued(6)])
        assert list(store.load_from(3)) == [enqueued(6)]
        store.close()

    def test_hard_state_is_kept_whatever_becomes_of_the_records(self, reopen: Callable[..., Storage]) -> None:
        store = reopen()
        assert store.hard_state == StoredHardState()
        store.set_hard_state(STATE)
        assert store.hard_state == STATE
        assert reopen(store).hard_state == STATE if self.survives_reopening else True

    def test_hard_state_outlives_snapshots_and_truncations(self, reopen: Callable[..., Storage]) -> None:
        store = reopen()
        store.append([enqueued(0)])
        store.set_hard_state(StoredHardState(6))
        store.set_hard_state(STATE)
        store.append([enqueued(1)])
        store.truncate(2)
        store.commit(1)
        store.compact([enqueued(0)])
        store = reopen(store)
        assert store.hard_state == STATE
        assert list(store.load()) == [enqueued(0)]

    def test_a_snapshot_in_the_middle_of_a_run_keeps_the_rest_of_the_run(self, reopen: Callable[..., Storage]) -> None:
        store = reopen()
        store.append([enqueued(0), enqueued(1), assigned(0), removed(0), removed(1)])
        store.append([enqueued(2)])
        store.commit(4)
        store.compact([enqueued(1, b"")])
        for position in (3, 4, 5, 6):
            store.commit(store.last_index)
            store.append([enqueued(position)])
        store.commit(store.last_index)
        for _ in range(2):
            assert alive(store.load()).keys() == {2, 3, 4, 5, 6}
            store = reopen(store)
        assert not store.damage

    def test_a_commit_that_a_restart_does_not_know_yet_is_no_damage(self, reopen: Callable[..., Storage]) -> None:
        store = reopen()
        store.append([enqueued(0), enqueued(1)])
        store.append([enqueued(2)])
        store.append([enqueued(3), removed(0), enqueued(4)])
        for position in (5, 6, 7):
            store.append([enqueued(position)])
            store.commit(5)
        for _ in range(2):
            assert alive(store.load()).keys() == {1, 2, 3, 4, 5, 6, 7}
            assert not store.damage
            store = reopen(store)

    @one_suite_many_stores
    @given(data=strategies.data())
    def test_any_history_of_appends_commits_truncations_and_snapshots_is_kept(
        self, tmp_path_factory: pytest.TempPathFactory, data: strategies.DataObject
    ) -> None:
        directory = tmp_path_factory.mktemp("replica")
        store = self.open_stream(directory, is_truncatable=True)
        records: list[Record] = []
        snapshot: list[Record] = []
        snapshot_index = committed = 0

        def at(index: int) -> int:
            return index - snapshot_index

        for batch in data.draw(batches(10)):
            known = alive([*snapshot, *records])
            fresh = {each.position for each in batch if isinstance(each, Enqueued)}
            batch = [each for each in batch if each.position in fresh or each.position in known]  # type: ignore[union-attr]
            batch = [each for each in batch if not (isinstance(each, Enqueued) and each.position in known)]
            if batch:
                store.append(batch)
                records += batch
            what = data.draw(strategies.sampled_from(["nothing", "commit", "truncate", "compact", "reopen"]))
            last = snapshot_index + len(records)
            if what == "commit":
                committed = data.draw(strategies.integers(committed, last))
                store.commit(committed)
            elif what == "truncate":
                index = data.draw(strategies.integers(committed + 1, last + 1))
                store.truncate(index)
                del records[at(index) - 1 :]
            elif what == "compact":
                store.commit(committed)
                held = alive([*snapshot, *records[: at(committed)]])
                snapshot = [enqueued(position, payload) for position, payload in held.items()]
                store.compact([enqueued(position, b"") for position in held])
                del records[: at(committed)]
                snapshot_index = committed
            elif what == "reopen" and self.survives_reopening:
                store.close()
                store = self.open_stream(directory, is_truncatable=True)
                if data.draw(strategies.booleans()):
                    store.commit(committed)  # else it is learnt again later
                assert not store.damage
            assert snapshot_index <= store.snapshot_index <= max(committed, snapshot_index)
            assert store.last_index == snapshot_index + len(records)
            index = store.snapshot_index + 1
            assert without_payloads(list(store.load_from(index))) == without_payloads(records[at(index) - 1 :])
            assert alive(store.load()) == alive([*snapshot, *records])
            for position, payload in alive([*snapshot, *records]).items():
                assert store.payload(position) == payload
        assert not store.damage
        store.close()
