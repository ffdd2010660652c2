"""Replicated queues as three processes over DDS: masters that are killed and stopped under load [QS 7].

`QSCTL_TEST_KILLS`: how often the master is killed, half of the times that of the volatile queue;
`QSCTL_TEST_MASTER_TIMEOUT_MS`: `<master_timeout>`, 500 by default.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qsctl.core.high_availability.versions import VERSION
from qsctl.errors import ExitStatus
from tests.campaigns import trials
from tests.dds.cluster import MASTER_TIMEOUT_MS, Cluster, loads
from tests.dds.cluster_commands import Shell, figures, produced, replicas
from tests.dds.domains import claim_domain, release_domain
from tests.dds.service_process import eventually
from tests.patience import PATIENCE_S


@pytest.fixture
def domain(request: pytest.FixtureRequest) -> Iterator[int]:
    """That of the cluster, in tests that use it; else one of the test's own."""
    if "cluster" in request.fixturenames:
        yield request.getfixturevalue("shared").domain
        return
    claimed = claim_domain()
    yield claimed
    release_domain(claimed)


KILLS = trials("QSCTL_TEST_KILLS", 2, 50)
pytestmark = pytest.mark.xdist_group("cluster")
QUEUES = ("P/S/Orders", "P/S/Quick")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One cluster for the tests that leave it whole, one after the other: it takes seconds to start."""
    domain = claim_domain()
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), domain)
    yield cluster
    cluster.end()
    release_domain(domain)


@pytest.fixture
def cluster(shared: Cluster) -> Cluster:
    for queue in QUEUES:
        shared.await_all(queue)
    return shared


@pytest.mark.campaign
def test_no_accepted_sample_is_lost_when_masters_are_killed(cluster: Cluster, domain: int) -> None:
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


def test_a_master_that_leaves_in_order_hands_over(cluster: Cluster, domain: int) -> None:
    with loads(domain, "Orders"):
        master = cluster.master("P/S/Orders")
        assert cluster.services[master].stop() == 0
        successor = cluster.master("P/S/Orders", other_than=master)
        assert f"reason='{master} hands over to it'" in cluster.services[successor].log.read_text()
        cluster.services[master].start()
        cluster.await_all("P/S/Orders")


@pytest.mark.slow
def test_two_instances_refuse_without_the_other_with_the_reason(tmp_path: Path, domain: int) -> None:
    cluster = Cluster(tmp_path, domain, "--metrics-port", "0", instances=2)
    try:
        qsctl = Shell(domain)
        other = "Cluster_1_B" if cluster.await_all("P/S/Orders") == "Cluster_1_A" else "Cluster_1_A"
        names = ("is_master", "replicas_up_to_date", "storage_trouble", "has_quorum")
        wanted = [(0, 0, 0, 1), (1, 2, 0, 1)]

        def metrics() -> list[tuple[float, ...]]:
            found = [figures(each) for each in cluster.services.values()]
            return sorted(tuple(each.get(name, -1) for name in names) for each in found)

        assert eventually(lambda: metrics() == wanted, PATIENCE_S), metrics()
        assert produced(qsctl, "a") == (1, 0)
        cluster.kill(other)
        assert eventually(lambda: [each["role"] for each in replicas(qsctl)] == ["candidate"], PATIENCE_S)
        assert produced(qsctl, "b") == (0, 1)
        (alone,) = replicas(qsctl)
        assert (alone["has_quorum"], alone["quorum_count"], alone["replica_count"]) == (False, 2, 2)
        assert alone["reason"].startswith("no sign of a master within master_timeout")
        cluster.services[other].start()
        cluster.await_all("P/S/Orders")
        assert produced(qsctl, "b") == (1, 0)
        assert qsctl.document("get", "messages", "Orders", "--target", cluster.master("P/S/Orders"))[1]["position"] == 2
    finally:
        cluster.end()


def test_status_shows_the_master_and_the_progress_of_the_others(cluster: Cluster, domain: int) -> None:
    qsctl = Shell(domain)
    master = cluster.master("P/S/Orders")
    assert produced(qsctl, "a", "--replicate") == (1, 0)
    assert eventually(lambda: {each["lag_count"] for each in replicas(qsctl)} == {0}, PATIENCE_S)
    rows = {each["service"]: each for each in replicas(qsctl)}
    assert {(each["role"], each["master"], each["epoch"]) for each in rows.values()} == {
        (role, master, rows[master]["epoch"]) for role in ("master", "slave")
    }
    assert (rows[master]["up_to_date_count"], rows[master]["quorum_count"]) == (3, 2)
    assert "3 of 3 voters" in qsctl("get", "replication", "Orders")
    members = qsctl.document("member", "list", "Orders")
    assert [(each["member"], each["service"], each["vote"], each["role"], each["disk"]) for each in members] == [
        (name, master, "voter", rows[name]["role"], "ok") for name in sorted(rows)
    ]
    assert {(each["durable_index"], each["lag_count"], each["lag_bytes"], each["lag_seconds"]) for each in members} == {
        (rows[master]["last_index"], 0, 0, 0)
    }
    assert {each["version"] for each in members} == {VERSION}
    assert all(each["silent_seconds"] < 2 for each in members)
    for row in replicas(qsctl):
        (own,) = [each for each in row["members"] if each["member"] == row["service"]]
        assert own["role"] == rows[row["service"]]["role"]
    text = qsctl("get", "status")
    assert "Role" in text
    assert "learner" not in text
    assert qsctl.document("get", "status", "Orders", "--target", master)[0]["role"] == "master"
    assert qsctl("flush-queue", "Orders", "--yes") == "OK: 1 sample removed from queue P/S/Orders\n"
    (slave, _) = sorted(rows.keys() - {master})
    assert qsctl.status("flush-queue", "Orders", "--yes", "--target", slave) == ExitStatus.REFUSED


@pytest.mark.slow
def test_a_second_service_of_a_member_s_name_takes_no_part(cluster: Cluster, domain: int, tmp_path: Path) -> None:
    roles = cluster.roles("P/S/Orders")
    twin = cluster.start_another(tmp_path / "twin", "Cluster_1_A")
    both = (twin, cluster.services["Cluster_1_A"])
    assert eventually(lambda: all("another_replica_of_this_name" in each.log.read_text() for each in both), PATIENCE_S)
    assert cluster.roles("P/S/Orders") == roles, "a namesake changes nobody's role"
    assert produced(Shell(domain), "a") == (1, 0)
    fourth = cluster.start_another(tmp_path / "fourth", "Cluster_1_Z")
    assert eventually(lambda: "too_many_instances" in fourth.log.read_text(), PATIENCE_S)
    assert "role='master'" not in twin.log.read_text() + fourth.log.read_text()
    twin.end()
    fourth.end()
