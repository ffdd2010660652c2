"""Members of two versions in one cluster, each from a wheel: upgraded and downgraded one by one under load [QS 7].

The earlier wheel is built from a commit of this repository, the present one from this tree; both use the other packages
of this environment. Promised for each of the earlier versions, by members that are replaced one by one: no accepted
sample is lost, and none comes twice without the flag. Commands of a later version are for a cluster whose members all
have it. `QSCTL_TEST_UPGRADES`: how often all members are upgraded and downgraded.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qsctl.client import QueueConsumer
from qsctl.identity import SampleIdentity
from tests.campaigns import trials
from tests.dds.cluster import REPLICATED_SERVICE, Cluster, Load
from tests.dds.cluster_commands import Shell, produced, replicas
from tests.dds.compacted_log import CONSUMED, SAMPLES, fill
from tests.dds.domains import claim_domain, release_domain
from tests.dds.service_process import ServiceProcess, eventually
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
UPGRADES = trials("QSCTL_TEST_UPGRADES", 1, 10)
QUEUES = ("P/S/Orders", "P/S/Quick")
LEVEL_COUNT = 100
"""Entries that a member may lack under load before the next one is replaced."""

EARLIER = {
    "without versions": "2dba3073",
    "without routes and signatures": "d3db97a0",
    "without snapshots in parts": "87b719ae",
    "without priorities and witnesses": "0dced9db",
}
"""The commits of earlier wheels, by what they lack: the last ones before a letter had a version, before those of
version 6, before a log had a large snapshot in parts, and before versions 9 and 10."""

WITHOUT_PARTS = "without snapshots in parts"

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cluster")]


def installed(sources: Path, folder: Path) -> Path:
    """Build the wheel of sources and install it in a folder; return the folder."""
    # No version is asked of git, which knows nothing of an archive.
    environment = os.environ | {"SETUPTOOLS_SCM_PRETEND_VERSION": "0.2.0.dev1"}
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    wheels = folder / "wheels"
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(wheels), str(sources)]
    subprocess.run(build, check=True, env=environment)
    (wheel,) = wheels.iterdir()
    target = folder / "site"
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", str(target), str(wheel)], check=True)
    return target


@pytest.fixture(scope="module")
def present(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel of this tree."""
    pytest.importorskip("hatchling", reason="pip install hatchling hatch-vcs: wheels are built")
    pytest.importorskip("pip", reason="pip installs the wheels")
    return installed(ROOT, tmp_path_factory.mktemp("present"))


@pytest.fixture(scope="module", params=EARLIER)
def earlier(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel of an earlier commit."""
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", EARLIER[request.param]], capture_output=True, check=False
    )
    if archive.returncode:
        pytest.skip(f"the history does not have {EARLIER[request.param]}")
    pytest.importorskip("hatchling", reason="pip install hatchling hatch-vcs: wheels are built")
    pytest.importorskip("pip", reason="pip installs the wheels")
    folder = tmp_path_factory.mktemp("earlier")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder / "sources", filter="data")
    return installed(folder / "sources", folder)


def are_level(qsctl: Shell) -> bool:
    """Return whether each queue has a master and two slaves, none of which lacks much."""
    rows = [each for queue in ("Orders", "Quick") for each in qsctl.document("get", "replication", queue)]
    return sorted(each["role"] for each in rows) == ["master"] * 2 + ["slave"] * 4 and all(
        each["lag_count"] < LEVEL_COUNT for each in rows
    )


@pytest.fixture
def domain() -> Iterator[int]:
    claimed = claim_domain()
    yield claimed
    release_domain(claimed)


@pytest.mark.parametrize("earlier", [WITHOUT_PARTS], indirect=True)
def test_members_whose_logs_have_snapshots_in_parts_are_downgraded_one_by_one(
    earlier: Path, present: Path, domain: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the earlier version such a log is damaged; its replicas get everything from the others."""
    monkeypatch.setattr(ServiceProcess, "is_fresh", True)
    monkeypatch.setenv("PYTHONPATH", str(present))
    cluster = Cluster(tmp_path, domain)
    qsctl = Shell(domain)
    try:
        cluster.await_all("P/S/Orders")
        fill(cluster)
        for service in cluster.services.values():
            service.stop(signal.SIGTERM)
            monkeypatch.setenv("PYTHONPATH", str(earlier))
            service.start()
            assert "stored_state_damaged" in service.log.read_text()
            assert eventually(lambda: are_level(qsctl), PATIENCE_S), replicas(qsctl)
        received: set[SampleIdentity] = set()
        with QueueConsumer("Orders", "S", domain) as consumer:
            while len(received) < SAMPLES - CONSUMED:
                samples = consumer.receive(10, PATIENCE_S)
                assert samples, len(received)
                for sample in samples:
                    received.add(sample.identity)
                    sample.acknowledge()
    finally:
        cluster.end()


@pytest.mark.parametrize("earlier", [WITHOUT_PARTS], indirect=True)
def test_queue_is_created_while_one_member_has_the_earlier_version(
    earlier: Path, present: Path, domain: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ServiceProcess, "is_fresh", True)
    monkeypatch.setenv("PYTHONPATH", str(earlier))
    cluster = Cluster(tmp_path, domain, service=REPLICATED_SERVICE, queues="")
    qsctl = Shell(domain)

    def roles() -> list[str]:
        return sorted(each["role"] for each in replicas(qsctl))

    try:
        cluster.await_all("configuration")
        *others, last = cluster.services.values()
        monkeypatch.setenv("PYTHONPATH", str(present))
        for service in others:
            service.stop(signal.SIGTERM)
            service.start()
            cluster.await_all("configuration")
        created = qsctl("create-queue", "Orders", "--persistent", "--target", "Cluster_1*")
        assert created.count("is created") == 3, created
        assert eventually(lambda: roles() == ["master", "slave", "slave"], PATIENCE_S), replicas(qsctl)
        assert produced(qsctl, "a") == (1, 0)
        last.stop(signal.SIGTERM)
        last.start()
        assert eventually(lambda: roles() == ["master", "slave", "slave"], PATIENCE_S), replicas(qsctl)
        assert produced(qsctl, "b") == (1, 0)
    finally:
        cluster.end()


@pytest.mark.campaign
def test_members_are_upgraded_and_downgraded_one_by_one_under_load(
    earlier: Path, present: Path, domain: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ServiceProcess, "is_fresh", True)
    monkeypatch.setenv("PYTHONPATH", str(earlier))
    cluster = Cluster(tmp_path, domain)
    qsctl = Shell(domain)
    running: list[Load] = []

    try:
        for queue in QUEUES:
            cluster.await_all(queue)
        running += [Load(topic, domain, rate_s=0.01) for topic in ("Orders", "Quick")]
        for folder in (present, earlier) * UPGRADES:
            for service in cluster.services.values():
                service.stop(signal.SIGTERM)
                monkeypatch.setenv("PYTHONPATH", str(folder))
                service.start()
                assert eventually(lambda: are_level(qsctl), PATIENCE_S), replicas(qsctl)
                time.sleep(1.0)
    finally:
        for load in running:
            load.stop()
        cluster.end()
    for load in running:
        load.check()
