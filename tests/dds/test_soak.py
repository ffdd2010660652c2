"""A long run compressed: many samples through four producers and four consumers, each a process (nightly).

A campaign; QSCTL_SOAK_COUNT is the number of samples, QSCTL_SOAK_SECONDS has them written for so long instead.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qsctl.client.administration import Administration
from tests.campaigns import trials

SAMPLE_COUNT = trials("QSCTL_SOAK_COUNT", 0, 2_000_000)
SECONDS = float(os.environ.get("QSCTL_SOAK_SECONDS", "inf"))
SHARE_MAX = 100_000_000
"""More samples than a producer writes in any time that is waited for."""

PEERS = 4
GROWTH_MAX_BYTES = 64 * 1024 * 1024
"""What the service may have grown between a tenth of the way and the end."""

QUEUE = """
<shared_reader_queue name="Orders" session="s">
  <topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
  <datareader_qos><resource_limits><max_samples>4096</max_samples></resource_limits></datareader_qos>
  <queue_qos>
    <redelivery><max_delivery_retries>3</max_delivery_retries></redelivery>
    <resource_limits>
      <queue_allocation_settings><max_count>20000</max_count></queue_allocation_settings>
      <replacement_policy><kind>WAIT_WITHOUT_REPLACEMENT</kind></replacement_policy>
    </resource_limits>
  </queue_qos>
</shared_reader_queue>
"""
"""Bounded, and it lets producers wait: the flow control from the consumers back to the producers is what is soaked."""

PRODUCER = """
import sys, time
from qsctl.client import QueueProducer
domain, first, count = map(int, sys.argv[1:4])
with QueueProducer("Orders", domain) as producer:
    producer.wait_for_queue(60)
    ends_at = time.monotonic() + float(sys.argv[4])
    for number in range(first, first + count):
        producer.write(number.to_bytes(8, "big") + bytes(248))
        if number % 50 == 49:
            producer.turn()
            if time.monotonic() > ends_at:
                break
    print(number + 1 - first, producer.wait_for_acknowledgments(300), flush=True)
"""

CONSUMER = """
import sys
from qsctl.client import QueueConsumer
domain, idle_s = int(sys.argv[1]), float(sys.argv[2])
with QueueConsumer("Orders", "S", domain, unacked_threshold=500) as consumer, open(sys.argv[3], "wb") as seen:
    consumer.wait_for_queue(60)
    print("there", flush=True)
    while samples := consumer.receive(1000, idle_s):
        for sample in samples:
            seen.write(sample.value[:8])
        consumer.acknowledge_all()
        consumer.flush()
"""


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.campaign
@pytest.mark.slow
@pytest.mark.skipif(not SAMPLE_COUNT and math.inf == SECONDS, reason="takes minutes: -m campaign, or QSCTL_SOAK_COUNT")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads memory from /proc")
def test_nothing_is_lost_or_doubled_and_memory_stays_flat(
    start_service: Callable[..., Any], run_python: Callable[..., subprocess.Popen[str]], tmp_path: Path, domain: int
) -> None:
    service = start_service(queues=QUEUE)
    files = [tmp_path / f"seen{at}" for at in range(PEERS)]
    consumers = [run_python(CONSUMER, str(domain), "20", str(file)) for file in files]
    for consumer in consumers:
        assert consumer.stdout is not None
        assert consumer.stdout.readline().strip() == "there"
    share = SAMPLE_COUNT // PEERS if math.inf == SECONDS else SHARE_MAX
    begun = time.monotonic()
    producers = [run_python(PRODUCER, str(domain), str(at * share), str(share), str(SECONDS)) for at in range(PEERS)]
    memory: list[int] = []
    while any(producer.poll() is None for producer in producers):
        memory.append(resident_bytes(service.pid))
        time.sleep(0.5)
    took_s = time.monotonic() - begun
    written: list[int] = []
    for producer in producers:
        assert producer.stdout is not None
        count, rejected_count = map(int, producer.stdout.read().split())
        assert rejected_count == 0
        written.append(count)
    for consumer in consumers:
        assert consumer.wait(120) == 0
    seen = [bytearray(count) for count in written]
    for file in files:
        data = file.read_bytes()
        for at in range(0, len(data), 8):
            peer, number = divmod(int.from_bytes(data[at : at + 8], "big"), share)
            seen[peer][number] += 1
    total = sum(written)
    once, never = (sum(each.count(times) for each in seen) for times in (1, 0))
    assert once == total, f"{never} lost, {total - never - once} doubled"
    connection = service.connection()
    ((_, status),) = Administration(connection).statuses()
    assert status.current_message_count == 0
    assert status.total.acknowledged_message_count == total
    connection.close()
    early = memory[len(memory) // 10]
    sys.stdout.write(
        f"{total} samples in {took_s:.1f} s, {total / took_s:,.0f} a second; resident "
        f"{early / 2**20:.0f} MiB at a tenth, {max(memory) / 2**20:.0f} at most, {memory[-1] / 2**20:.0f} at the end\n"
    )
    assert memory[-1] - early < GROWTH_MAX_BYTES
