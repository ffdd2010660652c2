"""Listings in Prometheus' text format: one metric a column, labels for client, message VPN, queue and connection.

Of a client that a file lists several times, the last captured figures are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from qsctl.profiles.listings.model import ListedQueueStatistics, Listings

_GAUGES: Final = {
    "length_messages": "Messages in the queue.",
    "length_work_units": "Work units of 2,048 bytes in the queue.",
    "high_water_mark_work_units": "Most work units in the queue since its statistics were cleared.",
    "max_depth_work_units": "Work units above which messages are discarded.",
}
_COUNTERS: Final = {
    "discarded_messages": "Messages discarded from the queue.",
    "delivered_messages": "Messages delivered from the queue.",
}
_Labels = tuple[str, ...]


class _Family:
    """One metric and its samples; a later sample replaces one of the same labels."""

    def __init__(self, name: str, text: str, labels: _Labels, *, counter: bool = False) -> None:
        self._name, self._text, self._labels, self._counter = name, text, labels, counter
        self._samples: dict[_Labels, float] = {}

    def add(self, labels: _Labels, value: float | bool | None) -> None:
        if value is not None:
            self._samples[labels] = float(value)

    def metric(self) -> CounterMetricFamily | GaugeMetricFamily:
        kind = CounterMetricFamily if self._counter else GaugeMetricFamily
        metric = kind(self._name, self._text, labels=self._labels)
        for labels, value in self._samples.items():
            metric.add_metric(labels, value)
        return metric

    def __bool__(self) -> bool:
        return bool(self._samples)


class _Collected(Collector):
    """The collector that the registry reads metrics from."""

    def __init__(self, families: Iterable[_Family]) -> None:
        self._families = [family for family in families if family]

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield the metrics, in their order."""
        for family in self._families:
            yield family.metric()


def _of_queues(prefix: str, labels: _Labels) -> dict[str, _Family]:
    gauges = {name: _Family(f"qsctl_{prefix}_{name}", text, labels) for name, text in _GAUGES.items()}
    counters = {name: _Family(f"qsctl_{prefix}_{name}", text, labels, counter=True) for name, text in _COUNTERS.items()}
    return gauges | counters


def _add_queue(families: dict[str, _Family], labels: _Labels, queue: ListedQueueStatistics) -> None:
    for name, family in families.items():
        family.add(labels, getattr(queue, name))


def prometheus_text(listings: Listings) -> str:
    """Return all figures of the listings as metrics, in Prometheus' text format."""
    clients = _of_queues("client_queue", ("client", "message_vpn", "queue"))
    neighbors = _of_queues("neighbor_queue", ("neighbor", "connection", "queue"))
    control = {
        name: _Family(f"qsctl_neighbor_control_{name}", text, ("neighbor", "queue"))
        for name, text in (
            ("length_messages", _GAUGES["length_messages"]),
            ("high_water_mark_messages", "Most messages in the queue."),
        )
    }
    slow = _Family(
        "qsctl_client_slow_subscriber", "Whether the client is a slow subscriber.", ("client", "message_vpn")
    )
    blocked = _Family(
        "qsctl_client_blocked_percent", "Share of the last minute in which data could not be sent.",
        ("client", "message_vpn"),
    )  # fmt: skip
    discards = _Family("qsctl_discards_messages", "Discards by cause.", ("of", "cause"), counter=True)
    for client in listings.clients:
        vpn = client.message_vpn or ""
        slow.add((client.name, vpn), client.slow_subscriber)
        for queue in client.queues:
            _add_queue(clients, (client.name, vpn, queue.queue), queue)
    for neighbor in listings.neighbors:
        for each in neighbor.control_queues:
            for name, family in control.items():
                family.add((neighbor.name, each.queue), getattr(each, name))
        for connection in neighbor.connections:
            for queue in connection.queues:
                _add_queue(neighbors, (neighbor.name, connection.name, queue.queue), queue)
    for row in listings.slow_subscribers:
        slow.add((row.name, row.message_vpn or ""), row.slow_subscriber)
        blocked.add((row.name, row.message_vpn or ""), row.blocked_percent)
    for one in listings.connections:
        blocked.add((one.name, one.message_vpn or ""), one.blocked_percent)
    for group in listings.discards:
        for key, count in group.causes:
            discards.add((group.of, key), count)
    registry = CollectorRegistry()
    registry.register(_Collected([*clients.values(), *neighbors.values(), *control.values(), slow, blocked, discards]))
    return generate_latest(registry).decode("utf-8")
