"""Peers that vanish: what a killed consumer held is redelivered, a restarted service finds its clients again."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.client.administration import Administration
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.resource import parse_resource
from qsctl.transport.dds.participant import DomainSettings
from tests.dds.service_process import eventually
from tests.patience import PATIENCE_S

LEASE_NS = 2_000_000_000
"""The consumer's own lease is what its death is noticed by; the default is five seconds."""

HOLDER = """
import sys, time
from qsctl.client import QueueConsumer
from qsctl.transport.dds.participant import DomainSettings
settings = DomainSettings(lease_duration_ns=int(sys.argv[2]))
with QueueConsumer("Orders", "S", int(sys.argv[1]), settings=settings) as consumer:
    consumer.wait_for_queue(180)
    print("there", flush=True)
    held = []
    while len(held) < 100:
        held += consumer.receive(100, 1.0)
    print("holding", len(held), flush=True)
    time.sleep(120)
"""

RETRIES = """
<shared_reader_queue name="Orders" session="s">
  <topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos><redelivery><max_delivery_retries>5</max_delivery_retries></redelivery>{more}</queue_qos>
</shared_reader_queue>
"""


def test_what_a_killed_consumer_held_comes_again_marked_once_its_lease_is_over(
    start_service: Callable[..., Any], run_python: Callable[..., subprocess.Popen[str]], domain: int
) -> None:
    start_service(queues=RETRIES.format(more=""))
    dying = run_python(HOLDER, str(domain), str(LEASE_NS))
    assert dying.stdout is not None
    assert dying.stdout.readline().strip() == "there"
    with QueueProducer("Orders", domain) as producer:
        producer.wait_for_queue()
        for number in range(100):
            producer.write(bytes([number]))
        producer.wait_for_acknowledgments()
        assert dying.stdout.readline().strip() == "holding 100"
        with QueueConsumer("Orders", "S", domain) as heir:
            heir.wait_for_queue()
            dying.send_signal(signal.SIGKILL)
            killed_at = time.monotonic()
            received: dict[int, bool] = {}
            while len(received) < 100 and time.monotonic() < killed_at + PATIENCE_S:
                for sample in heir.receive(100, 0.5):
                    assert sample.value[0] not in received, "a sample came twice to one that acknowledged it"
                    received[sample.value[0]] = sample.redelivered
                    sample.acknowledge()
                heir.flush()
    assert sorted(received) == list(range(100)), "none is lost"
    assert all(received.values()), "all are marked as redelivered"


def test_a_consumer_that_leaves_in_order_hands_back_what_it_did_not_touch(
    start_service: Callable[..., Any], domain: int
) -> None:
    start_service()
    with QueueProducer("Orders", domain) as producer:
        producer.wait_for_queue()
        with QueueConsumer("Orders", "S", domain) as first:
            first.wait_for_queue()
            for number in range(50):
                producer.write(bytes([number]))
            producer.wait_for_acknowledgments()
            (one,) = first.receive(1)
            one.acknowledge()
        with QueueConsumer("Orders", "S", domain) as second:
            second.wait_for_queue()
            rest: list[Any] = []
            while len(rest) < 49:
                batch = second.receive(50, 5.0)
                assert batch, f"{len(rest)} of 49 came"
                rest += batch
            assert not any(sample.redelivered for sample in rest), "nobody had touched them"
            assert sorted(sample.value[0] for sample in rest) == list(range(1, 50))
            second.acknowledge_all()


