"""Metrics for Prometheus: the figures of a service, and the names, labels and help of the metrics.

Decides: which figures exist. They are counted from the core's events, as the statistics are; the metric families are
built in the thread of the request (`metrics_server`) from plain numbers that the service's thread has published. A
counter of a known queue exists with 0 before its first event: `increase()` misses the step of a counter that begins at
1, and the alert for the first dead letter would never fire.
"""

from __future__ import annotations

import time
import typing
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from qsctl import __version__
from qsctl.core.engine import ServiceEngine
from qsctl.core.events import (
    Event,
    SampleEnqueued,
    SampleReceived,
    SampleRemoved,
    SampleSent,
    SamplesPassed,
    SamplesRestored,
)
from qsctl.core.high_availability.member import Member
from qsctl.core.high_availability.roles import Role
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.core.records import RemovalCause
from qsctl.core.statistics.status import MemberStatus
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.transport.dds.replicas.letter_signatures import LetterDenial
from qsctl.transport.dds.wire.signed_commands import DenialCause

REFRESH_NS: Nanoseconds = SECOND_NS
ServiceState: TypeAlias = Literal["starting", "serving", "leaving"]


_NONE: Final[Mapping[str, int]] = {}
_KINDS: Final = {each: each.__struct_config__.tag for each in typing.get_args(Event) if each is not SamplesPassed}
EVENT_KINDS: Final = tuple(_KINDS.values())
"""Values of the label `event`."""
_OF_SEVERAL: Final = frozenset({SampleReceived, SampleEnqueued, SampleSent, SampleRemoved, SamplesRestored})
"""Events of several samples."""
# Reading a member of an enumeration by its name takes longer than counting an event.
_DELIVERED: Final = RemovalCause.DELIVERED

TIME_BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the histogram's buckets; one more has what took longer."""
_TIME_BOUNDS_NS: Final = tuple(round(bound * SECOND_NS) for bound in TIME_BOUNDS_S)


class TimeToDone(NamedTuple):
    """The residence times of a queue's acknowledged samples: counts by bucket of `TIME_BOUNDS_S`, and the sum."""

    counts: list[int]
    sum_ns: int


_NO_TIME: Final = TimeToDone([0] * (len(TIME_BOUNDS_S) + 1), 0)


class PeerFaults(Protocol):
    """The counters of invalid messages, as the transport provides them."""

    refused_count: int
    """Messages of peers that could not be read."""
    unexpected_count: int
    """The part of those whose decoding raised an unexpected error."""

    skipped_count: int
    """Parts of messages that only later versions know."""

    unsigned_count: int
    """Fragments of replication messages accepted without a signature, at a member that has the cluster's key."""

    @property
    def denied(self) -> Mapping[str, int]:
        """The number of commands without a valid signature, by cause."""

    @property
    def refused_letters(self) -> Mapping[str, int]:
        """The number of fragments of replication messages without a valid signature, by cause."""


class Budget(NamedTuple):
    """A service's use of its limits."""

    limits: Mapping[str, int] = {}
    """The limit by its name; -1: unlimited. Names in `…_per_peer` apply to each peer."""
    usage: Mapping[str, int] = {}
    """The use by the limit's name; for a limit of each peer, that of the peer with the highest use."""
    work_ns: Mapping[str, int] = {}
    """Nanoseconds of the service's loop by kind of work."""
    held_back: int = 0
    """1: samples of producers are refused, because memory is at its limit; else 0."""


