"""What is stated with a confidence is true as often: every method is tried where the truth is known."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.summary.inference.sequential import SequentialAnswer, fewer_than, never, proportion_boundary, rounds
from qsctl.summary.inference.statistics import (
    EXACT,
    PAIRED,
    SIGNS,
    WELCH,
    difference_of_means,
    holm,
    paired_difference,
    runs_without_violation,
)

ERROR = 0.05


def test_the_rule_of_three_gives_the_number_of_runs_for_zero() -> None:
    assert runs_without_violation(0.05, 0.05) == 59
    assert runs_without_violation(0.01, 0.05) == 299
    assert runs_without_violation(0.05, 0.01) == 90
    assert runs_without_violation(0.5, 0.25) == 2
    with pytest.raises(ValueError, match="no number of runs"):
        runs_without_violation(0.0, 0.05)


@given(st.floats(0.005, 0.5), st.floats(0.001, 0.3))
def test_the_computed_number_of_runs_suffices_and_one_fewer_does_not(share: float, error: float) -> None:
    runs = runs_without_violation(share, error)
    assert (1 - share) ** runs <= error * (1 + 1e-12)
    assert runs == 1 or (1 - share) ** (runs - 1) > error * (1 - 1e-12)


def test_zero_is_shown_by_59_runs_and_refuted_by_one() -> None:
    assert never([False] * 58, 0.05, error=ERROR) is SequentialAnswer.OPEN
    assert never([False] * 59, 0.05, error=ERROR) is SequentialAnswer.SHOWN
    assert never([False, True], 0.05, error=ERROR) is SequentialAnswer.REFUSED


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


def test_rounds_begin_early_grow_and_end_with_the_last_replication() -> None:
    assert list(rounds(160)) == [5, 10, 20, 28, 39, 54, 75, 105, 147, 160]
    assert list(rounds(12, [7, 99])) == [5, 7, 10, 12]
    assert list(rounds(2)) == [2]


def test_a_share_forgives_a_few_violations_and_gives_up_when_there_are_too_many() -> None:
    assert fewer_than([True] + [False] * 159, 0.05, error=ERROR, most=160) is SequentialAnswer.SHOWN
    assert fewer_than([False] * 72, 0.05, error=ERROR, most=160) is SequentialAnswer.SHOWN
    assert fewer_than([False] * 71, 0.05, error=ERROR, most=160) is SequentialAnswer.OPEN
    assert fewer_than([True] * 20, 0.05, error=ERROR, most=160) is SequentialAnswer.REFUSED
    assert fewer_than([True, *[False] * 30] * 5, 0.05, error=ERROR, most=155) is SequentialAnswer.REFUSED


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_holm_s_values_are_never_smaller_and_keep_the_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    assert min(adjusted) == pytest.approx(min(1.0, len(p_values) * min(p_values)))
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [adjusted[place] for place in order] == sorted(adjusted)


def test_holm_gives_the_values_of_his_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_a_difference_names_its_test() -> None:
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
