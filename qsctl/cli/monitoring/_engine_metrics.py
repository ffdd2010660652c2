"""Figures of an engine's databases in Prometheus's text format, which a timer writes for the node exporter.

Decides the names of the metrics. All are gauges, except counters that our own engine keeps over all its runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qsctl.cli.engine.looks import WatchedEngine

_QUEUE = ("thread", "state", "queue")


def engine_metrics(watched: WatchedEngine) -> str:
    """Return the figures in Prometheus's text format."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.registry import Collector

    class _Figures(Collector):
        def collect(self) -> Iterator[Metric]:
            return families(watched)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures())
    return generate_latest(registry).decode("utf-8")


def families(watched: WatchedEngine) -> Iterator[Metric]:
    """Yield the families of metrics, each with its help."""
    from qsctl.dumps.states import meaning_of

    history = watched.history
    now = history.now
    messages = GaugeMetricFamily("qsctl_engine_queue_messages", "Messages in a queue.", labels=_QUEUE)
    age = GaugeMetricFamily(
        "qsctl_engine_queue_oldest_age_seconds", "Time since the oldest message of a queue came in.", labels=_QUEUE
    )
    growth = GaugeMetricFamily(
        "qsctl_engine_queue_growth_per_second", "By how many messages a second a queue gets longer.", labels=_QUEUE
    )
    for each in history.trends():
        labels = (each.key.thread, str(each.key.state), each.key.name)
        messages.add_metric(labels, each.messages)
        if each.oldest_age_ns is not None:
            age.add_metric(labels, each.oldest_age_ns / 1e9)
        if each.growth_per_s is not None:
            growth.add_metric(labels, each.growth_per_s)
    errors = GaugeMetricFamily(
        "qsctl_engine_errors", "Messages of the error database by their number.", labels=("state", "name")
    )
    for number, count in sorted(now.errors.items()):
        errors.add_metric((str(number), meaning_of(number).name), count)
    last = GaugeMetricFamily(
        "qsctl_engine_last_receive_age_seconds",
        "Time since the newest message of a source thread came in that any database or listing has.",
        labels=("thread",),
    )
    for thread, age_ns in sorted(history.last_receive_ns.items()):
        last.add_metric((thread,), age_ns / 1e9)
    yield GaugeMetricFamily(
        "qsctl_engine_recovery_messages", "Messages of the recovery database.", value=now.recovery_messages
    )
    yield GaugeMetricFamily("qsctl_engine_error_messages", "Messages of the error database.", value=now.error_messages)
    yield from (messages, age, growth, errors, last)
    for name, words, counts in (
        ("received", "Messages that an inbound thread received in all runs.", now.received),
        ("delivered", "Messages that the receiver of an outbound thread processed in all runs.", now.delivered),
    ):
        counter = CounterMetricFamily(f"qsctl_engine_{name}", words, labels=("thread",))
        for thread, count in sorted(counts.items()):
            counter.add_metric((thread,), count)
        yield counter
    yield GaugeMetricFamily(
        "qsctl_engine_look_timestamp_seconds",
        "When the figures were taken, in seconds since 1970; of a database on its engine's clock.",
        value=now.taken.utc_ns / 1e9,
    )
    yield GaugeMetricFamily("qsctl_engine_damaged_places", "Damaged places of the database.", value=len(watched.damage))