class ServiceFigures(NamedTuple):
    """Counters of one process since its start, and figures of its queues, by queue name."""

    events: dict[tuple[str, str], int]
    """The number of events by kind and queue."""
    held: dict[str, int]
    sent: dict[str, int]
    refused: int
    malformed: int
    unexpected: int
    waiting: dict[str, int]
    """The number of samples that wait in the reader cache of a full queue."""
    undeliverable: dict[str, int]
    """The number of dead samples that wait because the dead-letter queue is full."""
    unstored: dict[str, int]
    """2: the queue is suspended, because its store has failed; 1: it enqueues nothing, because the disk is nearly full.
    """
    is_master: Mapping[str, int] = _NONE
    """For replicated queues: 1 if this service is the master, else 0."""
    epoch: Mapping[str, int] = _NONE
    up_to_date: Mapping[str, int] = _NONE
    """The number of replicas that have all committed records; 0 if this service is not the master."""
    has_quorum: Mapping[str, int] = _NONE
    lag: Mapping[str, int] = _NONE
    members: Mapping[str, Sequence[MemberStatus]] = {}
    """For replicated queues of which this service is the master: the members."""
    is_caught_up: Mapping[str, int] = _NONE
    """For replicated queues: 0 while this service, which lost its log, has not caught up again."""
    consumers: Mapping[str, int] = _NONE
    oldest_ns: Mapping[str, int] = _NONE
    """Time at which the oldest held sample was enqueued, on the service's clock; absent for an empty queue."""
    time_to_done: Mapping[str, TimeToDone] = {}
    refreshed_at_ns: Nanoseconds = 0
    """Time of these figures on the machine's monotonic clock; 0: not yet made."""
    state: ServiceState = "starting"
    limits: Mapping[str, int] = _NONE
    usage: Mapping[str, int] = _NONE
    work_ns: Mapping[str, int] = _NONE
    held_back: int = 0
    refused_frames: int = 0
    """The number of frames of other members that were ignored, since no correct replica sends them."""
    skipped: int = 0
    unsigned: int = 0
    denied: Mapping[str, int] = _NONE
    """The number of commands without a valid signature, by cause."""
    refused_letters: Mapping[str, int] = _NONE
    """The number of fragments of replication messages without a valid signature, by cause."""


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
    "is_caught_up": ("is_caught_up", "0: this replica lost its log, and does not hold all of it again yet."),
    "consumers": ("consumers", "Consumers that are matched with the queue."),
}  # fmt: skip
"""The figures of queues, with the name and help of each for Prometheus."""
_DISK_HANGS: Final = {"ok": 0, "hangs": 1}

_MEMBER_GAUGES: Final[Mapping[str, tuple[str, Callable[[MemberStatus], float | None]]]] = {
    "is_voter": ("1: the member has a vote.", lambda each: each.is_voter),
    "is_up": ("0: the member confirmed no frame within master_timeout.", lambda each: bool(each.role)),
    "durable_index": ("The last entry of the member's log that is durable.", lambda each: each.durable_index),
    "applied_index": ("The entry that the member's queue has followed the log to.", lambda each: each.applied_index),
    "lag_entries": ("Entries that the member lacks.", lambda each: each.lag_count),
    "lag_bytes": ("Octets of payloads that the member lacks.", lambda each: each.lag_bytes),
    "lag_seconds": ("Time since the member held all that was committed.", lambda each: _in_seconds(each.lag_ns)),
    "silent_seconds": (
        "Age of the latest frame that the member confirmed.",
        lambda each: _in_seconds(each.silent_ns),
    ),
    "version": ("Version of the member's replication messages.", lambda each: each.version),
    "master_priority": ("The priority of the member as master.", lambda each: each.master_priority),
    "disk_hangs": ("1: no sync of the member's disk ends.", lambda each: _DISK_HANGS.get(each.disk)),
}
"""The gauges of members at the master, with help and value; None: unknown, and not served."""

MEMBER_ROWS_MAX: Final = 1_000
"""Bound of the members of all queues whose gauges are served."""

_TOTALS: Final = {
    "refused": ("refused_messages", "Messages without effect."),
    "malformed": ("malformed_messages", "Messages that could not be read."),
    "unexpected": (
        "unexpected_errors", "Malformed messages whose reading raised an error that qsctl does not foresee.",
    ),
    "refused_frames": (
        "refused_replica_frames", "Frames between replicas without effect: no replica can have sent them.",
    ),
    "unsigned": ("unsigned_letters", "Fragments of replication messages accepted without a signature."),
    "skipped": ("skipped_parts", "Parts of messages between replicas that only later versions of qsctl know."),
}  # fmt: skip


