"""A member that lost its disk catches up from a snapshot in pieces, over loopback [QS 7.1]."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dds.cluster import Cluster
from tests.dds.cluster_commands import Shell, produced, replicas
from tests.dds.compacted_log import fill
from tests.dds.service_process import eventually
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture
def cluster(tmp_path: Path, domain: int) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path, domain)
    yield cluster
    cluster.end()


def test_a_wiped_member_catches_up_from_a_snapshot(cluster: Cluster, domain: int) -> None:
    qsctl = Shell(domain)
    cluster.await_all("P/S/Orders")
    fill(cluster)
    master = cluster.await_all("P/S/Orders")
    wiped = next(name for name in cluster.services if name != master)
    service = cluster.services[wiped]
    cluster.kill(wiped)
    for path in service.directory.iterdir():
        if path not in (service.file, service.log):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    service.start()

    def is_caught_up() -> bool:
        """Return whether the wiped one holds the log; on a busy machine another master may be elected meanwhile."""
        found = {str(each["service"]): each for each in replicas(qsctl)}
        lags = [each["lag_count"] for each in found.values() if each["role"] == "master"]
        return wiped in found and found[wiped]["role"] in ("slave", "master") and lags == [0]

    assert eventually(is_caught_up, PATIENCE_S), replicas(qsctl)
    assert produced(qsctl, "more") == (1, 0)
    assert eventually(is_caught_up, PATIENCE_S), replicas(qsctl)