def test_messages_of_a_peer_that_left_during_a_pause_are_processed(
    start_service: Callable[..., Any], domain: int
) -> None:
    """Its answers and its leave are received before its departure is seen: no sample counts as a failed delivery."""
    service = start_service()
    with QueueProducer("Orders", domain) as producer:
        producer.wait_for_queue()
        consumer = QueueConsumer("Orders", "S", domain)
        consumer.wait_for_queue(180)
        for number in range(50):
            producer.write(bytes([number]))
        producer.wait_for_acknowledgments()
        taken = consumer.receive(1)
        while len(taken) + consumer.state.waiting_count < 50:
            consumer.flush()
        os.kill(service.pid, signal.SIGSTOP)
        timer = threading.Timer(0.5, os.kill, (service.pid, signal.SIGCONT))
        timer.start()
        for sample in taken:
            sample.acknowledge()
        consumer.close()
        producer.write(b"last")
    timer.join()
    connection = service.connection()
    administration = Administration(connection)
    assert eventually(lambda: administration.statuses()[0].body.total.received_message_count == 51)
    status = administration.statuses()[0].body
    connection.close()
    assert status.total.acknowledged_message_count == len(taken)
    assert status.total.failed_delivery_message_count == 0
    assert status.current_message_count == 51 - len(taken)


def test_persistent_samples_outlive_a_killed_service_and_its_clients_find_it_again(
    start_service: Callable[..., Any], tmp_path: Any, domain: int
) -> None:
    more = "<persistence><kind>PERSISTENT</kind></persistence>"
    service = start_service(
        "--persistent-storage-path", str(tmp_path), "--lease", "1s", queues=RETRIES.format(more=more)
    )
    with QueueProducer("Orders", domain) as producer:
        producer.wait_for_queue()
        for number in range(100):
            producer.write(bytes([number]))
        assert producer.wait_for_acknowledgments() == 0
        service.stop(signal.SIGKILL)
        # Written while nobody is there: they wait in the producer's window.
        for number in range(100, 150):
            producer.write(bytes([number]))
        producer.flush()
        service.start()
        assert producer.wait_for_acknowledgments() == 0
        with QueueConsumer("Orders", "S", domain) as consumer:
            consumer.wait_for_queue(180)
            values: list[int] = []
            while len(values) < 150:
                batch = consumer.receive(200, 5.0)
                assert batch, f"{len(values)} of 150 came"
                for sample in batch:
                    values.append(sample.value[0])
                    sample.acknowledge()
    assert sorted(values) == list(range(150)), "none lost, none doubled"


def test_sigterm_is_an_orderly_end(start_service: Callable[..., Any], domain: int) -> None:
    """It waits for the answer, not for the whole grace, which is longer than this test waits."""
    service = start_service("--grace", "1h")
    with QueueProducer("Orders", domain) as producer, QueueConsumer("Orders", "S", domain) as consumer:
        producer.wait_for_queue()
        consumer.wait_for_queue(180)
        producer.write(b"x")
        producer.wait_for_acknowledgments()
        (sample,) = consumer.receive(1)
        os.kill(service.pid, signal.SIGTERM)
        time.sleep(0.3)
        sample.acknowledge()
        consumer.flush()
        assert service.process.wait(PATIENCE_S) == 0
    assert "unanswered=0" in service.log.read_text()


def test_queues_created_at_run_time_outlive_the_service_where_its_state_is_persistent(
    start_service: Callable[..., Any], tmp_path: Any
) -> None:
    service_qos = "<service_qos><persistence><kind>PERSISTENT</kind></persistence></service_qos>"
    service = start_service("--persistent-storage-path", str(tmp_path), service=service_qos)
    connection = service.connection()
    subscriber = parse_resource("/domain_participant/P/shared_subscriber/S")
    settings = SharedReaderQueueSettings(name="New", topic_name="New", type_name="DDS::Octets", session="s")
    Administration(connection).create_queue(subscriber, settings)
    connection.close()
    service.stop(signal.SIGKILL)
    service.start()
    connection = service.connection()
    topics = {queue.topic_name for queue in Administration(connection).hosted().queues}
    connection.close()
    assert topics == {"Orders", "New"}


