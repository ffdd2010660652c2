"""The scenario that `client-profile size` writes, simulated: what the arithmetic says, and where both differ."""

from __future__ import annotations

import dataclasses

import pytest

from qsctl.instant import MILLISECOND_NS
from qsctl.profiles.ranges import default_profile
from qsctl.profiles.sizing import ClientLoad, size
from qsctl.sim.sizing.offered_load import scenario_of
from tests.sim.brokers import run


@pytest.mark.parametrize(("burst", "held"), [(4, 4), (9, 9), (255, 12)])
def test_a_simulation_holds_what_the_arithmetic_admits_or_the_load_has_in_flight(burst: int, held: int) -> None:
    """A load of 96 messages a second over 100 ms has ten in flight, and the whole window while TCP starts slowly."""
    profile = dataclasses.replace(default_profile(), g_1_min_msg_burst=burst, g_1_max_depth_work_units=2)
    load = ClientLoad(window_messages=12, message_bytes=2048, round_trip_ns=100 * MILLISECOND_NS)
    columns = run(scenario_of(profile, load))[0].counters()
    assert columns["high_water_mark_work_units"][0] == held
    assert (columns["waiting_messages"][0] > 0) == (burst < 10)
    assert size(profile, load).line("admitted by G-1").value == burst
