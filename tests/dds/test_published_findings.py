"""Published faults of other brokers' replicated queues, repeated with processes [QS 7.1].

Each test does what a report did; `fixtures/schedules/published-*.txt` does it in a simulated cluster, with the power
failures and cut links that processes on one machine do not have: here a member is killed for the one and stopped for
the other.
"""

from __future__ import annotations

import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.identity import SampleIdentity
from tests.dds.cluster import MASTER_TIMEOUT_MS, Cluster
from tests.dds.cluster_commands import Shell, replicas
from tests.dds.service_process import ServiceProcess, eventually
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cluster")]

SCHEDULES = Path(__file__).parents[2] / "fixtures" / "schedules"
QUEUE = """<shared_reader_queue name="Orders" session="s"><topic_name>Orders</topic_name>
<type_name>DDS::Octets</type_name><queue_qos><persistence><kind>PERSISTENT</kind></persistence>
<redelivery><max_delivery_retries>100</max_delivery_retries></redelivery></queue_qos></shared_reader_queue>"""
ELECTION_S = 6 * MASTER_TIMEOUT_MS / 1000
"""Time in which members that may elect a master have elected one."""


class Trial:
    """A cluster with one persistent queue, and the journals of its clients."""

    def __init__(self, directory: Path, domain: int, instances: int) -> None:
        self.cluster = Cluster(directory, domain, queues=QUEUE, instances=instances)
        self.qsctl = Shell(domain)
        self._domain = domain
        self._accepted: set[SampleIdentity] = set()

    def begin(self) -> list[str]:
        """Wait for the first master; return the names of the members, the master's first."""
        master = self.cluster.await_all("P/S/Orders")
        return [master, *(name for name in self.cluster.services if name != master)]

    def write(self, count: int) -> None:
        """Write samples, all of which are accepted."""
        with QueueProducer("Orders", self._domain) as producer:
            producer.wait_for_queue(PATIENCE_S)
            written = [producer.write(b"%d" % number) for number in range(count)]
            assert producer.wait_for_acknowledgments(PATIENCE_S) == 0
        self._accepted.update(written)

    def forget_accepted(self) -> None:
        """Expect nothing of what was accepted until now: its queue was deleted."""
        self._accepted.clear()

    def are_level(self) -> bool:
        """Return whether the queue has a master, and every member of the cluster has its log."""
        found = replicas(self.qsctl)
        roles = [each["role"] for each in found]
        return (
            sorted(roles) == ["master"] + ["slave"] * (len(self.cluster.services) - 1)
            and {each["lag_count"] for each in found} == {0}
        )  # fmt: skip

    def kill(self, *names: str) -> None:
        for name in names:
            self.cluster.kill(name)

    def start(self, *names: str) -> None:
        for name in names:
            self.cluster.services[name].start()

    def send(self, number: int, *names: str) -> None:
        """Send a signal to services."""
        for name in names:
            self.cluster.kill(name, number)

    def is_changed(self, action: str, member: str) -> bool:
        """Request a change of the members; return whether it was made."""
        return "OK: P/S/Orders: voters:" in self.qsctl("member", action, member, "Orders")

    def masters(self) -> list[str]:
        """Return the members that answer as master."""
        return [each["service"] for each in replicas(self.qsctl) if each["role"] == "master"]

    def check(self) -> None:
        """Check that what was accepted is consumed, that nothing else is, and that nothing comes twice unflagged."""
        received: Counter[SampleIdentity] = Counter()
        with QueueConsumer("Orders", "S", self._domain) as consumer:
            consumer.wait_for_queue(PATIENCE_S)
            deadline = time.monotonic() + PATIENCE_S
            while self._accepted - received.keys() and time.monotonic() < deadline:
                for sample in consumer.receive(100, 0.1):
                    received[sample.identity] += not sample.redelivered
                    sample.acknowledge()
        assert received.keys() == self._accepted
        assert max(received.values()) <= 1


