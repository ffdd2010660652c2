"""A check whether anything in a scenario is random: a run without randomness is the same with every seed."""

from __future__ import annotations

from qsctl.sim.scenario.parts.broker_queue import BrokerQueue, ClosedArrivals
from qsctl.sim.scenario.parts.client import ConstantTime
from qsctl.sim.scenario.rules.broker_queue import works_of
from qsctl.sim.scenario.scenario import (
    ConstantArrivals,
    ConstantSize,
    Scenario,
    TraceArrivals,
    Traffic,
    WorkloadProducer,
)


def is_deterministic(scenario: Scenario) -> bool:
    """Return whether every replication gives the same figures, so that one is enough."""
    if any(group.loss_probability > 0 or not isinstance(group.service_time, ConstantTime) for group in scenario.groups):
        return False
    if scenario.service is not None or scenario.engine is not None:
        # Identities and the order of consumers are seeded, too; only arrivals without chance would not be enough.
        return False
    if scenario.queue is not None:
        return _is_queue_fixed(scenario.queue)
    return all(_is_fixed(traffic) for traffic in scenario.traffic)


def _is_queue_fixed(queue: BrokerQueue) -> bool:
    """Return whether a queue draws no random value: its arrivals, sizes, classes, work and failures are all fixed."""
    if any(work.is_random for _, work in works_of(queue)):
        return False
    if any(each.fails not in (0.0, 1.0) or each.poison not in (0.0, 1.0) for each in queue.classes):
        return False
    if len(queue.classes) > 1 and any(not each.work_class for each in queue.publishers):
        return False
    if queue.retry.jitter > 0 or (queue.backlog is not None and queue.backlog.keys > 1):
        return False
    return all(
        each.keys == 1
        and isinstance(each.size, ConstantSize)
        and isinstance(each.arrivals, TraceArrivals | ConstantArrivals | ClosedArrivals)
        for each in queue.publishers
    )


def _is_fixed(stream: Traffic | WorkloadProducer) -> bool:
    if isinstance(stream.arrivals, TraceArrivals):
        return True
    topics = stream.topics if isinstance(stream, Traffic) else 1
    return isinstance(stream.arrivals, ConstantArrivals) and isinstance(stream.size, ConstantSize) and topics == 1
