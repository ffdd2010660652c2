"""A cluster with a key over DDS, and a stranger in its domain that records, repeats, changes and invents letters."""

from __future__ import annotations

import hashlib
import re
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from cyclonedds.sub import DataReader, Subscriber

from qsctl.config.signing_keys import create_keys, retire_keys, rotate_keys
from qsctl.core.high_availability.frames import Entries
from qsctl.transport.dds.channels import FrameWriter
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.qos import partition_qos, reader_qos
from qsctl.transport.dds.replicas._replica_wire import REPLICATION_TOPIC, WireReplicaPiece
from qsctl.transport.dds.replicas.letter_signatures import ClusterKeys, LetterDenial, LetterSigner
from qsctl.transport.dds.replicas.replica_letters import (
    Letter,
    Piece,
    Signature,
    letter_from_octets,
    piece_from_octets,
    pieces_of,
)
from qsctl.transport.dds.wire.raw import RawReader
from tests.dds.cluster import MASTER_TIMEOUT_MS, REPLICATED_SERVICE, Cluster, Load
from tests.dds.cluster_commands import Shell, produced, replicas
from tests.dds.service_process import ServiceProcess, eventually
from tests.patience import PATIENCE_S

QUEUE = "P/S/Orders"
NAMES = ("Cluster_1_A", "Cluster_1_B", "Cluster_1_C")
pytestmark = pytest.mark.xdist_group("cluster")


class Stranger:
    """A participant that reads the letters to all members, and writes to each of them, without announcing itself."""

    def __init__(self, domain: int) -> None:
        self.participant = Participant(domain)
        assert self.participant.entity is not None
        topic = self.participant.topic(REPLICATION_TOPIC, WireReplicaPiece)
        self._readers: dict[str, RawReader] = {}
        self._writers: dict[str, FrameWriter] = {}
        self.recorded: dict[str, list[bytes]] = {name: [] for name in NAMES}
        """The octets of the fragments that were sent to each member."""
        self._sent: set[bytes] = set()
        self._kept: list[Subscriber] = []
        for name in NAMES:
            partition = hashlib.sha256(f"Cluster_1\0{name}".encode()).hexdigest()[:32]
            self._kept.append(Subscriber(self.participant.entity, qos=partition_qos(partition)))
            self._readers[name] = RawReader(DataReader(self._kept[-1], topic, qos=reader_qos()))
            self._writers[name] = FrameWriter(self.participant, topic, partition=partition)

    def record(self) -> None:
        for name, reader in self._readers.items():
            while taken := reader.take():
                self.recorded[name] += [octets for octets in taken if octets not in self._sent]

    def heartbeat(self, recipient: str) -> tuple[Piece, Letter, Entries]:
        """The latest heartbeat of the queue's master to a member, with the letter and the fragment that contain it."""
        found: list[tuple[Piece, Letter, Entries]] = []

        def heard() -> bool:
            self.record()
            for octets in self.recorded[recipient][-50:]:
                piece = piece_from_octets(octets)
                if piece.count == 1:
                    letter = letter_from_octets(piece.data, piece.sender, lambda _: None)
                    found.extend(
                        (piece, letter, frame)
                        for frame in letter.frames
                        if isinstance(frame, Entries) and frame.stream == QUEUE
                    )
            return bool(found)

        assert eventually(heard, PATIENCE_S)
        return found[-1]

    def invented(self, recipient: str, sign: Callable[[Piece], tuple[Signature, ...]] = lambda _: ()) -> bytes:
        """A heartbeat of the master's process, which begins the next epoch."""
        piece, letter, frame = self.heartbeat(recipient)
        epoch = frame.epoch + 1
        frames = (msgspec.structs.replace(frame, epoch=epoch, records=(), sent_at_ns=frame.sent_at_ns + 1),)
        invented = msgspec.structs.replace(letter, frames=frames)
        (octets,) = pieces_of(invented, piece.sender, piece.run, piece.number + 1_000, sign)
        return octets

    def send(self, recipient: str, octets: bytes) -> None:
        self._sent.add(octets)
        self._writers[recipient].put(octets)
        self._writers[recipient].flush()

    def close(self) -> None:
        self.participant.close()


@pytest.fixture
def stranger(domain: int) -> Iterator[Stranger]:
    made = Stranger(domain)
    yield made
    made.close()


@pytest.fixture
def key(tmp_path: Path) -> Path:
    create_keys(tmp_path / "cluster.key")
    return tmp_path / "cluster.key"


