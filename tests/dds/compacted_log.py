"""Samples of a queue, more than the members of a cluster keep in logs: they compact these with a large snapshot."""

from __future__ import annotations

import time
from pathlib import Path

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.core.high_availability.compaction import COMPACTED_OVER_BYTES
from tests.dds.cluster import Cluster
from tests.dds.service_process import eventually
from tests.patience import PATIENCE_S

PAYLOAD = bytes(200_000)
CONSUMED = 280
"""Samples that a log of `COMPACTED_OVER_BYTES` contains and the queue no longer holds: most of the log."""
SAMPLES = CONSUMED + 80
"""More octets than a log keeps before it is compacted."""


def fill(cluster: Cluster) -> None:
    """Let each member compact its log with a snapshot of many large samples."""
    with QueueProducer("Orders", cluster.domain, window_count=20) as producer:
        producer.wait_for_queue(PATIENCE_S)
        for number in range(1, SAMPLES + 1):
            producer.write(PAYLOAD, timeout_s=PATIENCE_S)
            if number == CONSUMED:
                assert producer.wait_for_acknowledgments(PATIENCE_S) == 0
                _consume(cluster.domain)
        assert producer.wait_for_acknowledgments(PATIENCE_S) == 0
    directories = [service.directory for service in cluster.services.values()]
    assert eventually(lambda: all(map(_is_compacted, directories)), PATIENCE_S)


def _consume(domain: int) -> None:
    with QueueConsumer("Orders", "S", domain) as consumer:
        consumer.wait_for_queue(PATIENCE_S)
        count, deadline = 0, time.monotonic() + PATIENCE_S
        while count < CONSUMED and time.monotonic() < deadline:
            for sample in consumer.receive(10, 0.5):
                sample.acknowledge()
                count += 1
        assert count == CONSUMED


def _is_compacted(directory: Path) -> bool:
    return sum(path.stat().st_size for path in directory.glob("QSreplicas@*_r*.db*")) < COMPACTED_OVER_BYTES / 2
