"""Peers that send what no peer of ours would: the service goes on, says so once, and counts it."""

from __future__ import annotations

import re
import struct
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cyclonedds.sub import DataReader, Subscriber

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.client.administration import Administration
from qsctl.core.admin.command import GetStatus
from qsctl.identity import Guid, SampleIdentity
from qsctl.resource import ResourceKind, parse_resource
from qsctl.transport.dds.channels import FrameWriter
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.qos import partition_qos, reader_qos
from qsctl.transport.dds.wire.bodies import octets_of
from qsctl.transport.dds.wire.commands import wire_request
from qsctl.transport.dds.wire.raw import RawReader
from qsctl.transport.dds.wire.replies import reply_parts
from qsctl.transport.dds.wire.wire_types import (
    COMMAND_REPLY_TOPIC,
    COMMAND_REQUEST_TOPIC,
    ServiceKind,
    WireCommandReply,
    WireCommandRequest,
    WireFrame,
    consumer_topic,
)
from tests.dds.c_peer import ENVIRONMENT, build, needs_c
from tests.dds.service_process import ServiceProcess, StartService, eventually
from tests.processes import running as process_running

PATIENCE_S = 60.0
FRAME_COUNT = 6000
ORDERS = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/Orders")
REQUEST = SampleIdentity(Guid(b"r" * 16), 1)


@pytest.fixture
def participant(domain: int) -> Iterator[Participant]:
    opened = Participant(domain)
    yield opened
    opened.close()


def still_serves(service: ServiceProcess, domain: int) -> bool:
    """Whether a sample goes through, and commands are answered."""
    with QueueProducer("Orders", domain) as producer, QueueConsumer("Orders", "S", domain) as consumer:
        producer.wait_for_queue(PATIENCE_S)
        consumer.wait_for_queue(PATIENCE_S)
        producer.write(b"after")
        assert producer.wait_for_acknowledgments(PATIENCE_S) == 0
        (sample,) = consumer.receive(1, PATIENCE_S)
        sample.acknowledge()
    return service.is_running and bool(
        Administration(service.connection(PATIENCE_S)).statuses(ORDERS.at(ResourceKind.STATUS))
    )


def metric(service: ServiceProcess, name: str) -> int:
    (port,) = re.findall(r"metrics_port=(\d+)", service.log.read_text())
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as answer:
        (value,) = re.findall(rf"^{name}_total ([\d.]+)$", answer.read().decode(), re.MULTILINE)
    return int(float(value))


class RequestPeer:
    """Sends requests as they are given, and reads the replies to them."""

    def __init__(self, participant: Participant) -> None:
        assert participant.entity is not None
        self._writer = FrameWriter(participant, participant.topic(COMMAND_REQUEST_TOPIC, WireCommandRequest))
        topic = participant.topic(COMMAND_REPLY_TOPIC, WireCommandReply)
        replies: Any = DataReader(participant.entity, topic, qos=reader_qos())
        self._reader = RawReader(replies)
        assert eventually(
            lambda: bool(
                self._writer.writer.matched_count() and replies.get_subscription_matched_status().current_count
            )
        )

    def send(self, request: Any) -> None:
        self._writer.put(octets_of(request))
        assert self._writer.flush()

    def replies(self, count: int) -> list[Any]:
        found: list[Any] = []
        assert eventually(
            lambda: found.extend(map(reply_parts, self._reader.take())) or len(found) >= count, PATIENCE_S
        )
        return found


def test_an_action_without_a_meaning_is_answered_with_an_error(
    start_service: StartService, participant: Participant, domain: int
) -> None:
    service = start_service()
    peer = RequestPeer(participant)
    request: Any = wire_request(GetStatus(ORDERS), "*", REQUEST)
    request.action = 0
    peer.send(request)
    (reply,) = peer.replies(1)
    assert (reply.request, reply.retcode.name) == (REQUEST, "ERROR")
    assert reply.text.startswith("action 0 is not a command of a queuing service")
    assert still_serves(service, domain)


