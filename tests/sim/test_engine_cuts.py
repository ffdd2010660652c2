"""A run that is cut behind any of its transactions and continued is one run: the database has what that needs."""

from __future__ import annotations

import random

import pytest

from qsctl.sim.engine._peers import Peers, PeersChanged, peers_of_earlier
from tests.campaigns import trials
from tests.sim.engine_cuts import (
    Followed,
    check_against_uninterrupted,
    check_same_as_in_memory,
    continued,
    continued_from,
    random_scenario,
    uninterrupted,
)

IS_LONG = bool(trials("QSCTL_ENGINE_CUTS", 0, 1))
"""Every record of ten scenarios: about half an hour."""
SCENARIOS = range(10)


def check(whole: Followed, behind: int) -> None:
    after = continued(whole, behind)
    check_same_as_in_memory(whole, behind, after)
    check_against_uninterrupted(whole, [*whole.received[: whole.reached[behind - 1][0]], *after.received], after)


def cuts(whole: Followed, number: int, count: int) -> list[int]:
    return sorted(random.Random(number).sample(range(1, len(whole.batches) + 1), count))


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("number", SCENARIOS)
def test_cut_and_continue_is_the_uninterrupted_run(number: int) -> None:
    whole = uninterrupted(random_scenario(number))
    for behind in [1, len(whole.batches), *cuts(whole, number, 3)]:
        check(whole, behind)


@pytest.mark.campaign
@pytest.mark.skipif(not IS_LONG, reason="QSCTL_ENGINE_CUTS=1 runs it: about half an hour")
@pytest.mark.slow
@pytest.mark.parametrize("number", SCENARIOS)
def test_cut_behind_every_record(number: int) -> None:
    whole = uninterrupted(random_scenario(number))
    for behind in range(1, len(whole.batches) + 1):
        check(whole, behind)


@pytest.mark.parametrize("number", [0, 3])
def test_a_run_that_is_cut_again_and_again_is_one_run(number: int) -> None:
    """Each part of the run begins with what the parts before it stored, and is cut, too."""
    whole = uninterrupted(random_scenario(number))
    (behind,) = cuts(whole, number, 1)
    batches, received = whole.batches[:behind], whole.received[: whole.reached[behind - 1][0]]
    for _ in range(4):
        part = continued_from(whole.scenario, batches)
        length = max(1, len(part.batches) // 4)
        batches, received = (
            [*batches, *part.batches[:length]],
            [*received, *part.received[: part.reached[length - 1][0]]],
        )
    last = continued_from(whole.scenario, batches)
    check_against_uninterrupted(whole, [*received, *last.received], last)


def test_the_figures_of_all_parts_are_those_of_one_run() -> None:
    whole = uninterrupted(random_scenario(4))
    (behind,) = cuts(whole, 4, 1)
    after = continued(whole, behind)
    marked = sum(each.is_possible_duplicate for each in after.received)
    assert after.world.offered == whole.world.offered
    assert after.world.delivered - whole.world.delivered <= marked


def test_the_state_of_senders_cannot_be_derived_from_the_clock() -> None:
    """What an earlier version did: messages that wait at senders are gone, and one of the last instant comes twice."""
    differences = 0
    for number in range(4):
        whole = uninterrupted(random_scenario(number))
        for behind in cuts(whole, number, 3):
            after = continued(whole, behind, lambda database, _: peers_of_earlier(database))
            received = [*whole.received[: whole.reached[behind - 1][0]], *after.received]
            try:
                check_against_uninterrupted(whole, received, after)
            except AssertionError:
                differences += 1
    assert differences > 6


def test_the_snapshot_of_peers_gives_their_state() -> None:
    whole = uninterrupted(random_scenario(3))
    peers = Peers()
    for record in (each for batch in whole.batches for each in batch if isinstance(each, PeersChanged)):
        peers.apply(record)
        again = Peers()
        again.apply(peers.snapshot())
        assert again == peers
    assert max(len(each.senders) for batch in whole.batches for each in batch if isinstance(each, PeersChanged)) > 0
