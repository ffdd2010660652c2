"""Scenarios in which the kernel once differed from the plain model, found by random search and made small."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qsctl.instant import MILLISECOND_NS
from qsctl.sim.scenario.client import MixedTime
from qsctl.sim.scenario.scenario import (
    Broker,
    ClientGroup,
    ConstantArrivals,
    ConstantSize,
    Endpoint,
    Interval,
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

HORIZON_NS = 40 * MILLISECOND_NS


def test_a_client_that_leaves_with_nothing_unacknowledged_leaves_its_endpoint_whole() -> None:
    """An emptied list of read messages kept its last node, at which the endpoint's list was then cut off."""
    scenario = Scenario(
        "found",
        seed=0,
        horizon_ns=HORIZON_NS,
        ports=(Port("p", 8_000_000),),
        profiles=(
            Profile(
                "d",
                queues=limits(1),
                tcp=TcpSettings(
                    mss_bytes=536, initial_window_segments=1, max_window_bytes=1000, transmit_queue_bytes=1
                ),
                redelivery_delay_ns=300_000,
            ),
        ),
        groups=(
            ClientGroup(
                "c", "p", "d", acknowledgment_latency_ns=700_000, absences=(Interval(0, 100_000, HORIZON_NS // 3),)
            ),
        ),
        traffic=tuple(
            Traffic(f"t{i}", "c", PoissonArrivals(rate), ConstantSize(1), queue=queue)
            for i, (rate, queue) in enumerate(
                ((200.0, Queue.D_3), (200.0, Queue.G_1), (200.0, Queue.G_1), (3000.0, Queue.G_1))
            )
        ),
        endpoints=(Endpoint("c", window_messages=1, acknowledge_delay_ns=400_000),),
    )
    compare(scenario)


@pytest.mark.parametrize("chunk_rows", [1, 2, 3])
def test_the_slowest_is_disconnected_at_once_also_when_the_log_chunk_is_full(chunk_rows: int) -> None:
    """A full chunk at the same event let the next arrival pass before the broker looked at its buffers."""
    scenario = Scenario(
        "found",
        seed=0,
        horizon_ns=HORIZON_NS,
        ports=(Port("p", 8_000_000),),
        profiles=(Profile("d", queues=limits(4), tcp=TcpSettings(transmit_queue_bytes=3000)),),
        groups=(ClientGroup("c", "p", "d", count=2),),
        traffic=(Traffic("t", "c", ConstantArrivals(1000.0), ConstantSize(5000), queue=Queue.D_2, fan_out=True),),
        broker=Broker(egress_buffer_bytes=20_000, slow_reconnect_ns=3 * MILLISECOND_NS),
    )
    compare(scenario, chunk_rows)


def test_a_client_that_leaves_has_read_what_it_had_before() -> None:
    """Messages that nothing had asked about drew no service time when their client left, and the next ones drew it."""
    scenario = Scenario(
        "found",
        horizon_ns=HORIZON_NS,
        ports=(Port("p", 80_000_000),),
        profiles=(Profile("d", queues=limits(4), tcp=TcpSettings(transmit_queue_bytes=1, max_window_bytes=3000)),),
        groups=(
            ClientGroup(
                "c", "p", "d", round_trip_ns=100_000, service_time=MixedTime((10_000, 3_000_000), (1.0, 1.0)),
                absences=(Interval(1_700_000, 100_000, 4 * MILLISECOND_NS),),
            ),
        ),
        traffic=(Traffic("t", "c", PoissonArrivals(700.0), ConstantSize(2049)),),
    )  # fmt: skip
    for seed in range(5):
        compare(replace(scenario, seed=seed))
        tibco = tuple(replace(each, queues={Queue.D_1: each.queues[Queue.D_1]}) for each in scenario.profiles)
        compare_tibco(replace(scenario, seed=seed, model=Model.TIBCO, profiles=tibco))
