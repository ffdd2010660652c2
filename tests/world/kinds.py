"""Kinds of worlds: clusters small enough that a seed takes a fraction of a second, each with something of its own."""

from __future__ import annotations

import dataclasses

from qsctl.core.queue.settings import (
    DistributionSettings,
    PersistenceKind,
    PersistenceSettings,
    RedeliverySettings,
    ReplicationSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.instant import INFINITE_NS, MICROSECOND_NS, MILLISECOND_NS, SECOND_NS
from qsctl.sim.scenario.scenario import (
    ConstantSize,
    Model,
    PoissonArrivals,
    Scenario,
    Workload,
    WorkloadConsumer,
    WorkloadProducer,
)
from qsctl.sim.scenario.world import RandomFaults, World

QUEUE = SharedReaderQueueSettings(
    "Orders",
    "Orders",
    "Order",
    distribution=DistributionSettings(unacked_threshold=3),
    redelivery=RedeliverySettings(max_delivery_retries=50, response_timeout_ns=700 * MILLISECOND_NS),
    persistence=PersistenceSettings(PersistenceKind.PERSISTENT),
)


def world(
    *queues: SharedReaderQueueSettings, seed: int = 1, horizon_ns: int = 16 * SECOND_NS, lifespan_ns: int = INFINITE_NS,
    rejects: float = 0.05, silent: float = 0.02, rate: float = 12.0, **declared: object,
) -> Scenario:  # fmt: skip
    """A world with two producers and two consumers of the first queue."""
    hosted = queues or (QUEUE,)
    service = ServiceSettings(
        "service", (DomainParticipantSettings("D", 0, (SharedSubscriberSettings("S", queues=hosted),)),)
    )
    consumers = [WorkloadConsumer("Orders", PoissonArrivals(60.0), 2, rejects, silent)]
    consumers += [WorkloadConsumer(each.name, PoissonArrivals(60.0)) for each in hosted if each.is_dead_letter]
    workload = Workload(
        service,
        (WorkloadProducer("Orders", PoissonArrivals(rate), ConstantSize(32), 2, lifespan_ns, 16),),
        tuple(consumers),
        delay_ns=200 * MICROSECOND_NS,
        sync_ns=2 * MILLISECOND_NS,
    )
    given = {"delay_variation_ns": 3 * MILLISECOND_NS, "faults": RandomFaults(), "recovery_ns": 10 * SECOND_NS}
    return Scenario(
        "world",
        Model.WORLD,
        seed,
        horizon_ns,
        workload=workload,
        world=World(**{**given, **declared}),  # type: ignore[arg-type]
    )


def alone(seed: int) -> Scenario:
    """One service, whose queue is not replicated."""
    return world(seed=seed, loss=0.02)


def alone_with_dead_letters(seed: int) -> Scenario:
    """One service; what fails or expires goes to the dead letters."""
    dead = SharedReaderQueueSettings(
        "Dead", "Dead", is_dead_letter=True, persistence=QUEUE.persistence, redelivery=QUEUE.redelivery
    )
    few = dataclasses.replace(
        QUEUE, dead_letter_queue="Dead", redelivery=RedeliverySettings(2, 300 * MILLISECOND_NS),
        lifespan_ns=3 * SECOND_NS,
    )  # fmt: skip
    return world(dead, few, seed=seed, rejects=0.3, silent=0.1, compact_records=40)


def replicated(instances: int, *, synchronized: bool = True, **replaced: object) -> SharedReaderQueueSettings:
    """The queue of a cluster."""
    replication = ReplicationSettings(
        True, instances, 400 * MILLISECOND_NS, synchronized, sample_timeout_ns=1200 * MILLISECOND_NS
    )
    return dataclasses.replace(QUEUE, replication=replication, **replaced)  # type: ignore[arg-type]


def three(seed: int) -> Scenario:
    """Three replicas, assignments synchronized."""
    return world(replicated(3), seed=seed, loss=0.01, duplication=0.01)


def three_unsynchronized(seed: int) -> Scenario:
    """Three replicas, assignments sent at once: the manual's default."""
    return world(replicated(3, synchronized=False), seed=seed, loss=0.01, duplication=0.01)
