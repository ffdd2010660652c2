"""Storage in figures: samples stored and settled a second, against a bare sqlite3 loop in the same run; restoring.

Run under a lock of the machine's own: `pytest tests/benchmarks/test_storage.py -p no:randomly`. Ratios are medians of
rounds that alternate with the bare loop, for disks differ and have moods.
"""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from qsctl.config.filesystem import FilesystemSettings, JournalMode, Synchronization
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import Acknowledgment, ConsumerJoined, Delivery, Inbound, Write, one_by_one
from qsctl.core.queue.settings import PersistenceKind, PersistenceSettings, SharedReaderQueueSettings
from qsctl.core.records import Enqueued, RemovalCause, Removed
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import Guid, SampleIdentity, counted_incarnations
from qsctl.instant import INFINITE_NS
from qsctl.service.run.loop import ServiceLoop
from qsctl.service.stores._queue_codec import QUEUE_CODEC
from qsctl.service.stores.restore import restore
from qsctl.service.stores.stores import Stores
from qsctl.storage.base import DatabaseStorage
from qsctl.storage.sqlite.store import SqliteStorage
from tests.benchmarks.ratios import keep_ratio
from tests.storage.own_files import OwnFiles

SAMPLES, GROUP, ROUNDS = 10_000, 100, 7
PAYLOAD = b"x" * 256
WRITER = Guid(b"w" * 16)
RESTORED = int(os.environ.get("QSCTL_BENCH_RESTORED", "1000000"))

Rate = Callable[[Path], float]


def enqueued(position: int) -> Enqueued:
    return Enqueued("P/S/orders", position, SampleIdentity(WRITER, position), 1, INFINITE_NS, WRITER, payload=PAYLOAD)


def store_rate(make: Callable[[Path], DatabaseStorage]) -> Rate:
    """Samples enqueued and later removed a second, in groups."""

    def rate(directory: Path) -> float:
        store = make(directory)
        started = time.perf_counter()
        for start in range(0, SAMPLES, GROUP):
            store.append([enqueued(position) for position in range(start, start + GROUP)])
        for start in range(0, SAMPLES, GROUP):
            store.append([Removed("P/S/orders", at, RemovalCause.DELIVERED) for at in range(start, start + GROUP)])
        elapsed = time.perf_counter() - started
        store.close()
        return SAMPLES / elapsed

    return rate


def bare_rate(mode: str, synchronous: str) -> Rate:
    """The same with nothing but sqlite3: one row a sample, inserted and deleted in transactions of the group."""

    def rate(directory: Path) -> float:
        connection = sqlite3.connect(directory / "bare.db", isolation_level=None)
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("CREATE TABLE sample (position INTEGER PRIMARY KEY, body BLOB)")
        started = time.perf_counter()
        for start in range(0, SAMPLES, GROUP):
            connection.execute("BEGIN")
            rows = [(position, PAYLOAD) for position in range(start, start + GROUP)]
            connection.executemany("INSERT INTO sample VALUES (?, ?)", rows)
            connection.execute("COMMIT")
        for start in range(0, SAMPLES, GROUP):
            connection.execute("BEGIN")
            keys = [(position,) for position in range(start, start + GROUP)]
            connection.executemany("DELETE FROM sample WHERE position = ?", keys)
            connection.execute("COMMIT")
        elapsed = time.perf_counter() - started
        connection.close()
        return SAMPLES / elapsed

    return rate


def medians(directory: Path, rates: Sequence[Rate]) -> list[float]:
    """Rounds in turn, a fresh directory each."""
    found: list[list[float]] = [[] for _ in rates]
    for number in range(ROUNDS):
        for each, results in zip(rates, found, strict=True):
            place = directory / f"{number}"
            place.mkdir()
            results.append(each(place))
            shutil.rmtree(place)
    return [statistics.median(results) for results in found]


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


SEGMENTS = {
    f"segments {level}": store_rate(
        lambda place, level=level: OwnFiles(place / "q", FilesystemSettings(synchronization=level))  # type: ignore[misc]
    )
    for level in Synchronization
}
DATABASES = {
    f"database {mode} {level}": store_rate(
        lambda place, mode=mode, level=level: SqliteStorage(  # type: ignore[misc]
            place / "q.db", FilesystemSettings(journal_mode=mode, synchronization=level), QUEUE_CODEC
        )
    )
    for mode in (JournalMode.WAL, JournalMode.DELETE)
    for level in (Synchronization.FULL, Synchronization.OFF)
}


