"""Latency at equal rates over equal times, the service and Redis Streams in turns; bytes that each wrote to the disk.

Run it alone: `pytest tests/benchmarks/test_latency.py -s`. QSCTL_BENCHMARK_SECONDS, _ROUNDS and _RATES change what it
takes. Persistent queues, synchronization FULL; Redis with `appendfsync always`.
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

import pytest

from tests.benchmarks.test_dds import DOMAINS, FULL, QUEUE, run_peers, stop, stop_service, wait_for_port
from tests.dds.service_process import ServiceProcess

SECONDS = float(os.environ.get("QSCTL_BENCHMARK_SECONDS", "20"))
ROUNDS = int(os.environ.get("QSCTL_BENCHMARK_ROUNDS", "3"))
RATES = [int(each) for each in os.environ.get("QSCTL_BENCHMARK_RATES", "2000,6000,13000,25000").split(",")]
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


@pytest.mark.parametrize("size_bytes", [256, 1024])
@pytest.mark.parametrize("rate", RATES)
def test_p99_is_at_most_that_of_redis_at_the_same_rate(tmp_path: Path, rate: int, size_bytes: int) -> None:
    found: dict[str, list[tuple[float, float, float, float]]] = {"qsctl": [], "redis": []}
    count = int(rate * SECONDS)
    for turn in range(ROUNDS):
        for make in (qsctl, redis):
            directory = tmp_path / f"{make.__name__}{turn}"
            directory.mkdir()
            broker = make(directory)
            before = written_bytes(broker.pid)
            figures = run_peers((broker.name, broker.where), count, size_bytes, 1, rate)
            times = (written_bytes(broker.pid) - before) / (count * size_bytes)
            broker.stop()
            shutil.rmtree(directory)
            found[broker.name].append((figures["p50_ms"], figures["p99_ms"], figures["max_ms"], times))
    for name, rounds in found.items():
        p50, p99, _, times = (median(each) for each in zip(*rounds, strict=True))
        highest = [round(each[2]) for each in rounds]
        sys.stdout.write(
            f"\n{rate:>6}/s {size_bytes:>5} B {name:>6}: p50 {p50:.2f} ms, p99 {p99:.2f} ms "
            f"{[round(each[1], 1) for each in rounds]}, highest {highest} ms, written {times:.2f} x payload"
        )
    ours, peers = (median(each[1] for each in found[name]) for name in ("qsctl", "redis"))
    assert median(each[3] for each in found["qsctl"]) <= TIMES_PAYLOAD_MAX
    assert ours <= peers
