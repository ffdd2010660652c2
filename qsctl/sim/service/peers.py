"""The programs around a simulated queuing service: times of writes, service times and answers.

The programs are simulated; their producers and consumers are those of a live client (`core.client`): windows, held
samples, duplicates, acknowledgments. Every program draws from counter-based streams of its own, so that a variant of
the service sees the same writes and the same service times (common random numbers).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from msgspec import structs

from qsctl.core.client.consumer import Arrivals, QueueReader, acknowledgments_of
from qsctl.core.client.producer import Producer, QueueAnswers, SampleTraits
from qsctl.core.messages import (
    EPOCH_SHIFT,
    Acknowledgment,
    AckResponse,
    ConsumerJoined,
    ConsumerLeft,
    Delivery,
    Write,
    WriteAcknowledgment,
)
from qsctl.core.settings import ServiceSettings, queues_of
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
_PRODUCERS_MAX: Final = 2**31 - 1
UNLIMITED_WINDOW: Final = 2**63 - 1
"""Of a scenario's producer without a window: it is never full."""


def guid_of(kind: int, number: int) -> Guid:
    """Return the GUID of a producer's writer or a consumer's reader by its number."""
    return Guid(bytes([kind]) + number.to_bytes(GUID_SIZE_BYTES - 1, "big"))


def number_of(guid: Guid) -> int:
    """Return the number of the peer that has a GUID made by `guid_of`."""
    return int.from_bytes(guid[1:], "big")


def producer_of(guid: Guid) -> int:
    """Return the number of a producer by its writer.

    0 for a dead letter, whose GUID is a digest that may begin alike.
    """
    number = number_of(guid)
    return number if guid[0] == PRODUCER and number <= _PRODUCERS_MAX else 0


@dataclass(frozen=True, slots=True)
class HostedQueue:
    """A queue of the simulated service, with its full name."""

    full_name: str
    name: str
    participant: str
    topic_name: str
    max_count: int
    acknowledges: bool
    replicated: bool


def hosted_queues(service: ServiceSettings) -> list[HostedQueue]:
    """Return every queue, in the order of the configuration."""
    return [
        HostedQueue(
            f"{participant.name}/{subscriber.name}/{queue.name}",
            queue.name,
            participant.name,
            queue.topic_name,
            queue.limits.max_count,
            queue.app_ack_sample_to_producer,
            queue.replication.enabled,
        )
        for participant, subscriber, queue in queues_of(service)
    ]


@dataclass(slots=True)
class SimulatedProducer:
    """A program with a producer: it writes the samples that arrive, and waits while the producer's window is full."""

    state: Producer
    participant: str
    lifespan_ns: Nanoseconds
    backlog: deque[bytes] = field(default_factory=deque)

    def offer(self, payload: bytes) -> list[Write]:
        """Add a sample of the program; return the writes that the producer sends now."""
        self.backlog.append(payload)
        return self._write()

    def receive(self, answer: WriteAcknowledgment) -> list[Write]:
        """Process a queue's answer; return the writes that the producer sends now, as its window may have room."""
        numbers = (answer.identity.sequence_number,)
        self.state.receive(QueueAnswers(answer.queue, numbers, answer.response == AckResponse.ACCEPTED))
        return self._write()

    def _write(self) -> list[Write]:
        state, backlog = self.state, self.backlog
        while backlog and state.has_room:
            state.write(backlog.popleft(), traits=SampleTraits(self.lifespan_ns))
        writes = [structs.replace(write, participant=self.participant) for write in state.pop_writes()]
        state.pop_outcomes()
        return writes


@dataclass(slots=True)
class SimulatedConsumer:
    """A program with a consumer: it serves one sample at a time, then acknowledges, rejects, or does not answer."""

    number: int
    queue: HostedQueue
    mean_service_ns: float
    exponential: bool
    rejects: float
    silent: float
    service_key: Any
    answer_key: Any
    state: QueueReader[SampleIdentity, Delivery]
    is_present: bool = True
    presence: int = 0
    """Number of departures; a service in progress at a departure is void."""
    serving: Delivery | None = None
    served: int = 0

    def join(self) -> ConsumerJoined:
        """Join the queue as a new incarnation that has received nothing."""
        self.is_present = True
        self.state = QueueReader(self.queue.full_name, self.state.consumer_guid)
        return ConsumerJoined(self.queue.full_name, self.state.consumer_guid)

    def leave(self) -> ConsumerLeft:
        """Leave the queue and lose all samples received."""
        self.is_present = False
        self.presence += 1
        self.serving = None
        return ConsumerLeft(self.queue.full_name, self.state.consumer_guid)

    def receive(self, delivery: Delivery) -> None:
        """Add a received sample to those that wait for service."""
        self.state.receive(Arrivals({delivery.identity: delivery}, delivery.flags >> EPOCH_SHIFT))

    def begin(self) -> Nanoseconds | None:
        """Begin to serve the next sample; return its service time, or None where none waits or one is in service."""
        if self.serving is not None or not self.state.waiting_count:
            return None
        self.serving = self.state.deliver(1)[0]
        if not self.exponential:
            return round(self.mean_service_ns)
        return round(-float(logarithm(uniform(self.service_key, self.served))) * self.mean_service_ns)

    def end(self) -> list[Acknowledgment]:
        """End a service.

        Return the acknowledgments that the consumer sends, empty where the program does not answer.
        """
        assert self.serving is not None
        draw = float(uniform(self.answer_key, self.served))
        self.served += 1
        identity, self.serving = self.serving.identity, None
        if draw < self.rejects:
            self.state.acknowledge((identity,), AckResponse.REJECTED)
        elif draw >= self.rejects + self.silent:
            self.state.acknowledge((identity,))
        return acknowledgments_of(self.state)


