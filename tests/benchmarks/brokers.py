"""Services and their peers as processes, for benchmarks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.dds.cluster import SERVICE, Cluster
from tests.dds.domains import claim_domain
from tests.dds.service_process import ServiceProcess

PEERS = Path(__file__).parent / "dds_peers.py"


TIMES_THE_PEER = 2.0


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


def replicated(directory: Path, stack: ExitStack, kind: str, synchronization: str, *arguments: str) -> tuple[str, str]:
    """Three services; assignments are sent at once, as by default."""
    service = SERVICE.replace(">FULL<", f">{synchronization}<").replace(
        "<synchronize_consumer_assignment>true<", "<synchronize_consumer_assignment>false<"
    )
    domain = claim_domain()
    cluster = Cluster(directory, domain, *arguments, service=service, queues=QUEUE.format(kind=kind))
    stack.callback(cluster.end)
    cluster.await_all("P/S/Orders")
    return "qsctl", str(domain)


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


def run_peers(broker: tuple[str, str], count: int, size_bytes: int, peers: int, rate: float) -> dict[str, Any]:
    """One run; the consumers' figures, merged, and processor time a sample. `rate` 0: as fast as it goes."""
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
    shown = [json.loads(output.splitlines()[-1]) for output in outputs]
    figures = shown[:peers]
    assert sum(each["count"] for each in figures) == share * peers
    first = min(each["first_s"] for each in figures)
    last = max(each["last_s"] for each in figures)
    latencies = sorted(latency for each in figures for latency in each["latencies_ms"])
    return {
        "samples_per_second": share * peers / (last - first),
        "p50_ms": latencies[len(latencies) // 2],
        "p99_ms": latencies[len(latencies) * 99 // 100],
        "max_ms": latencies[-1],
        "consumer_us": sum(each["processor_s"] for each in figures) / (share * peers) * 1e6,
        "producer_us": sum(each["processor_s"] for each in shown[peers:]) / (share * peers) * 1e6,
    }
