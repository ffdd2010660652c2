"""What is stated with a confidence is true as often: every method is tried where the truth is known."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.summary.sequential import Answer, below, fewer_than, looks_at, never, proportion_boundary
from qsctl.summary.statistics import (
    EXACT,
    PAIRED,
    SIGNS,
    WELCH,
    difference_of_means,
    holm,
    interval_of,
    paired_difference,
    runs_without_violation,
    upper_bound_of_mean,
    varied_enough,
)

ERROR = 0.05


def drawn(name: str, shape: tuple[int, int]) -> tuple[np.ndarray, float]:
    """Values and their true mean."""
    draw = np.random.default_rng(42)
    match name:
        case "normal":
            return draw.standard_normal(shape), 0.0
        case "exponential":
            return draw.exponential(size=shape), 1.0
        case _:
            return -draw.exponential(size=shape), -1.0


@pytest.mark.parametrize(("name", "most"), [("normal", 0.05), ("exponential", 0.065), ("mirrored", 0.05)])
def test_a_mean_that_is_not_below_its_limit_is_shown_to_be_no_more_often_than_stated(name: str, most: float) -> None:
    """Over all looks together: looking again and again at 5, 10, 20 and 40 made 14.5 % of a stated 5 %."""
    values, mean = drawn(name, (1500, 160))
    wrong = sum(
        below(row.tolist(), mean, strictly=True, error=ERROR, most=160).answer is Answer.SHOWN for row in values
    )
    # Three standard deviations of the count above the promise.
    assert wrong / 1500 <= most + 3 * math.sqrt(most / 1500)
    assert wrong > 0, "the test would not notice a method that shows nothing"


def test_a_mean_that_is_clearly_below_its_limit_is_shown_at_the_first_look() -> None:
    values, _ = drawn("normal", (100, 160))
    found = [below(row.tolist(), 2.0, strictly=True, error=ERROR, most=160) for row in values]
    assert all(each.answer is Answer.SHOWN and each.bound < 2.0 for each in found)
    early = [below(row[:20].tolist(), 2.0, strictly=True, error=ERROR, most=160).answer for row in values]
    assert early.count(Answer.SHOWN) > 95
    refused = [below(row[:5].tolist(), -5.0, strictly=True, error=ERROR, most=160).answer for row in values]
    assert refused.count(Answer.REFUSED) > 95


def test_equal_values_show_nothing_of_a_mean() -> None:
    """Zero in most runs and 1,000 in one of twenty: five zeros made the mean less than 10 before."""
    assert not varied_enough([0.0] * 59)
    assert not varied_enough([0.0] * 150 + [1.0] * 9)
    assert varied_enough([0.0] * 150 + [1.0] * 10)
    assert below([0.0] * 59, 10.0, strictly=True, error=ERROR, most=160).answer is Answer.OPEN
    assert below([0.0] * 160, 10.0, strictly=True, error=ERROR, most=160).answer is Answer.REFUSED


def test_looks_double_and_end_with_the_last_replication() -> None:
    assert looks_at(160) == (20, 40, 80, 160)
    assert looks_at(100) == (20, 40, 80, 100)
    assert looks_at(12) == (12,)


def test_the_upper_bound_is_the_t_bound_where_nothing_is_skewed() -> None:
    symmetric = [-2.0, -1.0, 0.0, 1.0, 2.0]
    assert upper_bound_of_mean(symmetric, 0.025) == pytest.approx(interval_of(symmetric, 0.95).high, rel=1e-9)
    to_the_right = [0.0, 0.0, 0.1, 0.2, 0.3, 0.5, 1.0, 4.0]
    assert upper_bound_of_mean(to_the_right, 0.025) > interval_of(to_the_right, 0.95).high


def test_the_rule_of_three_says_how_many_runs_zero_takes() -> None:
    assert runs_without_violation(0.05, 0.05) == 59
    assert runs_without_violation(0.01, 0.05) == 299
    assert runs_without_violation(0.05, 0.01) == 90
    assert runs_without_violation(0.5, 0.25) == 2
    with pytest.raises(ValueError, match="no number of runs"):
        runs_without_violation(0.0, 0.05)


@given(st.floats(0.005, 0.5), st.floats(0.001, 0.3))
def test_so_many_runs_are_enough_and_one_fewer_is_not(share: float, error: float) -> None:
    runs = runs_without_violation(share, error)
    assert (1 - share) ** runs <= error * (1 + 1e-12)
    assert runs == 1 or (1 - share) ** (runs - 1) > error * (1 - 1e-12)


def test_zero_is_shown_by_59_runs_and_refuted_by_one() -> None:
    assert never([False] * 58, 0.05, error=ERROR) is Answer.OPEN
    assert never([False] * 59, 0.05, error=ERROR) is Answer.SHOWN
    assert never([False, True], 0.05, error=ERROR) is Answer.REFUSED


@pytest.mark.parametrize(("share", "error", "most"), [(0.05, 0.05, 160), (0.01, 0.05, 900), (0.2, 0.1, 60)])
def test_a_proportion_boundary_is_crossed_at_the_share_itself_as_often_as_stated(
    share: float, error: float, most: int
) -> None:
    boundary = proportion_boundary(share, error, most)
    assert boundary[runs_without_violation(share, error / 2) - 1] == 0
    assert all(a <= b for a, b in itertools.pairwise(boundary))
    draw = np.random.default_rng(3)
    counts = np.cumsum(draw.random((20_000, most)) < share, axis=1)
    crossed = float((counts <= np.array(boundary)).any(axis=1).mean())
    assert error / 2 < crossed <= error + 3 * math.sqrt(error / 20_000)


def test_a_share_forgives_a_few_violations_and_gives_up_when_there_are_too_many() -> None:
    assert fewer_than([True] + [False] * 159, 0.05, error=ERROR, most=160) is Answer.SHOWN
    assert fewer_than([False] * 72, 0.05, error=ERROR, most=160) is Answer.SHOWN
    assert fewer_than([False] * 71, 0.05, error=ERROR, most=160) is Answer.OPEN
    assert fewer_than([True] * 20, 0.05, error=ERROR, most=160) is Answer.REFUSED
    assert fewer_than([True, *[False] * 30] * 5, 0.05, error=ERROR, most=155) is Answer.REFUSED


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_holm_s_values_are_never_smaller_and_keep_the_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    assert min(adjusted) == pytest.approx(min(1.0, len(p_values) * min(p_values)))
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [adjusted[place] for place in order] == sorted(adjusted)


def test_holm_gives_the_values_of_his_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_a_difference_says_how_it_was_tested() -> None:
    paired = paired_difference([1.0, 2.0, 3.0], 0.95)
    assert (paired.interval.method, paired.interval.count) == (PAIRED, 3)
    # t = 2 ÷ (1 ÷ √3) with two degrees of freedom.
    assert paired.p_value == pytest.approx(0.0741799, abs=1e-6)
    welch = difference_of_means([1.0, 2.0, 3.0], [2.0, 4.0, 6.0, 8.0], 0.95)
    assert (welch.interval.method, welch.interval.mean, welch.interval.count) == (WELCH, 3.0, 3)
    for tested in (paired_difference([2.0], 0.95), difference_of_means([1.0], [2.0, 3.0], 0.95)):
        assert (tested.interval.half_width, tested.p_value) == (math.inf, 1.0)


def test_a_spread_of_nothing_proves_no_more_than_its_signs() -> None:
    for tested in (paired_difference([1.0] * 5, 0.95), difference_of_means([1.0] * 5, [2.0] * 5, 0.95)):
        assert (tested.interval.method, tested.p_value) == (SIGNS, 0.0625)
    assert paired_difference([0.0] * 5, 0.95).p_value == 1.0
    certain = paired_difference([1.0], 0.95, exact=True)
    assert (certain.interval.method, certain.interval.half_width, certain.p_value) == (EXACT, 0.0, 0.0)
