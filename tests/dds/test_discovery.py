"""How peers find each other when datagrams are lost and processes are held up [QS 2.13]."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.transport.dds.participant import DomainSettings

PARTICIPANTS_MAX = 10


def discovery_ports(domain: int) -> list[int]:
    """Where the first participants of a domain hear of others: the standard mapping of DDS."""
    return [7400 + 250 * domain + 10 + 2 * index for index in range(PARTICIPANTS_MAX)]


def fill_receive_buffers(domain: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for port in discovery_ports(domain):
            # The large ones fill the buffer, the small ones the gap that is left.
            for size_bytes, count in ((60_000, 200), (1, 500)):
                for _ in range(count):
                    sender.sendto(bytes(size_bytes), ("127.0.0.1", port))


def test_a_lost_announcement_is_made_up_for(start_service: Callable[..., Any], domain: int) -> None:
    service = start_service()
    os.kill(service.pid, signal.SIGSTOP)
    fill_receive_buffers(domain)
    with QueueProducer("Orders", domain) as producer:
        time.sleep(0.3)
        os.kill(service.pid, signal.SIGCONT)
        assert producer.wait_for_queue() == ("Orders@S",)


def test_a_service_that_starts_after_its_clients_is_found(start_service: Callable[..., Any], domain: int) -> None:
    with QueueProducer("Orders", domain) as producer, QueueConsumer("Orders", "S", domain) as consumer:
        time.sleep(1.0)
        start_service()
        producer.wait_for_queue()
        consumer.wait_for_queue()
        producer.write(b"x")
        assert producer.wait_for_acknowledgments() == 0
        (sample,) = consumer.receive(1)
        sample.acknowledge()


def test_a_process_paused_for_less_than_the_lease_is_not_considered_gone(
    start_service: Callable[..., Any], domain: int
) -> None:
    """Renewals come often enough that a stop of most of the lease, at whatever moment, is no absence."""
    service = start_service("--lease", "2s")
    with QueueConsumer("Orders", "S", domain, settings=DomainSettings(lease_duration_ns=2 * 10**9)) as consumer:
        consumer.wait_for_queue()
        for pause_s in (0.1, 0.3, 0.5, 0.7):
            time.sleep(pause_s)
            os.kill(service.pid, signal.SIGSTOP)
            ends_at = time.monotonic() + 1.2
            while time.monotonic() < ends_at:
                assert consumer.is_matched
                time.sleep(0.05)
            os.kill(service.pid, signal.SIGCONT)
            time.sleep(0.2)
            assert consumer.is_matched
