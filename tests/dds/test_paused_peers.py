"""One side takes the other for gone, the other notices nothing: their leases differ [QS 2.9 and 2.13]."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.client.administration import Administration
from tests.dds.service_process import ServiceProcess, eventually

RETRIES = """
<shared_reader_queue name="Orders" session="s">
  <topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos><redelivery><max_delivery_retries>5</max_delivery_retries></redelivery></queue_qos>
</shared_reader_queue>
"""
PAUSE_S = 2.0
"""Longer than the service's lease here, shorter than the clients': they miss it, and it does not miss them."""

COUNTER = """
import sys
from qsctl.client import QueueConsumer
with QueueConsumer("Orders", "S", int(sys.argv[1])) as consumer:
    consumer.wait_for_queue()
    print("there", flush=True)
    for sample in consumer:
        sample.acknowledge()
        consumer.flush()
        print(sample.value[0], flush=True)
"""


def held_count(service: ServiceProcess) -> int:
    connection = service.connection()
    ((_, status),) = Administration(connection).statuses()
    connection.close()
    return status.current_message_count


def test_answers_given_while_the_service_is_missed_are_sent_when_it_is_back(
    start_service: Callable[..., Any], domain: int
) -> None:
    service = start_service("--lease", "1s", queues=RETRIES)
    with QueueProducer("Orders", domain) as producer, QueueConsumer("Orders", "S", domain) as consumer:
        producer.wait_for_queue()
        consumer.wait_for_queue()
        for number in range(20):
            producer.write(bytes([number]))
        producer.wait_for_acknowledgments()
        held: list[Any] = []
        while len(held) < 20:
            held += consumer.receive(20, 5.0)
        os.kill(service.pid, signal.SIGSTOP)
        assert eventually(lambda: not consumer.is_matched)
        time.sleep(0.5)
        for sample in held[:10]:
            sample.acknowledge()
        consumer.flush()
        time.sleep(0.5)
        os.kill(service.pid, signal.SIGCONT)
        for sample in held[10:]:
            sample.acknowledge()
        consumer.flush()
        assert eventually(lambda: consumer.is_matched)

        def is_settled() -> bool:
            for again in consumer.receive(20, 0.1):
                assert again.redelivered
                again.acknowledge()
            consumer.flush()
            return held_count(service) == 0

        assert eventually(is_settled), f"{held_count(service)} samples stay with one that answered them"


@pytest.mark.slow
def test_samples_sent_to_a_consumer_that_was_held_up_reach_it(
    start_service: Callable[..., Any], run_python: Callable[..., subprocess.Popen[str]], domain: int
) -> None:
    service = start_service("--lease", "1s", queues=RETRIES)
    counting = run_python(COUNTER, str(domain))
    assert counting.stdout is not None
    assert counting.stdout.readline() == "there\n"
    with QueueProducer("Orders", domain) as producer:
        producer.wait_for_queue()
        for begins_at in (0, 50):
            counting.send_signal(signal.SIGSTOP)
            for number in range(begins_at, begins_at + 50):
                producer.write(bytes([number]))
            assert producer.wait_for_acknowledgments() == 0
            time.sleep(PAUSE_S)
            counting.send_signal(signal.SIGCONT)
            assert eventually(lambda: held_count(service) == 0), f"{held_count(service)} never came"
        counting.kill()
        came = {int(line) for line in counting.stdout}
    assert came == set(range(100))
