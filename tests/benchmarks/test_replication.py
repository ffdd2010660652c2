"""What replication costs, and beside a stream of NATS JetStream with three replicas, in one harness and one run.

Run it alone: `pytest tests/benchmarks/test_replication.py -s`; `QSCTL_BENCHMARK_COUNT` samples of 256 B, one producer
and one consumer process. NATS is skipped where `nats-server` or nats-py is not installed. It answers once a quorum has
the sample in its page cache (a sync every two minutes), as a queue with `<synchronization>OFF` does; FULL answers once
it is on their disks. Twice as fast is wanted; on two processors that nine processes share, 1.5 times was measured.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.benchmarks.test_dds import QUEUE, qsctl_service, run_peers, stop, wait_for_port
from tests.dds.cluster import SERVICE, Cluster
from tests.dds.domains import claim_domain

COUNT = int(os.environ.get("QSCTL_BENCHMARK_COUNT", "50000"))


def replicated(directory: Path, stack: ExitStack, kind: str, synchronization: str) -> tuple[str, str]:
    """Three services; assignments are sent at once, as by default."""
    service = SERVICE.replace(">FULL<", f">{synchronization}<").replace(
        "<synchronize_consumer_assignment>true<", "<synchronize_consumer_assignment>false<"
    )
    domain = claim_domain()
    cluster = Cluster(directory, domain, service=service, queues=QUEUE.format(kind=kind))
    stack.callback(cluster.end)
    cluster.await_all("P/S/Orders")
    return "qsctl", str(domain)


def jetstream(directory: Path, stack: ExitStack) -> tuple[str, str]:
    """Three servers with a work queue of three replicas on files."""
    nats = pytest.importorskip("nats", reason="pip install nats-py")
    program = shutil.which("nats-server") or pytest.skip("nats-server is not installed")
    with ExitStack() as free:
        sockets = [free.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(6)]
        ports = [each.getsockname()[1] for each in sockets]
    clients, routes = ports[:3], ports[3:]
    servers = []
    for number, (client, route) in enumerate(zip(clients, routes, strict=True)):
        where = directory / f"nats{number}"
        where.mkdir()
        file = where / "server.conf"
        file.write_text(
            f"server_name: n{number}\nlisten: 127.0.0.1:{client}\njetstream {{ store_dir: {str(where)!r} }}\n"
            f"cluster {{ name: bench, listen: 127.0.0.1:{route}, "
            f"routes: [{', '.join(f'nats://127.0.0.1:{each}' for each in routes)}] }}\n"
        )
        process = subprocess.Popen([program, "-c", str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(stop, process)
        servers.append(process)
    for port, process in zip(clients, servers, strict=True):
        wait_for_port(port, process)
    addresses = [f"nats://127.0.0.1:{port}" for port in clients]

    async def create() -> None:
        client = await nats.connect(addresses)
        for _ in range(60):
            try:
                await client.jetstream().add_stream(
                    name="ORDERS", subjects=["orders"], num_replicas=3, retention="workqueue", storage="file"
                )
                break
            except (nats.errors.Error, TimeoutError):
                await asyncio.sleep(0.5)  # its cluster elects
        await client.close()

    asyncio.run(create())
    return "nats", ",".join(addresses)


def test_three_replicas_take_no_less_than_jetstream_with_three(tmp_path: Path) -> None:
    found: dict[str, tuple[float, float]] = {}

    def measure(what: str, broker: tuple[str, str]) -> None:
        full = run_peers(broker, COUNT, 256, 1, 0.0)["samples_per_second"]
        p99_ms = run_peers(broker, COUNT, 256, 1, full / 2)["p99_ms"]
        found[what] = (full, p99_ms)
        sys.stdout.write(f"\n{what:>42}: {full:>9,.0f} samples/s; at half load p99 {p99_ms:.2f} ms")
        sys.stdout.flush()

    def directory(name: str) -> Path:
        (tmp_path / name).mkdir()
        return tmp_path / name

    for persistent in (False, True):
        name, where, end = qsctl_service(directory(f"alone{persistent}"), persistent)
        measure(f"not replicated, {'persistent FULL' if persistent else 'volatile'}", (name, where))
        end()
    for kind, synchronization in (("VOLATILE", "OFF"), ("PERSISTENT", "OFF"), ("PERSISTENT", "FULL")):
        with ExitStack() as stack:
            broker = replicated(directory(kind + synchronization), stack, kind, synchronization)
            measure(f"three replicas, {kind.lower()} {synchronization}", broker)
    with ExitStack() as stack:
        measure("NATS JetStream R3, file", jetstream(directory("nats"), stack))
    times = found["three replicas, persistent OFF"][0] / found["NATS JetStream R3, file"][0]
    sys.stdout.write(f"\n{times:.2f} times as many")
    assert times >= 1