def test_a_request_for_another_kind_of_service_gets_no_reply(
    start_service: StartService, participant: Participant
) -> None:
    start_service()
    peer = RequestPeer(participant)
    for number, kind in enumerate((ServiceKind(1), ServiceKind(2), ServiceKind(0)), start=1):
        request: Any = wire_request(GetStatus(ORDERS), "*", SampleIdentity(REQUEST.writer_guid, number))
        request.service = kind
        peer.send(request)
    assert [reply.request.sequence_number for reply in peer.replies(2)] == [2, 3]


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(
    "user_data",
    ["threshold=²", "threshold=-1", "threshold=" + "9" * 5000, "guid=xyz", "source=+1"],
    ids=["superscript", "negative", "long", "guid", "source"],
)
def test_user_data_that_cannot_be_read_costs_its_own_consumer_only(
    start_service: StartService, participant: Participant, domain: int, user_data: str
) -> None:
    service = start_service("--metrics-port", "0")
    guid = bytes(range(16))
    assert participant.entity is not None
    key, _, value = user_data.partition("=")
    qos = reader_qos(traits={"role": "consumer", "guid": guid.hex(), key: value}, subscriber="S")
    subscriber = Subscriber(participant.entity, qos=partition_qos(guid.hex()))
    reader = DataReader(subscriber, participant.topic(consumer_topic("Orders", "S"), WireFrame), qos=qos)
    assert eventually(lambda: "malformed_messages" in service.log.read_text(), PATIENCE_S)
    assert still_serves(service, domain)
    (line,) = [line for line in service.log.read_text().splitlines() if "malformed_messages" in line]
    assert participant_of_endpoint(reader) in line, "the peer's GUID"
    assert key in line
    assert len(line) < 1000
    assert eventually(lambda: metric(service, "qsctl_malformed_messages") == 1, PATIENCE_S)
    assert metric(service, "qsctl_unexpected_errors") == 0


def participant_of_endpoint(reader: DataReader[Any]) -> str:
    """The first twelve octets of an endpoint's GUID, as they stand in a log line."""
    return str(reader.guid.bytes[:12].hex())


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("hostile"), ["hostile.idl"], "hostile.c", "-t")


@contextmanager
def running(hostile: Path, *arguments: str) -> Iterator[None]:
    """Run the peer until it has done what it does; it stays until the body is over."""
    with process_running(
        [str(hostile), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as peer:
        assert peer.stdin is not None and peer.stdout is not None
        assert peer.stdout.readline() == "ready\n"
        yield


@pytest.mark.slow
@needs_c
def test_thousands_of_broken_frames_cost_a_few_lines(start_service: StartService, hostile: Path, domain: int) -> None:
    service = start_service("--metrics-port", "0")
    before = len(service.log.read_text().splitlines())
    with running(hostile, str(domain), "frames", "Orders", str(FRAME_COUNT)):
        assert eventually(lambda: metric(service, "qsctl_malformed_messages") >= FRAME_COUNT // 2, PATIENCE_S)
    assert still_serves(service, domain)
    assert service.stop() == 0
    lines = service.log.read_text().splitlines()[before:]
    reports = [line for line in lines if "malformed_messages" in line]
    assert 2 <= len(reports) <= 10
    # The library's pipe may have been full: what did not fit is not counted.
    counted = sum(int(count) for line in reports for count in re.findall(r"count=(\d+)", line))
    assert FRAME_COUNT // 2 <= counted <= FRAME_COUNT
    assert all(re.search(r"peer='[0-9a-f]{32}'", line) for line in reports)
    assert not any("deserialization" in line for line in lines), "no line is the library's own"
    assert len(lines) < 20


@needs_c
def test_names_that_are_no_text_end_no_service(start_service: StartService, hostile: Path, domain: int) -> None:
    service = start_service()
    with running(hostile, str(domain), "names", "Orders"):
        assert eventually(lambda: "is not UTF-8" in service.log.read_text(), PATIENCE_S)
        assert still_serves(service, domain)


def test_a_request_of_any_octets_ends_no_service(
    start_service: StartService, participant: Participant, domain: int
) -> None:
    """What has the form of a request and no sense in it: the sizes of its parts hold, their contents are noise."""
    service = start_service()
    peer = RequestPeer(participant)
    for number in range(200):
        request: Any = wire_request(GetStatus(ORDERS), "*", SampleIdentity(REQUEST.writer_guid, number))
        request.action = number % 15
        request.resource_identifier = "/domain_participant/P/shared_subscriber/S" * (number % 3) + chr(number + 1)
        request.string_body = struct.pack("<I", number * 77777777 % 2**32).decode("latin-1").replace("\0", "") * 5
        request.octet_body = bytes([number]) * (number % 20)
        peer.send(request)
    assert len(peer.replies(200)) == 200
    assert still_serves(service, domain)
