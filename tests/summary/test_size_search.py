"""`size` searches in the direction that each target has in each setting, from both ends; it reports where it looked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from qsctl.errors import UsageError
from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.scenario import (
    ClientGroup,
    ConstantSize,
    PoissonArrivals,
    Port,
    Profile,
    Scenario,
    Traffic,
)
from qsctl.sim.simulate import open_scenario
from qsctl.sim.sizing.directions import Change, Direction, change_of, effect_of
from qsctl.sim.sizing.targets import parse_setting, parse_target
from qsctl.sim.sweep import Point, Task, run_task
from qsctl.summary.sweeps.points import EVERY_MEASURE
from qsctl.summary.sweeps.size import Method, Sizing, size
from tests.summary.runners import ByLaw, Here, Law

DEPTH = "profile[*]/queue[D-1]/max-depth"
MS = MILLISECOND_NS


def plain(rate: float = 800.0) -> Scenario:
    return Scenario(
        name="plain", horizon_ns=SECOND_NS, seed=3, ports=(Port("p"),), profiles=(Profile("default"),),
        groups=(ClientGroup("c", port="p", profile="default"),),
        traffic=(Traffic("t", to="c", arrivals=PoissonArrivals(rate), size=ConstantSize(2048)),),
    )  # fmt: skip


def found(
    law: Law, targets: Sequence[str], *settings: str, scenario: Scenario | None = None, **arguments: object
) -> Sizing:
    scenario = scenario or plain()
    return size(
        scenario,
        [parse_target(text, tuple(EVERY_MEASURE)) for text in targets],
        [parse_setting(text) for text in settings],
        confidence=0.95,
        runner=ByLaw(scenario, law),
        **arguments,  # type: ignore[arg-type]
    )


def two_sided(settings: Mapping[str, int], draw: np.random.Generator) -> Mapping[str, int]:
    """Discards end at about 500 messages, and a message of depth costs a tenth of a millisecond."""
    depth = settings[DEPTH]
    return {
        "discarded_messages": max(0, int(500 + draw.normal(0, 1) - depth)),
        "wait_p99_ns": int(depth * MS / 10 + draw.normal(0, MS / 100)),
    }


@pytest.mark.slow
def test_the_help_s_own_example_finds_the_depths_that_meet_it() -> None:
    """The latency grows with the depth: the largest depth misses the target, and the search ended there before."""
    changes = {"horizon": "1s", "group[desks]/count": "1", "port[p1]/rate": "25 Mbit/s"}
    scenario = apply_overrides(open_scenario("burst", {}, {}), changes)
    sizing = size(
        scenario,
        [parse_target("time_in_queue_p99(D-1)<200ms", tuple(EVERY_MEASURE))],
        [parse_setting("max-depth(D-1)")],
        confidence=0.95,
        most_replications=24,
        stated={("time_in_queue_p99", "D-1"): 220.0 * MS},
        runner=Here(scenario),
    )
    assert sizing.answer is not None
    assert sizing.answer.values == (2,)
    assert sizing.largest is not None
    means = []
    for depth in (sizing.largest, int(1.15 * sizing.largest)):
        point = Point(((DEPTH, str(depth)),))
        runs = [run_task(scenario, Task(point, number, 99)) for number in range(20)]
        means.append(math.fsum(row.wait_p99_ns or 0 for run in runs for row in run if row.queue == "D-1") / len(runs))
    assert means[0] < 200 * MS < means[1]
    assert sizing.monotone
    assert {2, 262_144} <= set(sizing.tried(0))


@pytest.mark.slow
def test_two_targets_bound_a_setting_from_both_sides() -> None:
    sizing = found(two_sided, ["discards(D-1)=0", "time_in_queue_p99(D-1)<200ms"], "max-depth(D-1)")
    assert sizing.answer is not None
    assert 500 <= sizing.answer.values[0] <= 505
    assert sizing.largest is not None
    assert 1700 <= sizing.largest <= 2000
    assert [effect.direction for effect in sizing.effects] == [Direction.BETTER, Direction.WORSE]


def test_two_targets_that_exclude_each_other_have_no_setting_and_ends_and_middle_were_tried() -> None:
    sizing = found(two_sided, ["discards(D-1)=0", "time_in_queue_p99(D-1)<20ms"], "max-depth(D-1)=100..10000")
    assert sizing.answer is None
    assert {100, 1000, 10_000} <= set(sizing.tried(0))
    assert sizing.monotone


def test_nothing_in_the_range_is_concluded_after_both_ends_and_the_middle() -> None:
    sizing = found(two_sided, ["discards(D-1)=0"], "max-depth(D-1)=10..400")
    assert sizing.answer is None
    assert {10, 63, 400} <= set(sizing.tried(0))


def test_a_measure_without_a_direction_is_scanned_all_over_the_range() -> None:
    def valley(settings: Mapping[str, int], draw: np.random.Generator) -> Mapping[str, int]:
        depth = settings[DEPTH]
        return {"redelivered_messages": int(draw.integers(0, 2)) if 300 <= depth <= 5000 else 1000}

    sizing = found(valley, ["redelivered(D-1)<50"], "max-depth(D-1)=10..20000")
    assert sizing.method is Method.SCAN
    assert sizing.effects[0].direction is Direction.UNKNOWN
    assert sizing.answer is not None
    assert 300 <= sizing.answer.values[0] <= 800
    tried = sizing.tried(0)
    assert (tried[0], tried[-1], len(tried)) == (10, 20_000, 17)


def test_what_contradicts_a_direction_is_reported() -> None:
    def backwards(settings: Mapping[str, int], draw: np.random.Generator) -> Mapping[str, int]:
        return {"discarded_messages": 0 if settings[DEPTH] < 100 else int(draw.integers(5, 9))}

    sizing = found(backwards, ["discards(D-1)=0"], "max-depth(D-1)=10..1000")
    assert not sizing.monotone
    assert [effect.target.measure for effect in sizing.contradicted] == ["discards"]


@pytest.mark.slow
def test_a_second_target_does_not_hide_that_the_first_bounds_from_above() -> None:
    sizing = found(two_sided, ["time_in_queue_p99(D-1)<200ms", "loss_ratio(D-1)<50%"], "max-depth(D-1)")
    assert sizing.answer is not None
    assert sizing.answer.values[0] <= 200


@pytest.mark.parametrize(
    ("path", "measure", "queue", "change"),
    [
        (DEPTH, "discards", "D-1", Change.FALLS),
        (DEPTH, "time_in_queue_p99", "D-1", Change.RISES),
        ("profile[slow]/queue[D-1]/max-depth", "wait_p99_ns", "D-1", Change.RISES),
        (DEPTH, "time_in_queue_p99", "D-2", Change.RISES),
        (DEPTH, "throughput", "G-1", Change.FALLS),
        ("profile[*]/queue[G-1]/max-depth", "time_in_queue_p99", "G-1", Change.UNKNOWN),
        ("queue[Orders]/consumers", "time_in_queue_p99", "Orders", Change.FALLS),
        ("queue[Orders]/consumers", "time_in_queue_p99", "Other", Change.UNKNOWN),
        ("queue[Orders]/unacked-threshold", "time_in_queue_p99", "Orders", Change.FALLS),
        ("queue[Orders]/max-delivery-retries", "dead", "Orders", Change.FALLS),
        ("queue[Orders]/max-delivery-retries", "time_in_queue_p99", "Orders", Change.UNKNOWN),
        ("durable-queue[work]/max-redelivery", "dead", "G-1", Change.FALLS),
        ("durable-queue[*]/max-redelivery", "redelivered", "G-1", Change.RISES),
        ("durable-queue[work]/max-ttl", "expired_messages", "G-1", Change.FALLS),
        ("durable-queue[work]/max-ttl", "time_in_queue_p99", "G-1", Change.UNKNOWN),
        ("durable-queue[work]/flow[worker]/window", "time_in_queue_p99", "G-1", Change.UNKNOWN),
        ("group[desks]/count", "discards", "D-1", Change.UNKNOWN),
    ],
)
def test_the_table_has_the_direction_or_states_that_it_is_unknown(
    path: str, measure: str, queue: str, change: Change
) -> None:
    found_change, reason = change_of(path, measure, queue)
    assert found_change is change
    assert reason


def test_a_direction_of_a_target_depends_on_the_side_of_its_bound() -> None:
    setting = parse_setting("max-depth(D-1)")
    for text, direction in (
        ("discards(D-1)=0", Direction.BETTER),
        ("time_in_queue_p99(D-1)<1s", Direction.WORSE),
        ("high_water_mark(D-1)>=100", Direction.BETTER),
        ("P(delivered(D-1)<100)<5%", Direction.BETTER),
    ):
        assert effect_of(setting, parse_target(text, tuple(EVERY_MEASURE))).direction is direction


def test_a_range_whose_ends_are_exchanged_is_reported_as_such() -> None:
    with pytest.raises(UsageError, match=r": 30 is above 10$") as raised:
        parse_setting("queue[q]/visibility/timeout=30s..10s")
    assert raised.value.remedy == "Write the lower end first: queue[q]/visibility/timeout=10s..30s."


def test_a_range_of_times_in_two_units_names_the_command_that_tries_them() -> None:
    with pytest.raises(UsageError, match=r"'0s\.\.3min' is neither LOW\.\.HIGH nor whole numbers") as raised:
        parse_setting("durable-queue[q]/max-handoff-time=0s..3min")
    assert "`qsctl sweep --grid 'durable-queue[q]/max-handoff-time=0s,3min'`" in raised.value.remedy