def log_files(service: ServiceProcess) -> list[Path]:
    """Return the files of the log of a service's replicas."""
    found = sorted(path for path in service.directory.rglob("*replicas@*") if path.is_file())
    assert found
    return found


def middle_of_log(service: ServiceProcess) -> tuple[Path, int]:
    """Return the largest file of the log, and the middle of what is written in it: files are longer than that."""
    path = max(log_files(service), key=lambda each: len(each.read_bytes().rstrip(b"\0")))
    return path, len(path.read_bytes().rstrip(b"\0")) // 2


def flip_bit(service: ServiceProcess, _image: Path) -> None:
    """Flip a bit in the middle of the log."""
    path, at = middle_of_log(service)
    octets = bytearray(path.read_bytes())
    octets[at] ^= 1
    path.write_bytes(octets)


def cut_off(service: ServiceProcess, _image: Path) -> None:
    """Cut off the second half of the log."""
    path, at = middle_of_log(service)
    with path.open("r+b") as file:
        file.truncate(at)


def put_back(service: ServiceProcess, image: Path) -> None:
    """Replace the directory by an image of an earlier time."""
    shutil.rmtree(service.directory)
    shutil.copytree(image, service.directory)


DAMAGES = {"flip-bit": flip_bit, "cut-off": cut_off, "put-back": put_back}


@pytest.fixture
def begin(tmp_path: Path, domain: int) -> Iterator[Callable[[int], Trial]]:
    """Begin a trial with a number of members; its services end with the test."""
    begun: list[Trial] = []

    def trial(instances: int) -> Trial:
        begun.append(Trial(tmp_path, domain, instances))
        return begun[-1]

    yield trial
    for each in begun:
        each.cluster.end()


def test_every_published_finding_is_repeated_with_processes() -> None:
    repeated = {"-".join(name.split("_")[1:3]) for name in globals() if name.startswith("test_")}
    assert {path.stem.removeprefix("published-") for path in SCHEDULES.glob("published-*.txt")} <= repeated


def test_nats_7545_member_is_removed_while_others_are_cut_off_and_killed(begin: Callable[[int], Trial]) -> None:
    trial = begin(5)
    master, second, third, fourth, _ = trial.begin()
    trial.write(20)
    trial.send(signal.SIGSTOP, master)
    trial.kill(second, third)
    assert not trial.is_changed("remove", fourth)
    trial.send(signal.SIGCONT, master)
    trial.start(second, third)
    assert eventually(trial.are_level, PATIENCE_S), replicas(trial.qsctl)
    assert {each["replica_count"] for each in replicas(trial.qsctl)} == {5}
    assert eventually(lambda: trial.is_changed("remove", fourth), PATIENCE_S)
    trial.cluster.services.pop(fourth).end()
    assert eventually(trial.are_level, PATIENCE_S), replicas(trial.qsctl)
    trial.write(1)
    trial.check()


@pytest.mark.parametrize("damage", DAMAGES)
def test_nats_7549_files_of_a_minority_are_damaged_and_the_master_falls(
    damage: str, begin: Callable[[int], Trial], tmp_path: Path
) -> None:
    trial = begin(5)
    master, second, third, *_ = trial.begin()
    services = trial.cluster.services
    trial.write(20)
    assert eventually(trial.are_level, PATIENCE_S), replicas(trial.qsctl)
    images = {name: tmp_path / f"image_{name}" for name in (second, third)}
    for name, image in images.items():
        shutil.copytree(services[name].directory, image)
    trial.write(20)
    assert eventually(trial.are_level, PATIENCE_S), replicas(trial.qsctl)
    trial.kill(second, third)
    for name, image in images.items():
        DAMAGES[damage](services[name], image)
    trial.kill(master)
    trial.start(second, third)
    time.sleep(ELECTION_S)
    assert not {second, third}.intersection(trial.masters())
    if damage == "flip-bit":
        for name in (second, third):
            assert "replica_log_kept" in services[name].log.read_text()
            assert list(services[name].directory.glob("*.db.damaged"))
    trial.start(master)
    assert eventually(trial.are_level, PATIENCE_S), replicas(trial.qsctl)
    trial.write(1)
    trial.check()


