"""Short ways to say a broker with one port and one kind of client, and to run it."""

from __future__ import annotations

from typing import Any

from qsctl.eventlog.schema import LogLevel
from qsctl.instant import SECOND_NS
from qsctl.sim.egress.runs._run import EgressRun
from qsctl.sim.model import Stop
from qsctl.sim.scenario.scenario import (
    ClientGroup,
    Endpoint,
    Port,
    Profile,
    Queue,
    QueueLimits,
    Scenario,
    TcpSettings,
    Traffic,
)

ONE_AT_A_TIME = TcpSettings(transmit_queue_bytes=1, initial_window_segments=1)
"""The TCP queue holds one message: with no round trip the port is one server without preemption."""

BYTE_A_NS = 8_000_000_000
"""A line rate at which a byte takes a nanosecond."""


def limits(depth: int = 262_144, burst: int = 0, **others: int) -> dict[Queue, QueueLimits]:
    return {queue: QueueLimits(depth, burst, **others) for queue in Queue}


def broker(*traffic: Traffic, **changed: Any) -> Scenario:
    """One client `c` on a port, unless said otherwise."""
    group = {name: changed.pop(name) for name in list(changed) if name in ClientGroup.__dataclass_fields__}
    profile = {name: changed.pop(name) for name in list(changed) if name in Profile.__dataclass_fields__}
    rate = changed.pop("rate_bits_per_second", 10**9)
    endpoint = changed.pop("endpoint", None)
    return Scenario(
        "test",
        ports=(Port("p", rate),),
        profiles=(Profile("d", **{"queues": limits(), **profile}),),
        groups=(ClientGroup("c", "p", "d", **group),),
        traffic=traffic,
        endpoints=() if endpoint is None else (Endpoint("c", **endpoint),),
        **{"horizon_ns": 10 * SECOND_NS, **changed},
    )


def run(scenario: Scenario, level: LogLevel = LogLevel.COUNTERS) -> tuple[EgressRun, Any, Any]:
    """The run, its log rows and its events, to the end."""
    import numpy as np

    made = EgressRun(scenario, 0, level)
    rows, events = [], []
    while made.step(scenario.horizon_ns) is Stop.LOG_FULL:
        rows.append(made.take_log().copy())
    rows.append(made.take_log().copy())
    events.append(made.take_events())
    while made.finish() is Stop.LOG_FULL:
        rows.append(made.take_log().copy())
    rows.append(made.take_log().copy())
    events.append(made.take_events())
    return made, np.concatenate(rows), np.concatenate(events)
