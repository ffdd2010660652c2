"""Mutation: each broken variant of a replica, or of the driver, is caught, by random search or by its schedule."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from qsctl.instant import SECOND_NS
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from qsctl.sim.world.faults.schedule import parse_schedule, read_schedule
from qsctl.sim.world.results.verdict import judge, shrink
from tests.core.high_availability import mutants
from tests.world import campaign, driver_mutants, kinds
from tests.world.steering import Steering

SCHEDULES = Path(__file__).parents[2] / "fixtures" / "schedules"
SEEDS_MAX = 1000
TRIALS_MAX = 30

BY_SEARCH: list[tuple[mutants.Mutant, Callable[[int], Scenario]]] = [
    (mutants.acknowledges_on_append, kinds.three),
    (mutants.acknowledges_before_the_sync, kinds.three),
    (mutants.acknowledges_on_receipt_by_a_slave, kinds.three),
    (mutants.votes_without_comparing_logs, kinds.three),
    (mutants.forgets_the_flag_on_take_over, kinds.three),
    (mutants.forgets_the_flag_without_synchronization, kinds.three_unsynchronized),
    (mutants.forgets_identities, kinds.three),
    (mutants.counts_half_as_a_quorum, kinds.four),
    (mutants.votes_after_the_loss_of_its_log, kinds.volatile),
    (mutants.sends_assignments_at_once, kinds.three),
    (mutants.confirms_without_the_payload, kinds.three),
    (mutants.carries_commands_out_as_they_come, kinds.administered),
    (mutants.follows_commands_that_are_not_committed, kinds.administered),
    (mutants.takes_a_queue_for_the_one_before_it, kinds.administered),
    (mutants.notes_what_it_creates_too_late, kinds.administered),
    (mutants.takes_the_name_for_the_group, kinds.replaced),
    (mutants.heeds_a_deleted_log_when_it_forms, kinds.replaced_in_order),
    (mutants.forgets_the_floor, kinds.bereft),
    (mutants.forms_with_all_members_only, kinds.survivors),
    (mutants.lets_a_witness_vote_for_less, kinds.witnessed),
    (mutants.follows_any_epoch, kinds.visited),
    (driver_mutants.never_syncs_a_log, kinds.three),
    (driver_mutants.never_syncs_a_directory, kinds.three),
    (driver_mutants.reports_replicas_before_the_sync, kinds.three),
    (driver_mutants.forgets_the_hard_state, kinds.three),
    (driver_mutants.releases_before_the_sync, kinds.alone),
    (driver_mutants.withholds_nothing, kinds.alone),
    (driver_mutants.drops_deleted_logs_too_late, kinds.replaced),
    (driver_mutants.hears_nobody_after_a_restart, kinds.three),
    (driver_mutants.adopts_nothing, kinds.administered),
    (driver_mutants.recovers_from_memory_alone, kinds.alone),
    (driver_mutants.takes_a_damaged_log_for_whole, kinds.three),
    (driver_mutants.truncates_in_memory_alone, kinds.three),
    (driver_mutants.checkpoints_without_a_sync, kinds.alone),
]

FOUND_AT = {
    mutants.lets_a_witness_vote_for_less: 13,
    mutants.heeds_a_deleted_log_when_it_forms: 101, mutants.notes_what_it_creates_too_late: 4,
    mutants.takes_a_queue_for_the_one_before_it: 32, mutants.follows_commands_that_are_not_committed: 28,
    mutants.forgets_the_flag_without_synchronization: 15, mutants.sends_assignments_at_once: 12,
    mutants.forgets_the_floor: 243, mutants.forgets_identities: 4, mutants.votes_without_comparing_logs: 2,
    driver_mutants.withholds_nothing: 12, driver_mutants.recovers_from_memory_alone: 33,
    driver_mutants.takes_a_damaged_log_for_whole: 7, driver_mutants.checkpoints_without_a_sync: 33,
}  # fmt: skip
"""Where the search begins for those that few seeds find: at one that does."""

BY_STEERING = [
    (mutants.dispatches_before_its_own_entry, "three,five,brief"),
    (mutants.votes_before_the_sync, "three,five,brief"),
]
"""Those that steered trials catch soon, and the kinds of their worlds."""

BY_SCHEDULE = [
    (mutants.commits_older_epochs_by_counting, "older-epoch-committed-by-counting", "P6"),
    (mutants.counts_confirmations_of_earlier_epochs, "confirmed-in-an-earlier-epoch", "P6"),
    (mutants.changes_members_before_its_own_entry, "members-changed-by-two-masters", "P6"),
    (mutants.forgets_its_vote, "vote-not-durable", "P5"),
    (mutants.dispatches_before_its_own_entry, "dispatched-before-own-entry", "P4"),
    (mutants.accepts_a_stale_master, "entries-of-a-deposed-master", "P6"),
    (mutants.compares_by_length, "longest-log-is-not-latest", "P6"),
    (mutants.leads_on_when_its_clock_is_set_back, "paused-while-the-clock-was-set-back", "P4"),
    (mutants.votes_at_once_after_a_restart, "restarted-voter", "P4"),
    (driver_mutants.relies_on_what_a_failed_sync_left, "sync-failed-before-a-restart", "P10"),
    (mutants.counts_half_as_a_quorum, "published-nats-7545", "P7"),
    (driver_mutants.takes_a_damaged_log_for_whole, "published-nats-7549", "P10"),
    (driver_mutants.reports_replicas_before_the_sync, "published-nats-7567", "P7"),
    (driver_mutants.forgets_the_hard_state, "published-nats-6888", "P10"),
    (driver_mutants.takes_a_damaged_log_for_whole, "published-nats-5576", "P1"),
    (mutants.takes_the_name_for_the_group, "published-rabbitmq-12366", "P2"),
    (mutants.counts_removed_members, "published-rabbitmq-2414", "schedule"),
    (mutants.lets_a_witness_lead, "witness-of-two-sites", "P2"),
    (driver_mutants.forgets_whom_it_sent_a_sample, "refused-by-those-reached", "P3"),
]


def broken_by_schedule(path: Path) -> list[str]:
    schedule = read_schedule(path)
    scenario = apply_overrides(read_scenario(find_scenario("world")), schedule.overrides)
    return judge(scenario, schedule).broken()


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("path", sorted(SCHEDULES.glob("*.txt")), ids=lambda path: path.stem)
def test_a_schedule_is_met_and_breaks_nothing(path: Path) -> None:
    assert broken_by_schedule(path) == []


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(("mutant", "kind"), BY_SEARCH, ids=lambda each: each.__name__)
def test_random_search_catches(
    mutant: mutants.Mutant, kind: Callable[[int], Scenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    assert any(judge(kind(seed)).broken() for seed in range(FOUND_AT.get(mutant, 1), SEEDS_MAX + 1)), (
        "the mutant survives"
    )


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(
    ("mutant", "names"), BY_STEERING, ids=lambda each: each if isinstance(each, str) else each.__name__
)
def test_steered_trials_catch(mutant: mutants.Mutant, names: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    steering = Steering(Random("steering/1"), names.split(","))
    for _ in range(TRIALS_MAX):
        (done,) = campaign.look([steering.next()])
        if done.broken:
            return
        assert done.trial.faults is not None
        steering.learn(done.trial, done.trial.faults.steps, done.features)
    pytest.fail("the mutant survives")


@pytest.mark.parametrize(
    ("mutant", "schedule", "rule"), BY_SCHEDULE, ids=lambda each: each if isinstance(each, str) else each.__name__
)
def test_its_schedule_catches(
    mutant: mutants.Mutant, schedule: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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
