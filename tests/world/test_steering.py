"""The steering of random faults: its trials are reproducible, permitted, and drawn towards what is new."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from qsctl.sim.world.faults.vocabulary import Verb
from tests.campaigns import trials
from tests.core.high_availability import mutants
from tests.world import campaign
from tests.world.steering import HURRIED, KINDS, Steering, Trial, trial_of

LOSSES = {Verb.LOSE_DISK, Verb.NEW_DISK, Verb.FLIP_BIT, Verb.DESTROY}


def steered(names: list[str], count: int) -> list[Trial]:
    """Trials, each of which is noted to have a feature of its own, and none is run."""
    steering = Steering(Random(1), names)
    trials = []
    for number in range(count):
        trial = steering.next()
        steering.learn(trial, trial.world().faults.steps, {f"feature {number}"})
        trials.append(trial)
    return trials


def test_a_trial_is_found_again_by_its_text() -> None:
    trial = Trial(f"{HURRIED}three", 4)
    first = trial.world()
    first.run()
    again = trial_of(trial._replace(faults=first.faults).text()).world()
    again.run()
    assert first.world.trace.count > 1000
    assert again.world.trace.fingerprint == first.world.trace.fingerprint


@pytest.mark.slow
def test_no_trial_loses_more_disks_than_a_minority() -> None:
    lost_count = mutated_count = 0
    for trial in steered(["three", "five", "two", "swarm", "changing", "witnessed"], 150):
        if trial.faults is None:
            continue
        world = trial.world().world
        assert world.declared.faults is not None
        lost = {each.arguments[0] for each in trial.faults.steps if each.verb in LOSSES}
        if world.declared.faults.majorities:
            lost = {each.arguments[0] for each in trial.faults.steps if each.verb in LOSSES - {Verb.LOSE_DISK}}
        assert len(lost) <= (len(world.services) - 1) // 2
        assert not (lost and any(each.verb is Verb.MEMBER for each in trial.faults.steps))
        assert not (lost and world.declared.witness_instance)
        lost_count += len(lost)
        mutated_count += 1
    assert lost_count > 5
    assert mutated_count > 100


def test_a_schedule_with_a_new_feature_is_mutated_and_one_without_is_not() -> None:
    steering = Steering(Random(1), ["three"])
    new, known = Trial("three", 7), Trial("three", 8)
    steering.learn(new, new.world().faults.steps, {"seen", "rare"})
    steering.learn(known, known.world().faults.steps, {"seen"})
    following = [steering.next() for _ in range(40)]
    mutations = [each for each in following if each.kind == "three" and (each.seed - new.seed) % 30 == 0]
    assert len(mutations) > 20
    assert not [each for each in following if each.seed == known.seed and each.kind == "three" and each.faults]
    assert len({each.text() for each in mutations}) > 20


def test_every_kind_can_be_hurried() -> None:
    for name in KINDS:
        slow, fast = Trial(name, 1).scenario(), Trial(HURRIED + name, 1).scenario()
        assert fast.horizon_ns <= slow.horizon_ns


@pytest.mark.slow
@pytest.mark.campaign
def test_no_steered_trial_breaks_a_rule() -> None:
    steering = Steering(Random(7), [*KINDS])
    for _ in range(trials("QSCTL_WORLD_STEERED", 3, 300)):
        done = campaign.look([steering.next()])[0]
        assert done.broken == [], done.trial.text(*done.broken)
        assert done.trial.faults is not None
        steering.learn(done.trial, done.trial.faults.steps, done.features)
    assert len(steering.met) > 10


@pytest.mark.slow
def test_a_campaign_prints_what_is_needed_to_break_the_rule_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mutants.acknowledges_on_append(monkeypatch)
    monkeypatch.setattr("sys.argv", ["campaign", "--seeds", "2", "--kinds", "three", "--steered"])
    assert campaign.main() == 1
    printed = capsys.readouterr().out
    found = tmp_path / "found.txt"
    found.write_text(printed[printed.index("# ") :].split("\n\n")[0], encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["campaign", "--again", str(found)])
    assert campaign.main() == 1
    assert capsys.readouterr().out.splitlines()[0] in printed
