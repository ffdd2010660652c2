"""Figures for Prometheus: off unless a port is given, on the loopback unless an address is given.

Decides: the names of the metrics. They are counted from the core's events, as the statistics are; the text is made in
the thread of the request from plain numbers that the service's thread leaves there.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Protocol

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from qsctl.core.engine import ServiceEngine
from qsctl.core.events import Event
from qsctl.errors import Unavailable
from qsctl.instant import SECOND_NS, Nanoseconds

REFRESH_NS: Nanoseconds = SECOND_NS


class Peers(Protocol):
    """What is asked of a transport."""

    @property
    def malformed_count(self) -> int:
        """Messages that could not be read."""


class Metrics(Collector):
    """A Prometheus endpoint of one service.

    Raises:
        Unavailable: the port is taken, or the address is none of this machine.
    """

    def __init__(self, engine: ServiceEngine, peers: Peers, address: str, port: int) -> None:
        self._engine = engine
        self._peers = peers
        self._events: Counter[tuple[str, str]] = Counter()
        self._held: dict[str, int] = {}
        self._sent: dict[str, int] = {}
        self._refused = 0
        self._malformed = 0
        self._refreshed_at_ns: Nanoseconds = -REFRESH_NS
        registry = CollectorRegistry()
        registry.register(self)
        try:
            self._server, self._thread = start_http_server(port, address, registry)
        except OSError as error:
            raise Unavailable(
                f"metrics cannot be served on {address}:{port}: {error.strerror}",
                remedy="Give another --metrics-port, or another --metrics-address.",
            ) from error
        self.port: int = self._server.server_port

    def count(self, events: Iterable[Event]) -> None:
        """Count events, by their kind and queue."""
        counts = self._events
        for event in events:
            counts[event.__struct_config__.tag, event.queue] += 1  # type: ignore[index]

    def refresh(self) -> None:
        """Take the gauges from the engine, at most once a second; by the service's thread."""
        now = time.monotonic_ns()
        if now - self._refreshed_at_ns < REFRESH_NS:
            return
        self._refreshed_at_ns = now
        held: dict[str, int] = {}
        sent: dict[str, int] = {}
        for resource in self._engine.queues():
            queue = self._engine.queue(resource)
            held[queue.name] = len(queue.held)
            sent[queue.name] = queue.sent_count()
        self._held, self._sent = held, sent
        self._refused = self._engine.refused_message_count
        self._malformed = self._peers.malformed_count

    def collect(self) -> Iterator[Metric]:
        """What a request is answered with."""
        events = CounterMetricFamily(
            "qsctl_queue_events", "What happened to samples, since the start.", labels=["queue", "event"]
        )
        for (kind, queue), count in list(self._events.items()):
            events.add_metric([queue, kind], count)
        yield events
        yield _gauge("qsctl_queue_samples", "Samples that the queue holds.", self._held)
        yield _gauge("qsctl_queue_sent_samples", "Samples with a consumer, unanswered.", self._sent)
        yield CounterMetricFamily("qsctl_refused_messages", "Messages without effect.", value=self._refused)
        yield CounterMetricFamily("qsctl_malformed_messages", "Messages that could not be read.", value=self._malformed)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _gauge(name: str, help_text: str, values: dict[str, int]) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(name, help_text, labels=["queue"])
    for queue, value in values.items():
        gauge.add_metric([queue], value)
    return gauge
