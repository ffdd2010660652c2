"""What a service and one of its peers may take: `<service_limits>`, over DDS."""

from __future__ import annotations

import re
import time
import urllib.request
from contextlib import closing
from typing import Any

import pytest

from qsctl.client import ClientSession, QueueConsumer, QueueProducer
from qsctl.client.administration import Administration
from qsctl.core.admin.command import CreateQueue, FlushQueue, GetStatus
from qsctl.core.admin.reply import ReturnCode
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.resource import ResourceKind, parse_resource
from tests.dds.floods import gets
from tests.dds.service_process import ServiceProcess, StartService, eventually
from tests.patience import PATIENCE_S

SUBSCRIBER = parse_resource("/domain_participant/P/shared_subscriber/S")
ORDERS = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/Orders")
MEGABYTE = 10**6


def limits(**values: int) -> str:
    return f"<service_limits>{''.join(f'<{tag}>{value}</{tag}>' for tag, value in values.items())}</service_limits>"


def metrics(service: ServiceProcess) -> dict[str, float]:
    port = re.findall(r"metrics_port=(\d+)", service.log.read_text())[-1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as answer:
        lines = re.findall(r"^(qsctl_[^ ]+) ([-+.\de]+)$", answer.read().decode(), re.MULTILINE)
    return {name: float(value) for name, value in lines}


def usage(service: ServiceProcess, limit: str) -> tuple[float, float]:
    found = metrics(service)
    return found.get(f'qsctl_limit_usage{{limit="{limit}"}}', 0.0), found.get(f'qsctl_limit{{limit="{limit}"}}', 0.0)


@pytest.mark.slow
def test_producers_are_held_back_above_the_memory_limit_and_go_on_after_a_flush(
    start_service: StartService, domain: int
) -> None:
    service = start_service("--metrics-port", "0")
    assert eventually(lambda: usage(service, "memory_bytes")[0] > 0)
    empty_bytes, _ = usage(service, "memory_bytes")
    service.stop()
    bound = int(empty_bytes) + 100 * MEGABYTE
    service = start_service("--metrics-port", "0", service=limits(max_memory_bytes=bound))
    payload = bytes(50_000)
    with QueueProducer("Orders", domain) as producer:
        producer.wait_for_queue(PATIENCE_S)
        refused_count, deadline = 0, time.monotonic() + PATIENCE_S
        while not refused_count and time.monotonic() < deadline:
            for _ in range(100):
                producer.write(payload)
            refused_count = producer.wait_for_acknowledgments(PATIENCE_S)
        assert refused_count, "no producer was held back"
        assert "memory_high" in service.log.read_text()
        taken, limit = usage(service, "memory_bytes")
        assert limit == bound
        assert taken < bound + 50 * MEGABYTE, "ten looks a second let it grow by little"
        assert eventually(lambda: metrics(service)["qsctl_producers_held_back"] == 1)
        administration = Administration(service.connection())
        (status,) = administration.statuses(ORDERS.at(ResourceKind.STATUS))
        held_count = status.body.current_message_count
        assert held_count > 500
        with QueueConsumer("Orders", "S", domain) as consumer:
            consumer.wait_for_queue(PATIENCE_S)
            (sample,) = consumer.receive(1, PATIENCE_S)
            sample.acknowledge()
        service.connection().request(FlushQueue(ORDERS), "*")
        assert eventually(lambda: metrics(service)["qsctl_producers_held_back"] == 0)
        assert "memory_sufficient" in service.log.read_text()
        assert eventually(lambda: usage(service, "memory_bytes")[0] < empty_bytes + 50 * MEGABYTE)
        producer.write(payload)
        assert producer.wait_for_acknowledgments(PATIENCE_S) == 0


def test_a_create_beyond_the_limit_is_refused_with_the_reason(start_service: StartService, domain: int) -> None:
    service = start_service(service=limits(max_queues=2))
    connection = service.connection()
    for name, code in (("A", ReturnCode.OK), ("B", ReturnCode.ERROR)):
        settings = SharedReaderQueueSettings(name, name, type_name="DDS::Octets", session="s")
        (reply,) = connection.request(CreateQueue(SUBSCRIBER, settings), "*")
        assert reply.reply.retcode is code, reply
    assert "<max_queues>" in reply.reply.text


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(("limit", "most"), [("max_consumers_per_peer", 3), ("max_endpoints_per_peer", 20)])
def test_a_peer_has_no_more_than_its_limit_and_another_is_served(
    start_service: StartService, domain: int, limit: str, most: int
) -> None:
    service = start_service("--metrics-port", "0", service=limits(**{limit: most}))
    session = ClientSession(domain)
    greedy: list[QueueConsumer[Any]] = [QueueConsumer("Orders", "S", domain, session=session) for _ in range(most + 2)]
    name = limit.removeprefix("max_")
    assert eventually(lambda: usage(service, name)[0] == most)
    assert eventually(lambda: "than a peer may" in service.log.read_text())
    with QueueProducer("Orders", domain) as producer, QueueConsumer("Orders", "S", domain) as consumer:
        producer.wait_for_queue(PATIENCE_S)
        consumer.wait_for_queue(PATIENCE_S)
        session.close()
        assert eventually(lambda: usage(service, name)[0] < most), "who leaves takes nothing"
        producer.write(b"after")
        assert producer.wait_for_acknowledgments(PATIENCE_S) == 0
        (sample,) = consumer.receive(1, PATIENCE_S)
        sample.acknowledge()
    assert greedy


def test_too_many_commands_of_one_process_are_refused_and_those_of_another_take_their_turn(
    start_service: StartService, domain: int
) -> None:
    service = start_service(queues=ORDERS_AND_HOARD)
    flood = gets(domain)
    with closing(flood):
        for _ in range(2_000):
            next(flood)
        connection = service.connection()
        (reply,) = connection.request(GetStatus(ORDERS.at(ResourceKind.STATUS)), "*")
    assert reply.reply.retcode is ReturnCode.OK
    assert "commands of this process wait already" in service.log.read_text()


ORDERS_AND_HOARD = """
<shared_reader_queue name="Orders" session="s">
  <topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
</shared_reader_queue>
<shared_reader_queue name="Hoard" session="s">
  <topic_name>Hoard</topic_name><type_name>DDS::Octets</type_name>
</shared_reader_queue>
"""
