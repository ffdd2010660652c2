"""Latency at equal rates over equal times, the service and Redis Streams in turns; bytes that each wrote to the disk.

A sample's latency counts from the instant it was due, and either producer may have a thousand unconfirmed: a pause of
the broker then counts for every sample that fell into it, whichever client waits for its answers in between.

Run it alone: `pytest tests/benchmarks/test_latency.py -s`. QSCTL_BENCHMARK_SECONDS, _ROUNDS and _RATES change how long
it takes. Persistent queues, synchronization FULL; Redis with `appendfsync always`.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeAlias

import pytest

from tests.benchmarks.brokers import DOMAINS, FULL, QUEUE, run_peers, stop, stop_service, wait_for_port
from tests.benchmarks.ratios import keep_ratio
from tests.dds.service_process import ServiceProcess

SECONDS = float(os.environ.get("QSCTL_BENCHMARK_SECONDS", "20"))
ROUNDS = int(os.environ.get("QSCTL_BENCHMARK_ROUNDS", "3"))
RATES = [int(each) for each in os.environ.get("QSCTL_BENCHMARK_RATES", "2000,6000,13000,25000").split(",")]
HIGHEST_COUNT = 200_000
TIMES_PAYLOAD_MAX = 3.0


@dataclass
class Contender:
    """A broker that runs, and what it showed."""

    name: str
    where: str
    pid: int
    stop: Callable[[], None]


def qsctl(directory: Path) -> Contender:
    domain = next(DOMAINS)
    arguments = ("--persistent-storage-path", str(directory))
    service = ServiceProcess(directory, domain, *arguments, service=FULL, queues=QUEUE.format(kind="PERSISTENT"))
    return Contender("qsctl", str(domain), service.pid, lambda: stop_service(service))


def redis(directory: Path) -> Contender:
    program = shutil.which("redis-server")
    pytest.importorskip("redis", reason="pip install redis")
    if program is None:
        pytest.skip("redis-server is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--appendfsync", "always"]
    command = [program, "--port", str(port), "--dir", str(directory), *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    wait_for_port(port, process)
    return Contender("redis", str(port), process.pid, lambda: stop(process))


def written_bytes(pid: int) -> int:
    """What a process had written to the disk, as the system accounts for it."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes"))


Shown: TypeAlias = dict[str, list[dict[str, float]]]
"""What each contender showed, a row a round."""


def in_turns(directory: Path, rate: float, count: int, size_bytes: int, rounds: int) -> Shown:
    """One contender after the other, so many rounds; `rate` 0: as fast as it goes."""
    found: Shown = {"qsctl": [], "redis": []}
    for turn in range(rounds):
        for make in (qsctl, redis):
            place = directory / f"{make.__name__}{turn}"
            place.mkdir()
            broker = make(place)
            before = written_bytes(broker.pid)
            figures = run_peers((broker.name, broker.where), count, size_bytes, 1, rate)
            figures["times_payload"] = (written_bytes(broker.pid) - before) / (count * size_bytes)
            broker.stop()
            shutil.rmtree(place)
            found[broker.name].append(figures)
    return found


def compare(directory: Path, rate: int, size_bytes: int) -> None:
    """Show both at one rate, and hold ours against the peer's."""
    found = in_turns(directory, rate, int(rate * SECONDS), size_bytes, ROUNDS)
    middle = {name: {key: median(each[key] for each in rows) for key in rows[0]} for name, rows in found.items()}
    for name, rows in found.items():
        sys.stdout.write(
            f"\n{rate:>6}/s {size_bytes:>5} B {name:>6}: p50 {middle[name]['p50_ms']:.2f} ms, "
            f"p99 {middle[name]['p99_ms']:.2f} ms {[round(each['p99_ms'], 1) for each in rows]}, "
            f"highest {[round(each['max_ms']) for each in rows]} ms, "
            f"reached {middle[name]['samples_per_second']:.0f}/s, written {middle[name]['times_payload']:.2f} x payload"
        )
    p99 = middle["qsctl"]["p99_ms"] / middle["redis"]["p99_ms"]
    keep_ratio(
        f"p99 to that of Redis, {f'{rate}/s' if rate in RATES else 'half load'}, {size_bytes} B",
        p99,
        higher_is_better=False,
    )
    assert middle["qsctl"]["samples_per_second"] > 0.95 * rate
    assert middle["qsctl"]["times_payload"] <= TIMES_PAYLOAD_MAX
    assert middle["qsctl"]["p99_ms"] <= middle["redis"]["p99_ms"]


@pytest.mark.parametrize("size_bytes", [256, 1024])
@pytest.mark.parametrize("rate", RATES)
def test_p99_is_at_most_that_of_redis_at_the_same_rate(tmp_path: Path, rate: int, size_bytes: int) -> None:
    compare(tmp_path, rate, size_bytes)


@pytest.mark.parametrize("size_bytes", [256, 1024])
def test_p99_is_at_most_that_of_redis_at_half_of_the_lower_highest_rate(tmp_path: Path, size_bytes: int) -> None:
    (tmp_path / "highest").mkdir()
    found = in_turns(tmp_path / "highest", 0, HIGHEST_COUNT, size_bytes, 1)
    highest = {name: rows[0]["samples_per_second"] for name, rows in found.items()}
    shown = ", ".join(f"{name} {rate:.0f}/s" for name, rate in highest.items())
    sys.stdout.write(f"\nhighest rates at {size_bytes} B: {shown}")
    (tmp_path / "half").mkdir()
    compare(tmp_path / "half", int(min(highest.values()) / 2), size_bytes)
