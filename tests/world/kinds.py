"""Kinds of worlds: clusters small enough that a seed takes a fraction of a second, each with something of its own."""

from __future__ import annotations

import dataclasses
from random import Random

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
from qsctl.sim.scenario.parts.world import RandomFaults, WorldScenario
from qsctl.sim.scenario.scenario import (
    Model,
    PoissonArrivals,
    Scenario,
    UniformSize,
    Workload,
    WorkloadConsumer,
    WorkloadProducer,
)

QUEUE = SharedReaderQueueSettings(
    "Orders",
    "Orders",
    "Order",
    distribution=DistributionSettings(unacked_threshold=3),
    redelivery=RedeliverySettings(max_delivery_retries=50, response_timeout_ns=700 * MILLISECOND_NS),
    persistence=PersistenceSettings(PersistenceKind.PERSISTENT),
)


SMALL = UniformSize(16, 112)
HURRIED_NS = 7 * SECOND_NS
"""Horizon of a hurried world."""


def world(
    *queues: SharedReaderQueueSettings, seed: int = 1, horizon_ns: int = 16 * SECOND_NS, lifespan_ns: int = INFINITE_NS,
    rejects: float = 0.05, silent: float = 0.02, rate: float = 12.0, sizes: UniformSize = SMALL,
    **declared: object,
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
        (WorkloadProducer("Orders", PoissonArrivals(rate), sizes, 2, lifespan_ns, 16),),
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
        world=WorldScenario(**{**given, **declared}),  # type: ignore[arg-type]
    )


