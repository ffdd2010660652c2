"""A preferred master, and reads without a master, as three processes over DDS."""

from __future__ import annotations

from pathlib import Path

import pytest

from qsctl.errors import ExitStatus
from tests.dds.cluster import QUEUES, Cluster
from tests.dds.cluster_commands import Shell, produced
from tests.dds.service_process import eventually
from tests.patience import PATIENCE_S

QUEUE = "P/S/Orders"


@pytest.mark.slow
def test_preferred_member_becomes_the_master_and_what_it_has_is_read_without_a_master(
    tmp_path: Path, domain: int
) -> None:
    cluster = Cluster(tmp_path, domain, queues=QUEUES)
    try:
        qsctl = Shell(domain)
        former = cluster.await_all(QUEUE)
        preferred, other = (name for name in cluster.services if name != former)
        assert [produced(qsctl, text) for text in "ab"] == [(1, 0)] * 2
        service = cluster.services[preferred]
        assert service.stop() == 0
        service.arguments += ("--master-priority", "10")
        service.start()
        assert cluster.master(QUEUE, other_than=former) == preferred
        assert f"reason='{former} hands over to it'" in service.log.read_text()
        members = qsctl.document("member", "list", "Orders")
        assert {each["member"]: each["master_priority"] for each in members} == {former: 0, preferred: 10, other: 0}
        assert qsctl.document("get", "messages", "Orders", "--allow-stale")[0]["may_be_behind"] is False

        cluster.kill(former)
        cluster.kill(other)
        read = ("get", "messages", "Orders", "--target", preferred)
        assert eventually(lambda: qsctl.status(*read) == ExitStatus.REFUSED, PATIENCE_S)
        rows = qsctl.document(*read, "--allow-stale")
        assert [each["position"] for each in rows] == [1, 2]
        assert {each["may_be_behind"] for each in rows} == {True}
        assert all(each["behind_seconds"] > 0 for each in rows)
        assert len(qsctl.document("peek", "Orders", "-n", "5", "--target", preferred, "--allow-stale")) == 2
    finally:
        cluster.end()
