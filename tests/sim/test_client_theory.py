"""The client's end against queueing theory: a reader as a single server, its receive buffer as the waiting room.

The port sends a byte in a nanosecond and there is no round trip, so that the system is the reader, the buffer, one
message in the TCP transmit queue and D-1. Which message is discarded does not change how many are.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from qsctl.instant import SECOND_NS
from qsctl.sim.scenario.parts.client import ConstantTime, ExponentialTime, ServiceTime
from qsctl.sim.scenario.scenario import ConstantSize, PoissonArrivals, Traffic
from tests.sim.brokers import BYTE_A_NS, ONE_AT_A_TIME, broker, limits, run

pytestmark = pytest.mark.statistics

MESSAGES = 300_000
MEAN_NS = 1_000_000


def lost_share(load: float, places: int, service: ServiceTime, readers: int = 1) -> float:
    """Return the share of the messages discarded where `places` fit between the port and the end of their service."""
    rate = load / MEAN_NS * SECOND_NS
    elsewhere = readers + 2  # in service, one in the TCP transmit queue, one in D-1
    scenario = broker(
        Traffic("t", "c", PoissonArrivals(rate), size=ConstantSize(1)), rate_bits_per_second=BYTE_A_NS,
        tcp=ONE_AT_A_TIME, round_trip_ns=0, queues=limits(1), receive_buffer_bytes=places - elsewhere,
        service_time=service, readers=readers, horizon_ns=int(MESSAGES / rate * SECOND_NS), seed=3,
    )  # fmt: skip
    columns = run(scenario)[0].counters()
    return float(columns["discarded_messages"][0] / columns["arrived_messages"][0])


def erlang_loss(load: float, servers: int, places: int) -> float:
    """Return the loss of M/M/c/K."""
    weights = [load**n / math.factorial(min(n, servers)) / servers ** max(0, n - servers) for n in range(places + 1)]
    return weights[-1] / sum(weights)


def constant_service_loss(load: float, places: int) -> float:
    """Return the loss of M/D/1/K, from the chain of what is left behind at the ends of services."""
    arriving = [math.exp(-load) * load**k / math.factorial(k) for k in range(places)]
    chain = np.zeros((places, places))
    for left in range(places):
        first = max(0, left - 1)
        for arrived in range(places):
            chain[left, min(first + arrived, places - 1)] += arriving[arrived]
        chain[left, places - 1] += 1 - chain[left].sum()
    system = np.vstack([(chain.T - np.eye(places))[:-1], np.ones(places)])
    empty = np.linalg.solve(system, np.append(np.zeros(places - 1), 1.0))[0]
    return float(1 - 1 / (load + empty))


@pytest.mark.parametrize(("load", "places", "expected"), [(0.8, 10, 0.023493), (1.0, 20, 0.047619), (1.5, 5, 0.365414)])
def test_an_exponential_reader_loses_as_m_m_1_k(load: float, places: int, expected: float) -> None:
    assert erlang_loss(load, 1, places) == pytest.approx(expected, abs=1e-6)
    assert lost_share(load, places, ExponentialTime(MEAN_NS)) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(("load", "places"), [(0.9, 6), (1.0, 10), (1.5, 5)])
def test_a_reader_of_constant_time_loses_as_m_d_1_k(load: float, places: int) -> None:
    expected = constant_service_loss(load, places)
    assert lost_share(load, places, ConstantTime(MEAN_NS)) == pytest.approx(expected, rel=0.05)


def test_three_readers_lose_as_m_m_3_k() -> None:
    expected = erlang_loss(3.0, 3, 8)
    assert lost_share(3.0, 8, ExponentialTime(MEAN_NS), readers=3) == pytest.approx(expected, rel=0.05)
