"""What a producer learns of each sample: listeners, identities of its own, a queue that is deleted [QS 2.4]."""

from __future__ import annotations

import os
from typing import Any

import anyio
import pytest

from qsctl.client import ApplicationAcknowledgment, QueueConsumer, QueueProducer
from qsctl.client.aio import QueueProducer as AwaitableProducer
from qsctl.client.dds_connection import DdsConnection
from qsctl.core.admin.command import DeleteQueue
from qsctl.core.messages import AckResponse, Write
from qsctl.errors import NoAnswer, UsageError
from qsctl.identity import Guid, SampleIdentity
from qsctl.resource import parse_resource
from qsctl.transport.dds.participant import DomainSettings

QUEUES = """
<shared_reader_queue name="Orders" session="s">
  <topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
</shared_reader_queue>
<shared_reader_queue name="Small" session="s">
  <topic_name>Small</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos><resource_limits><queue_allocation_settings><max_count>2</max_count></queue_allocation_settings>
  </resource_limits></queue_qos>
</shared_reader_queue>
<shared_reader_queue name="Waits" session="s">
  <topic_name>Waits</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos><resource_limits><queue_allocation_settings><max_count>2</max_count></queue_allocation_settings>
  <replacement_policy><kind>WAIT_WITHOUT_REPLACEMENT</kind></replacement_policy></resource_limits></queue_qos>
</shared_reader_queue>
"""
WAITS = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/Waits")


def guid() -> Guid:
    return Guid(os.urandom(16))


def delete_waits(domain: int) -> None:
    with_settings = DdsConnection(domain, 20.0, DomainSettings())
    try:
        (reply,) = with_settings.request(DeleteQueue(WAITS))
        assert reply.reply.retcode.name == "OK", reply
    finally:
        with_settings.close()


def test_a_listener_is_called_for_each_sample_and_queue(start_service: Any, domain: int) -> None:
    start_service(queues=QUEUES)
    heard: list[ApplicationAcknowledgment] = []
    with QueueProducer("Small", domain, on_application_acknowledgment=heard.append) as producer:
        producer.wait_for_queue(30)
        written = [producer.write(b"x") for _ in range(3)]
        assert producer.wait_for_acknowledgments(30) == 1
    assert [(each.queue, each.identity, each.accepted) for each in heard] == [
        ("Small@S", written[0], True),
        ("Small@S", written[1], True),
        ("Small@S", written[2], False),
    ]


@pytest.mark.parametrize("awaited", [False, True])
def test_an_awaitable_producer_calls_or_awaits_its_listener(start_service: Any, domain: int, awaited: bool) -> None:
    start_service(queues=QUEUES)
    heard: list[SampleIdentity] = []

    async def hear_later(answer: ApplicationAcknowledgment) -> None:
        await anyio.lowlevel.checkpoint()
        heard.append(answer.identity)

    def hear(answer: ApplicationAcknowledgment) -> None:
        heard.append(answer.identity)

    async def main() -> list[SampleIdentity]:
        listener = hear_later if awaited else hear
        async with AwaitableProducer("Orders", domain, on_application_acknowledgment=listener) as producer:
            await producer.wait_for_queue(30)
            written = [await producer.write(b"x") for _ in range(3)]
            assert await producer.wait_for_acknowledgments(30) == 0
            return written

    assert anyio.run(main) == heard


def test_a_sample_written_again_under_its_identity_is_accepted_and_held_once(start_service: Any, domain: int) -> None:
    start_service(queues=QUEUES)
    writer = guid()
    request = SampleIdentity(guid(), 5)
    with (
        QueueProducer("Orders", domain, writer_guid=writer) as producer,
        QueueConsumer("Orders", "S", domain) as consumer,
    ):
        producer.wait_for_queue(30)
        consumer.wait_for_queue(30)
        given = SampleIdentity(writer, 41)
        assert producer.write(b"a", identity=given, related_identity=request, related_source_guid=writer) == given
        with pytest.raises(UsageError, match="not acknowledged"):
            producer.write(b"a", identity=given)
        with pytest.raises(UsageError, match="another writer"):
            producer.write(b"a", identity=request)
        assert producer.write(b"b") == SampleIdentity(writer, 42), "the next number is behind the one given"
        assert producer.wait_for_acknowledgments(30) == 0
        producer.write(b"a", identity=given)
        assert producer.wait_for_acknowledgments(30) == 0
        received = []
        while batch := consumer.receive(10, 30 if len(received) < 2 else 0.5):
            received += batch
        assert [(each.identity, each.value) for each in received] == [(given, b"a"), (SampleIdentity(writer, 42), b"b")]
        first = received[0].delivery
        assert (first.related_identity, first.related_source_guid) == (request, writer)


def test_a_deleted_queue_refuses_each_sample_that_it_has_not_answered(start_service: Any, domain: int) -> None:
    start_service(queues=QUEUES)
    heard: list[ApplicationAcknowledgment] = []
    with QueueProducer("Waits", domain, on_application_acknowledgment=heard.append) as producer:
        producer.wait_for_queue(30)
        written = [producer.write(b"x") for _ in range(100)]
        with pytest.raises(NoAnswer, match=rf"98 samples \({written[2]}-100\)"):
            producer.wait_for_acknowledgments(2)
        delete_waits(domain)
        assert producer.wait_for_acknowledgments(60) == 98
        settled = {each.identity: each.accepted for each in producer.pop_acknowledged()}
        assert settled == {identity: at < 2 for at, identity in enumerate(written)}
        assert [each.identity for each in heard] == written


def test_what_is_written_into_a_queue_deleted_meanwhile_is_refused(start_service: Any, domain: int) -> None:
    """As `qsctl produce` does, batch by batch: no time-out, and no sample without a word."""
    start_service(queues=QUEUES)
    connection = DdsConnection(domain, 20.0, DomainSettings())
    try:
        writer = guid()
        first, second = (
            [Write("P", "Waits", SampleIdentity(writer, number), b"x") for number in numbers]
            for numbers in (range(1, 3), range(3, 50))
        )
        assert {each.response for each in connection.write(first)} == {AckResponse.ACCEPTED}
        delete_waits(domain)
        refused = connection.write(second)
        assert {each.identity for each in refused} == {each.identity for each in second}
        assert {each.response for each in refused} == {AckResponse.REJECTED}
    finally:
        connection.close()