def producers_of(workload: Workload, queues: list[HostedQueue]) -> list[SimulatedProducer]:
    """Return every producer, numbered in the order of the scenario.

    Raises:
        InvalidInput: no queue receives a producer's topic.
    """
    producers: list[SimulatedProducer] = []
    for declared in workload.producers:
        hosts = [queue for queue in queues if queue.topic_name == declared.topic_name]
        if not hosts:
            known = ", ".join(sorted({queue.topic_name for queue in queues if queue.topic_name}))
            raise InvalidInput(f"no queue is for the topic {declared.topic_name!r}; the topics are: {known or 'none'}")
        participant = hosts[0].participant
        window = declared.window_samples if declared.window_samples >= 0 else UNLIMITED_WINDOW
        for _ in range(declared.count):
            state = Producer(declared.topic_name, guid_of(PRODUCER, len(producers)), window_count=window)
            for queue in hosts:
                if queue.participant == participant:
                    state.queue_appeared(queue.full_name, queue.acknowledges)
            producers.append(SimulatedProducer(state, participant, declared.lifespan_ns))
    return producers


def consumers_of(scenario: Scenario, replication: int, queues: list[HostedQueue]) -> list[SimulatedConsumer]:
    """Return every consumer, numbered in the order of the scenario.

    Raises:
        InvalidInput: a queue that the service does not have or that is ambiguous, or a service rate of 0.
    """
    assert scenario.workload is not None
    consumers: list[SimulatedConsumer] = []
    for position, declared in enumerate(scenario.workload.consumers):
        queue = queue_named(declared.queue, queues)
        for number in range(declared.count):
            service_key, answer_key = (
                np.uint64(stream_key(scenario.seed, replication, "consumer", position, number, purpose))
                for purpose in ("service", "answer")
            )
            consumers.append(
                SimulatedConsumer(
                    len(consumers),
                    queue,
                    SECOND_NS / service_rate(declared),
                    isinstance(declared.service, PoissonArrivals),
                    declared.rejects,
                    declared.silent,
                    service_key,
                    answer_key,
                    QueueReader(queue.full_name, guid_of(CONSUMER, len(consumers))),
                )
            )
    return consumers


def absences_of(workload: Workload, horizon_ns: Nanoseconds) -> list[tuple[int, Nanoseconds, Nanoseconds]]:
    """Return each absence of each consumer: its number, begin and end (`INFINITE_NS`: until the end of the run)."""
    found: list[tuple[int, Nanoseconds, Nanoseconds]] = []
    number = 0
    for declared in workload.consumers:
        for _ in range(declared.count):
            found += [(number, start, end) for start, end in occurrences(declared.absences, horizon_ns)]
            number += 1
    return found


def arrivals_scenario(scenario: Scenario) -> Scenario:
    """Return the producers as groups of clients with traffic to each.

    The arrival streams of all models are made from such a scenario.
    """
    assert scenario.workload is not None
    declared = list(enumerate(scenario.workload.producers))
    return Scenario(
        name=scenario.name,
        seed=scenario.seed,
        horizon_ns=scenario.horizon_ns,
        groups=tuple(ClientGroup(f"producer-{i}", "", "", each.count) for i, each in declared),
        traffic=tuple(Traffic(f"producer-{i}", f"producer-{i}", each.arrivals, each.size) for i, each in declared),
    )


def service_rate(declared: WorkloadConsumer) -> float:
    """Return the number of samples that a consumer serves per second.

    Raises:
        InvalidInput: the rate is not above 0.
    """
    service = declared.service
    if not isinstance(service, PoissonArrivals | ConstantArrivals) or service.rate_per_second <= 0:
        raise InvalidInput(
            f"the consumers of {declared.queue!r} have no rate of service above 0",
            remedy="Give <poisson rate=…/> for exponential service times or <constant rate=…/> for equal ones.",
        )
    return service.rate_per_second


def queue_named(name: str, queues: list[HostedQueue]) -> HostedQueue:
    """Return the queue with this full name, or with this last part of its name.

    Raises:
        InvalidInput: no queue or several queues match.
    """
    matches = [queue for queue in queues if queue.full_name == name or queue.full_name.endswith(f"/{name}")]
    if len(matches) != 1:
        candidates = ", ".join(queue.full_name for queue in matches or queues)
        what = "is ambiguous" if matches else "is not a queue of the service"
        raise InvalidInput(f"{name!r} {what}; the queues are: {candidates}")
    return matches[0]
