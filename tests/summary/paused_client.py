"""A client that reads nothing: how much it loses is known from the Poisson distribution."""

from __future__ import annotations

from qsctl.instant import SECOND_NS
from qsctl.sim.scenario.scenario import (
    ClientGroup,
    ClientInterval,
    ConstantSize,
    PoissonArrivals,
    Port,
    Profile,
    Scenario,
    Traffic,
)

RATE = 228.0


def paused(rate: float = RATE) -> Scenario:
    return Scenario(
        name="paused", horizon_ns=SECOND_NS, seed=1, ports=(Port("p"),), profiles=(Profile("default"),),
        groups=(
            ClientGroup(
                "c", port="p", profile="default", receive_buffer_bytes=1, pauses=(ClientInterval(0, SECOND_NS),)
            ),
        ),
        traffic=(Traffic("t", to="c", arrivals=PoissonArrivals(rate), size=ConstantSize(2048)),),
    )  # fmt: skip
