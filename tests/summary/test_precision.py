"""`--precision`: replications until the half width, and how often the intervals then hold the mean."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from qsctl.errors import UsageError
from qsctl.sim.figures import Figures
from qsctl.sim.replication import simulate_figures
from qsctl.summary.sweeps.points import MEASURES
from qsctl.summary.sweeps.precision import FEWEST, Precision, enough, parse_precision, precision_text, reached, rounds
from tests.campaigns import trials
from tests.sim.simulated_service import nine_fast_and_a_slow_one

TRIALS = trials("QSCTL_CONFIDENCE_TRIALS", 0, 200)
SECONDS = 10**9


@pytest.fixture(scope="module")
def row() -> Figures:
    scenario = dataclasses.replace(nine_fast_and_a_slow_one(1), horizon_ns=SECONDS)
    return simulate_figures(scenario)[0]


def with_mean(row: Figures, mean: float) -> Figures:
    """A replication whose mean wait is this, in nanoseconds."""
    return dataclasses.replace(row, wait_sum_ns=round(mean * row.delivered_messages))


def test_a_precision_is_a_percentage_or_one_of_a_measure() -> None:
    assert parse_precision("5%") == Precision(0.05)
    assert parse_precision(" time_to_done_p99(Orders) = 2.5 % ") == Precision(0.025, "time_to_done_p99", "Orders")
    for text in ("5", "0%", "100%", "x%", "1.2.3%", "discards=5%", ""):
        with pytest.raises(UsageError, match="is not a percentage"):
            parse_precision(text)
    with pytest.raises(UsageError, match="there is no measure 'speed'"):
        parse_precision("speed(Q)=5%")


def test_replications_are_added_until_the_half_width(row: Figures) -> None:
    draw = np.random.default_rng(3)
    wanted = [Precision(0.05, "time_in_queue_mean", row.queue)]
    count, found = enough(wanted, lambda _: [with_mean(row, draw.normal(1e6, 2e5))], 0.95, 1000)
    assert 40 <= count <= 150
    assert found[0].is_enough
    assert found[0].reached <= 0.05
    assert "are enough: the widest interval is that of time_in_queue_mean" in precision_text(found, count)


def test_the_number_of_replications_is_estimated_after_the_first_round(row: Figures) -> None:
    draw, asked, shown = np.random.default_rng(3), [], []
    wanted = [Precision(0.05, "time_in_queue_mean", row.queue)]
    count, _ = enough(
        wanted,
        lambda _: [with_mean(row, draw.normal(1e6, 2e5))],
        0.95,
        1000,
        lambda done, total: shown.append((done, total)),
        lambda total, seconds: asked.append((total, seconds)),
    )
    ((total, seconds),) = asked
    assert 0.4 * count <= total <= 2.5 * count
    assert 0.0 <= seconds < 1.0
    assert shown[FEWEST - 1] == (FEWEST, FEWEST)
    assert shown[FEWEST] == (FEWEST + 1, total)
    with pytest.raises(ZeroDivisionError):  # what refuses ends it
        enough(wanted, lambda _: [with_mean(row, draw.normal(1e6, 2e5))], 0.95, 99, agree=lambda _, __: 1 // 0)  # type: ignore[arg-type, return-value]
    enough([Precision(0.05)], lambda _: [row], 0.95, 1000, agree=lambda _, __: 1 // 0)  # type: ignore[arg-type, return-value]


def test_equal_replications_suffice_at_once_and_too_few_are_reported(row: Figures) -> None:
    wanted = [Precision(0.05)]
    assert enough(wanted, lambda _: [row], 0.95, 1000)[0] == FEWEST
    draw = np.random.default_rng(3)
    count, found = enough(wanted, lambda _: [with_mean(row, draw.lognormal(10, 2))], 0.95, 20)
    assert count == 20
    assert "20 replications are not enough" in precision_text(found, count)


def test_a_queue_or_a_measure_that_is_not_there_is_refused(row: Figures) -> None:
    with pytest.raises(UsageError, match="no message reaches a queue X"):
        reached([Precision(0.1, "throughput", "X")], [[row]], 0.95)
    with pytest.raises(UsageError, match="no replication has a time_to_master"):
        reached([Precision(0.1, "time_to_master", row.queue)], [[row]], 0.95)


def test_rounds_grow_and_end_at_the_maximum() -> None:
    assert list(rounds(50)) == [10, 15, 22, 33, 49, 50]
    assert list(rounds(3)) == [3]


@pytest.mark.campaign
@pytest.mark.parametrize("law", ["normal", "exponential"])
def test_intervals_hold_the_mean_nearly_as_often_as_stated(law: str, row: Figures) -> None:
    draw, uses, held = np.random.default_rng(11), TRIALS or 60, 0
    read = MEASURES["time_in_queue_mean"]
    for _ in range(uses):

        def simulate(_: int) -> list[Figures]:
            return [with_mean(row, draw.normal(1e6, 2e5) if law == "normal" else draw.exponential(1e6))]

        _, found = enough([Precision(0.1, "time_in_queue_mean", row.queue)], simulate, 0.95, 1000)
        held += found[0].interval.low <= 1e6 <= found[0].interval.high
    if TRIALS:
        print(f"{law}: {held} of {uses}")  # noqa: T201
    assert read(row) is not None
    assert held >= 0.92 * uses - 3 * math.sqrt(0.92 * 0.08 * uses)
