"""The producers and consumers of a simulated queuing service: who they are, when they write, how long they serve.

Every one draws from counter-based streams of its own, so that a variant of the service sees the same writes and the
same service times (common random numbers).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from qsctl.core.messages import AckResponse, Delivery, Write
from qsctl.core.settings import ServiceSettings
from qsctl.errors import InvalidInput
from qsctl.identity import GUID_SIZE_BYTES, Guid, SampleIdentity
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.sim.kernel.random import logarithm, stream_key, uniform
from qsctl.sim.scenario.intervals import occurrences
from qsctl.sim.scenario.scenario import (
    ClientGroup,
    ConstantArrivals,
    PoissonArrivals,
    Scenario,
    Traffic,
    Workload,
    WorkloadConsumer,
)

PRODUCER: Final = 1
CONSUMER: Final = 2


def guid_of(kind: int, number: int) -> Guid:
    """The GUID of the n-th producer's writer or consumer's reader."""
    return Guid(bytes([kind]) + number.to_bytes(GUID_SIZE_BYTES - 1, "big"))


def number_of(guid: Guid) -> int:
    """The number that `guid_of` put into a GUID."""
    return int.from_bytes(guid[1:], "big")


@dataclass(frozen=True, slots=True)
class HostedQueue:
    """A queue of the simulated service, under its full name."""

    full_name: str
    name: str
    participant: str
    topic_name: str
    max_count: int
    acknowledges: bool
    replicated: bool
    master_timeout_ns: Nanoseconds


def hosted_queues(service: ServiceSettings) -> list[HostedQueue]:
    """Every queue, in the order of the configuration."""
    return [
        HostedQueue(
            f"{participant.name}/{subscriber.name}/{queue.name}",
            queue.name,
            participant.name,
            queue.topic_name,
            queue.limits.max_count,
            queue.app_ack_sample_to_producer,
            queue.replication.enabled,
            queue.replication.master_timeout_ns,
        )
        for participant in service.participants
        for subscriber in participant.subscribers
        for queue in subscriber.queues
    ]


@dataclass(slots=True)
class Producer:
    """Writes to a topic; with a window, it waits while that many of its writes are unacknowledged."""

    number: int
    participant: str
    topic_name: str
    lifespan_ns: Nanoseconds
    window_samples: int
    answers_expected: int
    """How many queues of the topic answer each write; 0: none, and the window never closes."""
    written: int = 0
    outstanding: dict[SampleIdentity, int] = field(default_factory=dict)
    waiting: deque[bytes] = field(default_factory=deque)

    def offer(self, payload: bytes) -> Write | None:
        """The application has a sample: written now, or kept until the window opens."""
        if self._is_closed():
            self.waiting.append(payload)
            return None
        return self._write(payload)

    def answered(self, identity: SampleIdentity) -> Write | None:
        """A queue answered; with its last answer the write is settled and a waiting sample goes."""
        left = self.outstanding.get(identity, 0) - 1
        if left > 0:
            self.outstanding[identity] = left
            return None
        self.outstanding.pop(identity, None)
        return self._write(self.waiting.popleft()) if self.waiting and not self._is_closed() else None

    def _is_closed(self) -> bool:
        return self.window_samples >= 0 and self.answers_expected > 0 and len(self.outstanding) >= self.window_samples

    def _write(self, payload: bytes) -> Write:
        self.written += 1
        identity = SampleIdentity(guid_of(PRODUCER, self.number), self.written)
        if self.window_samples >= 0 and self.answers_expected > 0:
            self.outstanding[identity] = self.answers_expected
        return Write(self.participant, self.topic_name, identity, payload, lifespan_ns=self.lifespan_ns)


@dataclass(slots=True)
class Consumer:
    """Serves one sample at a time, then acknowledges, rejects, or stays silent; what waits is in `backlog`."""

    number: int
    queue: HostedQueue
    mean_service_ns: float
    exponential: bool
    rejects: float
    silent: float
    service_key: Any
    answer_key: Any
    present: bool = True
    presence: int = 0
    """Counts absences: a service that was under way when it left is void."""
    serving: Delivery | None = None
    backlog: deque[Delivery] = field(default_factory=deque)
    served: int = 0

    @property
    def guid(self) -> Guid:
        """Its reader's."""
        return guid_of(CONSUMER, self.number)

    def begin(self, delivery: Delivery) -> Nanoseconds:
        """Start serving; returns how long it takes."""
        self.serving = delivery
        if not self.exponential:
            return round(self.mean_service_ns)
        return round(-float(logarithm(uniform(self.service_key, self.served))) * self.mean_service_ns)

    def settle(self) -> AckResponse | None:
        """The service is over: what it answers, None for silence."""
        draw = float(uniform(self.answer_key, self.served))
        self.served += 1
        self.serving = None
        if draw < self.rejects:
            return AckResponse.REJECTED
        return None if draw < self.rejects + self.silent else AckResponse.ACCEPTED

    def leave(self) -> None:
        """It is gone, with everything it held."""
        self.present = False
        self.presence += 1
        self.serving = None
        self.backlog.clear()


