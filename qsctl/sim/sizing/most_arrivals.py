"""An upper bound of the messages that arrive at a queue in one run, from a scenario's traffic.

Constant arrivals and traces are counted; random ones are taken at their highest rate for the whole time, with an excess
that is exceeded with a probability of less than 10^-12 (Chernoff's bound of a Poisson variable).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

from qsctl.instant import SECOND_NS
from qsctl.sim.scenario.scenario import (
    QUEUE_ORDER,
    ConstantArrivals,
    MmppArrivals,
    Model,
    PoissonArrivals,
    Scenario,
    ScheduleArrivals,
    TraceArrivals,
    Traffic,
)

_EXPONENT: Final = 28.0
"""exp(−28) is less than 10^-12."""


def most_arrivals(scenario: Scenario, queue: str) -> int | None:
    """Return the most messages that may arrive at a queue, summed over clients, in one run; None: it is not determined.

    The traffic does not determine it for a recording, a service or an engine, or with changes during the run.
    """
    if not scenario.traffic or scenario.changes or scenario.replay or scenario.engine or scenario.workload:
        return None
    counts = {group.name: group.count for group in scenario.groups} | {each.name: 1 for each in scenario.durable_queues}
    return sum(
        _most(traffic, counts.get(traffic.to, 0), scenario.horizon_ns, queue, whole=scenario.model is Model.TIBCO)
        for traffic in scenario.traffic
    )


def _most(traffic: Traffic, clients: int, horizon_ns: int, queue: str, *, whole: bool) -> int:
    arrivals = traffic.arrivals
    if isinstance(arrivals, TraceArrivals):
        return _in_trace(traffic, arrivals, clients, queue, whole=whole)
    if not (whole or traffic.queue == queue):
        return 0
    seconds = max(0, min(traffic.stop_ns, horizon_ns) - traffic.start_ns) / SECOND_NS
    streams, copies = (1, clients) if traffic.fan_out else (clients, 1)
    if isinstance(arrivals, ConstantArrivals):
        return streams * copies * (math.ceil(arrivals.rate_per_second * seconds) + 1)
    if isinstance(arrivals, MmppArrivals | ScheduleArrivals):
        rate = max(arrivals.rates_per_second)
    else:
        assert isinstance(arrivals, PoissonArrivals) or hasattr(arrivals, "on_ns")
        rate = arrivals.rate_per_second
    return copies * _poisson_most(streams * rate * seconds)


def _poisson_most(mean: float) -> int:
    """Return a number that a Poisson variable of this mean exceeds with a probability of less than 10^-12."""
    # P(N ≥ mean + x) ≤ exp(−x² ÷ (2 (mean + x ÷ 3))): solved for x.
    third = _EXPONENT / 3.0
    return math.ceil(mean + third + math.sqrt(third * third + 2.0 * _EXPONENT * mean))


def _in_trace(traffic: Traffic, arrivals: TraceArrivals, clients: int, queue: str, *, whole: bool) -> int:
    from qsctl.sim.arrivals.trace import read_trace

    rows = read_trace(Path(arrivals.path), clients)
    named = rows["queue"]
    mine = (named == QUEUE_ORDER.index(queue)) if queue in QUEUE_ORDER else (named < -1)
    plain = (named < 0) if traffic.queue == queue else (named < -1)
    found = len(rows) if whole else int(mine.sum() + plain.sum())
    return found * max(1, clients)
