"""Administration over DDS: who answers, what strangers may send, and what is refused [QS 5]."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader

from qsctl.client._dds_administrator import Administrator
from qsctl.client.administration import Administration, AlreadyExists, Duplicated
from qsctl.core.admin.command import GetData
from qsctl.core.admin.reply import ReturnCode
from qsctl.core.queue.settings import ResourceLimitSettings, SharedReaderQueueSettings
from qsctl.errors import NoAnswer, Refused
from qsctl.resource import ResourceIdentifier, ResourceKind, parse_resource
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.qos import reader_qos, writer_qos
from qsctl.transport.dds.wire.raw import RawWriter
from qsctl.transport.dds.wire.wire_monitoring import monitoring_class
from qsctl.transport.dds.wire.wire_types import (
    COMMAND_REPLY_TOPIC,
    COMMAND_REQUEST_TOPIC,
    CommandActionKind,
    OriginalCommandReply,
    OriginalCommandRequest,
    ServiceKind,
)
from tests.patience import PATIENCE_S, eventually
from tests.processes import run

SERVICE_DATA = GetData(ResourceIdentifier().at(ResourceKind.DATA))
ORDERS = "/domain_participant/P/shared_subscriber/S/shared_reader_queue/Orders"


class Stranger:
    """A program that knows the original's members only: no identity, no names, no user data."""

    def __init__(self, domain: int) -> None:
        self.participant = Participant(domain)
        assert self.participant.entity is not None
        requests = self.participant.topic(COMMAND_REQUEST_TOPIC, OriginalCommandRequest)
        self.writer = RawWriter(DataWriter(self.participant.entity, requests, qos=writer_qos()))
        self.reader: DataReader[Any] | None = None
        assert eventually(self.writer.matched_count)

    def listen(self) -> None:
        assert self.participant.entity is not None
        replies = self.participant.topic(COMMAND_REPLY_TOPIC, OriginalCommandReply)
        self.reader = DataReader(self.participant.entity, replies, qos=reader_qos())

    def ask(
        self, action: CommandActionKind, resource: str, body: str = "", service: str = "Test", count: int = 1
    ) -> Any:
        if self.reader is None:
            self.listen()
        assert self.reader is not None
        request: Any = OriginalCommandRequest(
            service, ServiceKind.RTI_SERVICE_QUEUING_SERVICE, action, resource, body, b""
        )  # type: ignore[arg-type]
        assert self.writer.write(bytes(request.serialize(use_version_2=False)))
        self.writer.flush()
        replies: list[Any] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(replies) < count and time.monotonic() < deadline:
            replies += [each for each in self.reader.take(100) if each.sample_info.valid_data]
            time.sleep(0.005)
        return replies

    def close(self) -> None:
        self.participant.close()


Meet: TypeAlias = Callable[[], Stranger]


@pytest.fixture
def meet(domain: int) -> Iterator[Meet]:
    """Strangers that are gone after the test, however it ends."""
    met: list[Stranger] = []

    def stranger() -> Stranger:
        met.append(Stranger(domain))
        return met[-1]

    yield stranger
    for each in met:
        each.close()


def test_a_request_with_the_original_members_only_is_answered(start_service: Callable[..., Any], meet: Meet) -> None:
    start_service()
    stranger = meet()
    xml = (
        '<shared_reader_queue name="New" session="s"><topic_name>N</topic_name>'
        "<type_name>DDS::Octets</type_name></shared_reader_queue>"
    )
    (created,) = stranger.ask(
        CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE,
        "/domain_participant/P/shared_subscriber/S",
        f'str://"{xml}"',
    )
    assert created.retcode.name == "RTI_SERVICE_COMMAND_REPLY_OK", created.string_body
    (again,) = stranger.ask(
        CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE,
        "/domain_participant/P/shared_subscriber/S",
        f'str://"{xml}"',
    )
    assert again.retcode.name == "RTI_SERVICE_COMMAND_REPLY_DUPLICATED"
    (status,) = stranger.ask(CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET, f"{ORDERS}/status")
    read: Any = monitoring_class("Monitoring::SharedReaderQueueStatus").deserialize(bytes(status.octet_body))
    assert (read.queue_name, read.current_message_count) == ("P/S/Orders", 0)


