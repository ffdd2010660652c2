"""Calibration of captures that the simulator made of hidden scenarios: the parameter is found, within its interval.

By default 1 draw of each kind; `QSCTL_TEST_CALIBRATIONS` makes any other number, a campaign 50.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from qsctl.profiles.client_profile import Queue
from qsctl.profiles.listings.model import ClientConnection, ClientQueues, ListedQueueStatistics, Listings
from qsctl.sim.captured import calibration
from qsctl.sim.captured.calibration import CONFIDENCE, FittedParameter, fits, predictions, student
from qsctl.sim.captured.observed import observe
from qsctl.sim.captured.scenario import scenario_of
from tests.campaigns import trials
from tests.sim.captured.drawn import captured, hidden, with_windows

DRAWS = trials("QSCTL_TEST_CALIBRATIONS", 1, 50)
KINDS = ("service-time", "link-rate")


def least(count: int) -> int:
    """Fewer of `count` intervals contain the truth with a probability below 0.1 %, if they keep their confidence."""
    below, at = 0.0, 0
    while True:
        below += math.comb(count, at) * CONFIDENCE**at * (1 - CONFIDENCE) ** (count - at)
        if below >= 0.001:
            return at
        at += 1


def fitted(seed: int, kind: str, folder: Path, advertised: int | None = None) -> list[FittedParameter]:
    scenario = hidden(seed, kind).scenario
    before, after = captured(scenario, 20, folder / f"{seed}a"), captured(scenario, 50, folder / f"{seed}b")
    if advertised is not None:
        before, after = (with_windows(each, "desk", advertised) for each in (before, after))
    observed = observe(after, before, 30.0)
    made = scenario_of(observed)
    (desk,) = [each for each in made.groups if each.name == "desk"]
    return fits(made.scenario, desk, observed)


@pytest.mark.slow(beyond=1)
@pytest.mark.campaign
@pytest.mark.statistics
@pytest.mark.parametrize("kind", KINDS)
def test_a_hidden_parameter_is_within_its_interval_as_often_as_stated(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, widths, errors = 0, [], []
    # Of the parameter that is hidden alone: the others are fitted in the same way.
    monkeypatch.setattr(
        calibration, "_CANDIDATES", [each for each in calibration._CANDIDATES if each.path.startswith(kind)]
    )
    for seed in range(DRAWS):
        truth = hidden(seed, kind)
        (found,) = [each for each in fitted(seed, kind, tmp_path) if each.path == truth.path]
        inside += found.low <= truth.value <= found.high
        widths.append(found.high / found.low - 1)
        errors.append(abs(found.value / truth.value - 1))
        half = math.log(found.high / found.low) / 2
        assert abs(math.log(found.value / truth.value)) < 2.5 * half, (seed, "some five standard deviations")
    assert inside >= least(DRAWS), (inside, DRAWS)
    assert max(errors) < 0.1
    assert max(widths) < 0.3


@pytest.mark.slow
def test_windows_distinguish_the_application_from_the_link(tmp_path: Path) -> None:
    best = [each for each in fitted(1, "service-time", tmp_path, advertised=0) if each.is_best]
    assert [each.path for each in best] == ["group[desk]/service-time/duration"]


def test_a_time_from_uptimes_widens_the_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_CANDIDATES", calibration._CANDIDATES[:1])
    scenario = hidden(0).scenario
    before, after = captured(scenario, 5, tmp_path / "a"), captured(scenario, 15, tmp_path / "b")
    widths = []
    for seconds in (10.0, None):
        observed = observe(after, before, seconds)
        made = scenario_of(observed)
        (found,) = fits(made.scenario, made.groups[0], observed, 4)
        widths.append(math.log(found.high / found.low))
        assert observed.seconds == 10.0
    assert widths[1] > widths[0] + 2 * 0.9 / 10


def listing(
    *, delivered: int, lost: int, uptime_s: int = 100, depth: int = 0, sent_bytes: int | None = None
) -> Listings:
    row = ListedQueueStatistics("D-1", depth, depth, depth, 100, lost, delivered)
    client = ClientQueues("c", message_vpn="v", uptime_s=uptime_s, queues=(row,))
    return Listings(
        clients=(client,), connections=(ClientConnection("c", "v", sent_bytes=sent_bytes, round_trip_us=500),)
    )


def test_rates_are_those_between_the_captures() -> None:
    before = listing(delivered=1000, lost=100, uptime_s=100, depth=10, sent_bytes=100_000)
    after = listing(delivered=3000, lost=600, uptime_s=150, depth=20, sent_bytes=500_000)
    observed = observe(after, before)
    (client,) = observed.clients
    row = client.queues[Queue.D_1]
    assert (observed.seconds, observed.error_s) == (50.0, 1.0)
    assert (row.arrived_messages, row.discarded_messages) == (2510, 500)
    assert (row.arrived_per_s, row.discarded_per_s) == (2510 / 50, 10.0)
    assert (client.mean_size_bytes, client.round_trip_us) == (200.0, 500)


def test_a_client_that_connected_anew_is_counted_from_zero() -> None:
    before = listing(delivered=10_000, lost=500)
    after = listing(delivered=300, lost=30, uptime_s=20)
    (client,) = observe(after, before, 60.0).clients
    assert client.queues[Queue.D_1].arrived_messages == 330


def test_a_group_that_lost_nothing_has_no_fit_and_agrees() -> None:
    observed = observe(listing(delivered=3000, lost=0, uptime_s=160), listing(delivered=0, lost=0, uptime_s=100))
    made = scenario_of(observed)
    assert fits(made.scenario, made.groups[0], observed) == []
    assert all(each.agrees for each in predictions(made.scenario, made.groups, observed, 4))
    other = replace(made.groups[0], name="none")
    assert predictions(made.scenario, [other], observed, 4) == []
    assert fits(made.scenario, other, observed) == []


@pytest.mark.slow
def test_discards_that_no_parameter_explains_have_no_fit() -> None:
    # All that came was discarded, and still messages were delivered before: a share that no limit leads to.
    observed = observe(listing(delivered=100, lost=10**6, uptime_s=160), listing(delivered=100, lost=0), 60.0)
    made = scenario_of(observed)
    assert all(each.mismatch > 0 for each in fits(made.scenario, made.groups[0], observed, 4))


def test_students_quantile_is_never_too_small() -> None:
    assert [student(each) for each in (2, 4, 9, 32)] == [12.71, 3.182, 2.365, 2.04]
