"""What every store owes (`storage/base.py`): subclassed for databases, and for streams with a log of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies
from msgspec.structs import replace

from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.records import (
    Assigned,
    DeadLetterReason,
    Enqueued,
    QueueCreated,
    Record,
    Remembered,
    RemovalCause,
    Removed,
    Returned,
    ServiceStarted,
    SubscriberDeleted,
)
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import INFINITE_NS
from qsctl.storage.base import DatabaseStorage

WRITER = Guid(bytes(range(16)))
READER = Guid(bytes(range(16, 32)))
QUEUE = "P/S/orders"


def enqueued(position: int, payload: bytes = b"payload", **fields: object) -> Enqueued:
    """A sample of one writer; eight that follow one another come at one instant, as in a turn."""
    identity = SampleIdentity(WRITER, position + 1)
    record = Enqueued(QUEUE, position, identity, 1_000 + position // 8, INFINITE_NS, payload=payload)
    return replace(record, **fields)


def removed(position: int, cause: RemovalCause = RemovalCause.DELIVERED) -> Removed:
    return Removed(QUEUE, position, cause)


def assigned(position: int, attempt: int = 1) -> Assigned:
    return Assigned(QUEUE, position, READER, attempt)


EVERY_KIND: Sequence[Record] = (
    ServiceStarted(ServiceSettings("qsctl", (DomainParticipantSettings("P", 7),))),
    QueueCreated("P", "S", SharedReaderQueueSettings("orders", "Order", qos={"datareader_qos": "<x/>"})),
    SubscriberDeleted("P", "T"),
    enqueued(0, b""),
    enqueued(1, b"\x00" * 300, flags=1, dead_letter_from="Order@S", dead_letter_reason=DeadLetterReason.MAX_RETRIES),
    enqueued(7, b"x" * 70_000, source_guid=READER, related_source_guid=WRITER, related_reader_guid=READER),
    assigned(1),
    Returned(QUEUE, 1, 1, True),
    assigned(1, 2),
    Remembered(QUEUE, 8, (SampleIdentity(WRITER, 1), SampleIdentity(READER, 2**63 - 1))),
)


def as_loaded(records: Iterable[Record]) -> list[Record]:
    """What `load` owes for these records: a removed sample's payload is gone."""
    records = list(records)
    gone = {each.position for each in records if isinstance(each, Removed)}
    return [
        replace(each, payload=b"") if isinstance(each, Enqueued) and each.position in gone else each for each in records
    ]


def alive(records: Iterable[Record]) -> dict[int, bytes]:
    """Return the payloads of what is held, by position."""
    held: dict[int, bytes] = {}
    for record in records:
        if isinstance(record, Enqueued):
            held[record.position] = record.payload
        elif isinstance(record, Removed):
            held.pop(record.position, None)
    return held


class KeptInTwos:
    """What a queue holds, for `compact_in_shares`: two samples a share. `note` what is appended meanwhile."""

    def __init__(self) -> None:
        self.held: dict[int, list[Record]] = {}
        self.next_position = 0
        self.taken_to = -1
        self.is_over = False

    def note(self, records: Iterable[Record]) -> None:
        for each in records:
            if isinstance(each, Enqueued):
                self.held[each.position] = [each]
                self.next_position = each.position + 1
            elif isinstance(each, Removed):
                self.held.pop(each.position, None)
            elif isinstance(each, Assigned | Returned) and each.position in self.held:
                self.held[each.position].append(each)

    def take(self, _count: int) -> list[Record]:
        left = [position for position in self.held if position > self.taken_to]
        records = [record for position in left[:2] for record in self.held[position]]
        self.taken_to = left[:2][-1] if left else self.taken_to
        if len(left) <= 2:
            self.is_over = True
            records.append(Remembered(QUEUE, self.next_position, ()))
        return records

    def kept(self) -> list[Record]:
        """What is held, sample by sample."""
        return [record for records in self.held.values() for record in records]


def by_sample(records: Iterable[Record]) -> list[Record]:
    """What loaded records say of samples that are held: all of one, then all of the next."""
    kept = KeptInTwos()
    kept.note(records)
    return kept.kept()


one_suite_many_stores = settings(suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow])


class Lifetimes:
    """A stream of batches in which samples are enqueued, sent, returned and removed, drawn by hypothesis."""

    def __init__(self, draw: strategies.DrawFn) -> None:
        self.draw = draw
        self.next_position = 0
        self.held: list[int] = []

    def batch(self) -> list[Record]:
        records: list[Record] = []
        for _ in range(self.draw(strategies.integers(1, 6))):
            kind = self.draw(strategies.sampled_from(["enqueue", "enqueue", "send", "return", "remove"]))
            if kind == "enqueue" or not self.held:
                payload = self.draw(strategies.binary(max_size=40))
                records.append(enqueued(self.next_position, payload))
                self.held.append(self.next_position)
                self.next_position += 1
                continue
            position = self.draw(strategies.sampled_from(self.held))
            if kind == "send":
                records.append(assigned(position))
            elif kind == "return":
                records.append(Returned(QUEUE, position, 1, True))
            else:
                records.append(removed(position))
                self.held.remove(position)
        return records


