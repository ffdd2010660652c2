"""The best of many points and the front of two measures: as often right as stated, and no more said than shown.

By default 40 sweeps of each kind are made up; `QSCTL_TEST_SELECTIONS` makes more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from qsctl.errors import UsageError
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.sweep import Point, Task
from qsctl.summary.sweeps.selection import Criterion, Selection, _beats, parse_criteria, select
from qsctl.summary.sweeps.sweep_folder import PointResult
from tests.campaigns import trials
from tests.summary.runners import ByLaw

USES = trials("QSCTL_TEST_SELECTIONS", 40, 1000)
BEST = (Criterion("discards", "D-1"),)
FRONT = (Criterion("high_water_mark", "D-1"), Criterion("discards", "D-1"))
Drawn = Mapping[str, int]


def points_of(means: list[float]) -> list[Point]:
    return [Point((("place", str(place)),)) for place in range(len(means))]


def swept(
    points: list[Point], law: Callable[[Mapping[str, int], np.random.Generator], Drawn], count: int, seed: int,
    *, common: bool = False,
) -> list[PointResult]:  # fmt: skip
    seeds = [seed if common else 1000 * seed + place for place in range(len(points))]
    tasks = [
        Task(point, replication, own) for point, own in zip(points, seeds, strict=True) for replication in range(count)
    ]
    return ByLaw(Scenario("made-up"), law).run(tasks)


def staying(found: Selection) -> list[str]:
    return [each.point.values[0][1] for each in found.staying]


def held(shares: int, confidence: float) -> bool:
    """Whether a count is not below what the confidence allows for, but for one use in a thousand."""
    return shares >= confidence * USES - 3.1 * math.sqrt(confidence * (1 - confidence) * USES) - 1


@pytest.mark.slow(beyond=1)
@pytest.mark.campaign
@pytest.mark.parametrize(
    "means",
    [[100.0] * 6, [100.0, 101.0, 102.0, 103.0, 104.0, 105.0], [100.0] + [110.0] * 9],
    ids=["ties", "near", "slip"],
)
@pytest.mark.parametrize("common", [False, True])
def test_the_best_point_stays_as_often_as_stated(means: list[float], common: bool) -> None:
    points = points_of(means)

    def law(settings: Mapping[str, int], draw: np.random.Generator) -> Drawn:
        load = 20.0 * draw.standard_normal() if common else 0.0
        spread = 5.0 + settings["place"]
        return {"discarded_messages": round(means[settings["place"]] + load + spread * draw.standard_normal())}

    stays = bounded = 0
    for seed in range(USES):
        found = select(swept(points, law, 12, seed, common=common), BEST, 0.95, paired=common)
        stays += "0" in staying(found)
        assert found.worse_at_most is not None
        first = int(found.ranked[0].point.values[0][1])
        bounded += means[first] - min(means) <= found.worse_at_most + 1e-9
    assert held(stays, 0.95)
    assert held(bounded, 0.95)


def test_a_far_better_point_is_selected_alone_and_skewed_ones_are_not() -> None:
    points = points_of([1.0, 2.0, 3.0])

    def law(settings: Mapping[str, int], draw: np.random.Generator) -> Drawn:
        return {"discarded_messages": round(100 * (1 + settings["place"]) + draw.standard_normal())}

    found = select(swept(points, law, 8, 1), BEST, 0.95, paired=False)
    assert staying(found) == ["0"]
    assert found.ranked[1].beaten_by == points[0]

    def peaks(settings: Mapping[str, int], draw: np.random.Generator) -> Drawn:
        return {"discarded_messages": 0 if settings["place"] else 1}

    # Constant in three replications each: three signs show nothing at this confidence.
    assert len(staying(select(swept(points, peaks, 3, 1), BEST, 0.95, paired=False))) == 3
    assert staying(select(swept(points, peaks, 20, 1), BEST, 0.95, paired=False)) == ["1", "2"]


def test_the_larger_throughput_is_the_better_one() -> None:
    points = points_of([1.0, 2.0])

    def law(settings: Mapping[str, int], draw: np.random.Generator) -> Drawn:
        return {"discarded_messages": round(100 - 50 * settings["place"] + draw.standard_normal())}

    found = select(swept(points, law, 8, 1), (Criterion("throughput", "D-1"),), 0.95, paired=False)
    assert staying(found) == ["1"]


@pytest.mark.parametrize(("error", "is_given_up"), [(0.045, True), (0.035, False)])
def test_a_point_of_the_front_is_given_up_where_one_side_of_the_test_shows_a_better_one(
    error: float, is_given_up: bool
) -> None:
    """Of ten pairs: a mean difference of 0.66 and a deviation of 1.05 are t = 1.98, with 4 % beyond it on one side."""
    one, other = points_of([0.0, 1.0])
    lost = {number: 50.0 + number for number in range(10)}
    less = {number: value - 0.66 + (1 if number % 2 else -1) for number, value in lost.items()}
    assert _beats({one: [lost], other: [less]}, other, one, BEST, error, paired=True) is is_given_up


@pytest.mark.campaign
def test_no_point_of_the_front_is_given_up_more_often_than_stated() -> None:
    """Six points on the front, three behind it; more memory loses less."""
    memory = [10, 20, 30, 40, 50, 60, 30, 50, 60]
    loss = [60.0, 50.0, 40.0, 30.0, 20.0, 10.0, 90.0, 70.0, 10.0]
    points = points_of(loss)

    def law(settings: Mapping[str, int], draw: np.random.Generator) -> Drawn:
        place = settings["place"]
        lost = round(max(0.0, loss[place] + 5 * draw.standard_normal()))
        return {"discarded_messages": lost, "high_water_mark_work_units": memory[place]}

    whole = given_up = 0
    for seed in range(USES):
        found = staying(select(swept(points, law, 10, seed), FRONT, 0.95, paired=False))
        whole += {"0", "1", "2", "3", "4", "5"} <= set(found)
        given_up += "6" not in found and "7" not in found
    assert held(whole, 0.95)
    assert given_up == USES


def test_points_without_enough_replications_are_left_out_and_none_is_an_error() -> None:
    points = points_of([1.0, 2.0])

    def law(settings: Mapping[str, int], draw: np.random.Generator) -> Drawn:
        return {"discarded_messages": round(100 * (1 + settings["place"]) + draw.standard_normal())}

    results = swept(points, law, 8, 1)
    found = select(
        [each for each in results if each.point == points[0] or each.replication < 2], BEST, 0.95, paired=False
    )
    assert found.left_out == (points[1],)
    assert staying(found) == ["0"]
    with pytest.raises(UsageError, match="no point has 3 replications with discards"):
        select(results, (Criterion("discards", "D-2"),), 0.95, paired=False)


@pytest.mark.parametrize(
    ("text", "count", "what"),
    [
        ("discards", 1, "is not 1 MEASURE"),
        ("discards(D-1),lost(D-1)", 1, "is not 1 MEASURE"),
        ("discards(D-1)", 2, "is not 2 MEASURE"),
        ("speed(D-1)", 1, "no measure 'speed'"),
        ("lost(D-1),lost(D-1)", 2, "twice"),
    ],
)
def test_criteria_of_another_form_are_refused(text: str, count: int, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        parse_criteria(text, count, "--best")
    assert parse_criteria(" high_water_mark(D-1) , discards(D-1)", 2, "--front") == FRONT
