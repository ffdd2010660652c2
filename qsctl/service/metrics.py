"""Figures for Prometheus: off unless a port is given, on the loopback unless an address is given.

Decides: the names of the metrics. They are counted from the core's events, as the statistics are; the text is made in
the thread of the request from plain numbers that the service's thread leaves there.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

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


class Figures(NamedTuple):
    """What one process counted since its start, and what its queues hold, by their names."""

    events: dict[tuple[str, str], int]
    """By kind of event and queue."""
    held: dict[str, int]
    sent: dict[str, int]
    refused: int
    malformed: int


class Tally:
    """Counts for Prometheus; used by the service's thread."""

    def __init__(self, engine: ServiceEngine, peers: Peers) -> None:
        self._engine = engine
        self._peers = peers
        self._events: Counter[tuple[str, str]] = Counter()
        self._refreshed_at_ns: Nanoseconds = -REFRESH_NS
        self.figures = Figures({}, {}, {}, 0, 0)
        """As they were at the last `refresh`; never changed, so that any thread may read them."""

    def count(self, events: Iterable[Event]) -> None:
        """Count events, by their kind and queue."""
        counts = self._events
        for event in events:
            counts[event.__struct_config__.tag, event.queue] += 1  # type: ignore[index]

    def refresh(self) -> bool:
        """Make new figures, at most once a second; whether it did."""
        now = time.monotonic_ns()
        if now - self._refreshed_at_ns < REFRESH_NS:
            return False
        self._refreshed_at_ns = now
        held: dict[str, int] = {}
        sent: dict[str, int] = {}
        for resource in self._engine.queues():
            queue = self._engine.queue(resource)
            held[queue.name] = len(queue.held)
            sent[queue.name] = queue.sent_count()
        self.figures = Figures(
            dict(self._events), held, sent, self._engine.refused_message_count, self._peers.malformed_count
        )
        return True


class MetricsServer(Collector):
    """A Prometheus endpoint.

    Args:
        figures: those of each process of the service, whenever somebody asks; called in the request's thread.

    Raises:
        Unavailable: the port is taken, or the address is none of this machine.
    """

    def __init__(self, figures: Callable[[], Iterable[Figures]], address: str, port: int) -> None:
        self._figures = figures
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

    def collect(self) -> Iterator[Metric]:
        """What a request is answered with. A queue is in one process, so that nothing is to be added up but totals."""
        parts = list(self._figures())
        events = CounterMetricFamily(
            "qsctl_queue_events", "What happened to samples, since the start.", labels=["queue", "event"]
        )
        held = GaugeMetricFamily("qsctl_queue_samples", "Samples that the queue holds.", labels=["queue"])
        sent = GaugeMetricFamily("qsctl_queue_sent_samples", "Samples with a consumer, unanswered.", labels=["queue"])
        for part in parts:
            for (kind, queue), count in part.events.items():
                events.add_metric([queue, kind], count)
            for gauge, values in ((held, part.held), (sent, part.sent)):
                for queue, value in values.items():
                    gauge.add_metric([queue], value)
        yield from (events, held, sent)
        refused, malformed = sum(part.refused for part in parts), sum(part.malformed for part in parts)
        yield CounterMetricFamily("qsctl_refused_messages", "Messages without effect.", value=refused)
        yield CounterMetricFamily("qsctl_malformed_messages", "Messages that could not be read.", value=malformed)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