class Tally:
    """The counters for Prometheus, updated by the service's thread."""

    def __init__(
        self,
        engine: ServiceEngine,
        boundary: PeerFaults,
        member: Member | None = None,
        budget: Callable[[], Budget] = Budget,
    ) -> None:
        self._engine = engine
        self._budget = budget
        self._member = member
        self._boundary = boundary
        self._events: dict[type[Event], dict[str, int]] = {kind: {} for kind in _KINDS}
        """The number of events by kind and queue."""
        self._times: dict[str, list[int]] = {}
        """By queue, the counts of the buckets, and the sum behind them."""
        self._refreshed_at_ns: Nanoseconds = -REFRESH_NS
        self.figures = ServiceFigures({}, {}, {}, 0, 0, 0, {}, {}, {})
        """As they were at the last `refresh`; never changed, so that any thread may read them."""

    def count(self, events: Iterable[Event]) -> None:
        """Count events by kind and queue, and the residence times of acknowledged samples."""
        counts, times = self._events, self._times
        for event in events:
            kind, queue = type(event), event.queue
            count = event.count if kind in _OF_SEVERAL else 1  # type: ignore[union-attr]
            of_kind = counts[kind]
            of_kind[queue] = of_kind.get(queue, 0) + count
            if kind is SampleRemoved and event.cause is _DELIVERED:  # type: ignore[union-attr]
                buckets = times.get(queue)
                if buckets is None:
                    buckets = times[queue] = [0] * (len(TIME_BOUNDS_S) + 2)
                spent_ns = max(0, event.at_ns - event.enqueued_at_ns)  # type: ignore[union-attr]
                buckets[bisect_left(_TIME_BOUNDS_NS, spent_ns)] += count
                buckets[-1] += spent_ns * count

    def refresh(self) -> bool:
        """Publish new figures, at most once a second; return whether it did."""
        now = time.monotonic_ns()
        if now - self._refreshed_at_ns < REFRESH_NS:
            return False
        self._refreshed_at_ns = now
        queues = [self._engine.hosted.queue(resource) for resource in self._engine.hosted.queues()]
        self.figures = ServiceFigures(
            {(tag, queue): count for kind, tag in _KINDS.items() for queue, count in self._events[kind].items()},
            {each.name: len(each.held) for each in queues},
            {each.name: each.sent_count() for each in queues},
            self._engine.refused_message_count,
            self._boundary.refused_count,
            self._boundary.unexpected_count,
            {each.name: len(each.reader_cache) for each in queues},
            {each.name: each.undeliverable_count() for each in queues},
            {each.name: self._trouble(each) for each in queues},
            **self._of_replicas(),
            **self._budget()._asdict(),
            consumers={each.name: len(each.deliveries.consumers) for each in queues},
            oldest_ns={each.name: oldest.enqueued_at_ns for each in queues if (oldest := next(iter(each.held), None))},
            time_to_done={name: TimeToDone(buckets[:-1], buckets[-1]) for name, buckets in self._times.items()},
            refreshed_at_ns=now,
            state="serving",
            denied=dict(self._boundary.denied),
            refused_letters=dict(self._boundary.refused_letters),
            unsigned=self._boundary.unsigned_count,
            skipped=self._boundary.skipped_count,
        )
        return True

    def leave(self) -> None:
        """Record that the service accepts no more samples."""
        self.figures = self.figures._replace(state="leaving")

    def _trouble(self, queue: SharedReaderQueue) -> int:
        replica = None if self._member is None else self._member.replica_of(queue.name)
        if replica is not None:
            return 2 * replica.is_failed  # a slave's queue rests, and nothing is wrong with it
        return queue.context.refuses + queue.context.is_suspended

    def _of_replicas(self) -> dict[str, Any]:
        if self._member is None:
            return {}
        statuses = self._member.statuses()
        return {
            "is_master": {name: int(each.role == Role.MASTER) for name, each in statuses.items()},
            "epoch": {name: each.epoch for name, each in statuses.items()},
            "up_to_date": {name: each.up_to_date_count for name, each in statuses.items()},
            "has_quorum": {name: int(each.has_quorum) for name, each in statuses.items()},
            "lag": {name: each.lag_count for name, each in statuses.items()},
            "members": {name: each.members for name, each in statuses.items() if each.role == Role.MASTER},
            "is_caught_up": {name: int(each.role != Role.LEARNER) for name, each in statuses.items()},
            "refused_frames": self._member.refused_frame_count,
        }


