"""One run: its start-up is found, and its intervals hold the steady state as often as they state."""

from __future__ import annotations

import math

import numpy as np
import pytest

from qsctl.summary.inference._steady import is_short, mean_of_run, percentile_of_run, relaxation, start_up
from tests.campaigns import trials

TRIALS = trials("QSCTL_CONFIDENCE_TRIALS", 0, 200)


def waits(draw: np.random.Generator, load: float, count: int, first: float = 0.0) -> np.ndarray:
    """Waits of M/M/1 whose mean service is 1, by Lindley's recursion."""
    steps = draw.exponential(1.0, count - 1) - draw.exponential(1.0 / load, count - 1)
    sums = np.concatenate([[0.0], np.cumsum(steps)]) + first
    return sums - np.minimum.accumulate(np.minimum(sums, 0.0))


def test_the_interval_of_a_mean_is_by_overlapping_tenths_of_the_run() -> None:
    """By the definition, one batch after the other [Meketon and Schmeiser 1984]; Student's t of 9 degrees: 2.262157."""
    noise = np.random.default_rng(3).standard_normal(1001)
    values = noise[1:] + 0.5 * noise[:-1]
    mean = float(values.mean())
    batches = [float(values[first : first + 100].mean()) for first in range(901)]
    error = math.sqrt(100 / (901 * 900) * math.fsum((batch - mean) ** 2 for batch in batches))
    found = mean_of_run(values, 0.95)
    assert (found.low, found.high) == pytest.approx((mean - 2.262157 * error, mean + 2.262157 * error), rel=1e-6)


@pytest.mark.slow(beyond=1)
@pytest.mark.campaign
@pytest.mark.parametrize(("load", "count"), [(0.5, 20_000), (0.9, 400_000)])
def test_one_run_s_intervals_hold_the_steady_state_as_often_as_stated(load: float, count: int) -> None:
    draw, runs = np.random.default_rng(21), TRIALS or 40
    mean, p99 = load / (1 - load), math.log(load / 0.01) / (1 - load)
    held = {"mean": 0, "p99": 0, "warned": 0}
    for _ in range(runs):
        values = waits(draw, load, count)
        start = start_up(values)
        held["warned"] += start.spoils
        rest = values[start.left_out :]
        of_mean, of_p99 = mean_of_run(rest, 0.95), percentile_of_run(rest, 0.99, 0.95)
        held["mean"] += of_mean.low <= mean <= of_mean.high
        held["p99"] += bool(of_p99.low <= p99 <= of_p99.high)
    if TRIALS:
        print(f"load {load}: {held} of {runs}")  # noqa: T201
    least = 0.93 * runs - 3 * math.sqrt(0.93 * 0.07 * runs)
    assert held["mean"] >= least
    assert held["p99"] >= least
    assert held["warned"] <= 0.05 * runs + 1


@pytest.mark.campaign
@pytest.mark.parametrize(("load", "count", "least", "most"), [
    (0.5, 500, 0.95, 1.0), (0.5, 2_000, 0.6, 1.0), (0.5, 20_000, 0.0, 0.05),
    (0.9, 2_000, 0.98, 1.0), (0.9, 20_000, 0.95, 1.0), (0.9, 50_000, 0.8, 1.0), (0.9, 400_000, 0.0, 0.05),
])  # fmt: skip
def test_a_run_from_empty_that_is_too_short_is_reported_and_a_long_one_is_not(
    load: float, count: int, least: float, most: float
) -> None:
    draw, runs = np.random.default_rng(8), TRIALS or 12
    warned = 0
    for _ in range(runs):
        values = waits(draw, load, count)
        start = start_up(values)
        warned += start.spoils or is_short(values[start.left_out :])
    if TRIALS:
        print(f"load {load}, {count} messages: {warned} of {runs} warned")  # noqa: T201
    noise = 2.0 * math.sqrt(0.1 / runs)
    assert least - noise <= warned / runs <= most + noise


def test_the_relaxation_is_the_sum_of_the_autocorrelations() -> None:
    draw = np.random.default_rng(6)
    assert relaxation(draw.exponential(1.0, 50_000)) == pytest.approx(1.0, abs=0.2)
    assert relaxation(np.full(1000, 7.0)) == 0.0
    steps, values = draw.normal(size=200_000), np.zeros(200_000)
    for at in range(1, len(values)):
        values[at] = 0.9 * values[at - 1] + steps[at]
    assert relaxation(values) == pytest.approx(19.0, rel=0.15)  # (1 + 0.9) ÷ (1 − 0.9)


def test_a_start_that_spoils_a_run_is_found_and_one_that_does_not_is_not() -> None:
    draw = np.random.default_rng(2)
    full = waits(draw, 0.5, 6000, first=800.0)
    start = start_up(full)
    # The backlog of 800 is worked off at one unit a message.
    assert 700 <= start.left_out <= 1100
    assert start.spoils
    assert not start_up(waits(draw, 0.5, 20_000)).spoils
    growing = np.arange(4000.0) + draw.exponential(1.0, 4000)
    assert start_up(growing).drifts
    assert start_up(np.zeros(1000)).left_out == 0


def test_a_run_that_is_too_short_has_no_interval() -> None:
    draw = np.random.default_rng(4)
    assert mean_of_run(np.arange(100.0), 0.95).half_width == math.inf
    assert is_short(np.arange(5000.0))
    assert not is_short(draw.exponential(1.0, 5000))
    assert percentile_of_run(draw.exponential(1.0, 300), 0.999, 0.95).half_width == math.inf
    assert mean_of_run(np.full(1000, 3.0), 0.95).half_width == 0.0
