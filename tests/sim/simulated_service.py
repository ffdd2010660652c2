"""Scenarios of one simulated service with one queue."""

from __future__ import annotations

import dataclasses
from typing import Any

from qsctl.core.queue.settings import (
    DistributionSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.instant import SECOND_NS
from qsctl.sim.scenario.scenario import (
    Model,
    PoissonArrivals,
    Scenario,
    Workload,
    WorkloadConsumer,
    WorkloadProducer,
)

DELAY = 50_000


def queue_settings(**changes: Any) -> SharedReaderQueueSettings:
    settings = SharedReaderQueueSettings(
        "Q", "T", type_name="X", distribution=DistributionSettings(unacked_threshold=0)
    )
    return dataclasses.replace(settings, **changes)


def scenario_of(
    *queues: SharedReaderQueueSettings,
    producers: tuple[WorkloadProducer, ...] = (WorkloadProducer("T", PoissonArrivals(500.0)),),
    consumers: tuple[WorkloadConsumer, ...] = (WorkloadConsumer("Q", PoissonArrivals(1000.0)),),
    delay_ns: int = DELAY,
    **changes: Any,
) -> Scenario:
    service = ServiceSettings("svc", (DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S", (), queues),)),))
    scenario = Scenario(
        "model",
        Model.SHARED_READER_QUEUE,
        horizon_ns=2 * SECOND_NS,
        workload=Workload(service, producers, consumers, delay_ns),
    )
    return dataclasses.replace(scenario, **changes)


def nine_fast_and_a_slow_one(threshold: int) -> Scenario:
    """Nine consumers of 10 a second, one of 1, and 80 a second to do."""
    return scenario_of(
        queue_settings(distribution=DistributionSettings(unacked_threshold=threshold)),
        producers=(WorkloadProducer("T", PoissonArrivals(80.0)),),
        consumers=(
            WorkloadConsumer("Q", PoissonArrivals(10.0), count=9), WorkloadConsumer("Q", PoissonArrivals(1.0)),
        ),
        horizon_ns=60 * SECOND_NS,
    )  # fmt: skip
