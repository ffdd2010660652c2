"""A whole story over DDS with a service that is a process of its own [QS 2, 5 and 8]."""

from __future__ import annotations

import selectors
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.client.administration import Administration
from qsctl.core.admin.reply import MessageStatus
from qsctl.core.queue.settings import RedeliverySettings, SessionSettings, SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.identity import SampleIdentity
from qsctl.resource import ResourceKind, parse_resource
from tests.dds.service_process import eventually
from tests.patience import PATIENCE_S

SAMPLE_COUNT = 10_000
PARTICIPANT = parse_resource("/domain_participant/P")
SUBSCRIBER = PARTICIPANT.child(ResourceKind.SHARED_SUBSCRIBER, "Story")
QUEUE = SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "Parts")
DEAD = SUBSCRIBER.child(ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE, "Dead")

HOLDER = """
import sys, time
from qsctl.client import QueueConsumer
from qsctl.transport.dds.participant import DomainSettings
settings = DomainSettings(lease_duration_ns=10**9)
with QueueConsumer("Parts", "Story", int(sys.argv[1]), unacked_threshold=9, settings=settings) as consumer:
    consumer.wait_for_queue(180)
    held = []
    while len(held) < 10:
        held += consumer.receive(10, 1.0)
    print("holding", len(held), flush=True)
    time.sleep(60)
"""


def test_the_whole_story_from_create_to_shutdown(
    start_service: Callable[..., object], run_python: Callable[..., subprocess.Popen[str]], domain: int
) -> None:
    service = start_service("--lease", "1s")
    connection = service.connection()  # type: ignore[attr-defined]
    administration = Administration(connection)
    create(administration)

    with (
        QueueProducer("Parts", domain) as producer,
        QueueConsumer("Parts", "Story", domain, unacked_threshold=200) as first,
        QueueConsumer("Parts", "Story", domain, unacked_threshold=200) as second,
    ):
        producer.wait_for_queue()
        first.wait_for_queue()
        second.wait_for_queue()
        dying = run_python(HOLDER, str(domain))
        for number in range(SAMPLE_COUNT):
            producer.write(number.to_bytes(8, "big"))
        assert_holds_ten(dying, producer)
        accepted, rejections, redelivered = consume_all(producer, (first, second), dying)

        assert producer.wait_for_acknowledgments() == 0
        assert set(accepted) == set(range(SAMPLE_COUNT)) - {13}
        assert set(accepted.values()) == {1}, "each sample is processed by exactly one consumer"
        assert rejections == 3, "max_delivery_retries of 2 is three attempts"
        assert len(redelivered) >= 10, "what the killed consumer held comes again, marked"

        # The answers come on another way than the question.
        assert eventually(lambda: administration.statuses(QUEUE)[0].body.current_message_count == 0)
        status = administration.statuses(QUEUE)[0].body
        assert status.total.received_message_count == SAMPLE_COUNT
        assert status.total.acknowledged_message_count == SAMPLE_COUNT - 1
        assert status.total.failed_delivery_message_count == 1
        assert administration.statuses(DEAD)[0].body.current_message_count == 1

        (letter,) = (each.body for each in administration.messages(DEAD))
        assert letter.dead_letter_from == "Parts@Story"
        assert letter.dead_letter_reason == "MAX_RETRIES"
        assert letter.payload == (13).to_bytes(8, "big")

    check_selectors_and_flush(administration, domain)
    administration.delete_queue(QUEUE)
    assert "Parts" not in [queue.topic_name for queue in administration.hosted().queues]
    assert "shutting down" in administration.shut_down()[0].reply.text
    assert service.process.wait(20) == 0  # type: ignore[attr-defined]
    connection.close()


def create(administration: Administration) -> None:
    dead = SharedReaderQueueSettings(name="Dead", topic_name="Dead", session="s", is_dead_letter=True)
    settings = SharedSubscriberSettings("Story", (SessionSettings("s"),), (dead,))
    administration.create_subscriber(PARTICIPANT, settings)
    parts = SharedReaderQueueSettings(
        name="Parts",
        topic_name="Parts",
        type_name="DDS::Octets",
        session="s",
        dead_letter_queue="Dead",
        redelivery=RedeliverySettings(max_delivery_retries=2),
    )
    administration.create_queue(SUBSCRIBER, parts)


def assert_holds_ten(dying: subprocess.Popen[str], producer: QueueProducer[bytes]) -> None:
    producer.flush()
    assert dying.stdout is not None
    deadline = time.monotonic() + PATIENCE_S
    with selectors.DefaultSelector() as selector:
        selector.register(dying.stdout, selectors.EVENT_READ)
        while not selector.select(0.01):
            producer.flush()
            assert time.monotonic() < deadline
    assert dying.stdout.readline().strip() == "holding 10"


def consume_all(
    producer: QueueProducer[bytes], consumers: tuple[QueueConsumer[bytes], ...], dying: subprocess.Popen[str]
) -> tuple[Counter[int], int, set[SampleIdentity]]:
    accepted: Counter[int] = Counter()
    rejections = 0
    redelivered: set[SampleIdentity] = set()
    killed = False
    deadline = time.monotonic() + PATIENCE_S
    while len(accepted) < SAMPLE_COUNT - 1 or rejections < 3:
        assert time.monotonic() < deadline, (len(accepted), rejections)
        producer.flush()
        for consumer in consumers:
            for sample in consumer.receive(500, 0.01):
                number = int.from_bytes(sample.value, "big")
                if sample.redelivered:
                    redelivered.add(sample.identity)
                if number == 13:
                    rejections += 1
                    sample.reject()
                else:
                    accepted[number] += 1
                    sample.acknowledge()
            consumer.flush()
        if not killed and len(accepted) > SAMPLE_COUNT // 2:
            dying.send_signal(signal.SIGKILL)
            killed = True
    return accepted, rejections, redelivered


def check_selectors_and_flush(administration: Administration, domain: int) -> None:
    with QueueProducer("Parts", domain) as producer:
        producer.wait_for_queue()
        written = [producer.write(bytes([number])) for number in range(20)]
        assert producer.wait_for_acknowledgments() == 0
    one = administration.messages(
        QUEUE,
        f"@original_sample_identity.writer_guid.value = &hex({written[0].writer_guid.hex()}) AND "
        "@original_sample_identity.sequence_number = (0,7)",
    )
    assert [message.body.payload for message in one] == [bytes([6])]
    waiting = administration.messages(QUEUE, "@sample_queue_status = UNDELIVERED_MESSAGE_STATUS")
    assert len(waiting) == 20
    assert {message.body.status for message in waiting} == {MessageStatus.UNDELIVERED}
    assert administration.messages(QUEUE, "@sample_queue_status = SENT_MESSAGE_STATUS") == []
    assert administration.flush_queue(QUEUE)[0].reply.text.startswith("20 samples")
    assert administration.messages(QUEUE) == []
