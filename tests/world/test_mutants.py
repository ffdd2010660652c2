"""Mutation: each broken variant of a replica, or of the driver, is caught, by random search or by its schedule."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from qsctl.instant import SECOND_NS
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from qsctl.sim.world.faults.schedule import parse_schedule, read_schedule
from qsctl.sim.world.results.verdict import judge, shrink
from tests.campaigns import is_campaign
from tests.core.high_availability import mutants
from tests.core.high_availability.rules import Mutant
from tests.world import driver_mutants, kinds
from tests.world.campaign import look_at
from tests.world.catches import BY_SCHEDULE, CATCHES, SEEDS_MAX, first_broken, steered_trials_of, trials_of

SCHEDULES = Path(__file__).parents[2] / "fixtures" / "schedules"
QUICK_TRIALS_MAX = 30
"""Steered trials within which an ordinary run sees a mutant caught."""

BY_SEARCH = [mutant for mutant, catch in CATCHES.items() if catch.plain]
BY_STEERING = [mutant for mutant, catch in CATCHES.items() if not catch.plain and catch.steered]
QUICK_BY_STEERING = [each for each in BY_STEERING if is_campaign() or CATCHES[each].steered <= QUICK_TRIALS_MAX]


def name_of(value: object) -> str:
    return getattr(value, "__name__", None) or str(value)


def test_every_mutant_has_worlds_that_may_catch_it_or_a_reason_why_none_does() -> None:
    assert CATCHES.keys() == {*mutants.MUTANTS.values(), *driver_mutants.MUTANTS.values()}
    assert not [each.__name__ for each, catch in CATCHES.items() if catch.reason and (catch.plain or catch.steered)]


def test_what_no_test_of_the_core_catches_is_caught_by_worlds() -> None:
    scheduled = {mutant for mutant, _, _ in BY_SCHEDULE}
    beside = [each for each in CATCHES if not (CATCHES[each].plain or CATCHES[each].steered or each in scheduled)]
    assert not {each.__name__.replace("_", " ") for each in beside} & {*mutants.BY_WORLDS, *driver_mutants.MUTANTS}


def broken_by_schedule(path: Path) -> list[str]:
    schedule = read_schedule(path)
    scenario = apply_overrides(read_scenario(find_scenario("world")), schedule.overrides)
    return judge(scenario, schedule).broken()


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("path", sorted(SCHEDULES.glob("*.txt")), ids=lambda path: path.stem)
def test_a_schedule_is_met_and_breaks_nothing(path: Path) -> None:
    assert broken_by_schedule(path) == []


@pytest.mark.slow(beyond=1)
@pytest.mark.campaign
@pytest.mark.parametrize("mutant", BY_SEARCH, ids=name_of)
def test_random_search_catches(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """A campaign begins at the first seed; an ordinary run at one that caught it lately, and goes on from there."""
    mutant(monkeypatch)
    catch = CATCHES[mutant]
    trials = trials_of(catch.kinds, 1 if is_campaign() else catch.plain)
    assert first_broken(map(look_at, trials), SEEDS_MAX)[0], "the mutant survives"


@pytest.mark.slow(beyond=1)
@pytest.mark.campaign
@pytest.mark.parametrize("mutant", QUICK_BY_STEERING, ids=name_of)
def test_steered_trials_catch(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert first_broken(steered_trials_of(CATCHES[mutant].kinds), SEEDS_MAX)[0], "the mutant survives"


@pytest.mark.parametrize(("mutant", "schedule", "rule"), BY_SCHEDULE, ids=name_of)
def test_its_schedule_catches(mutant: Mutant, schedule: str, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert broken_by_schedule(SCHEDULES / f"{schedule}.txt") == [rule]


def brief(seed: int) -> Scenario:
    """A world with three seconds of faults, of which each part that is left out is another run."""
    scenario = kinds.three(seed)
    assert scenario.world is not None
    world = dataclasses.replace(scenario.world, recovery_ns=2 * SECOND_NS)
    return dataclasses.replace(scenario, horizon_ns=5 * SECOND_NS, world=world)


@pytest.mark.slow
def test_what_is_found_is_shortened_and_found_again_from_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    mutants.forgets_the_flag_on_take_over(monkeypatch)
    judged = next(each for each in (judge(brief(seed)) for seed in range(1, SEEDS_MAX + 1)) if each.broken())
    scenario = judged.world.scenario
    shorter = shrink(scenario, judged.faults, judged.broken())
    assert 0 < len(shorter.steps) < len(judged.faults.steps)
    again = parse_schedule(shorter.text.splitlines(), "found.txt")
    assert again.steps == shorter.steps
    assert set(judge(scenario, again).broken()) & set(judged.broken())
