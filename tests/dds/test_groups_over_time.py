"""Replicated queues as three processes: created, deleted and created while one is away, forced, and strangers [QS 7].

`tests/core/high_availability/test_groups.py` and `test_frames.py` hold the rules; here they are seen once over DDS.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qsctl.core.high_availability.frames import Canvass, Entries, Frame
from qsctl.errors import ExitStatus
from qsctl.transport.dds.channels import FrameWriter
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.replicas._replica_wire import REPLICATION_TOPIC, WireReplicaPiece
from qsctl.transport.dds.replicas.letter_box import Seen
from qsctl.transport.dds.replicas.replica_letters import LETTER_FORMAT, Letter, pieces_of
from qsctl.transport.dds.replicas.replica_link import LinkQos
from qsctl.transport.dds.serving._delivery import DomainDelivery
from tests.commands import command_line
from tests.dds.cluster import MASTER_TIMEOUT_MS, Cluster
from tests.dds.cluster_commands import Shell, figures, produced, replicas
from tests.dds.domains import claim_domain, release_domain
from tests.dds.service_process import eventually
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.xdist_group("cluster")

STREAM = "P/S/Orders"
RUN = "stranger"
QUEUE = """<shared_reader_queue name="{name}" session="s"><topic_name>{name}</topic_name>
<type_name>DDS::Octets</type_name><queue_qos><persistence><kind>PERSISTENT</kind></persistence></queue_qos>
</shared_reader_queue>"""


@pytest.fixture
def domain() -> Iterator[int]:
    claimed = claim_domain()
    yield claimed
    release_domain(claimed)


@pytest.fixture
def cluster(tmp_path: Path, domain: int) -> Iterator[Cluster]:
    made = Cluster(tmp_path, domain, "--metrics-port", "0", queues=QUEUE.format(name="Orders"))
    try:
        made.await_all(STREAM)
        yield made
    finally:
        made.end()


def held(qsctl: Shell, master: str) -> int:
    return len(qsctl.document("get", "messages", "Orders", "--target", master))


def test_a_member_that_was_away_while_its_queue_was_deleted_and_created_decides_nothing(
    cluster: Cluster, domain: int
) -> None:
    qsctl = Shell(domain)
    for text in "abcde":
        assert produced(qsctl, text) == (1, 0)
    master = cluster.master(STREAM)
    away = next(name for name in cluster.services if name != master)
    cluster.kill(away)
    new = qsctl("create-queue", "--xml", QUEUE.format(name="New"))
    assert "New is created" in new, new
    assert cluster.master("P/S/New"), "a quorum is enough"
    assert "is deleted" in qsctl("delete-queue", "Orders", "--yes")
    assert "is created" in qsctl("create-queue", "--xml", QUEUE.format(name="Orders"))
    assert eventually(lambda: sorted(each["role"] for each in replicas(qsctl)) == ["master", "slave"], PATIENCE_S)
    assert produced(qsctl, "z") == (1, 0)
    cluster.services[away].start()
    log = cluster.services[away].log
    assert eventually(lambda: "of a queue of this name that was deleted" in log.read_text(), PATIENCE_S)
    assert eventually(
        lambda: sorted(each["role"] for each in replicas(qsctl)) == ["master", "slave", "slave"], PATIENCE_S
    )
    assert eventually(lambda: {each["last_index"] for each in replicas(qsctl)} != {0}, PATIENCE_S)
    assert held(qsctl, cluster.master(STREAM)) == 1


@pytest.mark.slow
def test_after_the_loss_of_two_disks_an_operator_s_word_alone_makes_a_master(cluster: Cluster, domain: int) -> None:
    qsctl = Shell(domain)
    assert produced(qsctl, "a") == (1, 0)
    kept = cluster.master(STREAM)
    lost = [name for name in cluster.services if name != kept]
    for name in cluster.services:
        cluster.kill(name)
    for name in lost:
        service = cluster.services[name]
        for path in service.directory.iterdir():
            if path not in (service.log, service.file):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    # First the one that has its log: two without one are a quorum, and would form a new group.
    for name in (kept, *lost):
        cluster.services[name].start()
    assert eventually(lambda: len(replicas(qsctl)) == 3, PATIENCE_S)
    time.sleep(4 * MASTER_TIMEOUT_MS / 1000)
    assert not [each for each in replicas(qsctl) if each["role"] == "master"]
    reasons = {each["service"]: each["reason"] for each in replicas(qsctl)}
    assert all("1 of 3 replicas are there with their log" in reasons[name] for name in (kept, *lost)), reasons
    command = ["member", "force-quorum", "Orders", "--service", f"dds:{domain}"]
    trial = CliRunner().invoke(command_line(), [*command, "--dry-run"])
    assert trial.exit_code == ExitStatus.DONE, trial.output
    assert "votes again" in trial.output
    assert not [each for each in replicas(qsctl) if each["role"] == "master"]
    forced = CliRunner().invoke(command_line(), [*command, "--yes"])
    assert forced.exit_code == ExitStatus.DONE, forced.output
    assert eventually(lambda: [each["master"] for each in replicas(qsctl)] == [kept] * 3, PATIENCE_S)
    assert held(qsctl, kept) == 1
    again = CliRunner().invoke(command_line(), [*command, "--yes"])
    assert again.exit_code == ExitStatus.REFUSED, again.output
    assert "is its master" in again.output


class Stranger:
    """Somebody in the domain who knows how letters look, and announces itself by a member's name."""

    def __init__(self, domain: int, names: str) -> None:
        self.delivery = DomainDelivery("P", Participant(domain), names)
        self.link = self.delivery.open_replica_link("Cluster_1", Seen(names, RUN, 1), LinkQos())
        self.number = 10**9

    def run_of(self, name: str) -> str:
        def is_seen() -> bool:
            self.delivery.poll()
            return bool(self._runs(name))

        assert eventually(is_seen, PATIENCE_S)
        return self._runs(name)[0]

    def _runs(self, name: str) -> list[str]:
        return [each.run for each in self.link.box._peers.values() if each.name == name and each.run != RUN]

    def send(self, recipient: str, run: str, *frames: Frame) -> None:
        """Send a letter in the name and number of a process that is heard."""
        participant = self.delivery.participant
        topic = participant.topic(REPLICATION_TOPIC, WireReplicaPiece)
        writer = FrameWriter(participant, topic, partition=self.link._partition(recipient))
        assert eventually(lambda: writer.writer.matched_count() > 0, PATIENCE_S)
        for _ in range(3):
            self.number += 1
            for piece in pieces_of(Letter(LETTER_FORMAT, (), frames), frames[0].sender, run, self.number):
                writer.put(piece)
            writer.flush()
            time.sleep(0.05)
        writer.close()

    def close(self) -> None:
        self.link.close()
        self.delivery.close()


