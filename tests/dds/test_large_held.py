"""A queue that is filled with much keeps its master; a wiped member catches up, and receives heartbeats meanwhile."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.instant import SECOND_NS
from tests.campaigns import is_campaign, trials
from tests.dds import watched_service
from tests.dds.cluster import SERVICE, Cluster
from tests.dds.cluster_commands import Shell, produced, replicas
from tests.dds.service_process import eventually
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.campaign, pytest.mark.slow]

SAMPLES = trials("QSCTL_TEST_HELD_SAMPLES", 100, 512)
PAYLOAD = bytes(2 * 1024 * 1024)
MEMORY_BESIDE_BYTES = 400_000_000
"""What a member needs beside the samples that it holds: the program, and what is on its way."""
TIMEOUT_S = int(os.environ.get("QSCTL_TEST_HELD_TIMEOUT_S", "3"))


@pytest.fixture
def cluster(tmp_path: Path, domain: int) -> Iterator[Cluster]:
    service = SERVICE.replace("{sec}", str(TIMEOUT_S)).replace("{nanosec}", "0")
    cluster = Cluster(tmp_path, domain, program=("-m", watched_service.__name__), service=service)
    yield cluster
    cluster.end()


def fill(domain: int) -> None:
    """Let the queue hold all samples."""
    with QueueProducer("Orders", domain, window_count=4) as producer:
        producer.wait_for_queue(PATIENCE_S)
        for _ in range(SAMPLES):
            producer.write(PAYLOAD, timeout_s=PATIENCE_S)
        assert producer.wait_for_acknowledgments(PATIENCE_S) == 0


def reject(domain: int, wanted_count: int) -> None:
    with QueueConsumer("Orders", "S", domain) as consumer:
        consumer.wait_for_queue(PATIENCE_S)
        count, deadline = 0, time.monotonic() + PATIENCE_S
        while count < wanted_count and time.monotonic() < deadline:
            for sample in consumer.receive(4, 0.5):
                sample.reject()
                count += 1
        assert count >= wanted_count


def latest_epoch(cluster: Cluster) -> int:
    return max(epoch for epoch, _ in cluster.roles(watched_service.QUEUE).values())


def heard(directory: Path) -> list[tuple[int, int, str]]:
    """Return the signs of a master that a service has received: instant, octets of memory, and kind of each."""
    lines = (line.split() for line in (directory / watched_service.HEARD).read_text("ascii").splitlines())
    return [(int(at_ns), int(size_bytes), kind) for at_ns, size_bytes, kind in lines]


def longest_gap_s(directory: Path) -> float:
    """Return the longest time between two signs of a master; 0: the service has received none."""
    instants = [at_ns for at_ns, _, _ in heard(directory)]
    return max((later - earlier for earlier, later in itertools.pairwise(instants)), default=0) / SECOND_NS


def test_wiped_member_of_a_queue_that_holds_much_catches_up(
    cluster: Cluster, domain: int, record_property: Callable[[str, object], None]
) -> None:
    qsctl = Shell(domain)
    cluster.await_all(watched_service.QUEUE)
    began_s, elected_count = time.monotonic(), latest_epoch(cluster)
    fill(domain)
    filled_s, elected_count = time.monotonic() - began_s, latest_epoch(cluster) - elected_count
    filling_s = max(longest_gap_s(service.directory) for service in cluster.services.values())
    reject(domain, SAMPLES)  # enough is written about them that the members compact their logs
    cluster.await_all(watched_service.QUEUE)
    reject(domain, SAMPLES // 4)  # a master that was elected meanwhile compacts its log with the next entries
    master = cluster.await_all(watched_service.QUEUE)
    wiped = next(name for name in cluster.services if name != master)
    service = cluster.services[wiped]
    cluster.kill(wiped)
    for path in service.directory.iterdir():
        if path not in (service.file, service.log):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    began_s = time.monotonic()
    service.start()

    def is_caught_up() -> bool:
        found = {str(each["service"]): each for each in replicas(qsctl)}
        lags = [each["lag_count"] for each in found.values() if each["role"] == "master"]
        return wiped in found and found[wiped]["role"] in ("slave", "master") and lags == [0]

    assert eventually(is_caught_up), replicas(qsctl)
    took_s = time.monotonic() - began_s
    lines = heard(service.directory)
    longest_s, memory_bytes = longest_gap_s(service.directory), max(size for _, size, _ in lines)
    held_bytes = SAMPLES * len(PAYLOAD)
    figures = (
        f"{held_bytes} held, filled in {filled_s:.1f} s with {elected_count} elections and gaps of {filling_s:.3f} s, "
        f"caught up in {took_s:.1f} s, longest gap {longest_s:.3f} s, memory {memory_bytes}"
    )
    record_property("figures", figures)
    assert "SnapshotPiece" in {kind for _, _, kind in lines}
    assert memory_bytes < held_bytes + MEMORY_BESIDE_BYTES, figures
    if is_campaign():  # an ordinary run shares the machine with others
        assert elected_count == 0, figures
        assert max(longest_s, filling_s) < TIMEOUT_S / 3, figures
    assert produced(qsctl, "more") == (1, 0)
