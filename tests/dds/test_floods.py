"""Beside one peer that asks for things without end the others are served.

`QSCTL_TEST_FLOODS=SECONDS` measures each flood for so long, in turns with times in which its process is stopped: the
median time of a sample is at most three times that between them. By default each is looked at once, untimed.
"""

from __future__ import annotations

import math
import os
import signal
import statistics
import sys
import time

import pytest

from qsctl.client import QueueConsumer, QueueProducer
from tests.dds.floods import KINDS
from tests.dds.service_process import ORDERS, StartService
from tests.patience import PATIENCE_S
from tests.processes import end, start

IS_TIMED = "QSCTL_TEST_FLOODS" in os.environ
SECONDS = float(os.environ.get("QSCTL_TEST_FLOODS", "1.5"))
RATIO_MAX = 3.0 if IS_TIMED else math.inf

TURNS = 6 if IS_TIMED else 1
"""Both are measured this often in turns, for the machine does other things too."""

LINES_MAX = 60
"""In the first ten seconds: those of the start, and those about peers, of which the page `limits` has the number."""

LINE_CHARACTERS_MAX = 1_000

QUIET_S = 0.5
"""What the flood has asked for is done so soon after it is stopped."""

QUEUES = ORDERS + ORDERS.replace("Orders", "Hoard")


class Peer:
    """A producer and a consumer of one queue."""

    def __init__(self, domain: int) -> None:
        self.producer = QueueProducer("Orders", domain)
        self.consumer = QueueConsumer("Orders", "S", domain)
        self.producer.wait_for_queue(PATIENCE_S)
        self.consumer.wait_for_queue(PATIENCE_S)

    def median_s(self, duration_s: float) -> float:
        """Send samples one at a time; return the median of the times until each is received."""
        times: list[float] = []
        ends_at = time.monotonic() + duration_s
        while len(times) < 10 or time.monotonic() < ends_at:
            began = time.perf_counter()
            self.producer.write(bytes(100))
            self.producer.wait_for_acknowledgments(PATIENCE_S)
            (sample,) = self.consumer.receive(1, PATIENCE_S)
            times.append(time.perf_counter() - began)
            sample.acknowledge()
            self.consumer.turn()
            time.sleep(0.005)
        return statistics.median(times)

    def close(self) -> None:
        self.producer.close()
        self.consumer.close()


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("kind", list(KINDS))
def test_beside_a_flood_of_one_peer_another_is_served(start_service: StartService, domain: int, kind: str) -> None:
    service = start_service(queues=QUEUES)
    peer = Peer(domain)
    try:
        peer.median_s(0.2)
        flood = start([sys.executable, "-m", "tests.dds.floods", kind, str(domain)], stdout=-1, text=True)
        try:
            assert flood.stdout is not None
            flood.stdout.readline()
            time.sleep(min(SECONDS / 3, 2.0))
            during, between = [], []
            for _ in range(TURNS):
                during.append(peer.median_s(SECONDS / TURNS))
                flood.send_signal(signal.SIGSTOP)
                time.sleep(QUIET_S)
                between.append(peer.median_s(SECONDS / TURNS / 2))
                flood.send_signal(signal.SIGCONT)
            assert flood.poll() is None
        finally:
            end(flood)
    finally:
        peer.close()
    lines = service.log.read_text(errors="strict").splitlines()
    assert len(lines) < LINES_MAX * (1 + SECONDS / 5), "each kind is one line, and the rest are counted"
    assert all(len(line) < LINE_CHARACTERS_MAX for line in lines)
    ratio = statistics.median(during) / statistics.median(between)
    if IS_TIMED:
        figures = f"{statistics.median(during) * 1e3:.1f} ms during it, {statistics.median(between) * 1e3:.1f} between"
        sys.stdout.write(f"\n{kind}: {ratio:.1f} times, {figures}; load {os.getloadavg()[0]:.0f}\n")
    assert ratio <= RATIO_MAX