@pytest.fixture
def signed(tmp_path: Path, domain: int, key: Path) -> Iterator[Cluster]:
    # SIGHUP rereads the keys of a service that has a log file; the file is the one in which tests look for its lines.
    options = ("--metrics-port", "0", "--cluster-key", str(key), "--log-file", "Cluster_1.log")
    cluster = Cluster(tmp_path, domain, *options)
    yield cluster
    cluster.end()


def refused(service: ServiceProcess) -> dict[str, int]:
    """The letters that a member has refused, by cause."""
    port = re.findall(r"metrics_port=(\d+)", service.log.read_text())[-1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as answer:
        text = answer.read().decode()
    counts = re.findall(r'qsctl_refused_letters_total{cause="(\w+)"} (\S+)', text)
    return {cause: int(float(count)) for cause, count in counts if float(count)}


def changed(octets: bytes) -> bytes:
    """A letter with another octet in its content."""
    piece = piece_from_octets(octets)
    data = bytearray(piece.data)
    data[len(data) // 2] ^= 1
    content = msgspec.msgpack.encode(msgspec.structs.replace(piece, data=bytes(data)))
    return octets[:4] + len(content).to_bytes(4, "little") + content + bytes(-len(content) & 3)


@pytest.mark.slow
def test_without_a_key_an_invented_letter_ends_a_mastership(tmp_path: Path, domain: int, stranger: Stranger) -> None:
    """The attack that the key is for; the service warns of it."""
    cluster = Cluster(tmp_path, domain)
    try:
        master = cluster.await_all(QUEUE)
        epoch, _ = cluster.roles(QUEUE)[master]
        slave = next(name for name in NAMES if name != master)
        assert eventually(
            lambda: stranger.send(slave, stranger.invented(slave)) or cluster.roles(QUEUE)[slave][0] > epoch, PATIENCE_S
        )
        assert (
            "replication messages between the members of the cluster are not signed"
            in cluster.services[master].log.read_text()
        )
    finally:
        cluster.end()


def test_no_letter_of_a_stranger_changes_a_role_of_a_cluster_with_a_key(
    signed: Cluster, domain: int, stranger: Stranger, tmp_path: Path
) -> None:
    master = signed.await_all(QUEUE)
    roles = signed.roles(QUEUE)
    slave, other = (name for name in NAMES if name != master)
    create_keys(tmp_path / "own.key")
    own = LetterSigner("run", ClusterKeys(tmp_path / "own.key"))
    stranger.heartbeat(slave)
    load = Load("Orders", domain)

    def attack() -> bool:
        stranger.record()
        for name in (master, slave):
            for octets in stranger.recorded[name][-5:]:
                stranger.send(name, octets)
                stranger.send(name, changed(octets))
            for octets in stranger.recorded[other][-5:]:
                stranger.send(name, octets)
        recipient = piece_from_octets(stranger.recorded[slave][-1]).signatures[0].run
        stranger.send(slave, stranger.invented(slave))
        stranger.send(slave, stranger.invented(slave, lambda piece: own.signatures(piece, (recipient,))))
        return refused(signed.services[slave]).keys() >= {"unsigned", "unknown_key", "wrong_signature", "replayed"}

    try:
        assert eventually(attack, PATIENCE_S), refused(signed.services[slave])
        deadline = time.monotonic() + 3 * MASTER_TIMEOUT_MS / 1_000
        while time.monotonic() < deadline:
            attack()
        assert signed.roles(QUEUE) == roles
    finally:
        load.stop()
    load.check()
    lines = [line for line in signed.services[slave].log.read_text().splitlines() if "refused_letters" in line]
    causes = [(re.findall(r"peer='([^']+)'", line)[0], re.findall(r"reason=.(\w+):", line)[0]) for line in lines]
    assert {LetterDenial.UNSIGNED, LetterDenial.WRONG_SIGNATURE} <= {cause for _, cause in causes}
    assert len(set(causes)) == len(causes), "each once"


@pytest.mark.slow
def test_letters_that_were_recorded_before_a_restart_have_no_effect_after_it(
    signed: Cluster, stranger: Stranger
) -> None:
    signed.await_all(QUEUE)
    stranger.heartbeat((signed.master(QUEUE) != NAMES[0] and NAMES[0]) or NAMES[1])
    restarted, other, _ = NAMES
    stranger.record()
    to_the_restarted = list(stranger.recorded[restarted])
    of_the_restarted = [octets for octets in stranger.recorded[other] if piece_from_octets(octets).sender == restarted]
    signed.kill(restarted)
    signed.services[restarted].start()
    signed.await_all(QUEUE)
    roles = signed.roles(QUEUE)

    def all_are_refused() -> bool:
        for octets in to_the_restarted:
            stranger.send(restarted, octets)
        for octets in of_the_restarted:
            stranger.send(other, octets)
        stranger.record()
        return refused(signed.services[restarted]).get("other_run", 0) >= len(to_the_restarted) and refused(
            signed.services[other]
        ).get("replayed", 0) >= len(of_the_restarted)

    assert eventually(all_are_refused, PATIENCE_S)
    assert signed.roles(QUEUE) == roles


@pytest.mark.slow
def test_configuration_and_queues_of_one_domain_are_replicated_with_a_key(
    tmp_path: Path, domain: int, key: Path
) -> None:
    """Both links of a process read each other's letters there."""
    options = ("--metrics-port", "0", "--cluster-key", str(key))
    cluster = Cluster(tmp_path, domain, *options, service=REPLICATED_SERVICE, queues="")
    qsctl = Shell(domain)
    try:
        cluster.await_all("configuration")
        assert "OK" in qsctl("create-queue", "Orders", "--target", "Cluster_1*")
        master = cluster.await_all(QUEUE)
        assert {each["role"] for each in replicas(qsctl)} == {"master", "slave"}
        # What its links send each other's readers is numbered in common: no letter is taken for another's copy.
        assert {cause for each in cluster.services.values() for cause in refused(each)} <= {"other_run"}
        cluster.kill(master)
        assert eventually(lambda: cluster.master(QUEUE, other_than=master) != "", PATIENCE_S)
    finally:
        cluster.end()


def test_the_key_is_changed_under_load_without_a_refused_letter(signed: Cluster, domain: int, key: Path) -> None:
    signed.await_all(QUEUE)
    roles = signed.roles(QUEUE)
    load = Load("Orders", domain)
    try:
        for change in (rotate_keys, retire_keys):
            numbers = ",".join(map(str, change(key)))
            for name, service in signed.services.items():
                signed.kill(name, signal.SIGHUP)
                line = f"event='cluster_keys_reread' service='{name}' keys='{numbers}'"
                assert eventually(lambda log=service.log, line=line: line in log.read_text(), PATIENCE_S)
    finally:
        load.stop()
    load.check()
    assert signed.roles(QUEUE) == roles
    assert [refused(service) for service in signed.services.values()] == [{}, {}, {}]


@pytest.mark.slow
def test_a_key_file_that_was_deleted_changes_nothing_before_a_restart(signed: Cluster, domain: int, key: Path) -> None:
    signed.await_all(QUEUE)
    text = key.read_bytes()
    key.unlink()
    for name, service in signed.services.items():
        signed.kill(name, signal.SIGHUP)
        assert eventually(lambda log=service.log: "cluster_keys_not_reread" in log.read_text(), PATIENCE_S)
    qsctl = Shell(domain)
    assert produced(qsctl, "a") == (1, 0)
    assert [refused(service) for service in signed.services.values()] == [{}, {}, {}]
    restarted = signed.services["Cluster_1_C"]
    assert restarted.stop() == 0
    with pytest.raises(AssertionError, match=re.escape(str(key))):
        restarted.start()
    key.write_bytes(text)
    key.chmod(0o600)
    restarted.start()
    assert eventually(lambda: len(replicas(qsctl)) == 3 and signed.await_all(QUEUE), PATIENCE_S)


@pytest.mark.slow
def test_a_member_with_another_key_is_named_until_it_has_the_right_one(
    signed: Cluster, domain: int, key: Path, tmp_path: Path
) -> None:
    signed.await_all(QUEUE)
    qsctl = Shell(domain)
    right = key.read_bytes()
    create_keys(tmp_path / "wrong.key")
    signed.kill("Cluster_1_C")
    key.write_bytes((tmp_path / "wrong.key").read_bytes())
    signed.services["Cluster_1_C"].start()
    named = "the replication messages of Cluster_1_C are refused: its messages are signed with another key"

    def naming() -> set[str]:
        return {each["service"] for each in replicas(qsctl) if named in each["reason"]}

    assert eventually(lambda: naming() == {"Cluster_1_A", "Cluster_1_B"}, PATIENCE_S)
    for name in ("Cluster_1_A", "Cluster_1_B"):
        lines = [line for line in signed.services[name].log.read_text().splitlines() if "unknown_key" in line]
        assert len(lines) == 1, lines
    key.write_bytes(right)
    signed.kill("Cluster_1_C", signal.SIGHUP)
    assert eventually(lambda: not naming() and signed.await_all(QUEUE), PATIENCE_S)