def families(parts: Sequence[ServiceFigures], now: Nanoseconds = 0) -> Iterator[Metric]:
    """Yield the metrics of a service at `now` from the figures of its processes.

    Each queue belongs to one process, so only totals are added up.
    """
    events = CounterMetricFamily(
        "qsctl_queue_events", "What happened to samples, since the start.", labels=["queue", "event"]
    )
    gauges = {
        field: GaugeMetricFamily(f"qsctl_queue_{name}", meaning, labels=["queue"])
        for field, (name, meaning) in _GAUGES.items()
    }
    oldest = GaugeMetricFamily(
        "qsctl_queue_oldest_sample_age_seconds",
        "Age of the oldest sample in the queue; 0: it is empty.",
        labels=["queue"],
    )
    times = HistogramMetricFamily(
        "qsctl_queue_time_to_done_seconds", "Time from enqueueing to the acknowledgment.", labels=["queue"]
    )
    bounds = (*map(str, TIME_BOUNDS_S), "+Inf")
    for part in parts:
        counts = {(kind, queue): 0 for queue in part.held for kind in EVENT_KINDS} | part.events
        for (kind, queue), count in counts.items():
            events.add_metric([queue, kind], count)
        for field, gauge in gauges.items():
            for queue, value in getattr(part, field).items():
                gauge.add_metric([queue], value)
        for queue in part.held:
            since_ns = part.oldest_ns.get(queue)
            oldest.add_metric([queue], 0 if since_ns is None else max(0, now - since_ns) / SECOND_NS)
            spent = part.time_to_done.get(queue, _NO_TIME)
            buckets = list(zip(bounds, accumulate(spent.counts), strict=True))
            times.add_metric([queue], buckets, sum_value=spent.sum_ns / SECOND_NS)
    yield from (events, *gauges.values(), oldest, times, *_member_families(parts))
    for field, (name, meaning) in _TOTALS.items():
        yield CounterMetricFamily(f"qsctl_{name}", meaning, value=sum(getattr(part, field) for part in parts))
    for name, meaning, causes, field in (
        (
            "unauthorized_commands",
            "Administration commands without a signature that counts, at a service that requires one.",
            DenialCause,
            "denied",
        ),
        (
            "refused_letters",
            "Fragments of replication messages without a valid signature, at a member with the cluster's key.",
            LetterDenial,
            "refused_letters",
        ),
    ):
        denied = CounterMetricFamily(f"qsctl_{name}", meaning, labels=["cause"])
        for cause in causes:
            denied.add_metric([cause], sum(getattr(part, field).get(cause, 0) for part in parts))
        yield denied
    yield from _budget_families(parts)
    build = GaugeMetricFamily("qsctl_build_info", "1, with the version of qsctl.", labels=["version"])
    build.add_metric([__version__], 1)
    yield build


def _member_families(parts: Sequence[ServiceFigures]) -> Iterator[Metric]:
    """Yield the metrics of the members of replicated queues."""
    of_queues = [(queue, each) for part in parts for queue, members in part.members.items() for each in members]
    for name, (meaning, value_of) in _MEMBER_GAUGES.items():
        gauge = GaugeMetricFamily(f"qsctl_member_{name}", meaning, labels=["queue", "member"])
        for queue, member in of_queues[:MEMBER_ROWS_MAX]:
            if (value := value_of(member)) is not None:
                gauge.add_metric([queue, member.name], value)
        yield gauge


def _in_seconds(duration_ns: Nanoseconds | None) -> float | None:
    return None if duration_ns is None else duration_ns / SECOND_NS


def _budget_families(parts: Sequence[ServiceFigures]) -> Iterator[Metric]:
    """Yield the metrics of limits; of several processes the highest use counts, except that queues are added up."""
    limit = GaugeMetricFamily(
        "qsctl_limit", "Limit of the service, or of each of its peers; -1: none.", labels=["limit"]
    )
    usage = GaugeMetricFamily(
        "qsctl_limit_usage", "Use of the limit, by the peer that uses the most.", labels=["limit"]
    )
    work = CounterMetricFamily(
        "qsctl_work_seconds", "Time that the service spent on work which keeps to a share of it.", labels=["work"]
    )
    for name in dict.fromkeys(name for part in parts for name in part.limits):
        limit.add_metric([name], max(part.limits[name] for part in parts if name in part.limits))
    for name in dict.fromkeys(name for part in parts for name in part.usage):
        taken = [part.usage[name] for part in parts if name in part.usage]
        usage.add_metric([name], sum(taken) if name == "queues" else max(taken))
    for name in dict.fromkeys(name for part in parts for name in part.work_ns):
        work.add_metric([name], sum(part.work_ns.get(name, 0) for part in parts) / SECOND_NS)
    held_back = max((part.held_back for part in parts), default=0)
    yield from (limit, usage, work)
    yield GaugeMetricFamily(
        "qsctl_producers_held_back", "1: samples of producers are refused, for memory is at its limit.", value=held_back
    )


def documented() -> Iterator[tuple[str, str, str, str]]:
    """Yield name, type, labels and help of each metric, in Prometheus' notation."""
    for family in families([]):
        labels = ", ".join(getattr(family, "_labelnames", ()))
        name = f"{family.name}_total" if family.type == "counter" else family.name
        yield name, family.type, labels, family.documentation
