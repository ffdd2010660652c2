"""A queue without in-memory state in a database file and in the write-ahead log, in turns, in one run.

Shows for each: the latency of a confirmed write at four rates, with a consumer that acknowledges at once; octets
written a sample; CPU time; a restart of samples that are held, and one after all were consumed; memory, and size on the
disk.
The docstring of `qsctl.storage.sqlite.store` has the figures.

Run it alone, on a disk: `QSCTL_TEST_ON_DISK=1 pytest tests/benchmarks/test_kinds_of_store.py -s`. QSCTL_BENCH_RESTORED,
QSCTL_BENCHMARK_SECONDS and _RATES change how long it takes.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import (
    Acknowledgment,
    ConsumerJoined,
    Delivery,
    Inbound,
    Write,
    WriteAcknowledgment,
    one_by_one,
)
from qsctl.core.queue.settings import PersistenceKind, PersistenceSettings, SharedReaderQueueSettings
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import Guid, SampleIdentity, counted_incarnations
from qsctl.instant import INFINITE_NS
from qsctl.service.run.loop import ServiceLoop
from qsctl.service.stores._store_files import StoreFiles
from qsctl.service.stores.places import HostedPlace
from qsctl.service.stores.restore import restore
from qsctl.service.stores.stores import Stores
from qsctl.service.stores.sync_thread import QUICK_SYNC_S
from qsctl.storage.base import Extent, Storage
from tests.benchmarks.ratios import keep_ratio

KINDS: Final = ("database", "log")
SECONDS: Final = float(os.environ.get("QSCTL_BENCHMARK_SECONDS", "10"))
RATES: Final = [int(each) for each in os.environ.get("QSCTL_BENCHMARK_RATES", "2000,6000,13000,25000").split(",")]
RESTORED: Final = int(os.environ.get("QSCTL_BENCH_RESTORED", "1000000"))
GROUP: Final = 1_000
PAYLOAD: Final = b"x" * 256
WRITER, CONSUMER = Guid(b"w" * 16), Guid(b"c" * 16)
ON_DISK: Final = PersistenceSettings(PersistenceKind.PERSISTENT, in_memory_state=False)
QUEUE: Final = SharedReaderQueueSettings("orders", "Order", persistence=ON_DISK)
SERVICE: Final = ServiceSettings(
    "app", (DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S", queues=(QUEUE,)),)),)
)


class Served(msgspec.Struct):
    """The figures of one kind of store at one rate."""

    p50_ms: float
    p99_ms: float
    max_ms: float
    reached_per_s: float
    cpu_us: float
    written_octets: float


class Restarted(msgspec.Struct):
    """The figures of one kind of store with samples that are held, and with the same when all were consumed."""

    fill_cpu_us: float
    fill_octets: float
    disk_octets: float
    held_s: float
    held_cpu_s: float
    held_mib: float
    consume_cpu_us: float
    consume_octets: float
    consumed_s: float
    consumed_cpu_s: float
    left_octets: float


def put_into_log() -> None:
    """Open the store of every queue in the log of the process, whatever its settings are."""

    def opened(
        self: StoreFiles, name: str, place: HostedPlace, known: Extent | None, *, discards_damaged: bool
    ) -> Storage:
        return self._logged(self.stem(name, place), known, is_persistent=True, discards_damaged=discards_damaged)

    StoreFiles._open = opened  # type: ignore[method-assign]


@contextmanager
def service(directory: Path, **options: object) -> Iterator[ServiceLoop]:
    engine = ServiceEngine(SERVICE, started_at=1, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY)
    filesystem = FilesystemSettings(synchronization=Synchronization.FULL)
    stores = Stores(directory, filesystem, "app", keeps_service_state=False)
    restore(engine, stores, time.time_ns())
    loop = ServiceLoop(engine, stores, **options)  # type: ignore[arg-type]
    yield loop
    loop.close()
    stores.close()


def written_octets() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes"))


def resident_mib() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def octets_in(directory: Path) -> int:
    return sum(each.stat().st_size for each in directory.iterdir())


def serve(directory: Path, rate: int, count: int) -> Served:
    """Write samples when they are due, as a daemon takes them; a sample's latency begins when it was due."""
    finished = threading.Event()
    latencies: list[float] = []
    with service(directory, on_finished=finished.set, quick_sync_s=QUICK_SYNC_S) as loop:
        loop.turn([ConsumerJoined("P/S/orders", CONSUMER)])
        gc.collect()
        gc.freeze()
        cpu, written = time.process_time(), written_octets()
        began = time.perf_counter()
        sent, inbox = 0, list[Inbound]()
        while len(latencies) < count:
            due = min(count, int((time.perf_counter() - began) * rate))
            inbox += [Write("P", "Order", SampleIdentity(WRITER, at + 1), PAYLOAD) for at in range(sent, due)]
            sent = due
            deadline = loop.next_deadline()
            if inbox or (deadline is not None and deadline <= time.time_ns()):
                loop.begin(inbox)
                inbox = []
            released = loop.pop_finished()
            now = time.perf_counter() - began
            for each in (message for group in released for message in one_by_one(group.messages)):
                if isinstance(each, WriteAcknowledgment):
                    latencies.append(now - (each.identity.sequence_number - 1) / rate)
                elif isinstance(each, Delivery):
                    inbox.append(Acknowledgment("P/S/orders", CONSUMER, each.identity))
            if not inbox and not released:
                finished.wait(max(0.0, min(0.001, (sent + 1) / rate - now)))
                finished.clear()
        took = time.perf_counter() - began
        cpu, written = time.process_time() - cpu, written_octets() - written
        loop.finish()
    latencies.sort()
    return Served(
        1e3 * latencies[count // 2],
        1e3 * latencies[count * 99 // 100],
        1e3 * latencies[-1],
        count / took,
        1e6 * cpu / count,
        written / count,
    )


def taken_up(directory: Path) -> tuple[float, float, float, int]:
    """The seconds of a restart, those of them at work, the memory that it takes, and how many samples are held."""
    gc.collect()
    before, began, cpu_began = resident_mib(), time.perf_counter(), time.process_time()
    with service(directory) as loop:
        took, cpu = time.perf_counter() - began, time.process_time() - cpu_began
        (resource,) = loop.engine.hosted.queues()
        return took, cpu, resident_mib() - before, sum(1 for _ in loop.engine.hosted.samples(resource))


def fill(directory: Path, count: int) -> tuple[float, float, int]:
    """The CPU time and the octets written a sample, and the octets of the files."""
    with service(directory) as loop:
        cpu, written = time.process_time(), written_octets()
        for start in range(1, count + 1, GROUP):
            loop.turn([Write("P", "Order", SampleIdentity(WRITER, at), PAYLOAD) for at in range(start, start + GROUP)])
        cpu, written = time.process_time() - cpu, written_octets() - written
    return 1e6 * cpu / count, written / count, octets_in(directory)


def consume(directory: Path, count: int) -> tuple[float, float, int]:
    """The same of a consumer that acknowledges all."""
    with service(directory) as loop:
        cpu, written = time.process_time(), written_octets()
        inbox: list[Inbound] = [ConsumerJoined("P/S/orders", CONSUMER)]
        while inbox or (loop.next_deadline() or INFINITE_NS) <= time.time_ns():
            sent = loop.turn(inbox).messages
            inbox = [
                Acknowledgment("P/S/orders", CONSUMER, each.identity)
                for each in one_by_one(sent)
                if isinstance(each, Delivery)
            ]
            if loop._record_count >= 500_000:
                loop.compact()
                loop._record_count = 0
        cpu, written = time.process_time() - cpu, written_octets() - written
    return 1e6 * cpu / count, written / count, octets_in(directory)


def part(kind: str, what: str, directory: Path, count: int) -> object:
    """Do one part in this process."""
    if kind == "log":
        put_into_log()
    match what:
        case "fill":
            return fill(directory, count)
        case "consume":
            return consume(directory, count)
        case "restart":
            return taken_up(directory)
        case _:
            return serve(directory, int(what), count)


def in_process(kind: str, what: str, directory: Path, count: int = RESTORED) -> bytes:
    """Do one part in a process of its own, whose memory nothing else takes."""
    command = [sys.executable, "-m", "tests.benchmarks.test_kinds_of_store", kind, what, str(directory), str(count)]
    return subprocess.run(command, check=True, capture_output=True).stdout


def restarted(kind: str, directory: Path) -> Restarted:
    directory.mkdir()
    pairs = tuple[float, float, int]
    restart = tuple[float, float, float, int]
    filled = msgspec.json.decode(in_process(kind, "fill", directory), type=pairs)
    held = msgspec.json.decode(in_process(kind, "restart", directory), type=restart)
    assert held[3] == RESTORED
    consumed = msgspec.json.decode(in_process(kind, "consume", directory), type=pairs)
    left = msgspec.json.decode(in_process(kind, "restart", directory), type=restart)
    assert left[3] == 0
    return Restarted(*filled, *held[:3], *consumed[:2], *left[:2], consumed[2])


def show(kind: str, what: str, figures: Served | Restarted) -> None:
    row = ", ".join(f"{name} {value:,.2f}" for name, value in msgspec.structs.asdict(figures).items())
    sys.stdout.write(f"\n{what} {kind}: {row}")


@pytest.mark.parametrize("rate", RATES)
def test_latency_of_a_confirmed_write(tmp_path: Path, rate: int) -> None:
    found = {}
    for kind in KINDS:
        (tmp_path / kind).mkdir()
        output = in_process(kind, str(rate), tmp_path / kind, int(rate * SECONDS))
        found[kind] = msgspec.json.decode(output, type=Served)
        show(kind, f"{rate}/s", found[kind])
    ratio = found["log"].p99_ms / found["database"].p99_ms
    keep_ratio(f"p99 of the log to that of a database, {rate}/s", ratio, higher_is_better=False)
    assert found["log"].written_octets < found["database"].written_octets


def test_restart_of_samples_held_and_of_samples_consumed(tmp_path: Path) -> None:
    found = {kind: restarted(kind, tmp_path / kind) for kind in KINDS}
    for kind, figures in found.items():
        show(kind, f"{RESTORED:,}", figures)
    log, database = found["log"], found["database"]
    keep_ratio("restart of the log to that of a database", log.held_cpu_s / database.held_cpu_s, higher_is_better=False)
    assert log.consume_octets < database.consume_octets
    assert database.held_mib < log.held_mib, "it keeps the place of no payload in memory"


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(part(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))))
