"""A small broker that loses messages, and its runs in this process."""

from __future__ import annotations

import dataclasses
from typing import Any

from qsctl.instant import SECOND_NS
from qsctl.sim.scenario.scenario import (
    ClientGroup,
    ConstantSize,
    PoissonArrivals,
    Port,
    Profile,
    Scenario,
    Traffic,
)
from qsctl.sim.sweep import run_task
from qsctl.summary.sweeps.sweep_folder import PointResult

DEPTH = "profile[default]/queue[D-1]/max-depth"


def overloaded(**changes: Any) -> Scenario:
    """One client, one queue, twice what the port carries, for a second."""
    plain = Scenario(
        name="overloaded", horizon_ns=SECOND_NS, seed=11, ports=(Port("p", 8_000_000),), profiles=(Profile("default"),),
        groups=(ClientGroup("c", port="p", profile="default"),),
        traffic=(Traffic("t", to="c", arrivals=PoissonArrivals(2000), size=ConstantSize(1000)),),
    )  # fmt: skip
    return dataclasses.replace(plain, **changes)


def results_here(plan: Any) -> list[PointResult]:
    return [
        PointResult(task.point, task.replication, task.seed, tuple(run_task(plan.scenario, task)))
        for task in plan.tasks()
    ]
