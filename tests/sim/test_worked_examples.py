"""Worked examples from the sources and from the field, by arithmetic and by simulation.

W1 to W3: the vendor's tuning guide and cloud defaults for guaranteed flows. W4: [SOL-QUEUES, "Priority Queue Min
Burst"]. W5: counters of a captured broker. W6, W7: consumers that stop reading or acknowledging. W8: window over round
trip. W9: [SOL-QUEUES] and [P7500] side by side. W13: Mathis et al., 1997.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from qsctl.eventlog.outcomes import Outcome, column_of
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import INFINITE_NS, MILLISECOND_NS, SECOND_NS
from qsctl.sim.model import OUTCOMES, Event
from qsctl.sim.scenario.parts.client import ConstantTime
from qsctl.sim.scenario.scenario import (
    ClientInterval,
    ConstantArrivals,
    ConstantSize,
    Endpoint,
    Model,
    Queue,
    QueueLimits,
    Scenario,
    TcpSettings,
    Traffic,
    default_queue_limits,
)
from tests.sim.brokers import ONE_AT_A_TIME, broker, limits, run


def guaranteed(messages: int, size: int) -> Traffic:
    """So many messages within the first second."""
    return Traffic("g", "c", ConstantArrivals(float(messages)), ConstantSize(size), Queue.G_1, stop_ns=SECOND_NS)


@pytest.mark.parametrize(("window", "work_units"), [(255, 20_000), (25, 2_500)])
def test_w1_ten_flows_of_20480_bytes_ask_for_more_than_g1_has(window: int, work_units: int) -> None:
    size = 20_480
    wanted = 10 * window * -(-size // 2048)
    assert wanted == {255: 25_500, 25: 2_500}[window]
    scenario = broker(
        guaranteed(5_000, size), endpoint={"flows": 10, "window_messages": window},
        queues={**limits(), Queue.G_1: QueueLimits(min_msg_burst=255)}, pauses=(ClientInterval(0, 10 * SECOND_NS),),
        horizon_ns=2 * SECOND_NS,
    )  # fmt: skip
    made, _, _ = run(scenario)
    columns = made.counters()
    assert columns["high_water_mark_work_units"][0] == columns["length_work_units"][0] == work_units
    assert columns["length_messages"][0] + columns["waiting_messages"][0] == 5_000
    assert (wanted > QueueLimits().max_depth_work_units) == (window == 255)


@pytest.mark.parametrize(("burst", "held"), [(50_000, 50_000), (49_000, 49_000), (66_000, 50_000)])
def test_w2_a_thousand_endpoints_of_window_50_need_a_burst_of_50_000(burst: int, held: int) -> None:
    assert 1000 * 50 == 50_000
    scenario = broker(
        guaranteed(60_000, 100), endpoint={"flows": 1000, "window_messages": 50},
        queues={**limits(), Queue.G_1: QueueLimits(20_000, burst)}, pauses=(ClientInterval(0, 10 * SECOND_NS),),
        horizon_ns=SECOND_NS + 1,
    )  # fmt: skip
    columns = run(scenario)[0].counters()
    assert columns["length_messages"][0] == columns["high_water_mark_work_units"][0] == held
    assert columns["waiting_messages"][0] == 60_000 - held


@pytest.mark.parametrize(("burst", "per_second"), [(4, 40), (20, 200), (255, 500), (66_000, 500)])
def test_w3_a_burst_below_flows_times_window_throttles_and_loses_nothing(burst: int, per_second: int) -> None:
    """500 messages a second are offered over a round trip of 100 ms: 50 must be in flight for that.

    The client's library acknowledges each message here: T of W ÷ T is one round trip.
    """
    scenario = broker(
        Traffic("g", "c", ConstantArrivals(500.0), ConstantSize(2048), Queue.G_1), round_trip_ns=100 * MILLISECOND_NS,
        endpoint={"library_threshold_percent": 0}, queues={**limits(), Queue.G_1: QueueLimits(2, burst)},
        horizon_ns=20 * SECOND_NS, warm_up_ns=5 * SECOND_NS,
    )  # fmt: skip
    columns = run(scenario)[0].counters()
    assert columns["delivered_messages"][0] / 15 == pytest.approx(per_second, rel=0.01)
    assert columns["discarded_messages"][0] == columns["redelivered_messages"][0] == 0


def test_w3_a_burst_below_the_librarys_threshold_waits_for_its_timer() -> None:
    """Of a window of 255, 153 messages are 60 %: 20 never are as many, so that T is a round trip and a second."""
    scenario = broker(
        Traffic("g", "c", ConstantArrivals(500.0), ConstantSize(2048), Queue.G_1), round_trip_ns=100 * MILLISECOND_NS,
        endpoint={}, queues={**limits(), Queue.G_1: QueueLimits(2, 20)}, horizon_ns=22 * SECOND_NS,
    )  # fmt: skip
    columns = run(scenario)[0].counters()
    assert columns["delivered_messages"][0] / 22 == pytest.approx(20 / 1.1, rel=0.06)
    assert columns["discarded_messages"][0] == columns["redelivered_messages"][0] == 0


def test_w3_the_defaults_of_the_broker_do_not_throttle_the_default_window() -> None:
    assert default_queue_limits()[Queue.G_1].min_msg_burst == Endpoint("c").window_messages == 255


def test_w4_with_three_queued_and_a_burst_of_four_one_more_enters_however_large() -> None:
    huge = 10 * 2048
    scenario = broker(
        Traffic("t", "c", ConstantArrivals(1000.0), ConstantSize(huge), stop_ns=6 * MILLISECOND_NS),
        queues=limits(2, burst=4), tcp=ONE_AT_A_TIME, receive_buffer_bytes=1, pauses=(ClientInterval(0, SECOND_NS),),
        horizon_ns=SECOND_NS // 2,
    )  # fmt: skip
    made, _, _ = run(scenario)
    columns = made.counters()
    assert columns["length_messages"][0] == 4
    assert columns["length_work_units"][0] == 40
    assert columns["discarded_messages"][0] == 0
    more = replace(scenario, traffic=(replace(scenario.traffic[0], stop_ns=7 * MILLISECOND_NS),))
    columns = run(more)[0].counters()
    assert (columns["length_messages"][0], columns["discarded_messages"][0]) == (4, 1)


def test_w5_egress_discards_are_separate_by_cause_and_add_up() -> None:
    captured = {"congestion": 893, "not connected": 5_672, "spool": 56_934_618}
    assert sum(captured.values()) == 56_941_183
    scenario = broker(
        Traffic("d", "c", ConstantArrivals(10_000.0), ConstantSize(2000)),
        Traffic("g", "c", ConstantArrivals(5_000.0), ConstantSize(2000), Queue.G_1),
        endpoint={"max_messages": 50}, queues=limits(20), rate_bits_per_second=50_000_000,
        absences=(ClientInterval(SECOND_NS, SECOND_NS),), horizon_ns=3 * SECOND_NS,
    )  # fmt: skip
    made, rows, events = run(scenario, LogLevel.EVENTS)
    columns = made.counters()
    for event, outcome in (
        (Event.CONGESTION_DISCARDS, Outcome.DISCARDED),
        (Event.NOT_CONNECTED_DISCARDS, Outcome.NOT_CONNECTED),
        (Event.DISCONNECT_DISCARDS, Outcome.DISCONNECTED),
        (Event.SPOOL_DISCARDS, Outcome.SPOOL_REFUSED),
    ):
        total = int(events["value"][events["event"] == event].sum())
        assert total == columns[column_of(outcome)].sum() == (rows["outcome"] == OUTCOMES.index(outcome)).sum() > 0
    assert columns["not_connected_messages"].sum() == 10_000
    assert columns["disconnected_messages"].sum() <= 20


def test_w6_a_client_that_stops_reading_becomes_slow_and_one_that_acknowledges_late_does_not() -> None:
    minute = 70 * SECOND_NS
    direct = broker(
        Traffic("t", "c", ConstantArrivals(1000.0), ConstantSize(1000)), horizon_ns=minute,
        pauses=(ClientInterval(SECOND_NS, minute),), queues=limits(100),
    )  # fmt: skip
    made, _, events = run(direct, LogLevel.EVENTS)
    assert Event.SLOW_SUBSCRIBER in events["event"]
    assert made.slow_percent[0] == pytest.approx(100.0)
    late = broker(
        Traffic("t", "c", ConstantArrivals(1000.0), ConstantSize(1000), Queue.G_1), horizon_ns=minute,
        endpoint={"acknowledge_delay_ns": 5 * SECOND_NS},
    )  # fmt: skip
    made, _, events = run(late, LogLevel.EVENTS)
    assert Event.SLOW_SUBSCRIBER not in events["event"]
    assert made.slow_percent[0] == 0.0


def slow_client(**changed: Any) -> Scenario:
    """W11: 1 ms a message and one reader, offered 5,000 a second of 500 bytes, with the broker's defaults."""
    traffic = Traffic("t", "c", ConstantArrivals(5000.0), ConstantSize(500))
    given = {"service_time": ConstantTime(MILLISECOND_NS), "queues": default_queue_limits(), **changed}
    return broker(traffic, **{"horizon_ns": 20 * SECOND_NS, **given})


