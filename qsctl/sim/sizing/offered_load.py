"""A scenario of one client profile under a load of guaranteed messages: the check of `client-profile size`.

Decides: the load that the arithmetic assumes, as a simulation: every client is offered four fifths of what its windows
allow over its round trip (or the rate that was asked for), over a port that is not the limit.
"""

from __future__ import annotations

import math
from typing import Final

from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.profiles.client_profile import ClientProfile, Queue
from qsctl.profiles.sizing import KILOBYTE_BYTES, ClientLoad
from qsctl.sim.scenario.overrides.overlay import overlay
from qsctl.sim.scenario.scenario import (
    ClientGroup,
    ConstantArrivals,
    ConstantSize,
    Endpoint,
    Port,
    Profile,
    Scenario,
    Traffic,
)

UTILIZATION: Final = 0.8
"""Of the windows, where no rate was asked for: at 1 whatever waits once waits for ever."""
ROUND_TRIP_NS: Final = 10 * MILLISECOND_NS
"""Where none is known."""
_PORT_BITS_PER_SECOND: Final = 10_000_000_000
_RATE_MAX: Final = 1_000_000.0
_MESSAGES: Final = 200_000
"""About as many are simulated, in one to ten seconds."""


def offered_per_second(profile: ClientProfile, load: ClientLoad) -> float:
    """Return the load offered to one client, in messages a second."""
    if load.bits_per_second:
        return load.bits_per_second / 8 / load.message_bytes
    by_tcp = max(1.0, profile.tcp_max_window_kb * KILOBYTE_BYTES / load.message_bytes)
    wanted = min(load.flows * load.window_messages, by_tcp)
    return round(min(_RATE_MAX, UTILIZATION * wanted * SECOND_NS / (load.round_trip_ns or ROUND_TRIP_NS)), 6)


def scenario_of(profile: ClientProfile, load: ClientLoad) -> Scenario:
    """Return the scenario of a profile under a load."""
    rate = offered_per_second(profile, load)
    size = ConstantSize(load.message_bytes)
    offered_bits = rate * load.message_bytes * 8 * load.clients
    seconds = min(10, max(1, round(_MESSAGES / max(1.0, rate * load.clients))))
    scenario = Scenario(
        "load",
        horizon_ns=seconds * SECOND_NS,
        ports=(Port("p1", max(_PORT_BITS_PER_SECOND, 2 * math.ceil(offered_bits))),),
        profiles=(Profile("sized"),),
        groups=(ClientGroup("clients", "p1", "sized", load.clients, load.round_trip_ns or ROUND_TRIP_NS),),
        traffic=(Traffic("guaranteed", "clients", ConstantArrivals(rate), size, Queue.G_1),),
        # The arithmetic counts what is on its way: the library acknowledges each message, as early as it can.
        endpoints=(
            Endpoint("clients", load.flows, window_messages=load.window_messages, library_threshold_percent=0),
        ),
        description=f"{load.clients} clients of profile {profile.name}: {load.flows} flows of window "
        f"{load.window_messages}, messages of {load.message_bytes} bytes, {rate:g} a second each.",
    )  # fmt: skip
    return overlay(scenario, profile, "sized").scenario
