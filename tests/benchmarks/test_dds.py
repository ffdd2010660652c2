"""End to end: samples a second and latency of the service beside RabbitMQ and Redis, in one harness and one run.

Every contender runs the same way: one broker process, n producer and n consumer processes in Python, 256 B or 1 KiB,
acknowledgments both ways, at most 1000 samples unacknowledged a producer. Latency is taken at half of the load that the
same run reached. Run it alone: `pytest tests/benchmarks/test_dds.py -s`. A broker that is not installed is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.benchmarks.ratios import keep_ratio
from tests.dds.service_process import ServiceProcess

PEERS = Path(__file__).parent / "dds_peers.py"
SAMPLE_COUNT = int(os.environ.get("QSCTL_BENCHMARK_COUNT", "200000"))
ROUNDS = 9
TIMES_THE_PEER = 2.0
P99_MS = 3.0
DOMAINS = iter(range(190, 230))

QUEUE = """
<shared_reader_queue name="Orders" session="s">
  <topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos><persistence><kind>{kind}</kind></persistence></queue_qos>
</shared_reader_queue>
"""
FULL = "<persistence_settings><filesystem><synchronization>FULL</synchronization></filesystem></persistence_settings>"

Broker = tuple[str, str, Callable[[], None]]
"""The contender's name for the peers, where it is, and how it is stopped."""


def qsctl_service(directory: Path, persistent: bool) -> Broker:
    domain = next(DOMAINS)
    service = ServiceProcess(
        directory,
        domain,
        "--persistent-storage-path",
        str(directory),
        service=FULL if persistent else "",
        queues=QUEUE.format(kind="PERSISTENT" if persistent else "VOLATILE"),
    )
    return "qsctl", str(domain), lambda: stop_service(service)


def stop_service(service: ServiceProcess) -> None:
    assert service.stop() == 0


def redis(directory: Path, persistent: bool) -> Broker:
    program = shutil.which("redis-server")
    pytest.importorskip("redis", reason="pip install redis")
    if program is None:
        pytest.skip("redis-server is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    durable = ["--appendonly", "yes", "--appendfsync", "always"] if persistent else ["--appendonly", "no"]
    process = subprocess.Popen(
        [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory), "--save", "", *durable],
        stdout=subprocess.DEVNULL,
    )
    wait_for_port(port, process)
    return "redis", str(port), lambda: stop(process)


def redis_by_pipeline(directory: Path, persistent: bool) -> Broker:
    _, where, stop_broker = redis(directory, persistent)
    return "redis-pipeline", where, stop_broker


