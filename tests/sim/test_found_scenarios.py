"""Scenarios in which the kernel once differed from the plain model, found by random search and made small."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from qsctl.eventlog.schema import LogLevel
from qsctl.instant import INFINITE_NS, MILLISECOND_NS
from qsctl.sim.egress.layout import arrays as egress_arrays
from qsctl.sim.scenario.parts.client import MixedTime
from qsctl.sim.scenario.scenario import (
    Access,
    Broker,
    ClientGroup,
    ClientInterval,
    ConstantArrivals,
    ConstantSize,
    DurableQueue,
    Endpoint,
    Flow,
    GuaranteedOverflow,
    Model,
    PoissonArrivals,
    Port,
    Profile,
    Queue,
    Scenario,
    TcpSettings,
    Traffic,
)
from tests.sim.brokers import limits, run
from tests.sim.compared_solace import compare
from tests.sim.compared_tibco import compare as compare_tibco
from tests.sim.random_scenarios import Ran

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
                "c",
                "p",
                "d",
                acknowledgment_latency_ns=700_000,
                absences=(ClientInterval(0, 100_000, HORIZON_NS // 3),),
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
                absences=(ClientInterval(1_700_000, 100_000, 4 * MILLISECOND_NS),),
            ),
        ),
        traffic=(Traffic("t", "c", PoissonArrivals(700.0), ConstantSize(2049)),),
    )  # fmt: skip
    for seed in range(5):
        compare(replace(scenario, seed=seed))
        tibco = tuple(replace(each, queues={Queue.D_1: each.queues[Queue.D_1]}) for each in scenario.profiles)
        compare_tibco(replace(scenario, seed=seed, model=Model.TIBCO, profiles=tibco))


@pytest.mark.parametrize("access", Access)
def test_what_expires_in_front_lets_the_queue_send_what_follows_at_once(access: Access) -> None:
    """A message too big for what is left of G-1 expired, and what had room there went with some later event."""
    flow = Flow("c", window_messages=9, library_threshold_percent=100, library_timer_ns=INFINITE_NS)
    big, small = ConstantSize(20_000), ConstantSize(1)
    each = ConstantArrivals(1000.0)
    scenario = Scenario(
        "found",
        horizon_ns=HORIZON_NS,
        ports=(Port("p", 80_000_000),),
        profiles=(Profile("d", queues=limits(5)),),
        groups=(ClientGroup("c", "p", "d", round_trip_ns=100_000),),
        traffic=(
            Traffic("first", "q", each, small, Queue.G_1, stop_ns=MILLISECOND_NS),
            Traffic("big", "q", each, big, Queue.G_1, start_ns=MILLISECOND_NS, stop_ns=2 * MILLISECOND_NS,
                    time_to_live_ns=5 * MILLISECOND_NS),
            Traffic("last", "q", each, small, Queue.G_1, start_ns=2 * MILLISECOND_NS, stop_ns=3 * MILLISECOND_NS),
        ),
        durable_queues=(DurableQueue("q", access=access, respects_time_to_live=True, flows=(flow,)),),
    )  # fmt: skip
    compare(scenario)
    _, rows, _ = run(scenario, LogLevel.MESSAGES)
    entered = rows["enqueued_ns"] + rows["enter_ns"]
    over = rows["enqueued_ns"][rows["topic_id"] == 1] + 5 * MILLISECOND_NS
    assert entered[rows["topic_id"] == 2] == over


@pytest.mark.parametrize("group", [{"readers": 3, "receive_buffer_bytes": 1}, {}])
def test_a_member_of_a_shared_subscription_is_chosen_once_also_when_an_array_is_short(
    group: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop for a longer array between the choice and the arrival chose again, and passed over a member."""
    scenario = Scenario(
        "found",
        horizon_ns=HORIZON_NS,
        ports=(Port("p", 8_000_000),),
        profiles=(Profile("d", queues=limits(50), tcp=TcpSettings(transmit_queue_bytes=1)),),
        groups=(ClientGroup("c", "p", "d", count=2, **group),),
        traffic=(Traffic("t", "c", ConstantArrivals(3000.0), ConstantSize(5000), shared=True),),
    )
    whole = Ran(scenario).rows
    for nodes in range(1, 6):
        monkeypatch.setattr(egress_arrays, "FIRST_NODES", nodes)
        assert Ran(scenario, chunk_rows=1).rows == whole
    in_order = [client for client, *_ in sorted(whole, key=lambda each: each[4])]
    assert in_order == [0, 1] * (len(in_order) // 2) + [0] * (len(in_order) % 2)


def test_partitions_are_dealt_out_at_once_without_a_rebalance_delay() -> None:
    """Two clients left at one instant: whether the second one was sent what the first one had, was not defined."""
    away = ClientInterval(5 * MILLISECOND_NS, 2 * MILLISECOND_NS)
    scenario = Scenario(
        "found",
        horizon_ns=HORIZON_NS,
        ports=(Port("p", 50_000_000),),
        profiles=(Profile("d", queues=limits()),),
        groups=(ClientGroup("c", "p", "d", count=2, absences=(away,)),),
        traffic=(Traffic("t", "q", PoissonArrivals(2000.0), ConstantSize(1000), Queue.G_1, stop_ns=away.start_ns),),
        durable_queues=(
            DurableQueue("q", access=Access.NON_EXCLUSIVE, partitions=1, rebalance_delay_ns=0, flows=(Flow("c"),)),
        ),
    )
    compare(scenario)
    _, rows, _ = run(scenario, LogLevel.MESSAGES)
    assert rows["attempts"].max() == 3  # of the first one, of the second one before it left, too, and of one again


def test_the_broker_s_limit_counts_the_first_delivery_of_a_client_without_endpoint_too() -> None:
    """Only its redeliveries asked for room below the limit, and waited for ever when there was none at once."""
    redeliver = GuaranteedOverflow.REDELIVER
    scenario = Scenario(
        "found",
        horizon_ns=HORIZON_NS,
        ports=(Port("p", 8_000_000),),
        profiles=(
            Profile("d", limits(1), TcpSettings(transmit_queue_bytes=1), guaranteed_overflow=redeliver),
            Profile("e", limits(9)),
        ),
        groups=(ClientGroup("c", "p", "d"), ClientGroup("e", "p", "e")),
        traffic=(
            Traffic("t", "c", ConstantArrivals(3000.0), ConstantSize(2049), Queue.G_1, stop_ns=10 * MILLISECOND_NS),
            Traffic("u", "e", ConstantArrivals(500.0), ConstantSize(1), Queue.G_1, stop_ns=10 * MILLISECOND_NS),
        ),
        broker=Broker(unacknowledged_limit_messages=2),
    )
    compare(scenario)
    columns = Ran(scenario).counters
    assert columns["waiting_messages"].sum() + columns["length_messages"].sum() < columns["arrived_messages"].sum()


def test_a_client_that_waits_for_room_in_g1_is_blocked_by_a_direct_message_that_finds_the_transmit_queue_full() -> None:
    """It stood in the heap of acknowledgments already, and was taken for one that was blocked before."""
    tcp = TcpSettings(transmit_queue_bytes=3000, max_window_bytes=8192)
    scenario = Scenario(
        "found",
        horizon_ns=20 * MILLISECOND_NS,
        ports=(Port("p", 1_000_000_000),),
        profiles=(Profile("d", limits(2), tcp),),
        groups=(ClientGroup("c", "p", "d", round_trip_ns=15 * MILLISECOND_NS),),
        traffic=(
            Traffic("g", "c", ConstantArrivals(1000.0), ConstantSize(1000), Queue.G_1, stop_ns=6 * MILLISECOND_NS),
            Traffic("d", "c", ConstantArrivals(100.0), ConstantSize(1000), start_ns=9 * MILLISECOND_NS),
        ),
    )
    compare(scenario)
    blocked = [value for _, _, _, value, name in Ran(scenario).events if name == "blocked-time"]
    assert blocked
