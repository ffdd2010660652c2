"""The arithmetic of W1, W2, W3 and W8, against its formulas, and against the simulator's bound."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.instant import MILLISECOND_NS
from qsctl.profiles.client_profile import ClientProfile
from qsctl.profiles.ranges import default_profile
from qsctl.profiles.sizing import ClientLoad, admitted_messages, levers, size
from qsctl.sim.scenario.rules.scenario import check_rules
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.sizing.memory import memory_bytes
from qsctl.sim.sizing.offered_load import scenario_of
from tests.profiles.drawn import PROFILES

DEFAULT = default_profile()


def value(quantity: str, load: ClientLoad, profile: ClientProfile = DEFAULT) -> float:
    return size(profile, load).line(quantity).value


@pytest.mark.parametrize(("window", "wanted", "enough"), [(255, 25_500, False), (25, 2_500, True)])
def test_w1_ten_flows_of_20480_bytes(window: int, wanted: int, enough: bool) -> None:
    load = ClientLoad(flows=10, window_messages=window, message_bytes=20_480)
    sizing = size(DEFAULT, load)
    assert sizing.line("wanted in G-1").value == wanted
    assert sizing.is_enough is enough
    assert sizing.limit == ("the flows' windows" if enough else "G-1")
    assert bool(levers(DEFAULT, load, sizing)) is not enough


def test_w2_a_thousand_endpoints_of_window_50() -> None:
    sizing = size(DEFAULT, ClientLoad(flows=1000, window_messages=50, message_bytes=100_000))
    assert sizing.burst_needed == 50_000
    assert not sizing.is_enough


@pytest.mark.parametrize(("burst", "per_second"), [(4, 40), (20, 200), (255, 2550), (66_000, 2550)])
def test_w3_a_burst_over_a_round_trip_is_the_rate(burst: int, per_second: int) -> None:
    profile = dataclasses.replace(DEFAULT, g_1_min_msg_burst=burst, g_1_max_depth_work_units=2)
    load = ClientLoad(window_messages=255, message_bytes=2048, round_trip_ns=100 * MILLISECOND_NS)
    assert value("guaranteed messages at most", load, profile) == pytest.approx(per_second)


def test_w8_a_window_over_a_round_trip_is_the_rate_of_a_connection() -> None:
    load = ClientLoad(round_trip_ns=100 * MILLISECOND_NS, bits_per_second=1_000_000_000)
    assert value("TCP connection at most", load) == pytest.approx(20_971_520)
    assert value("TCP window needed", load) == 12_500_000


def test_the_levers_lift_the_limit() -> None:
    load = ClientLoad(flows=10, window_messages=255, message_bytes=20_480)
    sizing = size(DEFAULT, load)
    for change in (
        {"g_1_min_msg_burst": sizing.burst_needed},
        {"g_1_max_depth_work_units": sizing.depth_needed_work_units},
    ):
        assert size(dataclasses.replace(DEFAULT, **change), load).is_enough
    window = admitted_messages(20_000, 255, 10) // load.flows
    assert size(DEFAULT, dataclasses.replace(load, window_messages=window)).is_enough


LOADS = st.builds(
    ClientLoad, flows=st.integers(1, 5000), window_messages=st.integers(1, 65_535),
    message_bytes=st.integers(1, 200_000),
    clients=st.integers(1, 1000), round_trip_ns=st.sampled_from([0, MILLISECOND_NS, 100 * MILLISECOND_NS]),
)  # fmt: skip


@given(profile=PROFILES, load=LOADS)
def test_the_memory_bounds_the_simulated_use_of_the_same_load(profile: ClientProfile, load: ClientLoad) -> None:
    sizing = size(profile, load)
    scenario: Scenario = scenario_of(profile, load)
    check_rules(scenario)
    assert sizing.memory_bytes == sizing.line("memory of one client").value * load.clients
    # The simulator knows that no direct message comes, so that its bound counts them as of the smallest size.
    assert memory_bytes(scenario) <= sizing.memory_bytes


def test_the_limit_of_unacknowledged_messages_is_a_rate_of_its_own() -> None:
    """W12: limit 1,000 and a second to acknowledge are 1,000 a second; the window has no part in it."""
    load = ClientLoad(window_messages=255, unacknowledged_limit=1000, acknowledge_after_ns=1000 * MILLISECOND_NS)
    sizing = size(DEFAULT, load)
    assert sizing.limit == "the limit of unacknowledged messages"
    assert sizing.line("acknowledged by the application").value == 1000
    near = dataclasses.replace(load, round_trip_ns=MILLISECOND_NS, unacknowledged_limit=10_000)
    assert size(DEFAULT, near).limit == "the limit of unacknowledged messages"
    far = dataclasses.replace(near, round_trip_ns=100 * MILLISECOND_NS)
    assert size(DEFAULT, far).limit == "the flows' windows"
