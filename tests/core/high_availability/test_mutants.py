"""Each broken replica is caught: by little random faults, or by the test that holds its rule."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from qsctl.core import high_availability
from qsctl.errors import Refused
from tests.core.high_availability import (
    test_configuration,
    test_elections,
    test_frames,
    test_learners,
    test_log,
    test_log_of_runs,
    test_mastery,
    test_member_changes,
    test_member_status,
    test_members,
    test_priorities,
    test_progress,
    test_replay,
    test_samples,
    test_snapshots,
    test_staged_runs,
    test_take_over,
    test_versions,
    test_witnesses,
)
from tests.core.high_availability.mutants import BY_WORLDS, MUTANTS
from tests.core.high_availability.rules import RULES, RULES_BROKEN, files_broken
from tests.core.high_availability.storm import Storm

BY_RANDOM_FAULTS: Final = (
    "acknowledges on append",
    "acknowledges on receipt by a slave",
    "votes without comparing logs",
    "forgets the flag on take over",
    "counts half as a quorum",
    "rejects a logged sample",
    "dispatches before its own entry",
    "confirms without the payload",
    "answers for what was taken back",
    "confirms all that it has",
    "finds no conflict",
)

BY_TEST: Final[dict[str, Callable[[], object]]] = {
    "acknowledges before the sync": test_elections.test_a_confirmation_leaves_once_the_entry_is_durable,
    "accepts a stale master": test_elections.test_entries_of_a_deposed_master_are_refused,
    "forgets identities": test_snapshots.test_a_log_is_compacted_and_a_restart_takes_up_the_snapshot,
    "commits older epochs by counting": test_progress.test_an_entry_of_an_older_epoch_is_not_committed_by_counting,
    "changes members before its own entry": (
        test_member_changes.test_new_master_changes_no_member_before_an_entry_of_its_own_epoch_is_committed
    ),
    "forgets its vote": test_elections.test_a_voter_votes_once_an_epoch_also_after_a_restart,
    "compares by length": test_elections.test_a_candidate_with_a_log_less_up_to_date_gets_no_vote,
    "forgets the flag without synchronization": (
        test_take_over.test_while_samples_are_sent_ahead_everything_held_is_flagged_after_a_take_over
    ),
    "forgets that it forgot": test_samples.test_a_restarted_replica_rejects_nothing_before_it_knows_what_is_committed,
    "sends before it is durable": test_samples.test_a_master_gives_away_only_what_is_durable_at_itself,
    "delivers without its quorum": test_elections.test_a_paused_master_delivers_nothing_when_it_goes_on,
    "a snapshot throws away the rest": test_snapshots.test_a_late_snapshot_throws_away_nothing_that_was_confirmed,
    "votes after the loss of its log": test_learners.test_a_learner_has_no_vote_and_its_confirmations_do_not_count,
    "sends assignments at once": partial(
        test_take_over.test_a_delivery_waits_for_its_assignment_only_where_that_is_synchronized, True
    ),
    "stands still while its clock is set back": (
        test_elections.test_a_master_whose_clock_is_set_back_loses_its_quorum_all_the_same
    ),
    "leads on when its clock is set back": (
        test_elections.test_a_master_that_was_paused_while_its_clock_was_set_back_leads_no_more
    ),
    "votes at once after a restart": (
        test_elections.test_a_voter_that_restarts_withholds_its_vote_as_long_as_a_master_may_count_on_it
    ),
    "votes at once in a later epoch": (
        test_elections.test_a_voter_that_learns_of_a_later_epoch_withholds_its_vote_all_the_same
    ),
    "forgets later epochs": test_elections.test_an_epoch_that_a_replica_only_followed_survives_its_restart,
    "keeps deliveries when it steps down": (
        test_take_over.test_a_deposed_master_delivers_nothing_that_its_successor_commits
    ),
    "delivers what rests on entries of others": test_elections.test_a_confirmation_leaves_once_the_entry_is_durable,
    "takes truncated entries for durable": test_mastery.test_log_is_durable_no_further_than_it_was_truncated,
    "votes before the sync": test_elections.test_a_vote_leaves_once_it_is_durable,
    "gets a spent vote back": (
        test_learners.test_a_replica_with_a_new_disk_has_no_vote_until_a_quorum_without_it_committed_an_entry
    ),
    "counts learners": test_learners.test_a_learner_has_no_vote_and_its_confirmations_do_not_count,
    "rejoins before it is committed": test_learners.test_a_learner_has_no_vote_and_its_confirmations_do_not_count,
    "takes up refused attempts": test_samples.test_a_refused_attempt_is_refused_again_and_the_next_is_not,
    "forgets what a snapshot replaced": test_log.test_what_a_snapshot_replaced_was_taken_back,
    "takes a snapshot with gaps": test_snapshots.test_transfer_of_a_snapshot_goes_on_behind_a_lost_piece,
    "compacts what is not committed": test_snapshots.test_a_replica_that_lags_behind_the_log_gets_a_snapshot,
    "keeps the capture of a deposed master": (
        test_snapshots.test_a_master_compacts_by_no_state_that_it_had_in_an_earlier_epoch
    ),
    "sends pieces to any version": partial(test_snapshots.test_only_members_that_understand_pieces_are_sent_some, True),
    "sends heartbeats to any version": test_versions.test_version_of_a_member_follows_its_upgrade_and_its_downgrade,
    "sends runs to any version": test_versions.test_entries_of_a_run_are_single_ones_for_a_member_of_an_earlier_version,
    "overlooks runs that are not committed": partial(
        test_log_of_runs.test_log_of_runs_is_the_log_of_its_single_records, 1
    ),
    "takes a run of which it lacks samples": partial(
        test_staged_runs.test_samples_wait_in_a_run_as_they_do_one_by_one, 1
    ),
    "takes all for its own version": test_versions.test_version_of_a_member_follows_its_upgrade_and_its_downgrade,
    "forms at the first answers": (
        test_learners.test_a_new_replica_that_asked_for_long_waits_for_the_answers_beside_the_first_ones
    ),
    "serves a witness at once": test_witnesses.test_nothing_is_sent_to_a_witness_before_its_addition_is_committed,
    "commits past what a heartbeat covers": (
        test_elections.test_a_heartbeat_commits_no_entries_behind_the_one_that_it_covers
    ),
    "commits past what was sent": (
        test_elections.test_a_master_without_a_quorum_steps_down_and_its_samples_are_taken_back
    ),
    "votes while its master leads": test_elections.test_a_replica_that_follows_its_master_votes_for_no_other,
    "loses the members of a compacted log": test_member_changes.test_list_of_members_is_kept_by_snapshots_and_restarts,
    "changes two members at a time": test_member_changes.test_next_change_is_refused_until_the_one_before_is_committed,
    "changes a part of a group": test_members.test_a_part_of_a_group_neither_comes_nor_goes_alone,
    "sees no hanging disk": test_elections.test_a_master_whose_disk_hangs_follows_until_the_disk_answers,
    "hands over to a member that lacks entries": (
        test_priorities.test_member_that_lacks_entries_does_not_become_the_master
    ),
    "prefers a drained member": test_priorities.test_drained_member_is_no_successor,
    "counts compacted octets": test_member_status.test_octets_behind_are_those_of_the_entries_that_no_snapshot_covers,
    "carries out superseded commands": (
        test_configuration.test_a_command_overtaken_by_a_later_one_of_its_administrator_is_not_carried_out
    ),
    "sends payloads to a witness": test_witnesses.test_witness_holds_every_entry_and_no_payload,
    "leads on whatever its clock shows": (
        test_elections.test_a_master_that_was_paused_while_its_clock_was_set_back_leads_no_more
    ),
    "moves dead letters in two steps": test_replay.test_every_prefix_of_a_log_replays_to_the_state_that_wrote_it,
    "raises epochs by trials": lambda: test_frames.test_a_trial_raises_no_epoch(test_frames.working()),
    "goes on with what it cannot play": lambda: (
        test_frames.test_a_replica_whose_log_cannot_be_played_falls_back_to_the_master_s_alone(test_frames.working())
    ),
    "heeds strangers": lambda: test_frames.test_a_frame_of_a_stranger_is_refused(test_frames.working()),
}


UNBROKEN: Final = {
    "__init__": "it is a description",
    "_followed": "it is the interface of what follows a log",
    "_status": "it shows the state of a replica, and decides nothing",
    "roles": "it is the vocabulary of roles",
}
"""Files of the replicas that no broken replica differs in, and the reasons."""


def test_every_broken_replica_has_what_catches_it() -> None:
    assert sorted(MUTANTS) == sorted((*BY_RANDOM_FAULTS, *BY_TEST, *BY_WORLDS))


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("name", BY_RANDOM_FAULTS)
def test_random_faults_catch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    with pytest.raises(AssertionError):
        for seed in range(40):
            Storm(seed, 3 + seed % 3, volatile=False, synchronizes=True).run(600)


@pytest.mark.parametrize("name", BY_TEST)
def test_its_test_catches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    with pytest.raises((AssertionError, Refused)):
        BY_TEST[name]()


def test_every_file_of_the_replicas_is_broken_somewhere() -> None:
    package = high_availability.__name__
    files = {each.stem for each in Path(high_availability.__file__).parent.glob("*.py")}
    replaced = {module for mutant in MUTANTS.values() for module in files_broken(mutant)}
    broken = {each.removeprefix(f"{package}.") for each in replaced if each.startswith(package)}
    assert files - broken == UNBROKEN.keys()


def test_every_rule_is_broken_somewhere() -> None:
    assert {rule for mutant in MUTANTS.values() for rule in RULES_BROKEN[mutant]} == RULES.keys()