@pytest.mark.slow
def test_letters_and_announcements_of_a_stranger_have_no_effect_but_a_line_and_a_count(
    cluster: Cluster, domain: int
) -> None:
    qsctl = Shell(domain)
    master = cluster.master(STREAM)
    assert eventually(lambda: len({epoch for epoch, _ in cluster.roles(STREAM).values()}) == 1, PATIENCE_S)
    roles = cluster.roles(STREAM)
    slave = next(name for name in cluster.services if name != master)
    epoch = roles[master][0]
    strangers = [Stranger(domain, name) for name in cluster.services]
    try:
        run = strangers[0].run_of(slave) if slave != "Cluster_1_A" else strangers[1].run_of(slave)
        strangers[0].send(master, run, Entries(STREAM, slave, epoch, 1, 1, (), 1, 0))
        strangers[0].send(master, run, Canvass(STREAM, slave, 2**53, 2**53 + 1, 9, 9, True))
        strangers[0].send(master, run, Entries(STREAM, slave, 2**53, 1, 1, (), 1, 0))
        log = cluster.services[master].log
        assert eventually(lambda: "replica_frame_refused" in log.read_text(), PATIENCE_S)
        time.sleep(2 * MASTER_TIMEOUT_MS / 1000)
        assert cluster.roles(STREAM) == roles, "nobody's role and epoch changed"
        (line,) = re.findall(r"event='replica_frame_refused'.*kind='Entries'.*", log.read_text())
        assert f"service='{master}'" in line, "as in every line, who wrote it"
        assert f"sender='{slave}'" in line
        assert eventually(lambda: bool(figures(cluster.services[master])), PATIENCE_S), "it serves them still"
        assert all("another_replica_of_this_name" in each.log.read_text() for each in cluster.services.values())
        assert produced(qsctl, "a") == (1, 0)
    finally:
        for stranger in strangers:
            stranger.close()
