"""Each broken replica is caught: by little random faults, or by the test that holds its rule."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import pytest

from tests.core.high_availability import (
    test_elections,
    test_learners,
    test_member_changes,
    test_progress,
    test_replay,
    test_samples,
    test_snapshots,
    test_take_over,
)
from tests.core.high_availability.mutants import MUTANTS
from tests.core.high_availability.storm import Storm

BY_RANDOM_FAULTS: Final = (
    "acknowledges on append",
    "acknowledges on receipt by a slave",
    "votes without comparing logs",
    "forgets the flag on take-over",
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
    "moves dead letters in two steps": test_replay.test_every_prefix_of_a_log_replays_to_the_state_that_wrote_it,
}


BY_WORLDS = ("counts confirmations of earlier epochs",)
"""A schedule of a simulated world catches these, see `tests/world/test_mutants.py`."""


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
    with pytest.raises(AssertionError):
        BY_TEST[name]()
