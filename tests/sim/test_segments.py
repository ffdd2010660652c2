"""Messages of many segments: what is sent at one instant is one record of the kernel, and each segment of the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from qsctl.eventlog.schema import LogLevel
from qsctl.instant import MILLISECOND_NS
from qsctl.sim.egress.clients.traits import DEFERRED
from qsctl.sim.egress.runs._run import EgressRun
from qsctl.sim.scenario.parts.client import ExponentialTime
from qsctl.sim.scenario.scenario import (
    ClientGroup,
    ClientInterval,
    ConstantArrivals,
    ConstantSize,
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
from tests.sim.compared_solace import compare
from tests.sim.compared_tibco import compare as compare_tibco
from tests.sim.random_scenarios import Ran

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
                ("own", "q", 1, (ClientInterval(20 * MILLISECOND_NS, MILLISECOND_NS, 50 * MILLISECOND_NS),)),
            )
        ),
        traffic=tuple(
            Traffic(f"t{name}", name, PoissonArrivals(400.0), MixedSize((300, 20_000, 60_000), (1.0, 3.0, 1.0)))
            for name in ("pair", "own")
        ),
    )  # fmt: skip


@pytest.mark.slow(beyond=3)
@pytest.mark.parametrize("time_out_ns", [1, 4 * MILLISECOND_NS])
@pytest.mark.parametrize("delay_ns", [0, 100_000, 40 * MILLISECOND_NS])
@pytest.mark.parametrize("loss", [0.0005, 0.02])
def test_segments_of_one_instant_are_acknowledged_as_single_ones(loss: float, delay_ns: int, time_out_ns: int) -> None:
    """Acknowledged one by one, by two, or late (a segment takes longer than the timer); sent again for no reason."""
    made = scenario(loss, delay_ns, time_out_ns)
    compare(made)
    profiles = tuple(replace(each, queues={Queue.D_1: each.queues[Queue.D_1]}) for each in made.profiles)
    compare_tibco(replace(made, model=Model.TIBCO, profiles=profiles))


@pytest.mark.slow(beyond=2)
@pytest.mark.parametrize("time_out_ns", [1, 3 * MILLISECOND_NS])
@pytest.mark.parametrize("size_bytes", [900, 9000])
@pytest.mark.parametrize(
    "client", [{"loss_probability": 0.01}, {"service_time": ExponentialTime(300_000), "receive_buffer_bytes": 30_000}]
)
def test_what_is_back_may_be_processed_later_and_together(
    client: dict[str, Any], size_bytes: int, time_out_ns: int
) -> None:
    """Acknowledgments wait while a message passes without them: none of its times, and no time-out, depends on it."""
    tcp = TcpSettings(initial_window_segments=10, minimum_time_out_ns=time_out_ns)
    made = Scenario(
        "later",
        horizon_ns=HORIZON_NS,
        ports=(Port("p", 10**9),),
        profiles=(Profile("d", limits(50), tcp),),
        groups=tuple(
            ClientGroup(name, "p", "d", 2, round_trip_ns=round_trip_ns, **client)
            for name, round_trip_ns in (("near", 300_000), ("far", 4 * MILLISECOND_NS))
        ),
        traffic=tuple(
            Traffic(f"t{name}", name, PoissonArrivals(2000.0), ConstantSize(size_bytes)) for name in ("near", "far")
        ),
    )  # fmt: skip
    compare(made)
    compare_tibco(replace(made, model=Model.TIBCO, profiles=(replace(made.profiles[0], queues=limits(50)),)))


def test_acknowledgments_wait_while_messages_pass_without_them() -> None:
    """One more each millisecond, acknowledged a little later than the next one comes: looked at once there are some."""
    traffic = Traffic("t", "pair", ConstantArrivals(1000.0), ConstantSize(1000))
    run = EgressRun(replace(scenario(1e-9, 0, 200 * MILLISECOND_NS), traffic=(traffic,)), 0, LogLevel.COUNTERS)
    in_queue = set()
    for now in range(20 * MILLISECOND_NS, HORIZON_NS, MILLISECOND_NS):
        run.step(now)
        in_queue.add(int(run.arrays.clients["tcp_bytes"][0]) // 1000)
    assert in_queue == set(range(2, DEFERRED + 1))


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


def test_late_acknowledgments_of_what_was_sent_again_are_looked_at_when_they_come() -> None:
    """Three time-outs behind a burst: the third repeated acknowledgment sends the next message again at once."""
    a_millisecond = {"rate_per_second": 1000.0}
    tcp = TcpSettings(
        initial_window_segments=1000, max_window_bytes=2**20, transmit_queue_bytes=2**20,
        minimum_time_out_ns=50 * MILLISECOND_NS,
    )  # fmt: skip
    lossy = ClientGroup("a", "p", "d", round_trip_ns=10 * MILLISECOND_NS, loss_probability=1e-12)
    made = Scenario(
        "late",
        horizon_ns=600 * MILLISECOND_NS,
        ports=(Port("p", 8_000_000),),
        profiles=(Profile("d", limits(), tcp),),
        groups=(replace(lossy, delayed_acknowledgment_ns=0), ClientGroup("b", "p", "d")),
        traffic=(
            *(
                Traffic(f"burst-{start}", "b", ConstantArrivals(100_000.0), ConstantSize(10_000),
                        start_ns=start, stop_ns=start + duration)
                for start, duration in ((0, 400_000), (440 * MILLISECOND_NS, 50_000))
            ),
            Traffic("steady", "b", ConstantArrivals(**a_millisecond), ConstantSize(100)),
            *(
                Traffic(f"at-{start}", "a", ConstantArrivals(**a_millisecond), ConstantSize(100),
                        start_ns=start * MILLISECOND_NS, stop_ns=(start + 1) * MILLISECOND_NS)
                for start in (1, 400)
            ),
        ),
    )  # fmt: skip
    compare(made)
    events = {(name, value) for _, _, _, value, name in Ran(made).events if name in {"time-outs", "retransmissions"}}
    assert events == {("time-outs", 3), ("retransmissions", 4)}
