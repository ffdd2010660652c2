"""Messages of many segments: what is sent at one instant is one record of the kernel, and each segment of the model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qsctl.eventlog.schema import LogLevel
from qsctl.instant import MILLISECOND_NS
from qsctl.sim.egress.run import EgressRun
from qsctl.sim.scenario.scenario import (
    ClientGroup,
    Interval,
    MixedSize,
    Model,
    PoissonArrivals,
    Port,
    Profile,
    Queue,
    Scenario,
    TcpSettings,
    Traffic,
)
from tests.sim.brokers import limits
from tests.sim.test_solace_oracle import compare
from tests.sim.test_tibco_oracle import compare as compare_tibco

HORIZON_NS = 100 * MILLISECOND_NS


def scenario(loss: float, delay_ns: int = 40 * MILLISECOND_NS, time_out_ns: int = 4 * MILLISECOND_NS) -> Scenario:
    """Two clients share a port; one more has it for itself, and leaves twice."""
    return Scenario(
        "segments",
        horizon_ns=HORIZON_NS,
        ports=(Port("p", 80_000_000), Port("q")),
        profiles=(Profile("d", limits(50), TcpSettings(initial_window_segments=10, minimum_time_out_ns=time_out_ns)),),
        groups=tuple(
            ClientGroup(
                name, port, "d", count, round_trip_ns=MILLISECOND_NS, loss_probability=loss,
                delayed_acknowledgment_ns=delay_ns, absences=absences,
            )
            for name, port, count, absences in (
                ("pair", "p", 2, ()),
                ("own", "q", 1, (Interval(20 * MILLISECOND_NS, MILLISECOND_NS, 50 * MILLISECOND_NS),)),
            )
        ),
        traffic=tuple(
            Traffic(f"t{name}", name, PoissonArrivals(400.0), MixedSize((300, 20_000, 60_000), (1.0, 3.0, 1.0)))
            for name in ("pair", "own")
        ),
    )  # fmt: skip


@pytest.mark.parametrize("time_out_ns", [1, 4 * MILLISECOND_NS])
@pytest.mark.parametrize("delay_ns", [0, 100_000, 40 * MILLISECOND_NS])
@pytest.mark.parametrize("loss", [0.0005, 0.02])
def test_segments_of_one_instant_are_acknowledged_as_single_ones(loss: float, delay_ns: int, time_out_ns: int) -> None:
    """Acknowledged one by one, by two, or late (a segment takes longer than the timer); sent again for no reason."""
    made = scenario(loss, delay_ns, time_out_ns)
    compare(made)
    profiles = tuple(replace(each, queues={Queue.D_1: each.queues[Queue.D_1]}) for each in made.profiles)
    compare_tibco(replace(made, model=Model.TIBCO, profiles=profiles))


def test_segments_of_one_instant_are_one_record() -> None:
    """A message of 60,000 bytes has 42 segments and half as many acknowledgments, in one record or two of each."""
    traffic = Traffic("t", "own", PoissonArrivals(400.0), MixedSize((60_000,), (1.0,)))
    run = EgressRun(replace(scenario(1e-9), traffic=(traffic,)), 0, LogLevel.COUNTERS)
    free = int(run.arrays.state["segments_left"])
    in_flight = records = 0
    for now in range(0, HORIZON_NS, MILLISECOND_NS // 20):
        run.step(now)
        tcp = run.arrays.connections[2]
        in_flight = max(in_flight, int(tcp["newest"] - tcp["oldest"]))
        records = max(records, free - int(run.arrays.state["segments_left"]))
    assert in_flight > 40
    assert records < in_flight // 2
