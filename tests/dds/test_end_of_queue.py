"""`consume` takes exactly what is there: the service answers that there is no more, however busy the machine is.

`QSCTL_TEST_ENDS` is the number of runs of `consume --count 0` (by default two).
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from typing import Any

import pytest

from qsctl.client.consumer import QueueConsumer
from qsctl.client.producer import QueueProducer
from qsctl.errors import NoAnswer
from tests.campaigns import trials
from tests.dds.service_process import StartService
from tests.dds.shown_samples import QUEUES, command, fill, numbers, rest_of

ENDS = trials("QSCTL_TEST_ENDS", 2, 30)


@pytest.mark.campaign
def test_consume_takes_exactly_what_is_there(start_service: StartService, domain: int) -> None:
    start_service(queues=QUEUES.format(retries=0))
    draw = random.Random(5)
    for _ in range(ENDS):
        count = draw.choice((0, 1, 999, 1000, 1001, 2500))
        if count:
            fill(domain, count)
        output = command(domain, "consume", "Orders", "--count", "0", "-o", "jsonl")
        assert numbers([json.loads(line) for line in output.splitlines()]) == list(range(count))


def test_a_service_that_is_slow_to_answer_is_waited_for(start_service: StartService, domain: int) -> None:
    """A pause of a second was taken for an empty queue."""
    service = start_service(queues=QUEUES.format(retries=0))
    with (
        QueueProducer("Orders", domain) as producer,
        QueueConsumer("Orders", "S", domain) as consumer,
    ):
        producer.wait_for_queue(60)
        consumer.wait_for_queue(60)
        assert consumer.receive_available(10, 60) == []
        assert service.process is not None
        os.kill(service.process.pid, signal.SIGSTOP)
        resumed = threading.Timer(1.0, os.kill, (service.process.pid, signal.SIGCONT))
        resumed.start()
        producer.write(b"late")
        producer.flush()
        assert [each.value for each in consumer.receive_available(10, 60)] == [b"late"]
        resumed.join()
        consumer.acknowledge_all()
        assert consumer.receive_available(10, 60) == []


def test_a_service_that_does_not_answer_is_no_empty_queue(start_service: StartService, domain: int) -> None:
    service = start_service(queues=QUEUES.format(retries=0))
    with QueueConsumer("Orders", "S", domain) as consumer:
        consumer.wait_for_queue(60)
        assert service.process is not None
        os.kill(service.process.pid, signal.SIGSTOP)
        try:
            with pytest.raises(NoAnswer, match="whether queue 'Orders@S' has more"):
                consumer.receive_available(10, 0.5)
        finally:
            os.kill(service.process.pid, signal.SIGCONT)


def test_an_earlier_service_is_believed_after_a_silence(
    start_service: StartService, domain: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_service(queues=QUEUES.format(retries=0))
    with QueueConsumer("Orders", "S", domain) as consumer:
        consumer.wait_for_queue(60)
        monkeypatch.setattr(type(consumer._port), "answering_count", None)
        began = time.monotonic()
        assert consumer.receive_available(10, 60) == []
        assert time.monotonic() - began > 0.25


def test_the_number_of_the_attempt_travels(start_service: StartService, domain: int) -> None:
    start_service(queues=QUEUES.format(retries=2))
    fill(domain, 1)
    rows: list[dict[str, Any]] = []
    for _ in range(2):
        rows += [
            json.loads(line) for line in command(domain, "consume", "Orders", "--reject", "-o", "jsonl").splitlines()
        ]
    rows += rest_of(domain)
    assert [row["attempt"] for row in rows] == [1, 2, 3]
