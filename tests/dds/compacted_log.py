"""Samples of a queue, more than the members of a cluster keep in logs: they compact these with a large snapshot."""

from __future__ import annotations

import time

from qsctl.client import QueueConsumer, QueueProducer
from tests.patience import PATIENCE_S

PAYLOAD = bytes(200_000)
SAMPLES = 400
"""More octets than a log keeps before it is compacted."""
CONSUMED = 340


def fill(domain: int) -> None:
    """Let the members compact a log with a snapshot of many large samples."""
    with QueueProducer("Orders", domain, window_count=20) as producer:
        producer.wait_for_queue(PATIENCE_S)
        for _ in range(SAMPLES):
            producer.write(PAYLOAD, timeout_s=PATIENCE_S)
        assert producer.wait_for_acknowledgments(PATIENCE_S) == 0
    with QueueConsumer("Orders", "S", domain) as consumer:
        consumer.wait_for_queue(PATIENCE_S)
        count, deadline = 0, time.monotonic() + PATIENCE_S
        while count < CONSUMED and time.monotonic() < deadline:
            for sample in consumer.receive(min(10, CONSUMED - count), 0.5):
                sample.acknowledge()
                count += 1
        assert count == CONSUMED
