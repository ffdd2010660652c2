"""TCP over links that lose segments against what is known of it: Mathis, the time-out's doubling, CUBIC's curve."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qsctl.eventlog.schema import LogLevel
from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.profiles.listings.slowness import (
    cubic_loss_limit_bits_per_second,
    loss_limit_bits_per_second,
)
from qsctl.sim.scenario.scenario import (
    CongestionControl,
    ConstantArrivals,
    ConstantSize,
    Scenario,
    TcpSettings,
    Traffic,
)
from tests.sim.brokers import broker, limits, run

pytestmark = pytest.mark.statistics

MSS = 1460


def saturated(loss: float, seconds: int, round_trip_ms: int = 50, **more: Any) -> Scenario:
    """One connection that always has data; the window is 256 KB unless said otherwise."""
    tcp = {"max_window_bytes": 262_144, "transmit_queue_bytes": 524_288, **more.pop("tcp", {})}
    rate = more.pop("rate_per_second", 6000.0)
    size = more.pop("size_bytes", 1460)
    return broker(
        Traffic("t", "c", ConstantArrivals(rate), ConstantSize(size)), loss_probability=loss,
        round_trip_ns=round_trip_ms * MILLISECOND_NS, tcp=TcpSettings(**tcp), queues=limits(1000),
        warm_up_ns=5 * SECOND_NS, horizon_ns=(5 + seconds) * SECOND_NS, **more,
    )  # fmt: skip


def bits_per_second(scenario: Scenario) -> float:
    columns = run(scenario)[0].counters()
    return float(columns["delivered_bytes"][0] * 8 / (columns["observed_ns"][0] / SECOND_NS))


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(("loss", "seconds"), [(0.0001, 600), (0.001, 400), (0.01, 400), (0.03, 400)])
def test_throughput_is_that_of_mathis_within_a_fifth(loss: float, seconds: int) -> None:
    """1.22 MSS ÷ (RTT √p) of Mathis et al., 1997, where the window is no limit."""
    found = bits_per_second(saturated(loss, seconds))
    assert found == pytest.approx(loss_limit_bits_per_second(MSS, 0.05, loss), rel=0.2)


@pytest.mark.slow
def test_throughput_falls_with_the_round_trip_and_rises_with_the_segment() -> None:
    plain = bits_per_second(saturated(0.003, 400))
    assert bits_per_second(saturated(0.003, 400, round_trip_ms=100)) == pytest.approx(plain / 2, rel=0.1)
    short = saturated(0.003, 400, tcp={"mss_bytes": 730}, rate_per_second=12_000.0, size_bytes=730)
    assert bits_per_second(short) == pytest.approx(plain / 2, rel=0.1)


@pytest.mark.slow
def test_what_is_lost_is_a_segment_whatever_the_messages_are() -> None:
    """Waiting bytes are cut into whole segments: ten small messages are not ten times as likely to be hit."""
    whole = bits_per_second(saturated(0.003, 300))
    small = bits_per_second(saturated(0.003, 300, rate_per_second=60_000.0, size_bytes=146))
    large = bits_per_second(saturated(0.003, 300, rate_per_second=600.0, size_bytes=14_600))
    assert small == pytest.approx(whole, rel=0.1)
    assert large == pytest.approx(whole, rel=0.1)


def test_a_message_of_ten_segments_is_hit_ten_times_as_often() -> None:
    """3,000 clients, each with one message and an initial window that carries it: 1 − (1 − p)^10."""
    scenario = broker(
        Traffic("t", "c", ConstantArrivals(1.0), ConstantSize(10 * MSS), stop_ns=SECOND_NS), count=3000,
        loss_probability=0.02, round_trip_ns=20 * MILLISECOND_NS, horizon_ns=3 * SECOND_NS,
        tcp=TcpSettings(initial_window_segments=10),
        rate_bits_per_second=10**12, seed=5,
    )  # fmt: skip
    made, rows, _ = run(scenario, LogLevel.MESSAGES)
    known = rows[rows["acknowledge_ns"] >= 0]
    assert len(rows) == 3000
    hit = (len(rows) - (known["acknowledge_ns"] < 21 * MILLISECOND_NS).sum()) / len(rows)
    assert hit == pytest.approx(1 - 0.98**10, abs=0.02)
    # One in the last three segments is not followed by three others: a time-out.
    late = 1 - (known["acknowledge_ns"] < 200 * MILLISECOND_NS).sum() / len(rows)
    assert late == pytest.approx(1 - 0.98**3, abs=0.02)
    assert len(made.arrays.segments) > 2 * made.arrays.state["segments_room"] + 1  # made as they were needed


def test_a_time_out_is_200_milliseconds_and_doubles() -> None:
    """One segment a message and half of them lost: acknowledged after 0, 200, 600, 1,400 ms and a round trip."""
    scenario = broker(
        Traffic("t", "c", ConstantArrivals(0.1), ConstantSize(1000)), count=2000, loss_probability=0.5,
        round_trip_ns=MILLISECOND_NS, delayed_acknowledgment_ns=0, horizon_ns=20 * SECOND_NS,
        rate_bits_per_second=10**12,
    )  # fmt: skip
    _, rows, events = run(scenario, LogLevel.EVENTS)
    first = rows[rows["enqueued_ns"] < 10 * SECOND_NS]
    first = first[np.unique(first["client_id"], return_index=True)[1]]
    ended = first["acknowledge_ns"][first["acknowledge_ns"] >= 0] - MILLISECOND_NS - 8
    for losses, after_ms in enumerate((0, 200, 600, 1400, 3000)):
        share = (np.abs(ended - after_ms * MILLISECOND_NS) < 1000).sum() / len(first)
        assert share == pytest.approx(0.5 ** (losses + 1), abs=0.035), after_ms
    assert events is not None


def test_a_delayed_acknowledgment_waits_for_a_second_segment_or_its_timer() -> None:
    traffic = Traffic("t", "c", ConstantArrivals(2.0), ConstantSize(1000))
    parts = {"loss_probability": 1e-12, "round_trip_ns": 10 * MILLISECOND_NS, "rate_bits_per_second": 10**12}
    for delay_ms in (0, 40, 120):
        rows = run(broker(traffic, delayed_acknowledgment_ns=delay_ms * MILLISECOND_NS, **parts), LogLevel.MESSAGES)[1]
        assert set(rows["acknowledge_ns"][:-1]) == {(10 + delay_ms) * MILLISECOND_NS + 8}
    pairs = Traffic("t", "c", ConstantArrivals(2.0), ConstantSize(1461))
    rows = run(broker(pairs, **parts), LogLevel.MESSAGES)[1]
    assert set(rows["acknowledge_ns"][:-1]) == {10 * MILLISECOND_NS + 12 + 1}


def test_messages_are_delivered_in_order_behind_a_lost_segment() -> None:
    """Four readers without work: none begins a message before all that were sent earlier have arrived."""
    _, rows, _ = run(saturated(0.02, 60, rate_per_second=300.0, size_bytes=146, readers=4), LogLevel.MESSAGES)
    acknowledged = rows["enqueued_ns"] + rows["acknowledge_ns"]
    known = rows["acknowledge_ns"] >= 0
    assert known.sum() > 15_000
    order = np.argsort(rows["enqueued_ns"][known], kind="stable")
    assert (np.diff(acknowledged[known][order]) >= 0).all()
    # In order and a round trip later where nothing was lost; a round trip more where something was.
    extra = rows["acknowledge_ns"][known]
    assert (extra > 90 * MILLISECOND_NS).mean() > 0.02


def test_cubic_returns_to_its_window_by_a_cubic_function_of_time() -> None:
    """RFC 9438, 4.2: after a loss at W_max the window is W_max + 0.4 (t − K)³ with K³ = 0.3 W_max ÷ 0.4."""
    most = 400
    cubic = {"congestion_control": CongestionControl.CUBIC, "max_window_bytes": most * MSS}
    scenario = saturated(
        0.000012, 115, round_trip_ms=100, seed=4,
        tcp={**cubic, "transmit_queue_bytes": 4 * most * MSS},
    )  # fmt: skip
    _, rows, _ = run(scenario, LogLevel.MESSAGES)
    times = np.sort((rows["enqueued_ns"] + rows["acknowledge_ns"])[rows["acknowledge_ns"] >= 0])
    rounds = np.histogram(times, np.arange(0, 120 * SECOND_NS, SECOND_NS // 10))[0]
    drops = [
        i for i in range(20, len(rounds)) if rounds[i - 3] > 0.97 * most and rounds[i] < 0.8 * most > rounds[i - 1]
    ]
    begins = [i for i in drops if i - 1 not in drops and i - 2 not in drops]
    assert begins, "no loss at the full window"
    k = (0.3 * most / 0.4) ** (1 / 3)
    compared = 0
    for begin in begins:
        after = rounds[begin + 2 : begin + 2 + int(10 * k)]
        if len(after) < int(10 * k) or (np.diff(after) < -20).any():
            continue  # another loss came
        t = np.arange(len(after)) / 10
        curve = most + 0.4 * (t - k) ** 3
        assert np.abs(after - curve).max() < 0.06 * most, begin
        compared += 1
    assert compared


def test_cubic_is_faster_than_reno_where_windows_are_large_and_alike_where_they_are_small() -> None:
    cubic = {"congestion_control": CongestionControl.CUBIC}
    for loss, round_trip_ms in ((0.0003, 100), (0.01, 20)):
        more = {"max_window_bytes": 4 * 2**20, "transmit_queue_bytes": 8 * 2**20}
        reno = bits_per_second(saturated(loss, 300, round_trip_ms, tcp=more))
        found = bits_per_second(saturated(loss, 300, round_trip_ms, tcp={**more, **cubic}))
        theory = cubic_loss_limit_bits_per_second(MSS, round_trip_ms / 1000, loss)
        assert found == pytest.approx(theory, rel=0.35), (loss, reno)
        assert 1.0 <= found / reno < (1.25 if loss == 0.01 else 2.0)


def test_without_loss_no_word_of_it_matters() -> None:
    plain = saturated(0.0, 10, rate_per_second=500.0)
    words = {"congestion_control": CongestionControl.CUBIC, "minimum_time_out_ns": 1}
    other = saturated(0.0, 10, rate_per_second=500.0, delayed_acknowledgment_ns=SECOND_NS, tcp=words)
    first, second = (run(each, LogLevel.MESSAGES)[1] for each in (plain, other))
    assert first.tobytes() == second.tobytes()
