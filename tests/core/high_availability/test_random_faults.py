"""Clusters under random faults, small and quick: no acknowledged sample is lost, and none comes twice without its flag.

The simulated world (`sim/world`) does this at length, with disks, clocks and all kinds of faults; this is its little
sister beside the code, and finds in a second what a change breaks.
"""

from __future__ import annotations

import pytest

from qsctl.core.queue import restore
from tests.campaigns import is_campaign, trials
from tests.core.high_availability.storm import Storm

STORMS_OF_RUNS_EACH = 10 if is_campaign() else 4


@pytest.mark.slow(beyond=5)
@pytest.mark.parametrize("synchronizes", [True, False])
@pytest.mark.parametrize("volatile", [False, True])
@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_nothing_accepted_is_lost_under_random_faults(seed: int, size: int, volatile: bool, synchronizes: bool) -> None:
    Storm(seed, size, volatile=volatile, synchronizes=synchronizes).run(600)


@pytest.mark.campaign
@pytest.mark.slow(beyond=4)
@pytest.mark.parametrize("synchronizes", [True, False])
@pytest.mark.parametrize("volatile", [False, True])
@pytest.mark.parametrize("ten", range(trials("QSCTL_TEST_STORMS_OF_RUNS", 1, 50)))
def test_nothing_accepted_is_lost_where_samples_are_runs(
    ten: int, volatile: bool, synchronizes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "RUNS_KEPT", 1)
    run_count = 0
    for seed in range(10 * ten, 10 * ten + STORMS_OF_RUNS_EACH):
        storm = Storm(seed, 3 if seed % 3 else 5, volatile=volatile, synchronizes=synchronizes, by_runs=True)
        storm.run(400)
        run_count += storm.run_count
    assert run_count > 2 * STORMS_OF_RUNS_EACH, "samples are delivered together"


@pytest.mark.campaign
@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("ten", range(trials("QSCTL_TEST_MEMBER_CHANGES", 3, 60)))
def test_nothing_accepted_is_lost_while_members_change_under_random_faults(ten: int) -> None:
    list_count = 0
    for seed in range(10 * ten, 10 * ten + 10):
        storm = Storm(seed, 3 if seed % 3 else 5, changes_members=True)
        storm.run(600)
        list_count += len(storm.lists)
    assert list_count > 12, "the members change in some of the storms"
