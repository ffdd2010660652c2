"""Replicated queues as three processes over DDS: masters that are killed and stopped under load [QS 7].

`QSCTL_TEST_KILLS`: how often the master is killed, half of the times that of the volatile queue.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dds.cluster import MASTER_TIMEOUT_MS, Cluster, loads

KILLS = int(os.environ.get("QSCTL_TEST_KILLS", "2"))
QUEUES = ("P/S/Orders", "P/S/Quick")


@pytest.fixture
def cluster(tmp_path: Path, domain: int) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path, domain)
    yield cluster
    cluster.end()


def test_no_accepted_sample_is_lost_when_masters_are_killed(cluster: Cluster, domain: int) -> None:
    for queue in QUEUES:
        cluster.await_all(queue)
    took_s: list[float] = []
    with loads(domain, "Orders", "Quick") as running:
        for number in range(KILLS):
            queue = QUEUES[number % 2]
            count = len(running[number % 2].accepted)
            while len(running[number % 2].accepted) < count + 50:
                time.sleep(0.05)
                assert running[number % 2].error is None, running[number % 2].error
            master = cluster.master(queue)
            cluster.kill(master)
            killed_s = time.monotonic()
            cluster.master(queue, other_than=master)
            took_s.append(time.monotonic() - killed_s)
            cluster.services[master].start()
            for each in QUEUES:
                cluster.await_all(each)
    sys.stdout.write(
        f"{KILLS} masters killed, master_timeout {MASTER_TIMEOUT_MS} ms: a new one after "
        f"{sorted(took_s)[len(took_s) // 2]:.2f} s (median), {max(took_s):.2f} s at most; "
        + "; ".join(
            f"{len(each.accepted)} samples accepted, {sum(each.received.values())} received, "
            f"longest stall {each.longest_stall_s:.2f} s"
            for each in running
        )
        + "\n"
    )


def test_a_master_that_was_stopped_longer_than_its_time_out_follows_the_new_one(cluster: Cluster, domain: int) -> None:
    for queue in QUEUES:
        cluster.await_all(queue)
    with loads(domain, "Orders", "Quick"):
        time.sleep(0.5)
        master = cluster.master("P/S/Orders")
        cluster.kill(master, signal.SIGSTOP)
        try:
            cluster.master("P/S/Orders", other_than=master)
            time.sleep(1)
        finally:
            cluster.kill(master, signal.SIGCONT)
        for queue in QUEUES:
            cluster.await_all(queue)
