"""The seeds, steered trials or schedule that catch each mutant; `python -m tests.world.catches` finds them anew.

The numbers are those of the latest campaign. They change with everything that changes histories, and so they are where
an ordinary test begins; that some trial among the first `SEEDS_MAX` catches a mutant is what a campaign shows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from typing import Final, NamedTuple

import pytest

from tests.core.high_availability import mutants
from tests.core.high_availability.rules import RULES_BROKEN, Mutant, files_broken
from tests.world import driver_mutants
from tests.world.campaign import Done, look_at, say
from tests.world.steering import Steering, Trial

SEEDS_MAX: Final = 300
"""Trials within which a mutant is caught that trials catch."""


class Catch(NamedTuple):
    """The first trial that catches a mutant; no number and no reason: `SEEDS_MAX` trials were not tried yet."""

    kinds: str
    """Those of the worlds, in turn."""
    plain: int = 0
    """The first seed that catches it; 0: none is known."""
    steered: int = 0
    """The number of the first steered trial that catches it; 0: none is known."""
    reason: str = ""
    """Why neither seeds nor steered trials reach it."""


CATCHES: Final[dict[Mutant, Catch]] = {
    mutants.acknowledges_on_append: Catch("three", plain=1),
    mutants.acknowledges_before_the_sync: Catch("three", plain=1),
    mutants.acknowledges_on_receipt_by_a_slave: Catch("three", plain=1),
    mutants.votes_without_comparing_logs: Catch("three", plain=2),
    mutants.compares_by_length: Catch("contested,brief,three"),
    mutants.accepts_a_stale_master: Catch("contested,brief,three"),
    mutants.forgets_the_flag_on_take_over: Catch("three", plain=1),
    mutants.forgets_the_flag_without_synchronization: Catch("three_unsynchronized", plain=10),
    mutants.forgets_identities: Catch("three", plain=4),
    mutants.counts_half_as_a_quorum: Catch("four", plain=1),
    mutants.counts_removed_members: Catch("changing"),
    mutants.rejects_a_logged_sample: Catch("contested,brief,three", plain=7),
    mutants.commits_older_epochs_by_counting: Catch("contested", plain=85),
    mutants.counts_confirmations_of_earlier_epochs: Catch(
        "contested,brief",
        reason="a confirmation must be late by two elections, and come before its sender's log is compared again",
    ),
    mutants.forgets_its_vote: Catch("contested,brief,three"),
    mutants.dispatches_before_its_own_entry: Catch("contested,brief,three", plain=1, steered=1),
    mutants.confirms_without_the_payload: Catch("three", plain=1),
    mutants.forgets_that_it_forgot: Catch("contested,brief,three"),
    mutants.sends_before_it_is_durable: Catch("contested,brief,three"),
    mutants.delivers_without_its_quorum: Catch("contested,brief,three"),
    mutants.a_snapshot_throws_away_the_rest: Catch("compacting,dead_letters_compacting", plain=16),
    mutants.votes_after_the_loss_of_its_log: Catch("volatile", plain=2),
    mutants.moves_dead_letters_in_two_steps: Catch("dead_letters"),
    mutants.sends_assignments_at_once: Catch("three", plain=12),
    mutants.changes_members_before_its_own_entry: Catch("changing"),
    mutants.lets_a_witness_lead: Catch("witnessed", plain=5),
    mutants.lets_a_witness_vote_for_less: Catch("witnessed", plain=13),
    mutants.carries_commands_out_as_they_come: Catch("administered", plain=1),
    mutants.follows_commands_that_are_not_committed: Catch("administered", plain=28),
    mutants.takes_a_queue_for_the_one_before_it: Catch("administered", plain=32),
    mutants.notes_what_it_creates_too_late: Catch("administered", plain=1),
    mutants.stands_still_while_its_clock_is_set_back: Catch("contested,brief,three"),
    mutants.leads_on_when_its_clock_is_set_back: Catch("contested,brief,three"),
    mutants.votes_at_once_after_a_restart: Catch("contested,brief,three"),
    mutants.votes_at_once_in_a_later_epoch: Catch("contested,brief,three"),
    mutants.takes_the_name_for_the_group: Catch("replaced", plain=2),
    mutants.answers_for_what_was_taken_back: Catch("contested,brief,three", plain=3),
    mutants.confirms_all_that_it_has: Catch("contested,brief,three"),
    mutants.finds_no_conflict: Catch("contested,brief,three", plain=1),
    mutants.heeds_a_deleted_log_when_it_forms: Catch("replaced_in_order", plain=101),
    mutants.forgets_the_floor: Catch("bereft", plain=243),
    mutants.forms_with_all_members_only: Catch("survivors", plain=1),
    mutants.forgets_later_epochs: Catch("contested,brief,three"),
    mutants.keeps_deliveries_when_it_steps_down: Catch("contested,brief,three", plain=18),
    mutants.delivers_what_rests_on_entries_of_others: Catch("contested,brief,three"),
    mutants.takes_truncated_entries_for_durable: Catch("contested,brief,three"),
    mutants.votes_before_the_sync: Catch("contested,brief,three"),
    mutants.gets_a_spent_vote_back: Catch(
        "brief,volatile,bereft",
        reason="a candidate that has the entry which gives a vote back has followed the master of its epoch",
    ),
    mutants.counts_learners: Catch("brief,volatile,three"),
    mutants.rejoins_before_it_is_committed: Catch("contested,brief,three"),
    mutants.takes_up_refused_attempts: Catch("contested,brief,three"),
    mutants.forgets_what_a_snapshot_replaced: Catch("compacting,dead_letters_compacting"),
    mutants.follows_any_epoch: Catch("visited", plain=1),
    mutants.takes_a_snapshot_with_gaps: Catch("held", plain=11),
    mutants.compacts_what_is_not_committed: Catch("compacting", plain=2),
    mutants.keeps_the_capture_of_a_deposed_master: Catch("compacting", plain=6),
    mutants.sends_pieces_to_any_version: Catch("upgraded"),
    mutants.sends_heartbeats_to_any_version: Catch("upgraded", plain=7),
    mutants.sends_runs_to_any_version: Catch("upgraded"),
    mutants.overlooks_runs_that_are_not_committed: Catch("contested,brief,three"),
    mutants.takes_a_run_of_which_it_lacks_samples: Catch("three", plain=4),
    mutants.takes_all_for_its_own_version: Catch("upgraded", plain=2),
    mutants.forms_at_the_first_answers: Catch(
        "brief,replaced,survivors",
        reason="no drawn fault empties the disks of a quorum",
    ),
    mutants.serves_a_witness_at_once: Catch("witnessed", plain=4),
    mutants.commits_past_what_a_heartbeat_covers: Catch(
        "brief,witnessed,three",
        reason="a master of this version has sent all that is committed when its heartbeat covers an entry",
    ),
    mutants.commits_past_what_was_sent: Catch("contested,brief,three", plain=1),
    mutants.votes_while_its_master_leads: Catch("contested,brief,three"),
    mutants.loses_the_members_of_a_compacted_log: Catch("changing"),
    mutants.changes_two_members_at_a_time: Catch("changing", plain=27),
    mutants.changes_a_part_of_a_group: Catch("replaced_with_dead_letters,administered"),
    mutants.sees_no_hanging_disk: Catch("three,brief", reason="no rule of a world bounds the time without progress"),
    mutants.hands_over_to_a_member_that_lacks_entries: Catch(
        "preferring",
        reason="a member that lacks entries is not elected: time is lost, and nothing else",
    ),
    mutants.prefers_a_drained_member: Catch("preferring", reason="no world drains a member"),
    mutants.counts_compacted_octets: Catch("compacting", reason="it is a figure that operators see"),
    mutants.carries_out_superseded_commands: Catch("administered"),
    mutants.sends_payloads_to_a_witness: Catch(
        "witnessed",
        reason="no rule of a world forbids what is more than needed",
    ),
    mutants.leads_on_whatever_its_clock_shows: Catch("contested,brief,three"),
    mutants.raises_epochs_by_trials: Catch("visited", plain=1),
    mutants.goes_on_with_what_it_cannot_play: Catch(
        "visited,brief",
        reason="no stranger of a world can send entries that fit",
    ),
    mutants.heeds_strangers: Catch(
        "visited",
        reason="no vote of a stranger is for the epoch of a candidate, and none counts",
    ),
    driver_mutants.never_syncs_a_log: Catch("three", plain=1),
    driver_mutants.never_syncs_a_directory: Catch("three", plain=1),
    driver_mutants.reports_replicas_before_the_sync: Catch("three", plain=1),
    driver_mutants.forgets_the_hard_state: Catch("three", plain=1),
    driver_mutants.releases_before_the_sync: Catch("alone", plain=1),
    driver_mutants.withholds_nothing: Catch("alone", plain=12),
    driver_mutants.drops_deleted_logs_too_late: Catch("replaced", plain=1),
    driver_mutants.hears_nobody_after_a_restart: Catch("three", plain=1),
    driver_mutants.adopts_nothing: Catch("administered", plain=1),
    driver_mutants.recovers_from_memory_alone: Catch("alone", plain=33),
    driver_mutants.relies_on_what_a_failed_sync_left: Catch("three,alone"),
    driver_mutants.takes_a_damaged_log_for_whole: Catch("three", plain=7),
    driver_mutants.checkpoints_without_a_sync: Catch("alone", plain=33),
    driver_mutants.truncates_in_memory_alone: Catch("three", plain=3),
    driver_mutants.forgets_whom_it_sent_a_sample: Catch("three,five"),
}  # fmt: skip


BY_SCHEDULE: Final[Sequence[tuple[Mutant, str, str]]] = [
    (mutants.commits_older_epochs_by_counting, "older-epoch-committed-by-counting", "P6"),
    (mutants.counts_confirmations_of_earlier_epochs, "confirmed-in-an-earlier-epoch", "P6"),
    (mutants.changes_members_before_its_own_entry, "members-changed-by-two-masters", "P6"),
    (mutants.forgets_its_vote, "vote-not-durable", "P5"),
    (mutants.votes_before_the_sync, "vote-sent-before-its-sync", "P5"),
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
    (mutants.forms_at_the_first_answers, "answer-beside-the-first", "P1"),
    (mutants.lets_a_witness_lead, "witness-of-two-sites", "P2"),
    (driver_mutants.forgets_whom_it_sent_a_sample, "refused-by-those-reached", "P3"),
]
"""Schedules that catch a mutant, and the rule of the world that each shows broken."""


def trials_of(kinds: str, first: int = 1) -> Iterator[Trial]:
    """Yield the trial of each seed, its kinds in turn."""
    names = kinds.split(",")
    seed = first
    while True:
        yield Trial(names[(seed - 1) % len(names)], seed)
        seed += 1


def steered_trials_of(kinds: str, steering_seed: int = 1) -> Iterator[Done]:
    """Yield steered trials with what they came to."""
    steering = Steering(Random(f"steering/{steering_seed}"), kinds.split(","), steering_seed)
    while True:
        done = look_at(steering.next())
        assert done.trial.faults is not None
        steering.learn(done.trial, done.trial.faults.steps, done.features)
        yield done


def first_broken(dones: Iterator[Done], count: int) -> tuple[int, list[str]]:
    """Return the number of the first of these trials that breaks a rule, and what it breaks; 0: none does."""
    broken = ((number, done.broken) for number, done in enumerate(islice(dones, count), 1) if done.broken)
    return next(broken, (0, []))


def row_of(mutant: Mutant, catch: Catch, steering_seeds: Sequence[int]) -> str:
    """Try a mutant in plain and in steered trials, and return its row of the table."""
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        found = [first_broken(map(look_at, trials_of(catch.kinds)), SEEDS_MAX)]
        found += [first_broken(steered_trials_of(catch.kinds, each), SEEDS_MAX) for each in steering_seeds]
    files = sorted(each.removeprefix("qsctl.") for each in files_broken(mutant))
    rules = ", ".join(map(str, RULES_BROKEN[mutant])) or "-"
    shown = next((broken[0].partition(":")[0] for _, broken in found if broken), "")
    cells = [mutant.__name__.replace("_", " "), ", ".join(files), rules, catch.kinds.replace(",", ", ")]
    schedules = ", ".join(name for each, name, _ in BY_SCHEDULE if each is mutant)
    cells += [str(number or "-") for number, _ in found] + [shown, schedules, catch.reason]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Print the table of all mutants, or of those named."""
    parser = argparse.ArgumentParser(description="Find out which trials catch each mutant.")
    parser.add_argument("--steering", default="1", help="seeds of the steering, separated by commas; empty: none")
    parser.add_argument("names", nargs="*", help="mutants; none: all")
    given = parser.parse_args()
    seeds = [int(each) for each in given.steering.split(",") if each]
    columns = ["mutant", "files", "rules", "kinds", "plain", *(f"steered, {each}" for each in seeds)]
    columns += ["shown by", "schedules", "reason"]
    say(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    known = mutants.MUTANTS | driver_mutants.MUTANTS
    for name in given.names or known:
        say(row_of(known[name], CATCHES[known[name]], seeds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
