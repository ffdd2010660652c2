"""What the HTTP port of a service answers, and that connections without requests cost nothing."""

from __future__ import annotations

import http.client
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from qsctl.errors import Unavailable
from qsctl.instant import SECOND_NS
from qsctl.service.process.metrics import ServiceFigures
from qsctl.service.process.metrics_server import STALE_NS, MetricsServer, faults_of_health

NOTHING = ServiceFigures({}, {"Orders": 0}, {"Orders": 0}, 0, 0, 0, {"Orders": 0}, {"Orders": 0}, {"Orders": 0})


def serving(**changes: object) -> ServiceFigures:
    return NOTHING._replace(**{"state": "serving", "refreshed_at_ns": time.monotonic_ns(), **changes})


class Service:
    """What a test changes of a service that is asked."""

    def __init__(self) -> None:
        self.figures = serving()
        self.port = 0

    def get(self, path: str, method: str = "GET") -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


@pytest.fixture
def service() -> Iterator[Service]:
    asked = Service()
    server = MetricsServer(lambda: [asked.figures], "127.0.0.1", 0)
    asked.port = server.port
    yield asked
    server.close()
    assert not [each for each in threading.enumerate() if each.name.startswith(("metrics", "waitress"))]


def test_a_counter_of_a_known_queue_is_zero_before_its_first_event(service: Service) -> None:
    _, text = service.get("/metrics")
    assert 'qsctl_queue_events_total{event="dead_lettered",queue="Orders"} 0.0' in text
    service.figures = serving(events={("dead_lettered", "Orders"): 1})
    _, text = service.get("/metrics")
    assert 'qsctl_queue_events_total{event="dead_lettered",queue="Orders"} 1.0' in text
    assert 'qsctl_queue_events_total{event="queue_full",queue="Orders"} 0.0' in text


def test_metrics_have_the_age_of_the_oldest_sample_the_process_and_the_build(service: Service) -> None:
    service.figures = serving(held={"Orders": 1}, oldest_ns={"Orders": time.time_ns() - 90 * SECOND_NS})
    _, text = service.get("/metrics")
    (age,) = (
        line.split()[1] for line in text.splitlines() if line.startswith("qsctl_queue_oldest_sample_age_seconds{")
    )
    assert 90 <= float(age) < 120
    assert "\nprocess_resident_memory_bytes " in text
    assert "\nqsctl_build_info{version=" in text


def test_a_service_that_serves_is_healthy_and_ready(service: Service) -> None:
    assert service.get("/healthz") == (200, "ok\n")
    assert service.get("/readyz") == (200, "ok\n")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"state": "starting"}, "the service is starting"),
        ({"state": "leaving"}, "the service is leaving"),
        ({"unstored": {"Orders": 1}}, "Orders: the disk is nearly full"),
        ({"unstored": {"Orders": 2}}, "Orders: its store has failed"),
        ({"has_quorum": {"Orders": 0}}, "Orders: no quorum of its replicas"),
        ({"is_caught_up": {"Orders": 0}}, "Orders: its replica here is catching up"),
    ],
    ids=lambda each: str(each) if isinstance(each, str) else "",
)
def test_a_service_that_cannot_accept_samples_is_healthy_and_not_ready(
    service: Service, changes: dict[str, object], reason: str
) -> None:
    service.figures = serving(**changes)
    assert service.get("/readyz") == (503, f"{reason}\n")
    assert service.get("/healthz") == (200, "ok\n")


def test_a_loop_that_hangs_is_neither_healthy_nor_ready(service: Service) -> None:
    service.figures = serving(refreshed_at_ns=time.monotonic_ns() - STALE_NS - 2 * SECOND_NS)
    for path in ("/healthz", "/readyz"):
        status, text = service.get(path)
        assert (status, text[:40]) == (503, "the service's loop has not turned for 12")


def test_one_hanging_process_of_several_is_enough() -> None:
    now = 100 * SECOND_NS
    fine, hangs = (serving(refreshed_at_ns=at * SECOND_NS) for at in (99, 50))
    assert faults_of_health([fine, fine], now) == []
    assert faults_of_health([fine, hangs], now) == ["the service's loop has not turned for 50 s"]


def test_other_paths_and_methods_are_refused_by_name(service: Service) -> None:
    assert service.get("/health") == (404, "There is /metrics, /healthz and /readyz.\n")
    assert service.get("/metrics", "POST") == (405, "Only GET and HEAD are answered.\n")
    assert service.get("/healthz", "HEAD") == (200, "")


def test_idle_connections_cost_no_thread_and_hinder_no_request(service: Service) -> None:
    before = threading.active_count()
    with ExitStack() as opened:
        for _ in range(200):
            opened.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=10))
        assert service.get("/healthz") == (200, "ok\n")
        assert threading.active_count() == before


def test_a_request_that_is_too_large_or_no_request_is_answered_and_ends(service: Service) -> None:
    for sent in (b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n", b"\x00\xff\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", service.port), timeout=10) as stranger:
            stranger.sendall(sent)
            assert re.match(rb"HTTP/1\.\d 4\d\d ", stranger.recv(100))
    assert service.get("/healthz") == (200, "ok\n")


def test_a_port_that_is_taken_and_an_address_of_no_machine_are_errors(service: Service) -> None:
    with pytest.raises(Unavailable, match=f"127.0.0.1:{service.port}: Address already in use"):
        MetricsServer(list, "127.0.0.1", service.port)
    with pytest.raises(Unavailable, match=r"metrics cannot be served on 192\.0\.2\.1:0: "):
        MetricsServer(list, "192.0.2.1", 0)
