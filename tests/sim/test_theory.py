"""The simulator against queueing theory, within three standard deviations of the estimate.

With a TCP queue of one message and no round trip the port is one server: M/M/1, M/D/1, M/G/1 (Pollaczek-Khinchine),
M/M/1/K, Cobham's priorities, D/D/1/K, and the rate that a window allows. Exponential service is a geometric size.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from qsctl.eventlog.schema import LogLevel
from qsctl.instant import SECOND_NS
from qsctl.sim.scenario.scenario import (
    QUEUE_ORDER,
    ConstantArrivals,
    ConstantSize,
    MixedSize,
    PoissonArrivals,
    Queue,
    QueueLimits,
    Size,
    TcpSettings,
    Traffic,
)
from tests.sim.brokers import BYTE_A_NS, ONE_AT_A_TIME, broker, limits, run
from tests.sim.sizes import geometric, moments

pytestmark = pytest.mark.statistics

MESSAGES = 2_000_000


def tolerance(load: float, messages: int) -> float:
    """Three deviations of the mean wait of M/M/1 from `messages` waits, in mean services."""
    return 3 * math.sqrt(load * (2 + 5 * load - 4 * load**2 + load**3) / (messages * (1 - load) ** 4))


def mean_wait(size: Size, load: float) -> float:
    """In mean services."""
    mean, _ = moments(size)
    rate = load / mean * SECOND_NS
    scenario = broker(
        Traffic("t", "c", PoissonArrivals(rate), size=size), rate_bits_per_second=BYTE_A_NS, tcp=ONE_AT_A_TIME,
        round_trip_ns=0, horizon_ns=int(MESSAGES / rate * SECOND_NS), seed=11,
    )  # fmt: skip
    made, _, _ = run(scenario)
    columns = made.counters()
    return float(columns["wait_sum_ns"][0] / columns["delivered_messages"][0] / mean)


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(("load", "expected"), [(0.5, 1.0), (0.8, 4.0), (0.95, 19.0)])
def test_exponential_service_waits_as_m_m_1(load: float, expected: float) -> None:
    assert mean_wait(geometric(1000, 20_000), load) == pytest.approx(expected, abs=tolerance(load, MESSAGES))


@pytest.mark.parametrize(("load", "expected"), [(0.5, 0.5), (0.8, 2.0), (0.9, 4.5)])
def test_constant_service_waits_as_m_d_1(load: float, expected: float) -> None:
    assert mean_wait(ConstantSize(1000), load) == pytest.approx(expected, abs=tolerance(load, MESSAGES))


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_mixed_sizes_wait_by_the_formula_of_pollaczek_and_khinchine(load: float) -> None:
    size = MixedSize((100, 1000, 20_000), (0.6, 0.38, 0.02))
    mean, square = moments(size)
    expected = load * square / (2 * mean**2 * (1 - load))
    wide = square / (2 * mean**2)
    assert mean_wait(size, load) == pytest.approx(expected, abs=4 * wide * tolerance(load, MESSAGES))


@pytest.mark.parametrize(("load", "places", "expected"), [(0.8, 10, 0.023493), (1.0, 20, 0.047619), (1.5, 5, 0.365414)])
def test_a_bounded_queue_loses_as_m_m_1_k_whether_the_oldest_or_the_last_goes(
    load: float, places: int, expected: float
) -> None:
    size = geometric(250, 2048)
    mean, _ = moments(size)
    rate = load / mean * SECOND_NS
    scenario = broker(
        Traffic("t", "c", PoissonArrivals(rate), size=size), rate_bits_per_second=BYTE_A_NS, tcp=ONE_AT_A_TIME,
        round_trip_ns=0, queues=limits(places - 1), horizon_ns=int(MESSAGES / rate * SECOND_NS),
    )  # fmt: skip
    made, _, _ = run(scenario)
    columns = made.counters()
    assert columns["discarded_messages"][0] / columns["arrived_messages"][0] == pytest.approx(expected, rel=0.02)


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (0.8, (11.111111, 2.955083, 1.166480, 0.884267, 0.806452)),
        (0.9, (32.142857, 4.458094, 1.385423, 1.007962, 0.908174)),
    ],
)
def test_the_five_queues_wait_by_cobham_s_formula(load: float, expected: tuple[float, ...]) -> None:
    size = geometric(1000, 20_000)
    mean, _ = moments(size)
    rate = load / mean * SECOND_NS
    shares = (0.20, 0.49, 0.20, 0.10, 0.01)
    traffic = [
        Traffic(f"t{queue}", "c", PoissonArrivals(rate * share), size=size, queue=queue)
        for queue, share in zip(QUEUE_ORDER, shares, strict=True)
    ]
    scenario = broker(
        *traffic, rate_bits_per_second=BYTE_A_NS, tcp=ONE_AT_A_TIME, round_trip_ns=0, seed=5,
        horizon_ns=int(MESSAGES / rate * SECOND_NS),
    )  # fmt: skip
    made, _, _ = run(scenario)
    columns = made.counters()
    waits = dict(zip(columns["queue"], columns["wait_sum_ns"] / columns["delivered_messages"] / mean, strict=True))
    for queue, wait, share in zip(QUEUE_ORDER, expected, shares, strict=True):
        within = max(0.03, 3 * tolerance(load, MESSAGES) / wait, 3 / math.sqrt(MESSAGES * share))
        assert waits[queue.value] == pytest.approx(wait, rel=within)


@pytest.mark.parametrize("load", [1.25, 2.0, 10.0])
def test_an_overloaded_clockwork_loses_exactly_what_it_cannot_carry(load: float) -> None:
    places = 100
    size = 1000
    rate = load / size * SECOND_NS
    scenario = broker(
        Traffic("t", "c", ConstantArrivals(rate), size=ConstantSize(size)), rate_bits_per_second=BYTE_A_NS,
        tcp=ONE_AT_A_TIME, round_trip_ns=0, queues=limits(places), horizon_ns=int(200_000 / rate * SECOND_NS),
    )  # fmt: skip
    made, _, _ = run(scenario)
    columns = {name: values[0] for name, values in made.counters().items()}
    arrived = int(columns["arrived_messages"])
    assert arrived == columns["delivered_messages"] + columns["discarded_messages"] + columns["length_messages"]
    assert columns["discarded_messages"] / arrived == pytest.approx(1 - 1 / load - places / arrived, abs=2e-4)


@pytest.mark.parametrize(
    ("size", "window", "round_trip_ns", "rate", "bytes_a_us"),
    [
        (1500, 65_536, 1_000_000, 10**10, 64.422693),
        (200, 16_384, 50_000_000, 10**9, 0.323990),
        (60_000, 65_536, 200_000, 10**10, 241.935484),
    ],
)
def test_a_window_limits_the_rate_to_itself_over_the_round_trip(
    size: int, window: int, round_trip_ns: int, rate: int, bytes_a_us: float
) -> None:
    tcp = TcpSettings(max_window_bytes=window, initial_window_segments=100, transmit_queue_bytes=10 * window)
    wire_ns = size * 8 * SECOND_NS // rate
    seconds = 400 * round_trip_ns / SECOND_NS
    offered = ConstantArrivals(2 * bytes_a_us * 1e6 / size + 2 / seconds)
    scenario = broker(
        Traffic("t", "c", offered, size=ConstantSize(size)), tcp=tcp,
        rate_bits_per_second=rate, round_trip_ns=round_trip_ns, horizon_ns=400 * round_trip_ns,
    )  # fmt: skip
    _, rows, _ = run(scenario, LogLevel.MESSAGES)
    rows = rows[(rows["outcome"] == 0) & (rows["send_ns"] >= 0)]
    sent = np.sort(rows["enqueued_ns"] + rows["send_ns"])
    begin, end = 100 * (round_trip_ns + wire_ns), 300 * (round_trip_ns + wire_ns)
    rate_found = size * ((sent >= begin) & (sent < end)).sum() / ((end - begin) / 1000)
    assert rate_found == pytest.approx(bytes_a_us, rel=0.01)


@pytest.mark.slow(beyond=27)
@pytest.mark.parametrize("burst", [0, 4, 30])
@pytest.mark.parametrize("depth", [2, 40, 20_000])
@pytest.mark.parametrize(("flows", "window"), [(1, 255), (2, 5)])
@pytest.mark.parametrize(("size", "round_trip_ns"), [(1500, 10_000_000), (20_480, 10_000_000), (5000, 50_000_000)])
def test_guaranteed_delivery_is_the_least_window_over_the_time_to_acknowledgment(
    burst: int, depth: int, flows: int, window: int, size: int, round_trip_ns: int
) -> None:
    """W ÷ T: G-1 holds a message until it is acknowledged, so that at most W are on their way at a time.

    T is one round trip where the client's library acknowledges each message.
    """
    wire_ns = size * 8 * SECOND_NS // 10**9
    work_units = -(-size // 2048)
    held = min(flows * window, max(burst, depth // work_units, 1))
    stay_ns = max(round_trip_ns + wire_ns, held * wire_ns)
    expected = held / stay_ns * SECOND_NS
    tcp = TcpSettings(max_window_bytes=2**30, initial_window_segments=500_000, transmit_queue_bytes=2**30)
    scenario = broker(
        Traffic("g", "c", ConstantArrivals(2 * expected + 100), ConstantSize(size), Queue.G_1), tcp=tcp,
        queues={**limits(), Queue.G_1: QueueLimits(depth, burst)},
        endpoint={"flows": flows, "window_messages": window, "library_threshold_percent": 0},
        round_trip_ns=round_trip_ns, horizon_ns=220 * stay_ns, warm_up_ns=20 * stay_ns,
    )  # fmt: skip
    made, rows, _ = run(scenario, LogLevel.MESSAGES)
    columns = made.counters()
    assert columns["delivered_messages"][0] / (200 * stay_ns) * SECOND_NS == pytest.approx(expected, rel=0.011)
    assert columns["high_water_mark_work_units"][0] == held * work_units
    assert columns["discarded_messages"][0] == columns["redelivered_messages"][0] == 0
    done = rows[rows["outcome"] == 0]
    longest_ns = (done["acknowledge_ns"] - done["wait_ns"]).max()
    assert columns["delivered_messages"][0] <= held * (200 * stay_ns / longest_ns + 1)
    assert (done["attempts"] == 1).all()


def test_littles_law_holds_exactly_on_the_log() -> None:
    scenario = broker(
        *(
            Traffic(f"t{q}", "c", PoissonArrivals(30_000.0), size=ConstantSize(1000), queue=queue)
            for q, queue in enumerate(QUEUE_ORDER)
        ),
        queues=limits(40), horizon_ns=SECOND_NS,
    )  # fmt: skip
    scenario = replace(scenario, ports=(replace(scenario.ports[0], rate_bits_per_second=10**9),))
    made, rows, _ = run(scenario, LogLevel.MESSAGES)
    for q, queue in enumerate(QUEUE_ORDER):
        mine = rows[rows["queue"] == q]
        stay = np.where(mine["wait_ns"] >= 0, mine["wait_ns"], SECOND_NS - mine["enqueued_ns"])
        edges = np.concatenate([mine["enqueued_ns"], mine["enqueued_ns"] + stay])
        steps = np.concatenate([np.ones(len(mine), np.int64), -np.ones(len(mine), np.int64)])
        order = np.argsort(edges, kind="stable")
        edges, present = edges[order], np.cumsum(steps[order])
        area = int((present[:-1] * np.diff(edges)).sum())
        assert area == int(stay.sum())
        columns = made.counters()
        at = columns["queue"].index(queue.value)
        if queue is not QUEUE_ORDER[0]:
            assert columns["wait_sum_ns"][at] == int(mine["wait_ns"][mine["outcome"] == 0].sum())
