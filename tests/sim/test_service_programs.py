"""The programs around a simulated service have the producer and the consumer of a live client."""

from __future__ import annotations

import numpy as np

from qsctl.core.client.consumer import QueueReader
from qsctl.core.client.producer import Producer
from qsctl.core.messages import Acknowledgment, AckResponse, Delivery, WriteAcknowledgment
from qsctl.identity import SampleIdentity
from qsctl.instant import INFINITE_NS
from qsctl.sim.service.peers import CONSUMER, PRODUCER, HostedQueue, SimulatedConsumer, SimulatedProducer, guid_of

QUEUE = HostedQueue("P/S/Q", "Q", "P", "T", -1, True, False)
READER = guid_of(CONSUMER, 0)
SAMPLE = SampleIdentity(guid_of(PRODUCER, 0), 1)


def consumer(silent: float = 0.0) -> SimulatedConsumer:
    key = np.uint64(1)
    return SimulatedConsumer(0, QUEUE, 1000.0, False, 0.0, silent, key, key, QueueReader(QUEUE.full_name, READER))


def delivery(attempt: int = 1) -> Delivery:
    return Delivery(QUEUE.full_name, READER, 1, SAMPLE, b"payload", attempt=attempt)


def producer(window: int, *queues: str) -> SimulatedProducer:
    state = Producer("T", guid_of(PRODUCER, 0), window_count=window)
    for queue in queues:
        state.queue_appeared(queue, True)
    return SimulatedProducer(state, "P", INFINITE_NS)


def test_a_sample_that_comes_again_while_it_is_served_is_served_and_acknowledged_once() -> None:
    program = consumer()
    program.receive(delivery())
    assert program.begin() == 1000
    program.receive(delivery(attempt=2))
    assert program.begin() is None, "one sample at a time"
    assert program.end() == [Acknowledgment(QUEUE.full_name, READER, SAMPLE)]
    assert program.begin() is None
    assert program.served == 1


def test_a_sample_that_comes_again_while_it_waits_is_served_once() -> None:
    program = consumer()
    program.receive(delivery())
    program.receive(delivery(attempt=2))
    assert program.begin() == 1000
    assert program.serving == delivery(attempt=2)
    assert len(program.end()) == 1
    assert program.begin() is None


def test_a_sample_that_was_not_answered_is_served_again_when_it_comes_again() -> None:
    program = consumer(silent=1.0)
    program.receive(delivery())
    program.begin()
    assert program.end() == []
    program.receive(delivery(attempt=2))
    assert program.begin() == 1000


def test_a_consumer_that_comes_back_has_nothing_of_before() -> None:
    program = consumer()
    program.receive(delivery())
    program.begin()
    program.leave()
    program.join()
    assert program.begin() is None


def test_a_full_window_opens_once_every_queue_has_answered() -> None:
    program = producer(1, "P/S/Q", "P/S/R")
    first = program.offer(b"first")
    assert [(each.participant, each.payload) for each in first] == [("P", b"first")]
    assert program.offer(b"second") == []
    answer = WriteAcknowledgment("P/S/Q", SAMPLE, AckResponse.ACCEPTED)
    assert program.receive(answer) == []
    assert program.receive(answer) == [], "the same queue's answer for the same sample counts once"
    second = program.receive(WriteAcknowledgment("P/S/R", SAMPLE, AckResponse.REJECTED))
    assert [each.payload for each in second] == [b"second"]
