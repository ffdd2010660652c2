"""Recordings for tests: simulated services whose runs are written as a recording of a live one is."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from qsctl.core.queue.settings import (
    DistributionSettings,
    RedeliverySettings,
    ReplacementKind,
    ResourceLimitSettings,
    SessionSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.sim.run import run
from qsctl.sim.scenario.scenario import (
    ClientInterval,
    Model,
    PoissonArrivals,
    Scenario,
    UniformSize,
    Workload,
    WorkloadConsumer,
    WorkloadProducer,
)

ORDERS = SharedReaderQueueSettings(
    "Orders",
    "Orders",
    type_name="X",
    session="one",
    dead_letter_queue="Dead",
    distribution=DistributionSettings(unacked_threshold=2),
    redelivery=RedeliverySettings(max_delivery_retries=1, response_timeout_ns=40 * MILLISECOND_NS),
    limits=ResourceLimitSettings(max_count=30),
)
DEAD = SharedReaderQueueSettings("Dead", "Dead", session="one", is_dead_letter=True)
JOBS = SharedReaderQueueSettings(
    "Jobs",
    "Jobs",
    type_name="X",
    session="two",
    distribution=DistributionSettings(unacked_threshold=0),
    limits=ResourceLimitSettings(max_count=5, replacement=ReplacementKind.WAIT_WITHOUT_REPLACEMENT),
)


def service_of(*queues: SharedReaderQueueSettings) -> ServiceSettings:
    sessions = (SessionSettings("one"), SessionSettings("two"))
    return ServiceSettings(
        "Svc", (DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S", sessions, queues),)),)
    )


def mixed(
    seed: int = 1, seconds: float = 2.0, service: ServiceSettings | None = None, jobs_window: int = -1
) -> Scenario:
    """Return a mixed load: rejections, silence, an absence, expiry, dead letters, two sessions, a waiting producer."""
    size = UniformSize(10, 3000)
    return Scenario(
        "mixed",
        model=Model.SHARED_READER_QUEUE,
        seed=seed,
        horizon_ns=round(seconds * SECOND_NS),
        workload=Workload(
            service or service_of(DEAD, ORDERS, JOBS),
            (
                WorkloadProducer("Orders", PoissonArrivals(150.0), size, lifespan_ns=120 * MILLISECOND_NS),
                WorkloadProducer("Orders", PoissonArrivals(150.0), size),
                WorkloadProducer("Jobs", PoissonArrivals(120.0), size, window_samples=jobs_window),
            ),
            (
                WorkloadConsumer("Orders", PoissonArrivals(100.0), 2, rejects=0.1, silent=0.02),
                WorkloadConsumer(
                    "Orders", PoissonArrivals(100.0), 2, rejects=0.1, silent=0.02,
                    absences=(ClientInterval(SECOND_NS // 2, SECOND_NS // 4),),
                ),
                WorkloadConsumer("Jobs", PoissonArrivals(70.0), 2),
            ),
        ),
    )  # fmt: skip


def recorded(scenario: Scenario, folder: Path) -> Path:
    """Simulate a scenario and write it as a recording; return the folder."""
    run(dataclasses.replace(scenario, log_level=LogLevel.EVENTS), folder)
    return folder
