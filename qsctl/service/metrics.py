"""Figures for Prometheus: off unless a port is given, on the loopback unless an address is given.

Decides: the names of the metrics. They are counted from the core's events, as the statistics are; the text is made in
the thread of the request from plain numbers that the service's thread leaves there.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from qsctl.core.engine import ServiceEngine
from qsctl.core.events import Event, SamplesRestored
from qsctl.core.high_availability.member import Member
from qsctl.core.high_availability.roles import Role
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.errors import Unavailable
from qsctl.instant import SECOND_NS, Nanoseconds

REFRESH_NS: Nanoseconds = SECOND_NS


_NONE: Final[Mapping[str, int]] = {}


class PeerFaults(Protocol):
    """What is asked of a transport's boundary."""

    refused_count: int
    """Messages of peers that could not be read."""
    unexpected_count: int
    """Those of them whose reading raised an error that is not foreseen."""


class Figures(NamedTuple):
    """What one process counted since its start, and what its queues hold, by their names."""

    events: dict[tuple[str, str], int]
    """By kind of event and queue."""
    held: dict[str, int]
    sent: dict[str, int]
    refused: int
    malformed: int
    unexpected: int
    waiting: dict[str, int]
    """Samples outside a full queue."""
    undeliverable: dict[str, int]
    """Dead samples that the dead-letter queue has no room for."""
    unstored: dict[str, int]
    """2: the queue's store has failed, and it rests; 1: it enqueues nothing, for the disk is nearly full."""
    is_master: Mapping[str, int] = _NONE
    """Of replicated queues: 1 where this service is the master."""
    epoch: Mapping[str, int] = _NONE
    up_to_date: Mapping[str, int] = _NONE
    """Replicas that hold all that is committed; where this service is not the master, 0."""
    has_quorum: Mapping[str, int] = _NONE
    lag: Mapping[str, int] = _NONE


_GAUGES: Final = {
    "held": ("samples", "Samples that the queue holds."),
    "sent": ("sent_samples", "Samples with a consumer, unanswered."),
    "waiting": ("waiting_samples", "Samples outside the full queue, not acknowledged."),
    "undeliverable": (
        "undeliverable_samples", "Dead samples that the dead-letter queue has no room for; the queue holds them.",
    ),
    "unstored": ("storage_trouble", "1: disk nearly full, new samples are refused; 2: store failed."),
    "is_master": ("is_master", "1: this service is the master of the replicated queue."),
    "epoch": ("epoch", "Number of the election that made the present master."),
    "up_to_date": ("replicas_up_to_date", "Replicas that hold all that is committed, as the master knows them."),
    "has_quorum": ("has_quorum", "1: the master hears from a quorum, or the replica from its master."),
    "lag": ("replication_lag_entries", "Entries that the replica furthest behind lacks, as the master knows it."),
}  # fmt: skip
"""The figures of queues, with the name and help of each for Prometheus."""
_TOTALS: Final = {
    "refused": ("refused_messages", "Messages without effect."),
    "malformed": ("malformed_messages", "Messages that could not be read."),
    "unexpected": (
        "unexpected_errors", "Malformed messages whose reading raised an error that qsctl does not foresee.",
    ),
}  # fmt: skip


class Tally:
    """Counts for Prometheus; used by the service's thread."""

    def __init__(self, engine: ServiceEngine, boundary: PeerFaults, member: Member | None = None) -> None:
        self._engine = engine
        self._member = member
        self._boundary = boundary
        self._events: Counter[tuple[str, str]] = Counter()
        self._refreshed_at_ns: Nanoseconds = -REFRESH_NS
        self.figures = Figures({}, {}, {}, 0, 0, 0, {}, {}, {})
        """As they were at the last `refresh`; never changed, so that any thread may read them."""

    def count(self, events: Iterable[Event]) -> None:
        """Count events, by their kind and queue."""
        counts = self._events
        for event in events:
            number = event.count if type(event) is SamplesRestored else 1
            counts[event.__struct_config__.tag, event.queue] += number  # type: ignore[index]

    def refresh(self) -> bool:
        """Make new figures, at most once a second; whether it did."""
        now = time.monotonic_ns()
        if now - self._refreshed_at_ns < REFRESH_NS:
            return False
        self._refreshed_at_ns = now
        queues = [self._engine.hosted.queue(resource) for resource in self._engine.hosted.queues()]
        self.figures = Figures(
            dict(self._events),
            {each.name: len(each.held) for each in queues},
            {each.name: each.sent_count() for each in queues},
            self._engine.refused_message_count,
            self._boundary.refused_count,
            self._boundary.unexpected_count,
            {each.name: len(each.reader_cache) for each in queues},
            {each.name: each.undeliverable_count() for each in queues},
            {each.name: self._trouble(each) for each in queues},
            **self._of_replicas(),
        )
        return True

    def _trouble(self, queue: SharedReaderQueue) -> int:
        replica = None if self._member is None else self._member.replica_of(queue.name)
        if replica is not None:
            return 2 * replica.is_failed  # a slave's queue rests, and nothing is wrong with it
        return queue.context.refuses + queue.context.is_suspended

    def _of_replicas(self) -> dict[str, dict[str, int]]:
        if self._member is None:
            return {}
        statuses = self._member.statuses()
        return {
            "is_master": {name: int(each.role == Role.MASTER) for name, each in statuses.items()},
            "epoch": {name: each.epoch for name, each in statuses.items()},
            "up_to_date": {name: each.up_to_date_count for name, each in statuses.items()},
            "has_quorum": {name: int(each.has_quorum) for name, each in statuses.items()},
            "lag": {name: each.lag_count for name, each in statuses.items()},
        }


class MetricsServer(Collector):
    """A Prometheus endpoint.

    Args:
        figures: those of each process of the service, for each request; called in the request's thread.

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
        """What a request is answered with."""
        return families(list(self._figures()))

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def families(parts: Sequence[Figures]) -> Iterator[Metric]:
    """Yield the metrics of a service from the figures of its processes.

    A queue is in one process, so that nothing is to be added up but totals.
    """
    events = CounterMetricFamily(
        "qsctl_queue_events", "What happened to samples, since the start.", labels=["queue", "event"]
    )
    gauges = {
        field: GaugeMetricFamily(f"qsctl_queue_{name}", meaning, labels=["queue"])
        for field, (name, meaning) in _GAUGES.items()
    }
    for part in parts:
        for (kind, queue), count in part.events.items():
            events.add_metric([queue, kind], count)
        for field, gauge in gauges.items():
            for queue, value in getattr(part, field).items():
                gauge.add_metric([queue], value)
    yield from (events, *gauges.values())
    for field, (name, meaning) in _TOTALS.items():
        yield CounterMetricFamily(f"qsctl_{name}", meaning, value=sum(getattr(part, field) for part in parts))


def documented() -> Iterator[tuple[str, str, str, str]]:
    """Yield name, type, labels and help of each metric, as Prometheus names them."""
    for family in families([]):
        labels = ", ".join(getattr(family, "_labelnames", ()))
        name = f"{family.name}_total" if family.type == "counter" else family.name
        yield name, family.type, labels, family.documentation