def test_nats_7567_one_member_falls_beside_paused_ones(begin: Callable[[int], Trial]) -> None:
    trial = begin(5)
    master, second, third, fourth, fifth = trial.begin()
    trial.send(signal.SIGSTOP, second, third)
    trial.write(20)
    trial.kill(master)
    trial.send(signal.SIGSTOP, fourth, fifth)
    trial.start(master)
    trial.send(signal.SIGCONT, second, third)
    trial.write(1)
    trial.send(signal.SIGCONT, fourth, fifth)
    assert eventually(trial.are_level, PATIENCE_S), replicas(trial.qsctl)
    trial.check()


def test_nats_6888_members_are_killed_in_turn_and_all_at_once(begin: Callable[[int], Trial]) -> None:
    trial = begin(3)
    first, second, third = trial.begin()
    trial.write(10)
    trial.kill(first)
    trial.cluster.master("P/S/Orders", other_than=first)
    trial.kill(second)
    trial.start(first)
    trial.kill(third, first)
    trial.start(third, second, first)
    trial.write(10)
    trial.kill(third, second, first)
    trial.start(first, third, second)
    assert eventually(trial.are_level, PATIENCE_S), replicas(trial.qsctl)
    trial.write(1)
    trial.check()


def test_nats_5576_member_returns_without_its_log_while_the_others_that_have_it_are_down(
    begin: Callable[[int], Trial],
) -> None:
    trial = begin(3)
    master, wiped, away = trial.begin()
    trial.kill(away)
    trial.write(20)
    trial.kill(master, wiped)
    for path in log_files(trial.cluster.services[wiped]):
        path.unlink()
    trial.start(wiped, away)
    time.sleep(ELECTION_S)
    assert trial.masters() == []
    trial.start(master)
    assert eventually(trial.are_level, PATIENCE_S), replicas(trial.qsctl)
    if trial.masters() != [wiped]:
        assert eventually(lambda: "hands over" in trial.qsctl("member", "step-down", "Orders", "--to", wiped))
    assert eventually(lambda: trial.masters() == [wiped], PATIENCE_S), replicas(trial.qsctl)
    trial.write(1)
    trial.check()


def test_rabbitmq_12366_member_was_down_while_its_queue_was_deleted_and_created(begin: Callable[[int], Trial]) -> None:
    trial = begin(3)
    _, _, away = trial.begin()
    trial.write(30)
    assert eventually(trial.are_level, PATIENCE_S), replicas(trial.qsctl)
    trial.kill(away)
    assert "is deleted" in trial.qsctl("delete-queue", "Orders", "--yes")
    trial.forget_accepted()
    assert "is created" in trial.qsctl("create-queue", "--xml", QUEUE)
    assert eventually(lambda: len(trial.masters()) == 1, PATIENCE_S)
    trial.write(1)
    trial.kill(*trial.masters())
    trial.start(away)
    time.sleep(ELECTION_S)
    assert away not in trial.masters()
    for name, service in trial.cluster.services.items():
        assert service.process is not None
        if service.process.poll() is not None:
            trial.start(name)
    assert eventually(trial.are_level, PATIENCE_S), replicas(trial.qsctl)
    trial.check()


def test_rabbitmq_2414_lost_members_are_removed_and_one_returns(begin: Callable[[int], Trial]) -> None:
    trial = begin(5)
    master, second, third, *lost = trial.begin()
    trial.write(10)
    trial.kill(*lost)
    for name in lost:
        assert eventually(lambda: trial.is_changed("remove", name), PATIENCE_S)  # noqa: B023
    trial.kill(third)
    trial.write(10)
    trial.start(lost[0])
    trial.write(1)
    trial.start(third)
    time.sleep(ELECTION_S)
    members = [each["member"] for each in trial.qsctl.document("member", "list", "Orders")]
    assert members == sorted([master, second, third])
    assert lost[0] not in trial.masters()
    trial.check()