def rabbitmq(directory: Path, persistent: bool) -> Broker:
    program = shutil.which("rabbitmq-server") or "/usr/lib/rabbitmq/bin/rabbitmq-server"
    pytest.importorskip("pika", reason="pip install pika")
    if not Path(program).exists():
        pytest.skip("rabbitmq-server is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "HOME": str(directory),
        "RABBITMQ_NODENAME": f"bench{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(port + 1 if port < 65_000 else port - 1),
        "RABBITMQ_MNESIA_BASE": str(directory),
        "RABBITMQ_LOG_BASE": str(directory),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
        "RABBITMQ_PID_FILE": str(directory / "pid"),
    }
    server = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    process = subprocess.Popen(
        [str(server if server.exists() else program)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_for_port(port, process, 60)
    return "rabbitmq-durable" if persistent else "rabbitmq", str(port), lambda: stop_group(process)


def wait_for_port(port: int, process: subprocess.Popen[bytes], timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                stop_group(process) if process.poll() is None else None
                pytest.skip(f"the broker did not listen on port {port}")
            time.sleep(0.1)


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(30)


def stop_group(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(60)


CONTENDERS = {"qsctl": qsctl_service, "redis": redis, "redis-pipeline": redis_by_pipeline, "rabbitmq": rabbitmq}


@pytest.fixture
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    contender, persistent = request.param
    name, where, stop_broker = CONTENDERS[contender](tmp_path, persistent)
    yield name, where
    stop_broker()


def run_peers(broker: tuple[str, str], count: int, size_bytes: int, peers: int, rate: float) -> dict[str, Any]:
    """One run; the consumers' figures, merged. `rate` 0: as fast as it goes."""
    name, where = broker
    share = count // peers
    started: list[subprocess.Popen[str]] = []
    for role in ("consume", "produce"):
        started += [
            subprocess.Popen(
                [sys.executable, str(PEERS), name, where, role, str(share), str(size_bytes), str(rate / peers)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(peers)
        ]
        # What is written before anybody is there to read it, or before all write, tells nothing about the broker.
        for peer in started[-peers:]:
            assert peer.stdout is not None
            assert peer.stdout.readline() == "READY\n"
    for producer in started[peers:]:
        assert producer.stdin is not None
        producer.stdin.write("\n")
        producer.stdin.flush()
    outputs = [process.communicate(timeout=300)[0] for process in started]
    assert all(process.returncode == 0 for process in started)
    figures = [json.loads(output.splitlines()[-1]) for output in outputs[:peers]]
    assert sum(each["count"] for each in figures) == share * peers
    first = min(each["first_s"] for each in figures)
    last = max(each["last_s"] for each in figures)
    latencies = sorted(latency for each in figures for latency in each["latencies_ms"])
    return {
        "samples_per_second": share * peers / (last - first),
        "p50_ms": latencies[len(latencies) // 2],
        "p99_ms": latencies[len(latencies) * 99 // 100],
        "max_ms": latencies[-1],
    }


@pytest.mark.parametrize("peers", [1, 4])
@pytest.mark.parametrize("size_bytes", [256, 1024])
@pytest.mark.parametrize(
    "broker",
    [(name, persistent) for persistent in (False, True) for name in CONTENDERS],
    indirect=True,
    ids=[f"{name}-{'persistent' if persistent else 'volatile'}" for persistent in (False, True) for name in CONTENDERS],
)
def test_samples_a_second_and_latency(broker: tuple[str, str], size_bytes: int, peers: int) -> None:
    full = run_peers(broker, SAMPLE_COUNT, size_bytes, peers, 0.0)
    half = run_peers(broker, SAMPLE_COUNT, size_bytes, peers, full["samples_per_second"] / 2)
    sys.stdout.write(
        f"\n{broker[0]:>18} {peers}→{peers} {size_bytes:>5} B: {full['samples_per_second']:>9,.0f} samples/s; "
        f"at half load p50 {half['p50_ms']:.2f} ms, p99 {half['p99_ms']:.2f} ms"
    )
    assert full["samples_per_second"] > 0


@pytest.mark.parametrize("persistent", [False, True], ids=["volatile", "persistent"])
def test_twice_as_fast_as_redis_streams_and_99_of_100_samples_in_3_ms(tmp_path: Path, persistent: bool) -> None:
    """Redis with its client's pipelines, and, shown beside it, with answers read beside; in turns; medians count."""
    figures: dict[str, list[tuple[float, float]]] = {"qsctl": [], "redis-pipeline": [], "redis": []}
    for turn in range(ROUNDS):
        for contender in figures:
            directory = tmp_path / f"{contender}{turn}"
            directory.mkdir()
            name, where, stop_broker = CONTENDERS[contender](directory, persistent)
            full = run_peers((name, where), SAMPLE_COUNT, 256, 1, 0.0)["samples_per_second"]
            p99_ms = run_peers((name, where), SAMPLE_COUNT, 256, 1, full / 2)["p99_ms"]
            stop_broker()
            figures[contender].append((full, p99_ms))
    rates = {contender: median(full for full, _ in each) for contender, each in figures.items()}
    latencies = {contender: median(p99_ms for _, p99_ms in each) for contender, each in figures.items()}
    times = {
        peer: median(ours / theirs for (ours, _), (theirs, _) in zip(figures["qsctl"], figures[peer], strict=True))
        for peer in ("redis-pipeline", "redis")
    }
    kind = "persistent" if persistent else "volatile"
    sys.stdout.write(f"\n{kind}: {rates['qsctl']:,.0f} samples/s, Redis Streams")
    for peer, way in (("redis-pipeline", "by pipelines"), ("redis", "with answers read beside")):
        sys.stdout.write(f" {way} {rates[peer]:,.0f} ({times[peer]:.2f} times)")
    sys.stdout.write(f"; at half load p99 {latencies['qsctl']:.2f} ms, of Redis {latencies['redis']:.2f} ms")
    sys.stdout.write(f"; in turns {[round(p99_ms, 2) for _, p99_ms in figures['qsctl']]}")
    keep_ratio(f"samples a second to Redis by pipelines, {kind}", times["redis-pipeline"])
    p99 = latencies["qsctl"] / latencies["redis"]
    keep_ratio(f"p99 at half load to that of Redis, {kind}", p99, higher_is_better=False)
    assert times["redis-pipeline"] >= TIMES_THE_PEER
    assert latencies["qsctl"] <= P99_MS


def test_ten_persistent_queues_together_take_nine_tenths_of_what_one_takes(tmp_path: Path) -> None:
    """One producer and one consumer process for all of them: the queues share one write-ahead log."""
    one = QUEUE.format(kind="PERSISTENT")
    ten = "".join(one.replace("Orders", f"Orders{number}") for number in range(10))
    rates: dict[str, list[float]] = {"": [], "/10": []}
    for turn in range(ROUNDS):
        for suffix, queues in (("", one), ("/10", ten)):
            directory = tmp_path / f"{turn}{len(suffix)}"
            directory.mkdir()
            domain = next(DOMAINS)
            arguments = ("--persistent-storage-path", str(directory))
            service = ServiceProcess(directory, domain, *arguments, service=FULL, queues=queues)
            figures = run_peers(("qsctl", f"{domain}{suffix}"), SAMPLE_COUNT, 256, 1, 0)
            stop_service(service)
            rates[suffix].append(figures["samples_per_second"])
    ratio = median(ten / one for one, ten in zip(*rates.values(), strict=True))
    one_rate, ten_rate = (median(each) for each in rates.values())
    sys.stdout.write(f"\none queue {one_rate:,.0f} samples/s, ten together {ten_rate:,.0f}: {ratio:.2f} times\n")
    keep_ratio("ten queues to one", ratio)
    assert ratio >= 0.9