def test_a_reply_to_a_program_that_numbers_no_requests_is_not_taken_for_another_client_s(
    start_service: Callable[..., Any], meet: Meet, domain: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The administrator waits for a reply to a request that is lost, while the program is answered."""
    start_service()
    stranger = meet()
    administrator = Administrator(domain, 1.0)
    assert eventually(lambda: [administrator._domain.turn(1_000_000), administrator.services() == ("Test",)][1])

    def ask_instead(_request: bytes) -> None:
        assert len(stranger.ask(CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET, "/data")) == 1

    monkeypatch.setattr(administrator._writer, "put", ask_instead)
    assert administrator.request(SERVICE_DATA, "Test") == []
    administrator.leave()


def test_a_reply_reader_opened_last_gets_the_reply(start_service: Callable[..., Any], meet: Meet) -> None:
    start_service()
    for _ in range(10):
        assert len(meet().ask(CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET, "/data")) == 1


def test_a_requester_that_reads_no_replies_does_not_delay_others(start_service: Callable[..., Any], meet: Meet) -> None:
    start_service()
    deaf, stranger = meet(), meet()
    for _ in range(3):
        assert len(stranger.ask(CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET, "/data")) == 1
    assert deaf.reader is None


def test_wrong_requests_are_answered_with_what_is_wrong(start_service: Callable[..., Any], meet: Meet) -> None:
    start_service()
    stranger = meet()
    wrong = [
        (
            CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE,
            "/domain_participant/P/shared_subscriber/S",
            "file:///etc/passwd",
            "file://",
        ),
        (
            CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE,
            "/domain_participant/P/shared_subscriber/S",
            "",
            "body, which is empty",
        ),
        (
            CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE,
            "/domain_participant/P/shared_subscriber/S",
            "<!DOCTYPE a [<!ENTITY b 'c'>]><a/>",
            "",
        ),
        (CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE, "/domain_participant/P/shared_subscriber/S", "<a", ""),
        (
            CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE,
            ORDERS,
            "<shared_reader_queue/>",
            "nothing can be created",
        ),
        (CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET, "/nonsense", "", "not a resource kind"),
        (CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET, ORDERS, "", "cannot be read"),
        (CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET, f"{ORDERS}/message", "@nonsense = 1", "column 1"),
        (CommandActionKind.RTI_SERVICE_COMMAND_ACTION_DELETE, "/domain_participant/P", "", "cannot be deleted"),
        (CommandActionKind.RTI_SERVICE_COMMAND_ACTION_ADD_PEER, "/", "", "not a command of a queuing service"),
    ]
    for action, resource, body, expected in wrong:
        (reply,) = stranger.ask(action, resource, body)
        assert reply.retcode.name == "RTI_SERVICE_COMMAND_REPLY_ERROR", (resource, body)
        assert expected in reply.string_body


def test_one_pattern_reaches_two_services_and_each_answers(start_service: Callable[..., Any], domain: int) -> None:
    start_service(name="North1")
    start_service(name="North2")
    start_service(name="South")
    administrator = Administrator(domain, 10.0)
    replies = administrator.request(SERVICE_DATA, "North*")
    assert [reply.message.replying_service for reply in replies] == ["North1", "North2"]
    assert {reply.message.reply.retcode for reply in replies} == {ReturnCode.OK}
    assert [reply.message.replying_service for reply in administrator.request(SERVICE_DATA, "South")] == ["South"]
    assert administrator.services("North?") == ("North1", "North2")
    administrator.leave()


def test_no_service_answers_where_administration_is_off_or_no_name_fits(
    start_service: Callable[..., Any], domain: int
) -> None:
    service = start_service()
    connection = service.connection(timeout_s=0.7)
    with pytest.raises(NoAnswer, match="no service named 'Other'"):
        Administration(connection, "Other").service_data()
    connection.close()
    text = service.file.read_text().replace(f"<administration><domain_id>{domain}</domain_id></administration>", "")
    service.stop()
    service.file.write_text(text)
    service.start()
    connection = service.connection(timeout_s=0.7)
    with pytest.raises(NoAnswer):
        Administration(connection).service_data()
    connection.close()


def test_the_return_codes_of_creation_travel(start_service: Callable[..., Any]) -> None:
    service = start_service()
    connection = service.connection()
    administration = Administration(connection)
    subscriber = parse_resource("/domain_participant/P/shared_subscriber/S")
    settings = SharedReaderQueueSettings(name="Q", topic_name="Q", type_name="DDS::Octets", session="s")
    administration.create_queue(subscriber, settings)
    with pytest.raises(Duplicated):
        administration.create_queue(subscriber, settings)
    limited = SharedReaderQueueSettings(
        name="Q", topic_name="Q", type_name="DDS::Octets", session="s", limits=ResourceLimitSettings(max_count=5)
    )
    with pytest.raises(AlreadyExists):
        administration.create_queue(subscriber, limited)
    connection.close()


def test_a_daemon_answers_shutdown_with_unsupported(start_service: Callable[..., Any], tmp_path: Any) -> None:
    service = start_service()
    service.stop()
    pid_file = tmp_path / "pid"
    ran = run(
        [sys.executable, "-m", "qsctl", "serve", "-cfgFile", str(service.file), "-daemon", "--pid-file", str(pid_file)],
        cwd=tmp_path,
    )
    assert ran.returncode == 0, ran.stderr
    pid = int(pid_file.read_text())
    try:
        assert str(pid) in ran.stdout
        connection = service.connection()
        with pytest.raises(Refused, match=r"UNSUPPORTED.*daemon"):
            Administration(connection).shut_down()
        assert [each.body.is_daemon for each in Administration(connection).service_data()] == [True]
        connection.close()
    finally:
        os.kill(pid, signal.SIGTERM)
    try:
        assert eventually(lambda: not pid_file.exists()), "the daemon removes its process id file when it leaves"
    finally:
        if pid_file.exists():
            os.kill(pid, signal.SIGKILL)
