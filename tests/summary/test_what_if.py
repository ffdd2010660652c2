"""The answer of what-if: which value is enough, and that its intervals hold together."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import pytest

from qsctl.errors import UsageError
from qsctl.sim.brokers.presets import LOAD, PRESETS
from qsctl.sim.figures import Figures
from qsctl.summary.sweeps.points import MEASURES
from qsctl.summary.sweeps.what_if import answer_of, enough_of, measures_of
from tests.campaigns import trials

CONFIDENCE = 0.9


def figures(**given: float) -> Figures:
    """Figures of a run in which nothing happened but this."""
    required = {
        each.name: 0 for each in dataclasses.fields(Figures) if each.default is dataclasses.MISSING
    }  # fmt: skip
    return Figures(**{**required, "queue": "q", "arrived_messages": 1000, **given})  # type: ignore[arg-type]


def runs(*dead: Sequence[int]) -> list[tuple[str, list[Figures]]]:
    return [(f"v{at}", [figures(dead_messages=count) for count in counts]) for at, counts in enumerate(dead)]


def test_the_first_value_whose_whole_interval_is_below_the_target_is_the_answer() -> None:
    answer = answer_of(
        runs([50, 60, 55], [9, 11, 10], [4, 5, 4], [0, 0, 0]), ["lost"], enough_of("dead<1%", "dead"), CONFIDENCE
    )
    assert answer.chosen is answer.points[2], "10 of 1,000 is not shown to be less than 1 %"
    assert answer.best is answer.points[3]
    assert answer.points[0].arrived == 1000
    assert set(answer.points[0].measures) == {"dead", "lost"}


def test_no_value_is_the_answer_where_none_is_shown_to_be_enough() -> None:
    answer = answer_of(runs([5, 90, 1], [40, 60, 55]), [], enough_of("dead<3%", "dead"), CONFIDENCE)
    assert answer.chosen is None
    assert answer.best is answer.points[0]
    assert answer_of(runs([5, 5]), [], enough_of("dead<3", "dead"), CONFIDENCE).chosen is None


def test_a_time_is_enough_near_the_best_one() -> None:
    best = (100, 140, 310, 90, 220, 150, 120, 260)
    points = [
        (f"v{factor}", [figures(done_p99_ns=round(factor * each * 10**9)) for each in best])
        for factor in (3, 1.12, 1.05, 1)
    ]  # with the same arrivals: their intervals overlap, their ratios do not
    answer = answer_of(points, [], enough_of(None, "time_to_done_p99"), 0.95)
    assert answer.chosen is answer.points[2]
    stated = answer_of(points, [], enough_of("time_to_done_p99<400s", "time_to_done_p99"), 0.95)
    assert stated.chosen is stated.points[1], "the whole interval is below"


def test_the_best_value_is_enough_though_its_runs_differ() -> None:
    points = [("v0", [figures(done_p99_ns=each) for each in (1, 1000)]), ("v1", [figures(done_p99_ns=9000)] * 2)]
    answer = answer_of(points, [], enough_of(None, "time_to_done_p99"), 0.95)
    assert answer.chosen is answer.points[0]


def test_a_measure_that_a_run_has_not_is_left_out() -> None:
    points = [("v0", [figures(done_p99_ns=5), figures()]), ("v1", [figures(done_p99_ns=5), figures(done_p99_ns=5)])]
    answer = answer_of(points, [], enough_of(None, "time_to_done_p99"), CONFIDENCE)
    assert [set(each.measures) for each in answer.points] == [set(), {"time_to_done_p99"}]
    assert answer.chosen is answer.points[1]


@pytest.mark.parametrize(
    "text",
    ["dead", "dead<", "nothing<1", "dead<x", "dead<0", "time_to_done_p99<1%", "dead<1e30", "time_to_done_p99<5", "<1"],
)
def test_what_is_no_target_is_one_error(text: str) -> None:
    with pytest.raises(UsageError):
        enough_of(text, "dead")


def test_every_setting_is_judged_by_measures_that_there_are() -> None:
    paths = {each.path for preset in PRESETS.values() for each in preset.settings} | {each.path for each in LOAD}
    for path in paths:
        assert set(measures_of(path)) <= set(MEASURES), path
        enough_of(None, measures_of(path)[0])


@pytest.mark.campaign
def test_all_intervals_of_the_deciding_measure_hold_together() -> None:
    """Of independent values with known means: how often one of six intervals misses its own."""
    import random

    draw = random.Random(7)
    count = trials("QSCTL_TEST_WHAT_IF", 200, 4000)
    missed = 0
    for _ in range(count):
        drawn = [[round(draw.gauss(500, 20)) for _ in range(8)] for _ in range(6)]
        answer = answer_of(runs(*drawn), [], enough_of("dead<1%", "dead"), CONFIDENCE)
        intervals = [each.measures["dead"] for each in answer.points]
        missed += any(not each.low <= 500 <= each.high for each in intervals)
    expected = count * (1 - CONFIDENCE)
    assert missed <= expected + 3 * math.sqrt(expected)
