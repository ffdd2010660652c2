"""A service with a key, over DDS: who may change it, and that nothing that was heard on the network is of use."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader

from qsctl.client.administration import Administration
from qsctl.client.dds_connection import DdsConnection
from qsctl.config.signing_keys import create_keys, read_keys, retire_keys, rotate_keys
from qsctl.core.admin.command import GetData, Shutdown
from qsctl.core.admin.reply import ReturnCode
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.errors import NotFound, QsctlError
from qsctl.identity import Guid, SampleIdentity
from qsctl.resource import ResourceIdentifier, ResourceKind, parse_resource
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.qos import reader_qos, writer_qos
from qsctl.transport.dds.wire.bodies import octets_of
from qsctl.transport.dds.wire.commands import wire_request
from qsctl.transport.dds.wire.raw import RawReader, RawWriter
from qsctl.transport.dds.wire.wire_types import COMMAND_REQUEST_TOPIC, UnsignedCommandRequest, WireCommandRequest
from tests.dds.service_process import QUICK, ServiceProcess, StartService
from tests.patience import PATIENCE_S, eventually
from tests.processes import run

SUBSCRIBER = parse_resource("/domain_participant/P/shared_subscriber/S")
SIGNED = "<key_file>admin.key</key_file>"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "admin.key"
    create_keys(file)
    return file


@pytest.fixture
def connect(domain: int) -> Iterator[Callable[..., Administration]]:
    opened: list[DdsConnection] = []

    def connected(key_file: Path | None = None, timeout_s: float = PATIENCE_S) -> Administration:
        opened.append(DdsConnection(domain, timeout_s, QUICK, key_file))
        return Administration(opened[-1], "Test")

    yield connected
    for each in opened:
        each.close()


class Eavesdropper:
    """A stranger in the domain that hears commands and sends them again."""

    def __init__(self, domain: int) -> None:
        self.participant = Participant(domain)
        assert self.participant.entity is not None
        topic = self.participant.topic(COMMAND_REQUEST_TOPIC, WireCommandRequest)
        self.reader = RawReader(DataReader(self.participant.entity, topic, qos=reader_qos()))
        self.writer = RawWriter(DataWriter(self.participant.entity, topic, qos=writer_qos()))
        self.heard: list[bytes] = []
        assert eventually(self.writer.matched_count)

    def hears(self, what: bytes) -> bytes:
        assert eventually(lambda: self.heard.extend(self.reader.take()) or any(what in each for each in self.heard))
        return next(each for each in self.heard if what in each)

    def send(self, octets: bytes) -> None:
        assert self.writer.write(octets)
        self.writer.flush()

    def close(self) -> None:
        self.participant.close()


@pytest.fixture
def eavesdrop(domain: int) -> Iterator[Callable[[], Eavesdropper]]:
    met: list[Eavesdropper] = []

    def eavesdropper() -> Eavesdropper:
        met.append(Eavesdropper(domain))
        return met[-1]

    yield eavesdropper
    for each in met:
        each.close()


def settings(name: str) -> SharedReaderQueueSettings:
    return SharedReaderQueueSettings(name, name, "DDS::Octets")


def create(administration: Administration, name: str) -> str:
    """The service's answer to a CREATE: OK, or the error's text."""
    try:
        administration.create_queue(SUBSCRIBER, settings(name))
    except QsctlError as error:
        return f"{type(error).__name__}: {error.message}"
    return "OK"


def queues(administration: Administration) -> set[str]:
    return {each.queue_name for each in administration.service_data()[0].body.queues}


def denied(service: ServiceProcess) -> dict[str, int]:
    port = re.findall(r"metrics_port=(\d+)", service.log.read_text())[-1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as answer:
        text = answer.read().decode()
    found = re.findall(r'^qsctl_unauthorized_commands_total\{cause="(\w+)"\} ([\d.]+)$', text, re.MULTILINE)
    return {cause: int(float(count)) for cause, count in found}


def hung_up(service: ServiceProcess, line: str) -> None:
    """Have the service read its files again, and wait for the line about its keys."""
    begins_at = len(service.log.read_text())
    subprocess.run(["kill", "-HUP", str(service.pid)], check=True)
    assert eventually(lambda: line in service.log.read_text()[begins_at:]), service.log.read_text()[begins_at:]


def test_only_signed_commands_change_the_service_and_anyone_may_read(
    start_service: StartService, key: Path, tmp_path: Path, connect: Callable[..., Administration]
) -> None:
    service = start_service("--metrics-port", "0", administration=SIGNED)
    assert eventually(lambda: set(denied(service).values()) == {0}), "born at 0"
    without = connect()
    assert queues(without) == {"P/S/Orders"}
    assert create(without, "A").startswith("Refused: ERROR: this service carries out signed commands only")
    (reply,) = without.send(Shutdown())
    assert (reply.reply.retcode, "not signed" in reply.reply.text) == (ReturnCode.ERROR, True)
    create_keys(tmp_path / "other.key")
    answer = create(connect(tmp_path / "other.key"), "A")
    assert f"the key {read_keys(tmp_path / 'other.key')[0]}, which signed the command" in answer
    holder = connect(key)
    assert create(holder, "A") == "OK"
    assert create(holder, "A").startswith("Duplicated")
    holder.delete_queue(SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "A"))
    assert queues(without) == {"P/S/Orders"}
    assert eventually(lambda: denied(service)["unknown_key"] == 1)
    assert denied(service)["unsigned"] == 2
    log = service.log.read_text()
    assert "unauthorized_commands" in log
    assert f"CREATE {SUBSCRIBER}: this service carries out signed commands only" in log
    (reply,) = holder.send(Shutdown())
    assert reply.reply.retcode is ReturnCode.OK
    assert service.process is not None
    assert service.process.wait(PATIENCE_S) == 0


def test_a_replayed_command_is_refused_also_after_a_restart(
    start_service: StartService,
    key: Path,
    connect: Callable[..., Administration],
    eavesdrop: Callable[[], Eavesdropper],
) -> None:
    service = start_service("--metrics-port", "0", administration=SIGNED)
    stranger, holder = eavesdrop(), connect(key)
    assert create(holder, "Heard") == "OK"
    holder.delete_queue(SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "Heard"))
    heard = stranger.hears(b"Heard")
    stranger.send(heard)
    assert eventually(lambda: denied(service)["replayed"] == 1)
    assert queues(holder) == {"P/S/Orders"}
    changed = heard.replace(b"Heard", b"Other")
    stranger.send(changed)
    assert eventually(lambda: denied(service)["wrong_signature"] == 1)
    assert service.stop() == 0
    service.start()
    assert eventually(stranger.writer.matched_count)
    stranger.send(heard)
    assert eventually(lambda: denied(service)["other_run"] == 1)
    assert create(holder, "New") == "OK", "a client goes on with the service that started again"
    assert queues(holder) == {"P/S/Orders", "P/S/New"}


def test_a_key_is_rotated_without_a_restart(
    start_service: StartService, key: Path, tmp_path: Path, connect: Callable[..., Administration]
) -> None:
    service = start_service("--log-file", "Test.log", administration=SIGNED)
    at_a_client = tmp_path / "client.key"
    at_a_client.write_bytes(key.read_bytes())
    at_a_client.chmod(0o600)
    client = connect(at_a_client)
    assert create(client, "A") == "OK"
    rotate_keys(key)
    assert create(connect(key), "B").startswith("Refused"), "the service has not read the file again"
    hung_up(service, f"keys='{','.join(map(str, read_keys(key)))}'")
    assert create(client, "B") == "OK", "with the former key"
    at_a_client.write_bytes(key.read_bytes())
    assert create(client, "C") == "OK", "with the new one, which the client reads with the next command"
    key.chmod(0o644)
    hung_up(service, "keys_not_reread")
    key.chmod(0o600)
    assert create(client, "D") == "OK", "the service goes on with the keys that it has"
    former = tmp_path / "former.key"
    former.write_text(f"{read_keys(key)[1].octets.hex()}\n")
    former.chmod(0o600)
    assert create(connect(former), "E") == "OK"
    retire_keys(key)
    hung_up(service, "keys_reread")
    assert create(client, "F") == "OK"
    assert "is not a key of this service" in create(connect(former), "G")
    assert read_keys(key)[0].octets.hex() not in service.log.read_text()


def test_at_a_service_without_a_key_clients_with_and_without_one_work(
    start_service: StartService,
    key: Path,
    connect: Callable[..., Administration],
    eavesdrop: Callable[[], Eavesdropper],
) -> None:
    """As at an earlier service, which announces no run: nothing is signed, and the key is not even read."""
    start_service()
    stranger = eavesdrop()
    assert create(connect(key), "WithKey") == "OK"
    assert create(connect(key.with_name("missing.key")), "WithMissingKey") == "OK"
    assert create(connect(), "Without") == "OK"
    assert key.read_bytes()[-65:-1] not in stranger.hears(b"WithKey")
    made = wire_request(GetData(ResourceIdentifier().at(ResourceKind.DATA)), "Test", SampleIdentity(Guid(b"1" * 16), 1))
    assert len(stranger.hears(b"Without")) < len(octets_of(made)) + 1000


def test_an_earlier_client_reads_and_is_denied_changes(
    start_service: StartService, key: Path, domain: int, connect: Callable[..., Administration]
) -> None:
    service = start_service("--metrics-port", "0", administration=SIGNED)
    stranger = Participant(domain)
    try:
        assert stranger.entity is not None
        topic = stranger.topic(COMMAND_REQUEST_TOPIC, UnsignedCommandRequest)
        writer = RawWriter(DataWriter(stranger.entity, topic, qos=writer_qos()))
        assert eventually(writer.matched_count)
        made = wire_request(Shutdown(), "Test", SampleIdentity(Guid(b"1" * 16), 1))
        earlier = UnsignedCommandRequest(made.service_name, made.service, made.action, made.resource_identifier)
        earlier.request_identity = made.request_identity  # else the answer is read as one to any request
        assert writer.write(octets_of(earlier))
        writer.flush()
        assert eventually(lambda: denied(service)["unsigned"] == 1)
        assert queues(connect()) == {"P/S/Orders"}
    finally:
        stranger.close()


def test_a_service_of_several_processes_checks_once_and_rotates(
    start_service: StartService, key: Path, connect: Callable[..., Administration]
) -> None:
    queue = '<shared_reader_queue name="{0}" session="{1}"><topic_name>{0}</topic_name>'
    queue += "<type_name>DDS::Octets</type_name></shared_reader_queue>"
    service = start_service(
        "--log-file",
        "Test.log",
        administration=SIGNED,
        sessions='<session name="a"/><session name="b"/>',
        queues=queue.format("A", "a") + queue.format("B", "b"),
    )
    assert create(connect(), "C").startswith("Refused")
    administration = connect(key)
    administration.delete_queue(SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "B"))
    assert queues(administration) == {"P/S/A"}
    rotate_keys(key)
    hung_up(service, "keys_reread")
    administration.delete_queue(SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "A"))


@pytest.mark.parametrize(("mode", "status"), [(0o644, 1), (0o600, 0)])
def test_validate_and_serve_judge_the_key_file_alike(
    key: Path, tmp_path: Path, domain: int, mode: int, status: int
) -> None:
    key.chmod(mode)
    file = tmp_path / "service.xml"
    file.write_text(
        f'<dds><queuing_service name="T"><administration><domain_id>{domain}</domain_id>{SIGNED}</administration>'
        f'<domain_participant name="P"><domain_id>{domain}</domain_id><shared_subscriber name="S"><session_settings>'
        '<session name="s"/></session_settings></shared_subscriber></domain_participant></queuing_service></dds>'
    )
    qsctl = [sys.executable, "-m", "qsctl"]
    judged = run([*qsctl, "validate", str(file)], cwd=tmp_path)
    assert judged.returncode == status, judged.stdout + judged.stderr
    if status:
        served = run([*qsctl, "serve", str(file)], cwd=tmp_path)
        assert served.returncode == status
        for printed in (judged.stdout + judged.stderr, served.stderr):
            assert "has mode 0644" in printed
            assert "service.xml:1" in printed
            assert "chmod 0600" in printed


@pytest.mark.slow
def test_the_command_line_signs_and_shows_no_key(
    start_service: StartService, key: Path, tmp_path: Path, domain: int
) -> None:
    service = start_service(administration=SIGNED)
    (found,) = read_keys(key)
    secret = found.octets.hex()
    environment = {"QSCTL_CONFIG": str(tmp_path / "config.toml"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}

    def qsctl(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "qsctl", *words]
        return run(command, cwd=tmp_path, env=environment)

    there = ("--service", f"dds:{domain}", "--timeout", f"{PATIENCE_S:g}s")
    refused = qsctl("create-queue", "New", *there)
    assert refused.returncode == 7, refused.stderr
    assert "this service carries out signed commands only" in refused.stderr
    assert "--key-file" in refused.stderr
    added = qsctl("context", "add", "prod", *there, "--key-file", "admin.key", "--use")
    assert added.returncode == 0, added.stderr
    texts = [qsctl(*words) for words in (
        ("create-queue", "New"),
        ("produce", "New", "--text", "a"),
        ("get", "status"),
        ("get", "config"),
        ("context", "list", "-o", "json"),
        ("key", "list", "admin.key"),
        ("key", "list", "admin.key", "-o", "json"),
        ("debug", "bundle", "bundle.zip", "--log", str(service.log)),
        ("flush-queue", "New", "--yes"),
    )]  # fmt: skip
    for each in texts:
        assert each.returncode == 0, each.stderr
        assert secret not in each.stdout + each.stderr
    with zipfile.ZipFile(tmp_path / "bundle.zip") as bundle:
        for name in bundle.namelist():
            assert secret.encode() not in bundle.read(name)
    assert secret not in service.log.read_text()
    assert secret not in Path(f"/proc/{service.pid}/cmdline").read_text()
    assert secret not in (tmp_path / "config.toml").read_text()
    (tmp_path / "config.toml").write_text((tmp_path / "config.toml").read_text().replace("admin.key", "elsewhere.key"))
    copied = qsctl("flush-queue", "New", "--yes")
    assert copied.returncode == 4, copied.stderr
    assert "there is no key file" in copied.stderr
    assert "Context: prod" in copied.stderr
    assert qsctl("get", "status").returncode == 0, "reading needs no key"


def test_a_missing_key_is_an_error_before_anything_is_sent(
    start_service: StartService, key: Path, connect: Callable[..., Administration]
) -> None:
    start_service(administration=SIGNED)
    administration = connect(key.with_name("missing.key"))
    with pytest.raises(NotFound, match="there is no key file"):
        administration.create_queue(SUBSCRIBER, settings("A"))
    assert queues(administration) == {"P/S/Orders"}
