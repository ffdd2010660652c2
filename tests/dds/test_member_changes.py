"""Members of a cluster of processes are replaced, added and removed under load.

`QSCTL_TEST_REPLACED`: how often a dead machine is replaced by one of another name.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from qsctl.errors import ExitStatus
from tests.campaigns import trials
from tests.dds.cluster import REPLICATED_SERVICE, Cluster, Load, loads
from tests.dds.cluster_commands import Shell, replicas
from tests.dds.domains import claim_domain, release_domain
from tests.dds.nemesis.faults import wipe
from tests.dds.service_process import eventually
from tests.patience import PATIENCE_S

REPLACED = trials("QSCTL_TEST_REPLACED", 1, 20)
QUEUES = ("P/S/Orders", "P/S/Quick")
pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture
def domain() -> Iterator[int]:
    claimed = claim_domain()
    yield claimed
    release_domain(claimed)


def changed(qsctl: Shell, action: str, member: str, queue: str) -> bool:
    """Whether a change was made now."""
    return f"OK: {queue}: voters:" in qsctl("member", action, member, named(queue))


def named(queue: str) -> str:
    """Return the argument that selects a queue or the configuration."""
    return "--configuration" if queue == "configuration" else queue


def stalls(running: Sequence[Load]) -> str:
    """Return what the clients met."""
    accepted = sum(len(each.accepted) for each in running)
    return f"{accepted} samples accepted, longest stall {max(each.longest_stall_s for each in running):.2f} s"


def grow(cluster: Cluster, qsctl: Shell, directory: Path, name: str, *arguments: str) -> None:
    """Add a process to all queues, and promote it."""
    cluster.services[name] = cluster.start_another(directory / name, name, "--join", *arguments)
    for action in ("add", "promote"):
        for queue in QUEUES:
            assert eventually(lambda: changed(qsctl, action, name, queue), PATIENCE_S), (action, name, queue)  # noqa: B023


def shrink(cluster: Cluster, qsctl: Shell, name: str) -> None:
    """Remove a member from all queues, and end its process."""
    for queue in QUEUES:
        assert eventually(lambda: changed(qsctl, "remove", name, queue), PATIENCE_S), (name, queue)  # noqa: B023
    cluster.services.pop(name).end()


@pytest.mark.slow
@pytest.mark.campaign
def test_cluster_grows_to_five_members_and_shrinks_to_three_under_load(tmp_path: Path, domain: int) -> None:
    cluster = Cluster(tmp_path, domain)
    qsctl = Shell(domain)
    try:
        for queue in QUEUES:
            cluster.await_all(queue)
        with loads(domain, "Orders", "Quick") as running:
            for name in ("Cluster_1_D", "Cluster_1_E"):
                grow(cluster, qsctl, tmp_path, name)
            assert eventually(lambda: {each["quorum_count"] for each in replicas(qsctl)} == {3}, PATIENCE_S)
            for name in ("Cluster_1_A", "Cluster_1_B"):
                shrink(cluster, qsctl, name)
        assert {each["service"] for each in replicas(qsctl)} == {f"Cluster_1_{letter}" for letter in "CDE"}
    finally:
        cluster.end()
    sys.stdout.write(f"from three members to five and back: {stalls(running)}\n")


@pytest.mark.slow
def test_member_is_removed_and_added_again_under_its_name_with_its_old_disk_under_load(
    tmp_path: Path, domain: int
) -> None:
    cluster = Cluster(tmp_path, domain)
    qsctl = Shell(domain)
    try:
        for queue in QUEUES:
            cluster.await_all(queue)
        with loads(domain, "Orders", "Quick") as running:
            assert eventually(lambda: min(len(each.accepted) for each in running) > 50, PATIENCE_S)
            name = cluster.master("P/S/Orders")
            cluster.kill(name)
            for queue in QUEUES:
                assert eventually(lambda: changed(qsctl, "remove", name, queue), PATIENCE_S), queue  # noqa: B023
            counts = [len(each.accepted) for each in running]
            assert eventually(
                lambda: all(len(each.accepted) > count + 50 for each, count in zip(running, counts, strict=True)),
                PATIENCE_S,
            )
            cluster.services[name].start()
            for action in ("add", "promote"):
                for queue in QUEUES:
                    assert eventually(lambda: changed(qsctl, action, name, queue), PATIENCE_S), (action, queue)  # noqa: B023
            lead(cluster, qsctl, "P/S/Orders", name)
        assert {each["quorum_count"] for each in replicas(qsctl)} == {2}
        assert {each["service"] for each in replicas(qsctl)} == set(cluster.services)
    finally:
        cluster.end()


def test_member_that_joined_stays_one_when_it_restarts_and_a_different_list_is_reported(
    tmp_path: Path, domain: int
) -> None:
    named = ("--members", "Cluster_1_A,Cluster_1_B")
    cluster = Cluster(tmp_path, domain, *named, instances=2)
    qsctl = Shell(domain)
    try:
        for queue in QUEUES:
            cluster.await_all(queue)
        grow(cluster, qsctl, tmp_path, "Cluster_1_C", *named)
        joined = cluster.services["Cluster_1_C"]
        assert joined.stop() == 0
        joined.start()
        cluster.await_all("P/S/Orders")
        cluster.kill("Cluster_1_A")
        cluster.master("P/S/Orders", other_than="Cluster_1_A")
        first = cluster.services["Cluster_1_A"]
        first.arguments = tuple(each.replace("Cluster_1_B", "Cluster_1_Z") for each in first.arguments)
        first.start()
        cluster.await_all("P/S/Orders")
        (line,) = [each for each in first.log.read_text().splitlines() if "members_differ" in each]
        assert "formed=['Cluster_1_A', 'Cluster_1_B'] named=['Cluster_1_A', 'Cluster_1_Z']" in line
        assert {each["quorum_count"] for each in replicas(qsctl)} == {2}
    finally:
        cluster.end()


@pytest.mark.slow
def test_process_that_joins_is_none_of_the_first_members_where_it_is_there_before_them(
    tmp_path: Path, domain: int
) -> None:
    cluster = Cluster(tmp_path, domain)
    qsctl = Shell(domain)
    try:
        cluster.await_all("P/S/Orders")
        for service in cluster.services.values():
            service.stop()
            for path in service.directory.iterdir():
                if path not in (service.file, service.log):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        joined = cluster.start_another(tmp_path / "Cluster_1_D", "Cluster_1_D", "--join")
        for service in cluster.services.values():
            service.start()
        assert eventually(
            lambda: sorted(each["role"] for each in replicas(qsctl)) == ["learner", "master", "slave", "slave"],
            PATIENCE_S,
        ), replicas(qsctl)
        for service in (joined, *cluster.services.values()):
            assert "too_many_instances" not in service.log.read_text()
        assert [each["member"] for each in qsctl.document("member", "list", "Orders")] == sorted(cluster.services)
    finally:
        cluster.end()


def test_queue_created_after_a_change_of_members_needs_no_first_member_that_left(tmp_path: Path, domain: int) -> None:
    """The members are those of the replicated configuration; one joined, one was removed, and one more is dead."""
    cluster = Cluster(tmp_path, domain, service=REPLICATED_SERVICE, queues="")
    qsctl = Shell(domain)
    try:
        cluster.await_all("configuration")
        joined = cluster.start_another(tmp_path / "Cluster_1_D", "Cluster_1_D", "--join")
        cluster.services["Cluster_1_D"] = joined
        assert "another_replica_of_this_name" not in joined.log.read_text()
        first, second, *_ = (
            name for name in cluster.services if name not in (cluster.master("configuration"), "Cluster_1_D")
        )
        replaced(qsctl, first, "Cluster_1_D", "configuration")
        cluster.services.pop(first).end()
        rows = qsctl.document("member", "list", "--configuration")
        assert [(each["queue_name"], each["member"], each["vote"]) for each in rows] == [
            ("configuration", name, "voter") for name in sorted(cluster.services)
        ]
        cluster.kill(second)
        assert "OK" in qsctl("create-queue", "Orders", "--target", "Cluster_1*")
        assert eventually(lambda: {each["role"] for each in replicas(qsctl)} == {"master", "slave"}, PATIENCE_S)
        left = sorted({*cluster.services})
        assert [(each["member"], each["vote"]) for each in qsctl.document("member", "list", "Orders")] == [
            (name, "voter") for name in left
        ]
        cluster.services[second].start()
        assert eventually(
            lambda: [each["lag_count"] for each in qsctl.document("member", "list", "Orders")] == [0] * 3, PATIENCE_S
        )
        for each in ("configuration", "P/S/Orders"):
            lead(cluster, qsctl, each, left[0])
        (moved,) = qsctl.document("member", "rebalance")
        assert (moved["queue_name"], moved["former"], moved["is_done"]) == ("configuration", left[0], True)
        assert cluster.master("configuration") == moved["master"]
        assert qsctl.document("member", "rebalance", "--dry-run") == []
    finally:
        cluster.end()


def lead(cluster: Cluster, qsctl: Shell, queue: str, name: str) -> None:
    """Let a member be the master of a queue."""
    if cluster.master(queue) != name:
        words = ("member", "step-down", named(queue), "--to", name)
        assert eventually(lambda: "hands over" in qsctl(*words), PATIENCE_S)
    assert eventually(lambda: cluster.master(queue) == name, PATIENCE_S)


def replaced(qsctl: Shell, old: str, new: str, queue: str) -> None:
    """Replace a member of a queue or of the configuration."""
    words = ("member", "replace", old, new, named(queue))
    # Where the old one was the master, there is another one after an election only.
    assert eventually(lambda: f"remove {old}" in qsctl(*words, "--dry-run"), PATIENCE_S)
    assert eventually(lambda: f"OK: {queue}: voters:" in qsctl(*words), PATIENCE_S)
    assert f"{new} has the place of {old} already" in qsctl(*words)


@pytest.mark.campaign
def test_dead_machine_is_replaced_by_one_of_another_name_under_load(tmp_path: Path, domain: int) -> None:
    cluster = Cluster(tmp_path, domain)
    qsctl = Shell(domain)
    longest_s = 0.0
    try:
        for queue in QUEUES:
            cluster.await_all(queue)
        with loads(domain, "Orders", "Quick") as running:
            for number in range(REPLACED):
                dead = cluster.master(QUEUES[number % 2])
                begun = time.monotonic()
                cluster.kill(dead)
                wipe(cluster.services[dead])
                new = f"Cluster_1_New{number}"
                cluster.services[new] = cluster.start_another(tmp_path / new, new, "--join")
                for queue in QUEUES:
                    replaced(qsctl, dead, new, queue)
                longest_s = max(longest_s, time.monotonic() - begun)
                cluster.services.pop(dead).end()
        assert eventually(lambda: {each["quorum_count"] for each in replicas(qsctl)} == {2}, PATIENCE_S)
        assert {each["service"] for each in replicas(qsctl)} == cluster.services.keys()
    finally:
        cluster.end()
    sys.stdout.write(f"{REPLACED} machines replaced, {longest_s:.1f} s at most from the kill on; {stalls(running)}\n")


@pytest.mark.slow
def test_masters_are_moved_and_drained_and_a_member_is_replaced_under_load(tmp_path: Path, domain: int) -> None:
    cluster = Cluster(tmp_path, domain)
    qsctl = Shell(domain)
    try:
        for queue in QUEUES:
            cluster.await_all(queue)
        with loads(domain, "Orders", "Quick"):
            for queue in QUEUES:
                lead(cluster, qsctl, queue, "Cluster_1_A")
            (planned,) = qsctl.document("member", "rebalance", "--dry-run")
            assert (planned["former"], planned["is_done"]) == ("Cluster_1_A", False)
            (moved,) = qsctl.document("member", "rebalance")
            assert moved["is_done"]
            assert sorted(map(cluster.master, QUEUES)) == sorted(["Cluster_1_A", moved["master"]])
            assert qsctl.document("member", "rebalance", "--dry-run") == []
            cluster.services["Cluster_1_D"] = cluster.start_another(tmp_path / "Cluster_1_D", "Cluster_1_D", "--join")
            for queue in QUEUES:
                replaced(qsctl, "Cluster_1_B", "Cluster_1_D", queue)
                members = [each["member"] for each in qsctl.document("member", "list", queue)]
                assert members == ["Cluster_1_A", "Cluster_1_C", "Cluster_1_D"]
            cluster.services.pop("Cluster_1_B").end()
            drained = cluster.services.pop("Cluster_1_A")
            assert "OK: Cluster_1_A is drained" in qsctl("member", "drain", "Cluster_1_A")
            assert "OK" in qsctl("shutdown", "--drain", "--target", "Cluster_1_A")
            assert drained.process is not None
            assert drained.process.wait(PATIENCE_S) == 0
            assert {cluster.master(queue) for queue in QUEUES} <= {"Cluster_1_C", "Cluster_1_D"}
            for needed in ("Cluster_1_C", "Cluster_1_D"):  # each a master, or the only slave
                words = ("shutdown", "--drain", "--target", needed)
                assert eventually(lambda: qsctl.status(*words, "--dry-run") == ExitStatus.REFUSED, PATIENCE_S)  # noqa: B023
                assert qsctl.status(*words) == ExitStatus.REFUSED
                assert cluster.services[needed].is_running
    finally:
        cluster.end()
