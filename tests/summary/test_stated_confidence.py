"""`size` and `compare` keep their word: how often their sentence is true, against what it states.

The scenario has a known answer. A client reads nothing: of N messages that arrive in a second, which is a Poisson
number, the TCP transmit queue takes 128 and the queue its limit K; the rest is discarded. So the probability of a
discard and the mean of the discards are sums over the Poisson distribution.

`QSCTL_CONFIDENCE_TRIALS=200` makes the whole test (some 20 minutes of processor time); without it a few are tried.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.sizing.targets import parse_setting, parse_target
from qsctl.sim.sweep import Point, Task, plan_sweep, run_task
from qsctl.summary.comparison.compare import MeasureVerdict, compare
from qsctl.summary.comparison.compare_sentence import sentence
from qsctl.summary.sweeps.points import EVERY_MEASURE
from qsctl.summary.sweeps.size import Sizing, size
from qsctl.summary.sweeps.sweep_folder import open_sweep
from tests.campaigns import trials
from tests.summary.paused_client import RATE, paused
from tests.summary.runners import Here
from tests.summary.written_sweep import write_results

TRIALS = trials("QSCTL_CONFIDENCE_TRIALS", 0, 200)
TCP_QUEUE_MESSAGES = 128
LOWEST, HIGHEST = 90, 160
CONFIDENCE = 0.95 if TRIALS else 0.8
"""Half of the runs show an ordinary run whether an answer is one."""


def poisson(number: int) -> float:
    return math.exp(number * math.log(RATE) - RATE - math.lgamma(number + 1))


def probability_of_discards(limit: int) -> float:
    return math.fsum(poisson(number) for number in range(TCP_QUEUE_MESSAGES + limit + 1, 1000))


def mean_discards(limit: int) -> float:
    least = TCP_QUEUE_MESSAGES + limit
    return math.fsum((number - least) * poisson(number) for number in range(least + 1, 1000))


TARGETS: list[tuple[str, Callable[[int], bool]]] = [
    # What the sentence says of a target of zero: less than 5 % of runs differ.
    ("discards(D-1)=0", lambda limit: probability_of_discards(limit) < 0.05),
    ("P(discards(D-1)>0)<20%", lambda limit: probability_of_discards(limit) < 0.20),
    ("discards(D-1)<5", lambda limit: mean_discards(limit) < 5.0),
]


def sized(target: str, seed: int) -> Sizing:
    scenario = dataclasses.replace(paused(), seed=seed)
    return size(
        scenario,
        [parse_target(target, tuple(EVERY_MEASURE))],
        [parse_setting(f"max-depth(D-1)={LOWEST}..{HIGHEST}")],
        confidence=CONFIDENCE,
        runner=Here(scenario),
    )


def test_the_known_answer_is_that_of_the_simulation() -> None:
    limit, runs = 110, 150
    point = Point((("profile[default]/queue[D-1]/max-depth", str(limit)),))
    discards = [run_task(paused(), Task(point, number, 7))[0].discarded_messages for number in range(runs)]
    expected = probability_of_discards(limit)
    lost = sum(number > 0 for number in discards)
    assert abs(lost / runs - expected) < 4 * math.sqrt(expected * (1 - expected) / runs)
    assert abs(sum(discards) / runs - mean_discards(limit)) < 4 * 15 / math.sqrt(runs)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "is_true"), TARGETS, ids=["zero", "share", "mean"])
def test_what_size_states_is_true(target: str, is_true: Callable[[int], bool]) -> None:
    smallest = next(limit for limit in range(LOWEST, HIGHEST + 1) if is_true(limit))
    sizing = sized(target, 1)
    assert sizing.answer is not None
    assert sizing.monotone
    (answer,) = sizing.answer.values
    # A false answer has a probability of 5 or 20 % at most; that of this seed is true, and near the best one.
    assert smallest <= answer <= smallest + 25


@pytest.mark.campaign
@pytest.mark.skipif(not TRIALS, reason="QSCTL_CONFIDENCE_TRIALS is not set")
@pytest.mark.parametrize(("target", "is_true"), TARGETS, ids=["zero", "share", "mean"])
def test_size_is_wrong_no_more_often_than_stated(target: str, is_true: Callable[[int], bool]) -> None:
    answers = [answer.values[0] for seed in range(TRIALS) if (answer := sized(target, 1000 + seed).answer) is not None]
    wrong = sum(not is_true(answer) for answer in answers)
    smallest = next(limit for limit in range(LOWEST, HIGHEST + 1) if is_true(limit))
    print(f"{target}: {len(answers)} answers, {wrong} wrong, {min(answers)} to {max(answers)}, best {smallest}")  # noqa: T201
    assert wrong <= 0.05 * TRIALS + 3 * math.sqrt(0.05 * 0.95 * TRIALS)
    assert len(answers) == TRIALS


def equal_pair(folder: Path, number: int) -> tuple[Path, Path]:
    """Two sweeps of the same scenario with other seeds, five replications each."""
    folders = []
    for side in (0, 1):
        scenario = dataclasses.replace(paused(), seed=5000 + 2 * number + side)
        plan = plan_sweep(scenario, (), 5)
        place = folder / f"{number}-{side}"
        open_sweep(place, plan)
        write_results(place, Here(scenario).run(list(plan.tasks())))
        folders.append(place)
    return folders[0], folders[1]


def winners(folder: Path, pairs: int) -> int:
    """How many of the equal pairs get a winner in the sentence."""
    named = 0
    for number in range(pairs):
        comparison = compare(*equal_pair(folder, number), 0.95)
        assert not any(each.paired for each in comparison.differences)
        named += "better" in sentence(comparison)
    return named


@pytest.mark.slow
def test_equals_get_no_winner(tmp_path: Path) -> None:
    # Of 20 equal pairs about eight got one when each measure was looked at alone.
    assert winners(tmp_path, 20) <= 4


def test_a_difference_that_is_there_gets_its_winner(tmp_path: Path) -> None:
    folders = []
    for name, rate in (("a", RATE), ("b", 1.2 * RATE)):
        scenario = paused(rate)
        plan = plan_sweep(scenario, (), 6)
        open_sweep(tmp_path / name, plan)
        write_results(tmp_path / name, Here(scenario).run(list(plan.tasks())))
        folders.append(tmp_path / name)
    limited = compare(*folders, 0.95)
    high_water = next(each for each in limited.differences if each.measure == "high_water_mark")
    assert high_water.verdict is MeasureVerdict.A
    assert high_water.adjusted_p_value < 0.05


@pytest.mark.campaign
@pytest.mark.skipif(not TRIALS, reason="QSCTL_CONFIDENCE_TRIALS is not set")
def test_equals_get_a_winner_no_more_often_than_stated(tmp_path: Path) -> None:
    named = winners(tmp_path, TRIALS)
    print(f"{named} of {TRIALS} equal pairs got a winner")  # noqa: T201
    assert named <= 0.05 * TRIALS + 3 * math.sqrt(0.05 * 0.95 * TRIALS)


def different_pair(folder: Path, number: int) -> tuple[Path, Path]:
    """Two sweeps whose queues hold 90 and 150 messages, with other seeds, ten replications each."""
    folders = []
    for side, depth in enumerate((LOWEST, LOWEST + 60)):
        scenario = dataclasses.replace(paused(), seed=9000 + 2 * number + side)
        scenario = apply_overrides(scenario, {"profile[default]/queue[D-1]/max-depth": str(depth)})
        plan = plan_sweep(scenario, (), 10)
        place = folder / f"{number}-{side}"
        open_sweep(place, plan)
        write_results(place, Here(scenario).run(list(plan.tasks())))
        folders.append(place)
    return folders[0], folders[1]


@pytest.mark.slow
@pytest.mark.campaign
def test_differences_get_the_right_winner(tmp_path: Path) -> None:
    """The deeper queue discards nothing instead of 12 messages, and has the higher mark: never the other way round."""
    uses = TRIALS or 10
    found = {"discards": dict.fromkeys(MeasureVerdict, 0), "high_water_mark": dict.fromkeys(MeasureVerdict, 0)}
    for number in range(uses):
        for each in compare(*different_pair(tmp_path, number), 0.95).differences:
            if each.measure in found:
                found[each.measure][each.verdict] += 1
    if TRIALS:
        print({name: {each.value: count for each, count in counts.items() if count} for name, counts in found.items()})  # noqa: T201
    noise = 3 * math.sqrt(0.05 * 0.95 * uses) if TRIALS else 0.0
    assert found["discards"][MeasureVerdict.A] <= 0.05 * uses + noise
    assert found["high_water_mark"][MeasureVerdict.B] <= 0.05 * uses + noise
    # Ten replications and Holm's adjustment show it in nearly half of the pairs.
    assert found["discards"][MeasureVerdict.B] >= 0.2 * uses