def send_and_take(producer: QueueProducer[bytes], consumer: QueueConsumer[bytes], numbers: range) -> None:
    """Write samples and take them, each acknowledged; redelivered earlier ones may come between."""
    for number in numbers:
        producer.write(number.to_bytes(2, "big"))
    missing = set(numbers)
    deadline = time.monotonic() + PATIENCE_S
    while missing:
        assert time.monotonic() < deadline, f"{len(missing)} of {len(numbers)} did not come"
        producer.flush()
        for sample in consumer.receive(100, 0.1):
            missing.discard(int.from_bytes(sample.value, "big"))
            sample.acknowledge()
        consumer.flush()
    assert producer.wait_for_acknowledgments() == 0


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(("service_lease_s", "client_lease_s"), [(1, 1), (10, 1), (1, 10)])
def test_a_service_held_up_for_longer_than_the_leases_serves_on(
    start_service: Callable[..., Any], domain: int, service_lease_s: int, client_lease_s: int
) -> None:
    """It takes its clients for gone, or they it, or both, as their leases are; all find each other again."""
    service = start_service("--lease", f"{service_lease_s}s", queues=RETRIES.format(more=""))
    settings = DomainSettings(lease_duration_ns=client_lease_s * 10**9)
    with (
        QueueProducer("Orders", domain, settings=settings) as producer,
        QueueConsumer("Orders", "S", domain, settings=settings) as consumer,
    ):
        producer.wait_for_queue()
        consumer.wait_for_queue(180)
        send_and_take(producer, consumer, range(20))
        for at in range(1, 3):
            os.kill(service.pid, signal.SIGSTOP)
            for number in range(900 + at * 20, 910 + at * 20):
                producer.write(number.to_bytes(2, "big"))
            producer.flush()
            time.sleep(2.0)
            os.kill(service.pid, signal.SIGCONT)
            send_and_take(producer, consumer, range(at * 20, at * 20 + 20))


RETURNING = """
import sys
from qsctl.client import QueueConsumer
from qsctl.transport.dds.participant import DomainSettings
settings = DomainSettings(lease_duration_ns=10**9)
with QueueConsumer("Orders", "S", int(sys.argv[1]), unacked_threshold=4, settings=settings) as consumer:
    consumer.wait_for_queue(180)
    print("there", flush=True)
    held = []
    while len(held) < 5:
        held += consumer.receive(5, 1.0)
    print("holding", flush=True)
    sys.stdin.readline()
    for sample in held:
        sample.acknowledge()
    consumer.flush()
    print("answered", flush=True)
    while True:
        for sample in consumer.receive(5, 1.0):
            sample.acknowledge()
            if sample.value == b"after":
                consumer.flush()
                print("served", flush=True)
        consumer.flush()
"""


def test_a_consumer_held_up_for_longer_than_its_lease_answers_late_and_is_served_again(
    start_service: Callable[..., Any], run_python: Callable[..., subprocess.Popen[str]], domain: int
) -> None:
    """What it held is redelivered; its own late answers are no mistake, and it takes part again when it is back."""
    service = start_service(queues=RETRIES.format(more=""))
    returning = run_python(RETURNING, str(domain))
    assert returning.stdout is not None
    assert returning.stdin is not None
    assert returning.stdout.readline().strip() == "there"
    with QueueProducer("Orders", domain) as producer:
        producer.wait_for_queue()
        for number in range(5):
            producer.write(bytes([number]))
        producer.wait_for_acknowledgments()
        assert returning.stdout.readline().strip() == "holding"
        returning.send_signal(signal.SIGSTOP)
        with QueueConsumer("Orders", "S", domain) as heir:
            heir.wait_for_queue()
            taken: list[Any] = []
            while len(taken) < 5:
                batch = heir.receive(5, 5.0)
                assert batch, f"{len(taken)} of 5 came"
                taken += batch
            assert all(sample.redelivered for sample in taken)
            returning.send_signal(signal.SIGCONT)
            returning.stdin.write("go on\n")
            returning.stdin.flush()
            assert returning.stdout.readline().strip() == "answered"
            for sample in taken:
                sample.acknowledge()
        producer.write(b"after")
        producer.wait_for_acknowledgments()
        assert returning.stdout.readline().strip() == "served"
    connection = service.connection()
    administration = Administration(connection)
    assert eventually(lambda: administration.statuses()[0].body.current_message_count == 0)
    assert administration.statuses()[0].body.total.acknowledged_message_count == 6
    connection.close()