@strategies.composite
def batches(draw: strategies.DrawFn, max_count: int = 8) -> list[list[Record]]:
    lifetimes = Lifetimes(draw)
    return [lifetimes.batch() for _ in range(draw(strategies.integers(1, max_count)))]


class StoreContract:
    """Subclasses give `open`; the same directory gives the same store."""

    survives_reopening = True

    def open(self, directory: Path) -> DatabaseStorage:
        raise AssertionError("a subclass says which store is meant")

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterable[DatabaseStorage]:
        store = self.open(tmp_path)
        yield store
        store.close()

    def reopened(self, store: DatabaseStorage, directory: Path) -> DatabaseStorage:
        store.close()
        return self.open(directory) if self.survives_reopening else store

    def test_new_store_is_empty_and_sound(self, store: DatabaseStorage) -> None:
        assert list(store.load()) == []
        assert not store.damage
        assert not store.worth_compacting()

    def test_every_kind_of_record_is_loaded_as_it_was_appended(self, store: DatabaseStorage, tmp_path: Path) -> None:
        store.append(EVERY_KIND[:4])
        store.append(EVERY_KIND[4:])
        assert list(store.load()) == list(EVERY_KIND)
        again = self.reopened(store, tmp_path)
        assert list(again.load()) == list(EVERY_KIND)
        assert not again.damage
        again.close()

    def test_appending_nothing_changes_nothing(self, store: DatabaseStorage) -> None:
        store.append([])
        assert list(store.load()) == []

    def test_payload_is_found_by_position(self, store: DatabaseStorage, tmp_path: Path) -> None:
        store.append([enqueued(3, b"three"), enqueued(4, b""), enqueued(9, b"n" * 20_000)])
        for _ in range(2):
            assert store.payloads([3]) == [b"three"]
            assert store.payloads([4]) == [b""]
            assert store.payloads([9]) == [b"n" * 20_000]
            store = self.reopened(store, tmp_path)
        store.close()

    def test_payload_of_a_sample_not_held_is_a_key_error(self, store: DatabaseStorage) -> None:
        store.append([enqueued(3)])
        with pytest.raises(KeyError):
            store.payloads([2])
        store.append([removed(3)])
        with pytest.raises(KeyError):
            store.payloads([3])

    def test_payload_of_a_removed_sample_comes_back_empty(self, store: DatabaseStorage, tmp_path: Path) -> None:
        store.append([enqueued(0, b"zero"), enqueued(1, b"one"), removed(0)])
        expected = [enqueued(0, b""), enqueued(1, b"one"), removed(0)]
        assert list(store.load()) == expected
        again = self.reopened(store, tmp_path)
        assert list(again.load()) == expected
        assert not again.damage
        again.close()

    def test_compact_replaces_everything_by_what_is_kept(self, store: DatabaseStorage, tmp_path: Path) -> None:
        store.append([enqueued(at, b"%d" % at) for at in range(6)])
        store.append([removed(0), removed(1), assigned(2)])
        keep = [Remembered(QUEUE, 6, (SampleIdentity(WRITER, 1),)), *[enqueued(at, b"%d" % at) for at in range(2, 6)]]
        store.compact(keep)
        assert list(store.load()) == keep
        store.append([removed(2)])
        again = self.reopened(store, tmp_path)
        assert list(again.load()) == as_loaded([*keep, removed(2)])
        assert again.payloads([5]) == [b"5"]
        assert not again.damage
        again.close()

    def test_compact_keeps_the_payload_that_the_store_has(self, store: DatabaseStorage, tmp_path: Path) -> None:
        store.append([enqueued(0, b"on disk only")])
        store.compact([enqueued(0, b""), enqueued(1, b"new")])
        again = self.reopened(store, tmp_path)
        assert again.payloads([0]) == [b"on disk only"]
        assert list(again.load()) == [enqueued(0, b"on disk only"), enqueued(1, b"new")]
        again.close()

    def test_compact_to_nothing_leaves_an_empty_store_in_use(self, store: DatabaseStorage, tmp_path: Path) -> None:
        store.append([enqueued(0), removed(0)])
        store.compact([])
        assert list(store.load()) == []
        store.append([enqueued(1)])
        again = self.reopened(store, tmp_path)
        assert list(again.load()) == [enqueued(1)]
        again.close()

    def test_compacting_pays_once_dead_records_outweigh_the_live_ones(self, store: DatabaseStorage) -> None:
        store.append([enqueued(at) for at in range(100)])
        assert not store.worth_compacting()
        for start in range(100, 6_000, 100):
            # At instants of their own: else what is left of those that ended is a body for eight.
            store.append([enqueued(at, enqueued_at_ns=at) for at in range(start, start + 100)])
            store.append([removed(at) for at in range(start, start + 100)])
        assert store.worth_compacting()
        store.compact(enqueued(at) for at in range(100))
        assert not store.worth_compacting()

    def test_destroyed_store_leaves_no_file(self, store: DatabaseStorage, tmp_path: Path) -> None:
        store.append([enqueued(0), removed(0)])
        store.destroy()
        assert list(tmp_path.iterdir()) == []

    @one_suite_many_stores
    @given(drawn=batches(), reopen=strategies.sets(strategies.integers(0, 8)))
    def test_any_batches_are_loaded_in_order_whenever_the_store_is_reopened(
        self, tmp_path_factory: pytest.TempPathFactory, drawn: list[list[Record]], reopen: set[int]
    ) -> None:
        directory = tmp_path_factory.mktemp("store")
        store = self.open(directory)
        appended: list[Record] = []
        for number, batch in enumerate(drawn):
            store.append(batch)
            appended += batch
            if number in reopen:
                store = self.reopened(store, directory)
            assert list(store.load()) == as_loaded(appended)
        gone = {each.position for each in appended if isinstance(each, Removed)}
        for each in appended:
            if isinstance(each, Enqueued) and each.position not in gone:
                assert store.payloads([each.position]) == [each.payload]
        assert not store.damage
        store.close()

    @one_suite_many_stores
    @given(drawn=batches(), compact_after=strategies.integers(0, 7), reopen=strategies.booleans())
    def test_compacting_at_any_moment_keeps_what_is_held(
        self, tmp_path_factory: pytest.TempPathFactory, drawn: list[list[Record]], compact_after: int, reopen: bool
    ) -> None:
        directory = tmp_path_factory.mktemp("store")
        store = self.open(directory)
        expected: list[Record] = []
        for number, batch in enumerate(drawn):
            store.append(batch)
            expected += batch
            if number == compact_after:
                gone = {each.position for each in expected if isinstance(each, Removed)}
                expected = [each for each in expected if isinstance(each, Enqueued) and each.position not in gone]
                store.compact(expected)
                if reopen:
                    store = self.reopened(store, directory)
        assert list(store.load()) == as_loaded(expected)
        store.close()

    @one_suite_many_stores
    @given(drawn=batches(12), begins_at=strategies.integers(0, 6), pace=strategies.integers(1, 3))
    def test_compacting_in_shares_keeps_what_is_held_whatever_comes_meanwhile(
        self, tmp_path_factory: pytest.TempPathFactory, drawn: list[list[Record]], begins_at: int, pace: int
    ) -> None:
        directory = tmp_path_factory.mktemp("store")
        store, kept = self.open(directory), KeptInTwos()
        shares: Iterator[None] = iter(())
        for number, batch in enumerate(drawn):
            store.append(batch)
            kept.note(batch)
            if number == begins_at:
                shares = store.compact_in_shares(kept)
            for _ in range(pace):
                next(shares, None)
            assert by_sample(store.load()) == kept.kept()
        for position, (first, *_) in kept.held.items():
            assert isinstance(first, Enqueued)
            assert store.payloads([position]) == [first.payload]
        store = self.reopened(store, directory)
        assert by_sample(store.load()) == kept.kept()
        assert not store.damage
        store.append([enqueued(kept.next_position)])
        store = self.reopened(store, directory)
        assert by_sample(store.load()) == [*kept.kept(), enqueued(kept.next_position)]
        store.close()

    def test_a_store_destroyed_or_closed_meanwhile_ends_a_compaction(self, tmp_path: Path) -> None:
        for end, share_count in product(("destroy", "close", "compact"), range(1, 9)):
            directory = tmp_path / f"{end} {share_count}"
            directory.mkdir()
            store, kept = self.open(directory), KeptInTwos()
            whole = [enqueued(position, bytes(300)) for position in range(60)]
            batches = [whole[at : at + 6] for at in range(0, 60, 6)]
            for batch in [*batches, [removed(position) for position in range(60) if position % 3]]:
                store.append(batch)
                kept.note(batch)
            left = {position: records for position, records in kept.held.items() if position >= 30}
            gone = list(map(removed, kept.held.keys() - left.keys()))
            store.append(gone)
            kept.note(gone)
            shares = store.compact_in_shares(kept)
            for _ in range(share_count):
                next(shares, None)
            store.compact(kept.kept()) if end == "compact" else getattr(store, end)()
            if end == "compact":
                assert list(shares) == [], "the other has done it"
                assert by_sample(store.load()) == kept.kept()
                store.close()
                continue
            before = {path.name: path.stat().st_ino for path in directory.iterdir()}
            assert list(shares) == [], "a store that is gone is not worked on"
            assert {path.name: path.stat().st_ino for path in directory.iterdir()} == before
            assert not [name for name in before if name.endswith(".tmp")]