def hurried(scenario: Scenario) -> Scenario:
    """The world of a scenario in less than half of the time, with faults and elections three times as often."""
    if scenario.horizon_ns <= HURRIED_NS:
        return scenario
    assert scenario.world is not None
    faults = scenario.world.faults
    assert faults is not None
    declared = dataclasses.replace(
        scenario.world, master_timeout_ns=120 * MILLISECOND_NS, recovery_ns=4 * SECOND_NS,
        faults=dataclasses.replace(faults, every_ns=faults.every_ns // 3),
    )  # fmt: skip
    return dataclasses.replace(scenario, horizon_ns=HURRIED_NS, world=declared)


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


def replicated(
    instances: int, *, synchronized: bool = True, timeout_ns: int = 400 * MILLISECOND_NS, **replaced: object
) -> SharedReaderQueueSettings:
    """The queue of a cluster."""
    replication = ReplicationSettings(True, instances, timeout_ns, synchronized, sample_timeout_ns=3 * timeout_ns)
    return dataclasses.replace(QUEUE, replication=replication, **replaced)  # type: ignore[arg-type]


def three(seed: int) -> Scenario:
    """Three replicas, assignments synchronized."""
    return world(replicated(3), seed=seed, loss=0.01, duplication=0.01)


def gathering(seed: int) -> Scenario:
    """One service with a slow disk: the samples and answers that gather meanwhile are processed as runs."""
    return _with_slow_disks(QUEUE, seed, horizon_ns=9 * SECOND_NS, recovery_ns=6 * SECOND_NS)


def gathering_three(seed: int) -> Scenario:
    """Three replicas with slow disks, whose logs have runs."""
    return _with_slow_disks(replicated(3, synchronized=seed % 2 == 0), seed)


def _with_slow_disks(queue: SharedReaderQueueSettings, seed: int, **declared: object) -> Scenario:
    patient = dataclasses.replace(queue, distribution=DistributionSettings(unacked_threshold=10))
    scenario = world(
        patient, seed=seed, rate=60.0, loss=0.02, delay_variation_ns=MILLISECOND_NS, **declared  # type: ignore[arg-type]
    )  # fmt: skip
    consumers = tuple(dataclasses.replace(each, service=PoissonArrivals(240.0)) for each in scenario.workload.consumers)
    workload = dataclasses.replace(scenario.workload, consumers=consumers, sync_ns=40 * MILLISECOND_NS)
    return dataclasses.replace(scenario, workload=workload)


def three_unsynchronized(seed: int) -> Scenario:
    """Three replicas, assignments sent at once: the manual's default."""
    return world(replicated(3, synchronized=False), seed=seed, loss=0.01, duplication=0.01)


def changing(seed: int) -> Scenario:
    """Five replicas that all keep their disks, for their members change: fewer of these may be left."""
    faults = RandomFaults(lost_disks=0.0, administration=0.0, restarts=0.3, members=8.0)
    return world(
        replicated(5), seed=seed, loss=0.01, duplication=0.01, faults=faults, compact_records=12 if seed % 2 else 0
    )


def five(seed: int) -> Scenario:
    """Five replicas, some producers relayed by one of them."""
    return world(replicated(5), seed=seed, loss=0.01, duplication=0.01, relayed=0.3)


def large(seed: int) -> Scenario:
    """Three replicas whose letters travel in several pieces, which are lost one by one."""
    return world(
        replicated(3), seed=seed, horizon_ns=12 * SECOND_NS, recovery_ns=7 * SECOND_NS, rate=4.0,
        sizes=UniformSize(1, 250_000), loss=0.03, duplication=0.03,
    )  # fmt: skip


def held(seed: int) -> Scenario:
    """Three replicas whose snapshots are larger than a frame: consumers are slow, or away."""
    return world(
        replicated(3), seed=seed, horizon_ns=12 * SECOND_NS, recovery_ns=7 * SECOND_NS, rate=12.0, silent=0.3,
        sizes=UniformSize(100_000, 400_000), loss=0.02, duplication=0.02, compact_records=12,
        faults=RandomFaults(programs=4.0, lost_disks=1.0),
    )  # fmt: skip


def two(seed: int) -> Scenario:
    """Two replicas: no fault is survived, and nothing is lost."""
    return world(replicated(2), seed=seed, loss=0.01)


def four(seed: int) -> Scenario:
    """Four replicas: as many faults as with three."""
    return world(replicated(4), seed=seed, loss=0.01, duplication=0.01)


def volatile(seed: int) -> Scenario:
    """Three replicas in memory alone: a minority may lose its memory."""
    return world(replicated(3, persistence=PersistenceSettings()), seed=seed, loss=0.01)


def compacting(seed: int) -> Scenario:
    """Three replicas that compact their logs: who lags behind gets a snapshot."""
    return world(replicated(3, synchronized=seed % 2 == 0), seed=seed, loss=0.02, compact_records=12)


def lifespans(seed: int) -> Scenario:
    """Three replicas; samples expire."""
    return world(replicated(3, lifespan_ns=2 * SECOND_NS), seed=seed, lifespan_ns=1500 * MILLISECOND_NS, silent=0.1)


def dead_letters(seed: int) -> Scenario:
    """Three replicas with a dead-letter queue in the same log."""
    return _with_dead_letters(seed)


def dead_letters_compacting(seed: int) -> Scenario:
    """The same, with snapshots of both queues, and assignments that are sent at once."""
    return _with_dead_letters(seed, synchronized=False, compact_records=12)


def replaced_with_dead_letters(seed: int) -> Scenario:
    """Three replicas whose queue is deleted and created again together with its dead letters."""
    return _with_dead_letters(seed, faults=RandomFaults(replacements=4.0, administration=0.0))


def _with_dead_letters(seed: int, *, synchronized: bool = True, **declared: object) -> Scenario:
    dead = dataclasses.replace(
        replicated(3, synchronized=synchronized), name="Dead", topic_name="Dead", type_name="", is_dead_letter=True
    )
    few = replicated(
        3,
        synchronized=synchronized,
        dead_letter_queue="Dead",
        redelivery=RedeliverySettings(2, 300 * MILLISECOND_NS),
        lifespan_ns=3 * SECOND_NS,
    )
    return world(dead, few, seed=seed, rejects=0.3, silent=0.1, **declared)


def administered(seed: int) -> Scenario:
    """Three or five replicas that order their configuration; several administrators create and delete queues."""
    return world(
        replicated(3 if seed % 3 else 5), seed=seed, loss=0.02, duplication=0.02, replicates_configuration=True,
        compact_records=12 if seed % 2 else 0, faults=RandomFaults(administration=6.0), rate=4.0,
    )  # fmt: skip


def replaced(seed: int) -> Scenario:
    """Three or five replicas whose queue is deleted and created again, with its clients at it."""
    return world(
        replicated(3 if seed % 3 else 5), seed=seed, loss=0.01, duplication=0.01,
        faults=RandomFaults(replacements=4.0, administration=0.0), compact_records=12 if seed % 2 else 0,
    )  # fmt: skip


def replaced_in_order(seed: int) -> Scenario:
    """The same where the instances order their configuration."""
    return world(
        replicated(3 if seed % 3 else 5), seed=seed, loss=0.01, replicates_configuration=True,
        faults=RandomFaults(replacements=4.0, administration=1.0), compact_records=12 if seed % 2 else 0,
    )  # fmt: skip


def bereft(seed: int) -> Scenario:
    """Three to five replicas; a majority loses its disks, and what is left anywhere must remain."""
    return world(replicated(3 + seed % 3), seed=seed, faults=RandomFaults(majorities=2.0), rate=8.0)


def survivors(seed: int) -> Scenario:
    """Three or five replicas of which one is gone for good; queues are created without it."""
    return world(
        replicated(3 if seed % 3 else 5), seed=seed, loss=0.01, replicates_configuration=seed % 2 == 0,
        faults=RandomFaults(destroyed=3.0, replacements=2.0, administration=0.0, restarts=0.5),
    )  # fmt: skip


def visited(seed: int) -> Scenario:
    """Three replicas in a domain with a stranger, restarted in turn."""
    return world(replicated(3), seed=seed, loss=0.01, faults=RandomFaults(strangers=4.0, restarts=1.0))


def brief(seed: int) -> Scenario:
    """Short, with a time-out so short that there are many elections."""
    return world(
        replicated(3 if seed % 3 else 5, timeout_ns=100 * MILLISECOND_NS), seed=seed, horizon_ns=6 * SECOND_NS,
        recovery_ns=4 * SECOND_NS, rate=30.0, loss=0.01,
        faults=RandomFaults(every_ns=60 * MILLISECOND_NS, lost_disks=0.6, restarts=0.1, replacements=0.3),
    )  # fmt: skip


def contested(seed: int) -> Scenario:
    """Short, with a time-out so short that there are many elections, of masters that mostly end at once."""
    return world(
        replicated(3 if seed % 3 else 5, timeout_ns=100 * MILLISECOND_NS), seed=seed, horizon_ns=6 * SECOND_NS,
        recovery_ns=4 * SECOND_NS, rate=30.0, loss=0.01,
        faults=RandomFaults(
            every_ns=120 * MILLISECOND_NS, crashes=2.0, cuts=2.0, pauses=1.0, lost_disks=0.0, power_cuts=0.0,
            administration=0.0, elections=6.0,
        ),
    )  # fmt: skip


def swarm(seed: int) -> Scenario:
    """A cluster and faults that are drawn, too: each kind of fault is left out by about half of the seeds."""
    draw = Random(f"swarm/{seed}")
    weights = {
        name: draw.choice([0.0, 0.0, 1.0, 3.0])
        for name in (
            "crashes", "cuts", "pauses", "disks", "lost_disks", "clocks", "programs", "administration", "power_cuts",
            "replacements", "majorities", "destroyed", "strangers", "restarts", "upgrades", "members",
        )
    }  # fmt: skip
    if weights["majorities"]:
        weights["destroyed"] = 0.0  # else a group may be left with nothing
    if weights["members"]:
        weights |= dict.fromkeys(("lost_disks", "majorities", "destroyed"), 0.0)  # the voters may be fewer
    faults = RandomFaults(every_ns=draw.choice([100, 250, 600]) * MILLISECOND_NS, **weights)
    queue = replicated(draw.choice([2, 3, 3, 4, 5]), synchronized=draw.random() < 0.6)
    return world(
        queue, seed=seed, loss=draw.choice([0.0, 0.02, 0.1]), duplication=draw.choice([0.0, 0.05]), faults=faults,
        relayed=draw.choice([0.0, 0.5]), compact_records=draw.choice([0, 0, 8, 30]), rate=draw.choice([6.0, 15.0]),
        horizon_ns=draw.choice([14, 18]) * SECOND_NS, preferred_instance=draw.choice([0, 0, 1, 2]),
        replicates_configuration=not weights["majorities"] and draw.random() < 0.4,
    )  # fmt: skip


def preferring(seed: int) -> Scenario:
    """Three or five replicas of which one has a higher priority as master, restarted in turn."""
    count = 3 if seed % 3 else 5
    return world(
        replicated(count), seed=seed, loss=0.01, duplication=0.01, preferred_instance=1 + seed % count,
        faults=RandomFaults(restarts=1.0, administration=0.0),
    )  # fmt: skip


def upgraded(seed: int) -> Scenario:
    """Three or five replicas of several versions, which are upgraded and downgraded in turn."""
    return world(
        replicated(3 if seed % 3 else 5), seed=seed, loss=0.01, duplication=0.01, preferred_instance=seed % 2,
        faults=RandomFaults(upgrades=4.0, administration=0.0), compact_records=12 if seed % 2 else 0,
    )  # fmt: skip


def witnessed(seed: int) -> Scenario:
    """Three or five replicas of which the last becomes a witness at once; all keep their disks.

    While another one is away, what is accepted may be on one disk with payloads.
    """
    count = 3 if seed % 3 else 5
    return world(
        replicated(count), seed=seed, loss=0.01, duplication=0.01, witness_instance=count,
        compact_records=12 if seed % 2 else 0, faults=RandomFaults(lost_disks=0.0, administration=0.0, restarts=0.5),
    )  # fmt: skip