def producers_of(workload: Workload, queues: list[HostedQueue]) -> list[Producer]:
    """Every producer, numbered in the order of the scenario.

    Raises:
        InvalidInput: a topic that no queue is for.
    """
    producers: list[Producer] = []
    for declared in workload.producers:
        takers = [queue for queue in queues if queue.topic_name == declared.topic_name]
        if not takers:
            known = ", ".join(sorted({queue.topic_name for queue in queues if queue.topic_name}))
            raise InvalidInput(f"no queue is for the topic {declared.topic_name!r}; the topics are: {known or 'none'}")
        domain = takers[0].participant
        answers = sum(queue.acknowledges for queue in takers if queue.participant == domain)
        for _ in range(declared.count):
            producers.append(
                Producer(
                    len(producers), domain, declared.topic_name, declared.lifespan_ns, declared.window_samples, answers
                )
            )
    return producers


def consumers_of(scenario: Scenario, replication: int, queues: list[HostedQueue]) -> list[Consumer]:
    """Every consumer, numbered in the order of the scenario.

    Raises:
        InvalidInput: a queue that the service does not have or that is ambiguous, or a service rate of 0.
    """
    assert scenario.workload is not None
    consumers: list[Consumer] = []
    for position, declared in enumerate(scenario.workload.consumers):
        queue = _queue_named(declared.queue, queues)
        for number in range(declared.count):
            service_key, answer_key = (
                np.uint64(stream_key(scenario.seed, replication, "consumer", position, number, purpose))
                for purpose in ("service", "answer")
            )
            consumers.append(
                Consumer(
                    len(consumers),
                    queue,
                    SECOND_NS / _service_rate(declared),
                    isinstance(declared.service, PoissonArrivals),
                    declared.rejects,
                    declared.silent,
                    service_key,
                    answer_key,
                )
            )
    return consumers


def absences_of(workload: Workload, horizon_ns: Nanoseconds) -> list[tuple[int, Nanoseconds, Nanoseconds]]:
    """Each absence of each consumer: its number, from, until (`INFINITE_NS`: for good)."""
    found: list[tuple[int, Nanoseconds, Nanoseconds]] = []
    number = 0
    for declared in workload.consumers:
        for _ in range(declared.count):
            found += [(number, start, end) for start, end in occurrences(declared.absences, horizon_ns)]
            number += 1
    return found


def arrivals_scenario(scenario: Scenario) -> Scenario:
    """The producers as groups of clients with traffic to each: what the arrival streams of all models are made from."""
    assert scenario.workload is not None
    declared = list(enumerate(scenario.workload.producers))
    return Scenario(
        name=scenario.name,
        seed=scenario.seed,
        horizon_ns=scenario.horizon_ns,
        groups=tuple(ClientGroup(f"producer-{i}", "", "", each.count) for i, each in declared),
        traffic=tuple(Traffic(f"producer-{i}", f"producer-{i}", each.arrivals, each.size) for i, each in declared),
    )


def _service_rate(declared: WorkloadConsumer) -> float:
    service = declared.service
    if not isinstance(service, PoissonArrivals | ConstantArrivals) or service.rate_per_second <= 0:
        raise InvalidInput(
            f"the consumers of {declared.queue!r} have no rate of service above 0",
            remedy="Give <poisson rate=…/> for exponential service times or <constant rate=…/> for equal ones.",
        )
    return service.rate_per_second


def _queue_named(name: str, queues: list[HostedQueue]) -> HostedQueue:
    matches = [queue for queue in queues if queue.full_name == name or queue.full_name.endswith(f"/{name}")]
    if len(matches) != 1:
        candidates = ", ".join(queue.full_name for queue in matches or queues)
        what = "is ambiguous" if matches else "is no queue of the service"
        raise InvalidInput(f"{name!r} {what}; the queues are: {candidates}")
    return matches[0]
