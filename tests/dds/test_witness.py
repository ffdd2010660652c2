"""A witness beside two members that hold samples, as processes over DDS."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from qsctl.errors import ExitStatus
from tests.dds.cluster import MASTER_TIMEOUT_MS, Cluster
from tests.dds.cluster_commands import Shell, produced, replicas
from tests.dds.service_process import eventually
from tests.patience import PATIENCE_S

QUEUE = "P/S/Orders"
ORDERS = """
<shared_reader_queue name="Orders" session="s">
  <topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos><persistence><kind>PERSISTENT</kind></persistence></queue_qos>
</shared_reader_queue>
"""


@pytest.mark.slow
def test_two_members_and_a_witness_survive_the_loss_of_either_member(tmp_path: Path, domain: int) -> None:
    cluster = Cluster(tmp_path, domain, queues=ORDERS)
    try:
        qsctl = Shell(domain)
        master = cluster.await_all(QUEUE)
        other, gone = (name for name in cluster.services if name != master)
        witness = cluster.start_another(tmp_path / "W", "Cluster_1_W", "--join")
        assert eventually(lambda: "Cluster_1_W" in {each["service"] for each in replicas(qsctl)}, PATIENCE_S)
        change = ("--yes",)
        assert qsctl.status("member", "add", "Cluster_1_W", "Orders", "--witness", *change) == 0
        assert eventually(lambda: qsctl.status("member", "promote", "Cluster_1_W", "Orders", *change) == 0, PATIENCE_S)
        assert qsctl.status("member", "remove", gone, "Orders", *change) == 0
        assert qsctl.status("member", "remove", other, "Orders", *change) == ExitStatus.REFUSED
        assert cluster.services.pop(gone).stop() == 0
        votes = {each["member"]: each["vote"] for each in qsctl.document("member", "list", "Orders")}
        assert votes == {master: "voter", other: "voter", "Cluster_1_W": "witness"}

        content = "content-of-a-sample" * 20
        assert produced(qsctl, content) == (1, 0)
        cluster.kill(master)
        assert cluster.master(QUEUE, other_than=master) == other
        assert produced(qsctl, content) == (1, 0)
        cluster.kill(other)
        time.sleep(4 * MASTER_TIMEOUT_MS / 1000)
        assert {each["role"] for each in replicas(qsctl)} == {"slave"}, "of the witness"
        read = ("get", "messages", "Orders", "--target", "Cluster_1_W", "--allow-stale")
        assert qsctl.status(*read) == ExitStatus.REFUSED
        cluster.services[master].start()
        time.sleep(6 * MASTER_TIMEOUT_MS / 1000)
        assert "master" not in {each["role"] for each in replicas(qsctl)}, "it lacks the second sample"
        cluster.services[other].start()
        assert eventually(lambda: {each["master"] for each in replicas(qsctl)} == {other}, PATIENCE_S)
        assert len(qsctl.document("get", "messages", "Orders", "--target", other)) == 2
        for file in witness.directory.iterdir():
            if file.is_file():
                assert content.encode() not in file.read_bytes(), file
        assert eventually(
            lambda: {each["lag_count"] for each in qsctl.document("member", "list", "Orders")} == {0}, PATIENCE_S
        )
        cluster.start_another(tmp_path / "V", "Cluster_1_V", "--join")
        assert eventually(lambda: "Cluster_1_V" in {each["service"] for each in replicas(qsctl)}, PATIENCE_S)
        assert qsctl.status("member", "replace", "Cluster_1_W", "Cluster_1_V", "Orders", *change) == 0
        votes = {each["member"]: each["vote"] for each in qsctl.document("member", "list", "Orders")}
        assert votes == {master: "voter", other: "voter", "Cluster_1_V": "witness"}
    finally:
        cluster.end()
