"""Tests of a mean by betting: true as often as stated, for every distribution that their bound allows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.summary.inference._bounded_means import (
    can_be_shown_below,
    lower_bound,
    runs_to_show_below,
    shown_above,
    shown_below,
    upper_bound,
)

ERROR = 0.05
USES, RUNS = 600, 200
LOOKS = (5, 10, 20, 40, 80, 140, 200)


def drawn(name: str) -> tuple[np.ndarray, float]:
    """Values between 0 and 1, one row a use, and their true mean."""
    draw = np.random.default_rng(7)
    shape = (USES, RUNS)
    match name:
        case "two points":
            return (draw.random(shape) < 0.02).astype(float), 0.02
        case "uniform":
            return draw.random(shape), 0.5
        case "normal":
            return np.clip(0.3 + 0.05 * draw.standard_normal(shape), 0.0, 1.0), 0.3
        case _:
            values = np.minimum(0.02 * draw.lognormal(0.0, 1.5, shape), 1.0)
            wide = np.minimum(0.02 * draw.lognormal(0.0, 1.5, 4_000_000), 1.0)
            return values, float(wide.mean())


@pytest.mark.parametrize("name", ["two points", "uniform", "normal", "lognormal"])
def test_a_false_answer_comes_no_more_often_than_stated_over_all_looks(name: str) -> None:
    """Twenty zeros made a mean less than any limit before: here the limit is the mean itself."""
    values, mean = drawn(name)
    below = sum(any(shown_below(row[:look], mean, 1.0, ERROR) for look in LOOKS) for row in values)
    above = sum(any(shown_above(row[:look], mean, ERROR) for look in LOOKS) for row in values)
    most = ERROR * USES + 3 * math.sqrt(ERROR * USES)
    assert below <= most
    assert above <= most


def test_a_mean_that_is_clearly_below_is_shown_and_a_peak_that_is_not_seen_is_allowed_for() -> None:
    assert shown_below([0.0] * 80, 0.05, 1.0, ERROR)
    assert not shown_below([0.0] * 58, 0.05, 1.0, ERROR)
    assert shown_below([20.0] * 80, 50.0, 500.0, ERROR)
    assert not shown_below([0.0] * 1000, 1e-6, 1.0, ERROR)
    assert not can_be_shown_below([0.0] * 5, 155, 1e-6, 1.0, ERROR)
    assert can_be_shown_below([0.0] * 5, 155, 0.05, 1.0, ERROR)


def test_bounds_are_where_the_tests_turn() -> None:
    values = list(np.random.default_rng(1).random(120))
    high, low = upper_bound(values, 1.0, ERROR), lower_bound(values, ERROR)
    assert low < sum(values) / 120 < high
    assert shown_below(values, high * 1.0001, 1.0, ERROR)
    assert not shown_below(values, high * 0.9999, 1.0, ERROR)
    assert shown_above(values, low * 0.9999, ERROR)
    assert not shown_above(values, low * 1.0001, ERROR)


@given(st.floats(0.0, 0.9), st.floats(1.0, 50.0))
def test_the_runs_that_a_mean_takes_are_enough(part: float, bound: float) -> None:
    limit = 1.0
    runs = runs_to_show_below(part * limit, limit, bound, ERROR)
    if math.isfinite(runs) and runs < 20_000:
        assert shown_below([part * limit] * int(runs), limit, bound, ERROR)


def test_a_value_at_the_limit_takes_more_runs_than_there_are() -> None:
    assert runs_to_show_below(1.0, 1.0, 5.0, ERROR) == math.inf
    assert runs_to_show_below(0.2, 2.0, 1.0, ERROR) == 1.0