def test_w11_a_client_that_takes_a_millisecond_a_message_gets_a_thousand_a_second() -> None:
    made, _, _ = run(slow_client(horizon_ns=60 * SECOND_NS), LogLevel.EVENTS)
    assert made.slow_percent[0] > 95
    made, rows, events = run(slow_client(), LogLevel.EVENTS)
    columns = {name: values[0] for name, values in made.counters().items()}
    # The receive buffer and the transmit queue hold 256 KB each of what left D-1 and was not read.
    windows = 2 * (262_144 // 500 + 1)
    assert columns["delivered_messages"] == pytest.approx(20 * 1000 + windows, abs=3)
    assert columns["length_messages"] == columns["high_water_mark_work_units"] == 20_000
    assert columns["discarded_messages"] == 100_000 - 20_000 - columns["delivered_messages"]
    assert columns["first_discard_ns"] / SECOND_NS == pytest.approx((20_000 + windows) / 4000, rel=0.01)
    came = np.sort(
        (rows["enqueued_ns"] + rows["acknowledge_ns"])[(rows["outcome"] == 0) & (rows["acknowledge_ns"] > 0)]
    )
    assert len(came) == pytest.approx(20 * 1000 + windows // 2, abs=3)
    assert Event.SLOW_SUBSCRIBER not in events["event"]  # not yet: 20 of the last 60 seconds


def test_w11_four_readers_take_four_thousand_a_second_and_a_latency_costs_nothing() -> None:
    made, _, _ = run(slow_client(readers=4))
    assert made.counters()["delivered_messages"][0] == pytest.approx(4 * 20_000 + 1050, abs=10)
    late = {"service_time": ConstantTime(), "acknowledgment_latency_ns": MILLISECOND_NS}
    columns = run(slow_client(**late))[0].counters()
    assert (columns["delivered_messages"][0], columns["discarded_messages"][0]) == (100_000, 0)


def test_w7_an_application_that_acknowledges_nothing_gets_the_first_five_and_no_more() -> None:
    endpoint = {"unacknowledged_limit_messages": 5, "acknowledge_delay_ns": INFINITE_NS}
    made, rows, _ = run(broker(guaranteed(100, 1000), endpoint=endpoint, horizon_ns=3 * SECOND_NS), LogLevel.MESSAGES)
    came = rows[rows["send_ns"] >= 0]
    columns = {name: values[0] for name, values in made.counters().items()}
    assert list(came["enqueued_ns"]) == sorted(rows["enqueued_ns"])[:5]
    # Its library has acknowledged them by its timer: G-1 holds nothing, and yet the limit is reached.
    assert (columns["delivered_messages"], columns["length_messages"], columns["waiting_messages"]) == (5, 0, 95)


def test_w7_a_client_that_does_not_read_gets_its_window_and_no_more() -> None:
    scenario = broker(
        guaranteed(100, 1000), endpoint={"window_messages": 3}, pauses=(ClientInterval(0, 10 * SECOND_NS),),
        horizon_ns=3 * SECOND_NS,
    )  # fmt: skip
    made, rows, _ = run(scenario, LogLevel.MESSAGES)
    came = rows[rows["send_ns"] >= 0]
    columns = made.counters()
    assert columns["unacknowledged_messages"][0] == columns["length_messages"][0] == len(came) == 3
    assert list(came["enqueued_ns"]) == sorted(rows["enqueued_ns"])[:3]
    assert (columns["delivered_messages"][0], columns["waiting_messages"][0]) == (0, 97)


def test_w7_a_window_of_one_goes_on_while_the_application_reads_and_acknowledges_late() -> None:
    """The vendor's account of flow control: window and limit operate independently."""
    endpoint = {"window_messages": 1, "acknowledge_delay_ns": 5 * SECOND_NS}
    columns = run(broker(guaranteed(100, 1000), endpoint=endpoint, horizon_ns=2 * SECOND_NS))[0].counters()
    assert (columns["delivered_messages"][0], columns["waiting_messages"][0]) == (100, 0)


@pytest.mark.parametrize(("limit", "per_second"), [(10_000, 2000), (1000, 1000)])
def test_w12_an_acknowledgment_after_a_second_throttles_by_the_limit_and_not_by_the_window(
    limit: int, per_second: int
) -> None:
    scenario = broker(
        Traffic("g", "c", ConstantArrivals(2000.0), ConstantSize(1000), Queue.G_1), horizon_ns=20 * SECOND_NS,
        endpoint={"acknowledge_delay_ns": SECOND_NS, "unacknowledged_limit_messages": limit},
    )  # fmt: skip
    made, rows, _ = run(scenario, LogLevel.MESSAGES)
    assert (rows["send_ns"] >= 0).sum() / 20 == pytest.approx(per_second, rel=0.1 if limit == 1000 else 0.01)
    assert made.counters()["discarded_messages"].sum() == 0
    assert Endpoint("c").unacknowledged_limit_messages == 10_000


def test_w8_256_kilobytes_over_100_milliseconds_cap_a_connection_near_21_megabits() -> None:
    assert pytest.approx(21e6, rel=0.01) == 262_144 * 8 / 0.1
    assert pytest.approx(12.5e6) == 10**9 * 0.1 / 8
    scenario = broker(
        Traffic("t", "c", ConstantArrivals(50_000.0), ConstantSize(1000)), round_trip_ns=100 * MILLISECOND_NS,
        horizon_ns=20 * SECOND_NS, warm_up_ns=5 * SECOND_NS, queues=limits(1000),
    )  # fmt: skip
    made, _, _ = run(scenario)
    bits = 8 * made.counters()["delivered_bytes"][0] / 15
    assert bits == pytest.approx(21e6, rel=0.02)


@pytest.mark.parametrize(("loss", "megabits"), [(0.0, 41.8), (0.001, 9.0), (0.01, 2.9)])
def test_w13_a_connection_that_loses_segments_carries_what_mathis_computes(loss: float, megabits: float) -> None:
    scenario = broker(
        Traffic("t", "c", ConstantArrivals(5000.0), ConstantSize(1460)), loss_probability=loss,
        round_trip_ns=50 * MILLISECOND_NS, tcp=TcpSettings(mss_bytes=1460, transmit_queue_bytes=524_288),
        horizon_ns=305 * SECOND_NS if loss else 25 * SECOND_NS, warm_up_ns=5 * SECOND_NS, queues=limits(1000),
    )  # fmt: skip
    columns = run(scenario)[0].counters()
    found = 8 * columns["delivered_bytes"][0] / columns["observed_ns"][0] * 1e3
    assert found == pytest.approx(megabits, rel=0.2 if loss else 0.01)


def test_w9_solace_discards_the_oldest_and_tibco_the_arriving_one() -> None:
    solace = broker(
        Traffic("t", "c", ConstantArrivals(1000.0), ConstantSize(2048), stop_ns=20 * MILLISECOND_NS),
        queues=limits(5), tcp=ONE_AT_A_TIME, receive_buffer_bytes=1, pauses=(ClientInterval(0, SECOND_NS),),
        horizon_ns=SECOND_NS // 2,
    )  # fmt: skip
    _, first, _ = run(solace, LogLevel.MESSAGES)
    _, second, _ = run(replace(solace, model=Model.TIBCO), LogLevel.MESSAGES)
    held = [np.sort(rows["enqueued_ns"][rows["outcome"] == 5]) // MILLISECOND_NS for rows in (first, second)]
    assert list(held[0]) == [15, 16, 17, 18, 19]
    assert list(held[1]) == [2, 3, 4, 5, 6]
    assert (first["outcome"] == 1).sum() == (second["outcome"] == 1).sum() == 13
