"""Services and their peers as processes, for benchmarks."""

from __future__ import annotations

import asyncio
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


DOMAINS = iter(claim_domain, -1)


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


def qsctl_service(directory: Path, persistent: bool, queue_count: int = 1) -> Broker:
    """A service with one queue, or several, which its clients use in turn."""
    domain, queue = next(DOMAINS), QUEUE.format(kind="PERSISTENT" if persistent else "VOLATILE")
    several = "".join(queue.replace("Orders", f"Orders{number}") for number in range(queue_count))
    service = ServiceProcess(
        directory,
        domain,
        "--persistent-storage-path",
        str(directory),
        service=FULL if persistent else "",
        queues=queue if queue_count == 1 else several,
    )
    return "qsctl", str(domain) if queue_count == 1 else f"{domain}/{queue_count}", lambda: stop_service(service)


def stop_service(service: ServiceProcess) -> None:
    assert service.stop() == 0


def redis(directory: Path, persistent: bool, queue_count: int = 1) -> Broker:
    """A server with one stream, or several, which its clients use in turn."""
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
    return "redis", str(port) if queue_count == 1 else f"{port}/{queue_count}", lambda: stop(process)


def redis_by_pipeline(directory: Path, persistent: bool, queue_count: int = 1) -> Broker:
    _, where, stop_broker = redis(directory, persistent, queue_count)
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


def jetstream(directory: Path, persistent: bool) -> Broker:
    """A server with a work queue, in memory or on files, which it syncs as by default: not before it answers."""
    program = shutil.which("nats-server")
    pytest.importorskip("nats", reason="pip install nats-py")
    if program is None:
        pytest.skip("nats-server is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    file = directory / "server.conf"
    file.write_text(f"listen: 127.0.0.1:{port}\njetstream {{ store_dir: {str(directory)!r} }}\n")
    process = subprocess.Popen([program, "-c", str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for_port(port, process)
    where = f"nats://127.0.0.1:{port}"
    create_stream([where], "file" if persistent else "memory", 1)
    return "nats", where, lambda: stop(process)


def create_stream(addresses: list[str], storage: str, replicas: int) -> None:
    """Create the work queue of the benchmark, once the servers have elected."""
    import nats

    async def create() -> None:
        client = await nats.connect(addresses)
        for _ in range(60):
            try:
                await client.jetstream().add_stream(
                    name="ORDERS", subjects=["orders"], num_replicas=replicas, retention="workqueue", storage=storage
                )
                break
            except (nats.errors.Error, TimeoutError):
                await asyncio.sleep(0.5)
        await client.close()

    asyncio.run(create())


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


def run_peers(
    broker: tuple[str, str], count: int, size_bytes: int, peers: int | tuple[int, int], rate: float
) -> dict[str, Any]:
    """One run; the consumers' figures, merged, and processor time a sample.

    Args:
        broker: as the peers name it, and where it is.
        count, size_bytes: of all samples, and of each.
        peers: number of producers and of consumers, or of both.
        rate: samples a second of all; 0: as fast as it goes.
    """
    name, where = broker
    producers, consumers = (peers, peers) if isinstance(peers, int) else peers
    started: list[subprocess.Popen[str]] = []
    for role, number in (("consume", consumers), ("produce", producers)):
        assert count % number == 0, "each of them has the same number of samples"
        share = (str(count // number), str(size_bytes), str(rate / number))
        arguments = [sys.executable, str(PEERS), name, where, role, *share]
        group = [
            subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(number)
        ]
        # What is written before anybody is there to read it, or before all write, tells nothing about the broker.
        for peer in group:
            assert peer.stdout is not None
            assert peer.stdout.readline() == "READY\n"
        started += group
    for producer in started[consumers:]:
        assert producer.stdin is not None
        producer.stdin.write("\n")
        producer.stdin.flush()
    outputs = [process.communicate(timeout=300)[0] for process in started]
    assert all(process.returncode == 0 for process in started)
    shown = [json.loads(output.splitlines()[-1]) for output in outputs]
    figures = shown[:consumers]
    assert sum(each["count"] for each in figures) == count
    first = min(each["first_s"] for each in figures)
    last = max(each["last_s"] for each in figures)
    latencies = sorted(latency for each in figures for latency in each["latencies_ms"])
    return {
        "samples_per_second": count / (last - first),
        "p50_ms": latencies[len(latencies) // 2],
        "p99_ms": latencies[len(latencies) * 99 // 100],
        "max_ms": latencies[-1],
        "consumer_us": sum(each["processor_s"] for each in figures) / count * 1e6,
        "producer_us": sum(each["processor_s"] for each in shown[consumers:]) / count * 1e6,
    }
