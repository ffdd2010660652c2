"""A check whether anything in a scenario is random: a run without randomness is the same with every seed."""

from __future__ import annotations

from qsctl.sim.scenario.client import ConstantTime
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
    return all(_is_fixed(traffic) for traffic in scenario.traffic)


def _is_fixed(stream: Traffic | WorkloadProducer) -> bool:
    if isinstance(stream.arrivals, TraceArrivals):
        return True
    topics = stream.topics if isinstance(stream, Traffic) else 1
    return isinstance(stream.arrivals, ConstantArrivals) and isinstance(stream.size, ConstantSize) and topics == 1