@pytest.mark.parametrize("name", [*SEGMENTS, *DATABASES])
def test_enqueue_and_acknowledge_against_bare_sqlite(
    directory: Path, name: str, record_property: Callable[[str, object], None]
) -> None:
    rate = (SEGMENTS | DATABASES)[name]
    mode, level = name.split()[1:] if name in DATABASES else ("WAL", name.split()[1])
    bare, ours = medians(directory, [bare_rate(mode, level), rate])
    record_property("samples_per_s", round(ours))
    record_property("ratio", round(ours / bare, 2))
    sys.stdout.write(
        f"\n{name}: {ours:,.0f} samples/s, {ours / bare:.2f} of bare sqlite3 {mode} {level} ({bare:,.0f}/s)\n"
    )
    keep_ratio(f"{name} to bare SQLite", ours / bare)
    if name == "segments FULL":
        assert ours / bare >= 0.8, "the target: 0.8 of a bare sqlite WAL loop under FULL"


QUEUE = SharedReaderQueueSettings("orders", "Order", persistence=PersistenceSettings(PersistenceKind.PERSISTENT))
SERVICE = ServiceSettings(
    "app", (DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S", queues=(QUEUE,)),)),)
)
CONSUMER = Guid(b"c" * 16)


@contextmanager
def service(directory: Path) -> Iterator[ServiceLoop]:
    """One that has taken up what the directory holds, and ends without keeping house, as after a kill."""
    engine = ServiceEngine(SERVICE, started_at=1, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY)
    stores = Stores(directory, FilesystemSettings(), "app", keeps_service_state=False)
    restore(engine, stores, 1)
    loop = ServiceLoop(engine, stores)
    yield loop
    loop.close()
    stores.close()


def restored(directory: Path) -> tuple[int, float, float]:
    """How many samples a service holds that takes up a directory; its seconds, and those of them at work."""
    gc.collect()
    began, cpu_began = time.perf_counter(), time.process_time()
    with service(directory) as loop:
        elapsed, cpu = time.perf_counter() - began, time.process_time() - cpu_began
        (resource,) = loop.engine.hosted.queues()
        return sum(1 for _ in loop.engine.hosted.samples(resource)), elapsed, cpu


def test_restore_of_a_million_held_and_of_a_million_consumed(
    directory: Path, record_property: Callable[[str, object], None]
) -> None:
    with service(directory) as loop:
        for start in range(1, RESTORED + 1, GROUP * 10):
            loop.turn(
                [Write("P", "Order", SampleIdentity(WRITER, at), PAYLOAD) for at in range(start, start + GROUP * 10)]
            )
    held_count, elapsed, cpu = restored(directory)
    assert held_count == RESTORED
    with service(directory) as loop:
        inbox: list[Inbound] = [ConsumerJoined("P/S/orders", CONSUMER)]
        while inbox or (loop.next_deadline() or INFINITE_NS) <= time.time_ns():
            sent = loop.turn(inbox).messages
            inbox = [
                Acknowledgment("P/S/orders", CONSUMER, each.identity)
                for each in one_by_one(sent)
                if isinstance(each, Delivery)
            ]
    left_count, consumed_elapsed, consumed_cpu = restored(directory)
    assert left_count == 0
    record_property("seconds", round(elapsed, 2))
    record_property("consumed_seconds", round(consumed_elapsed, 2))
    sys.stdout.write(
        f"\n{RESTORED:,} samples of 256 B held: restored in {elapsed:.2f} s, {cpu:.2f} s of them at work; "
        f"all of them consumed: {consumed_elapsed:.2f} s, {consumed_cpu:.2f} s at work\n"
    )
    assert cpu <= 7.0 * RESTORED / 1_000_000 or RESTORED < 100_000
    assert consumed_cpu <= 0.5 or RESTORED < 1_000_000, "a shorter log may be there as a whole"
