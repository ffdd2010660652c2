"""What settings cost: the bound of each queue is reached by a simulation and never passed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qsctl.instant import SECOND_NS
from qsctl.sim.scenario.parts.client import ExponentialTime
from qsctl.sim.scenario.randomness import is_deterministic
from qsctl.sim.scenario.scenario import (
    Admission,
    ClientInterval,
    ConstantArrivals,
    ConstantSize,
    MixedSize,
    Model,
    PoissonArrivals,
    Queue,
    QueueLimits,
    Scenario,
    Traffic,
)
from qsctl.sim.sizing.memory import memory_bytes
from tests.sim.brokers import ONE_AT_A_TIME, broker, run


def stalled(queue: Queue, depth: int, burst: int, size: int, **others: object) -> Scenario:
    return broker(
        Traffic("t", "c", ConstantArrivals(1000.0), ConstantSize(size), queue), tcp=ONE_AT_A_TIME,
        queues={queue: QueueLimits(depth, burst)} | {each: QueueLimits(1, 0) for each in Queue if each is not queue},
        pauses=(ClientInterval(0, 10 * SECOND_NS),), horizon_ns=SECOND_NS, **others,
    )  # fmt: skip


@pytest.mark.parametrize("queue", [Queue.D_1, Queue.G_1])
@pytest.mark.parametrize(("depth", "burst", "size"), [(100, 4, 2048), (100, 4, 20_000), (10, 20, 20_000), (7, 0, 6000)])
@pytest.mark.parametrize("admission", list(Admission))
def test_a_queue_that_is_never_emptied_fills_to_the_memory_that_is_counted_for_it(
    queue: Queue, depth: int, burst: int, size: int, admission: Admission
) -> None:
    scenario = stalled(queue, depth, burst, size, admission=admission)
    largest = -(-size // 2048)
    others = 4 * 2048
    mark = int(run(scenario)[0].counters()["high_water_mark_work_units"][0])
    counted = (memory_bytes(scenario) - others) // 2048
    assert mark <= counted < mark + largest


def test_the_windows_of_the_flows_bound_what_g1_holds() -> None:
    scenario = stalled(Queue.G_1, 20_000, 255, 20_480, endpoint={"flows": 2, "window_messages": 25})
    assert memory_bytes(scenario) == (2 * 25 * 10 + 4) * 2048
    assert run(scenario)[0].counters()["high_water_mark_work_units"][0] == 500


def test_a_tibco_queue_holds_its_depth_and_one_message() -> None:
    scenario = replace(stalled(Queue.D_1, 100, 0, 20_000), model=Model.TIBCO)
    profile = replace(scenario.profiles[0], queues={Queue.D_1: QueueLimits(100, 0)})
    assert memory_bytes(replace(scenario, profiles=(profile,))) == (99 + 10) * 2048


def test_a_tibco_queue_fills_to_its_minimum_burst_whatever_its_depth() -> None:
    scenario = replace(stalled(Queue.D_1, 100, 0, 20_480), model=Model.TIBCO)
    profile = replace(scenario.profiles[0], queues={Queue.D_1: QueueLimits(100, 30)})
    scenario = replace(scenario, profiles=(profile,))
    assert memory_bytes(scenario) == 30 * 10 * 2048
    assert run(scenario)[0].counters()["high_water_mark_work_units"][0] == 300


def test_only_a_scenario_without_chance_is_the_same_with_every_seed() -> None:
    fixed = stalled(Queue.D_1, 100, 4, 2048)
    assert is_deterministic(fixed)
    (traffic,) = fixed.traffic
    for changed in (
        replace(fixed, traffic=(replace(traffic, arrivals=PoissonArrivals(5.0)),)),
        replace(fixed, traffic=(replace(traffic, size=MixedSize((1, 2), (1.0, 1.0))),)),
        replace(fixed, groups=(replace(fixed.groups[0], loss_probability=0.1),)),
        replace(fixed, groups=(replace(fixed.groups[0], service_time=ExponentialTime(1000)),)),
    ):
        assert not is_deterministic(changed)
