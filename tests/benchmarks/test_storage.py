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
from pathlib import Path

import pytest

from qsctl.config.filesystem import FilesystemSettings, JournalMode, Synchronization
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.queue.settings import PersistenceKind, PersistenceSettings, SharedReaderQueueSettings
from qsctl.core.records import Enqueued, RemovalCause, Removed
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import INFINITE_NS
from qsctl.service.queue_codec import QUEUE_CODEC
from qsctl.service.restore import restore
from qsctl.service.stores import Stores
from qsctl.storage.base import Storage
from qsctl.storage.sqlite import SqliteStorage
from tests.storage.own_files import OwnFiles

SAMPLES, GROUP, ROUNDS = 10_000, 100, 7
PAYLOAD = b"x" * 256
WRITER = Guid(b"w" * 16)
RESTORED = int(os.environ.get("QSCTL_BENCH_RESTORED", "1000000"))

Rate = Callable[[Path], float]


def enqueued(position: int) -> Enqueued:
    return Enqueued("P/S/orders", position, SampleIdentity(WRITER, position), 1, INFINITE_NS, WRITER, payload=PAYLOAD)


def store_rate(make: Callable[[Path], Storage]) -> Rate:
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
    if name == "segments FULL":
        assert ours / bare >= 0.8, "the target: 0.8 of a bare sqlite WAL loop under FULL"


def test_restore(directory: Path, record_property: Callable[[str, object], None]) -> None:
    persistence = PersistenceSettings(PersistenceKind.PERSISTENT)
    queue = SharedReaderQueueSettings("orders", "Order", persistence=persistence)
    participant = DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S", queues=(queue,)),))
    settings = ServiceSettings("app", (participant,))
    filesystem = FilesystemSettings()
    store = OwnFiles(directory / "QSOrder@S@0@app", filesystem)
    for start in range(0, RESTORED, 1_000):
        store.append([enqueued(position) for position in range(start + 1, start + 1_001)])
    store.close()
    gc.collect()
    started, cpu_started = time.perf_counter(), time.process_time()
    engine = ServiceEngine(settings, started_at=1, journal=Journal.PERSISTENT_ONLY)
    stores = Stores(directory, filesystem, "app", keeps_service_state=False)
    restore(engine, stores, 1)
    elapsed, cpu = time.perf_counter() - started, time.process_time() - cpu_started
    (resource,) = engine.hosted.queues()
    assert sum(1 for _ in engine.hosted.samples(resource)) == RESTORED
    stores.close()
    record_property("seconds", round(elapsed, 2))
    record_property("cpu_seconds", round(cpu, 2))
    sys.stdout.write(f"\nrestored {RESTORED:,} samples of 256 B in {elapsed:.2f} s, {cpu:.2f} s of them at work\n")
    assert cpu <= 10.0 * RESTORED / 1_000_000 or RESTORED < 100_000, "the target: 1 M samples in 10 s"
