"""The model of a broker's queue against queueing theory: each mean within its interval over repetitions.

Sources by key: `[COOPER]` R. B. Cooper, Introduction to Queueing Theory, 1981 (M/M/c, M/M/c/K, Erlang's formulas,
priorities, machine repair); `[MANDELBAUM]` S. Zeltyn and A. Mandelbaum, "Call centers with impatient customers:
many-server asymptotics of the M/M/n+G queue", Queueing Systems 51, 2005, its exact formulas (Erlang A); M/D/c by the
chain of the numbers in the system one service time apart (C. D. Crommelin, 1932).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import pytest

from qsctl.instant import INFINITE_NS, MILLISECOND_NS, SECOND_NS
from qsctl.sim.figures import Figures
from qsctl.sim.replication import simulate_figures
from qsctl.sim.scenario.parts import broker_queue as b
from qsctl.sim.scenario.parts.work_time import WorkKind, WorkTime
from qsctl.sim.scenario.scenario import Model, PoissonArrivals, Scenario
from qsctl.summary.inference.statistics import interval_of

REPETITIONS = 10
CONFIDENCE = 0.999
MEAN_NS = 10 * MILLISECOND_NS
EXPONENTIAL = WorkTime(WorkKind.EXPONENTIAL, (MEAN_NS,))


def scenario_of(
    rate: float, works: Sequence[b.WorkClass], servers: int, messages: int = 8000, **settings: object
) -> Scenario:
    """Return a queue with Poisson arrivals and so many consumers of one server."""
    horizon = round(messages / rate * SECOND_NS)
    queue = b.BrokerQueue(
        "q",
        (b.QueuePublisher("p", PoissonArrivals(rate)),),
        tuple(works),
        (b.QueueWorkers("w", count=servers),),
        **settings,  # type: ignore[arg-type]
    )
    return Scenario("theory", Model.QUEUE, horizon_ns=horizon, warm_up_ns=horizon // 10, queue=queue)


def one(work: WorkTime = EXPONENTIAL) -> list[b.WorkClass]:
    return [b.WorkClass("c", work)]


def holds(scenario: Scenario, measure: Callable[[Figures], float | None], expected: float) -> None:
    """The expected value is within the interval of the mean over repetitions, which is narrow."""
    values = []
    for number in range(REPETITIONS):
        value = measure(simulate_figures(dataclasses.replace(scenario, seed=7), number)[0])
        assert value is not None
        values.append(value)
    found = interval_of(values, CONFIDENCE)
    assert found.low <= expected <= found.high, (found, expected)
    assert found.half_width < 0.25 * abs(expected) + 0.01, (found, expected)


def wait_s(figures: Figures) -> float | None:
    """The mean time to start, in seconds."""
    return None if figures.wait_mean_ns is None else figures.wait_mean_ns / SECOND_NS


def erlang_b(offered: float, servers: int) -> float:
    found = 1.0
    for n in range(1, servers + 1):
        found = offered * found / (n + offered * found)
    return found


def erlang_c(offered: float, servers: int) -> float:
    blocked = erlang_b(offered, servers)
    return servers * blocked / (servers - offered * (1.0 - blocked))


@pytest.mark.parametrize(("servers", "load"), [(1, 0.7), (2, 0.8), (5, 0.9)])
def test_mean_wait_of_m_m_c_is_erlangs(servers: int, load: float) -> None:
    """[COOPER 3.5]."""
    mu = SECOND_NS / MEAN_NS
    rate = load * servers * mu
    expected = erlang_c(rate / mu, servers) / (servers * mu - rate)
    holds(scenario_of(rate, one(), servers, 20_000), wait_s, expected)


@pytest.mark.parametrize(
    "work",
    [
        WorkTime(times_ns=(MEAN_NS,)),
        WorkTime(WorkKind.LOGNORMAL, (MEAN_NS, 4 * MEAN_NS)),
        WorkTime(WorkKind.GAMMA, (MEAN_NS,), variation=1.5),
        WorkTime(WorkKind.GAMMA, (MEAN_NS,), variation=0.4),
        WorkTime(WorkKind.UNIFORM, (0, 2 * MEAN_NS)),
        WorkTime(WorkKind.HISTOGRAM, (MEAN_NS // 2, 3 * MEAN_NS), (4.0, 1.0)),
    ],
    ids=lambda work: f"{work.kind}-{work.variation}",
)
def test_mean_wait_of_m_g_1_is_pollaczeks_and_khinchins(work: WorkTime) -> None:
    """λ E[S²] ÷ (2 (1 − ρ)) [COOPER 5.8]."""
    mean = MEAN_NS / SECOND_NS
    variation = {WorkKind.CONSTANT: 0.0, WorkKind.UNIFORM: 1.0 / 3.0, WorkKind.HISTOGRAM: 1.0}.get(work.kind)
    if work.kind is WorkKind.LOGNORMAL:
        variation = math.exp(work.lognormal_parameters()[1] ** 2) - 1.0
    if work.kind is WorkKind.GAMMA:
        variation = work.variation**2
    assert variation is not None
    rate = 0.6 / mean
    expected = rate * mean * mean * (1.0 + variation) / (2.0 * (1.0 - 0.6))
    holds(scenario_of(rate, one(work), 1, 20_000), wait_s, expected)


def test_mean_wait_of_m_d_c_is_that_of_its_chain() -> None:
    servers, load = 3, 0.85
    mean = MEAN_NS / SECOND_NS
    rate = load * servers / mean
    most = 200
    arrivals = [math.exp(-load * servers + k * math.log(load * servers) - math.lgamma(k + 1)) for k in range(most)]
    state = [1.0] + [0.0] * (most - 1)
    for _ in range(400):
        following = [0.0] * most
        for n, weight in enumerate(state):
            left = max(0, n - servers)
            for k in range(most - left):
                following[left + k] += weight * arrivals[k]
            if weight < 1e-15 and n > servers:
                break
        state = following
    waiting = sum(max(0, n - servers) * weight for n, weight in enumerate(state)) / sum(state)
    holds(scenario_of(rate, one(WorkTime(times_ns=(MEAN_NS,))), servers, 20_000), wait_s, waiting / rate)


@pytest.mark.parametrize(("servers", "limit"), [(1, 4), (3, 3), (2, 6)])
def test_losses_of_m_m_c_k_are_erlangs(servers: int, limit: int) -> None:
    """With a limit as large as the servers Erlang B [COOPER 3.4]."""
    offered = 0.9 * servers
    weights = [1.0]
    for n in range(1, limit + 1):
        weights.append(weights[-1] * offered / min(n, servers))
    expected = weights[-1] / sum(weights)
    rate = offered * SECOND_NS / MEAN_NS
    limits = b.LengthLimits(max_messages=limit)
    holds(scenario_of(rate, one(), servers, limits=limits), lambda found: found.loss_ratio, expected)


def test_expired_share_of_impatient_messages_is_that_of_m_m_c_g() -> None:
    """Times to live of 40 classes are those of an exponential distribution: Erlang A, in steps [MANDELBAUM 2]."""
    servers, rate, patience, steps = 3, 330.0, 0.02, 40
    mu = SECOND_NS / MEAN_NS
    lives = [-patience * math.log(1.0 - (n + 0.5) / steps) for n in range(steps)]
    works = [b.WorkClass(f"c{n}", EXPONENTIAL, time_to_live_ns=round(life * SECOND_NS)) for n, life in enumerate(lives)]

    def given_up(survives: Callable[[float], float]) -> float:
        step, x, hazard, total = 1e-5, 0.0, 0.0, 0.0
        while x < 0.6:
            total += math.exp(rate * hazard - servers * mu * x) * step
            hazard += survives(x) * step
            x += step
        offered = rate / mu
        terms = [offered**j / math.factorial(j) for j in range(servers)]
        return (1.0 + (rate - servers * mu) * total) / (sum(terms) / terms[-1] + rate * total)

    expected = given_up(lambda x: sum(life > x for life in lives) / steps)
    erlang_a = given_up(lambda x: math.exp(-x / patience))
    assert expected == pytest.approx(erlang_a, rel=0.01)
    holds(scenario_of(rate, works, servers), lambda found: found.loss_ratio, expected)


def test_mean_wait_of_priorities_is_cobhams() -> None:
    """The mean of two classes, the urgent before the other, without preemption [COOPER 5.11]."""
    mu = SECOND_NS / MEAN_NS
    rate, urgent = 0.8 * mu, 0.4
    works = [b.WorkClass("urgent", EXPONENTIAL, urgent, priority=1), b.WorkClass("other", EXPONENTIAL, 1.0 - urgent)]
    first, both = urgent * 0.8, 0.8
    rest = 0.8 / mu
    waits = rest / (1.0 - first), rest / ((1.0 - first) * (1.0 - both))
    # All together wait as without priorities; so the urgent alone are looked at: the others' work comes from elsewhere.
    scenario = scenario_of(rate, works, 1, 20_000, order=b.DeliveryOrder.PRIORITY)
    holds(scenario, wait_s, urgent * waits[0] + (1.0 - urgent) * waits[1])
    for number, expected in enumerate(waits):
        values = [mean_wait_of_class(scenario, repetition, number) for repetition in range(REPETITIONS)]
        found = interval_of(values, CONFIDENCE)
        assert found.low <= expected <= found.high, (number, found, expected)


def mean_wait_of_class(scenario: Scenario, repetition: int, number: int) -> float:
    from qsctl.eventlog.schema import LogLevel
    from qsctl.sim.broker_queue.run import BrokerQueueRun
    from qsctl.sim.model import Stop

    run = BrokerQueueRun(scenario, repetition, LogLevel.MESSAGES, 1 << 14)
    waits: list[int] = []
    while True:
        stop = run.step(scenario.horizon_ns)
        rows = run.take_log()
        counted = rows["enqueued_ns"] + rows["wait_ns"] >= scenario.warm_up_ns
        waits += rows["wait_ns"][counted & (rows["topic_id"] == number)].tolist()
        if stop is Stop.UNTIL:
            return sum(waits) / len(waits) / SECOND_NS


def test_use_of_repairers_is_that_of_machine_repair() -> None:
    """Ten machines fail after an exponential time each, two repairers [COOPER 3.7]."""
    machines, repairers, think = 10, 2, 3 * MEAN_NS
    ratio = MEAN_NS / think
    weights = [1.0]
    for n in range(1, machines + 1):
        weights.append(weights[-1] * (machines - n + 1) * ratio / min(n, repairers))
    total = sum(weights)
    busy = sum(min(n, repairers) * weight for n, weight in enumerate(weights)) / total / repairers
    inside = sum(n * weight for n, weight in enumerate(weights)) / total
    closed = b.ClosedArrivals(machines, WorkTime(WorkKind.EXPONENTIAL, (think,)))
    queue = b.BrokerQueue(
        "repairs",
        (b.QueuePublisher("machines", closed),),
        tuple(one()),
        (b.QueueWorkers("repairers", count=repairers),),
    )
    scenario = Scenario("repair", Model.QUEUE, horizon_ns=30 * SECOND_NS, warm_up_ns=3 * SECOND_NS, queue=queue)
    holds(scenario, lambda found: found.utilization, busy)
    holds(scenario, lambda found: found.backlog_mean, inside)


def test_a_time_out_shorter_than_the_work_repeats_as_often_as_it_is_survived() -> None:
    """Exponential work of mean m is longer than a time-out t with probability exp(−t ÷ m): the first repeats."""
    rate, timeout = 5.0, 4 * MEAN_NS
    visibility = b.VisibilityRule((timeout, INFINITE_NS), late=b.LateAcknowledgmentRule.IGNORED)
    scenario = scenario_of(rate, one(), 20, 4000, visibility=visibility)
    expected = math.exp(-timeout / MEAN_NS)
    holds(scenario, lambda found: found.redelivered_messages / found.delivered_messages, expected)
