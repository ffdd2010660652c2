"""The model of a broker's queue beside Ciw, an independent simulator, on twenty scenarios that both can state.

G. I. Palmer et al., "Ciw: An open-source discrete event simulation library", Journal of Simulation 13, 2019. Where Ciw
is not installed, these tests are skipped. Its package brings a top-level `tests` that would stand before ours: install
it by `pip install --target FOLDER ciw`, delete `FOLDER/tests`, and run these tests with `PYTHONPATH=FOLDER`.
`QSCTL_TEST_CIW_MESSAGES` is how long each scenario is.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import pytest

from qsctl.instant import SECOND_NS
from qsctl.sim.replication import simulate_figures
from qsctl.sim.scenario.parts import broker_queue as b
from qsctl.sim.scenario.parts.work_time import WorkKind, WorkTime
from qsctl.sim.scenario.scenario import ConstantArrivals, Model, PoissonArrivals, Scenario
from qsctl.summary.inference.statistics import difference_of_means
from tests.campaigns import trials

ciw = pytest.importorskip("ciw")

MESSAGES = trials("QSCTL_TEST_CIW_MESSAGES", 600, 20_000)
REPETITIONS = 4
CONFIDENCE = 0.9995
"""Of each of the forty comparisons: all of them hold with 98 %."""


@dataclass(frozen=True)
class Compared:
    """A scenario that both state, with a mean service time of a second."""

    name: str
    load: float
    servers: int = 1
    work: str = "exponential"
    arrivals: str = "poisson"
    limit: int | None = None
    """Messages in the system."""
    priorities: int = 1
    patience_s: float | None = None


SCENARIOS = (
    Compared("m-m-1", 0.7),
    Compared("m-m-1 loaded", 0.85),
    Compared("m-m-2", 0.8, 2),
    Compared("m-m-5", 0.85, 5),
    Compared("m-d-1", 0.8, work="constant"),
    Compared("m-d-3", 0.85, 3, "constant"),
    Compared("m-u-1", 0.8, work="uniform"),
    Compared("m-u-4", 0.85, 4, "uniform"),
    Compared("m-ln-1", 0.7, work="lognormal"),
    Compared("m-ln-3", 0.8, 3, "lognormal"),
    Compared("m-gamma-2", 0.8, 2, "gamma"),
    Compared("d-m-1", 0.85, arrivals="constant"),
    Compared("d-m-3", 0.9, 3, arrivals="constant"),
    Compared("m-m-1-4", 1.2, limit=4),
    Compared("m-m-3-3", 0.9, 3, limit=3),
    Compared("m-d-2-5", 1.1, 2, "constant", limit=5),
    Compared("m-m-1 priorities", 0.8, priorities=2),
    Compared("m-m-3 priorities", 0.85, 3, priorities=3),
    Compared("m-m-2 impatient", 1.2, 2, patience_s=1.5),
    Compared("m-u-3 impatient", 1.1, 3, "uniform", patience_s=1.0),
)


def our_work(kind: str) -> WorkTime:
    return {
        "exponential": WorkTime(WorkKind.EXPONENTIAL, (SECOND_NS,)),
        "constant": WorkTime(times_ns=(SECOND_NS,)),
        "uniform": WorkTime(WorkKind.UNIFORM, (SECOND_NS // 2, 3 * SECOND_NS // 2)),
        "lognormal": WorkTime(WorkKind.LOGNORMAL, (SECOND_NS, 3 * SECOND_NS)),
        "gamma": WorkTime(WorkKind.GAMMA, (SECOND_NS,), variation=0.5),
    }[kind]


def their_work(kind: str) -> Any:
    mean, deviation = our_work("lognormal").lognormal_parameters()
    return {
        "exponential": lambda: ciw.dists.Exponential(rate=1.0),
        "constant": lambda: ciw.dists.Deterministic(value=1.0),
        "uniform": lambda: ciw.dists.Uniform(lower=0.5, upper=1.5),
        "lognormal": lambda: ciw.dists.Lognormal(mean=mean - math.log(SECOND_NS), sd=deviation),
        "gamma": lambda: ciw.dists.Gamma(shape=4.0, scale=0.25),
    }[kind]()


def ours(compared: Compared) -> tuple[list[float], list[float]]:
    """Return mean waits in seconds and shares lost, by repetition."""
    rate = compared.load * compared.servers
    horizon = round(MESSAGES / rate * SECOND_NS)
    arrivals = PoissonArrivals(rate) if compared.arrivals == "poisson" else ConstantArrivals(rate)
    life = {} if compared.patience_s is None else {"time_to_live_ns": round(compared.patience_s * SECOND_NS)}
    works = tuple(b.WorkClass(f"c{n}", our_work(compared.work), priority=n, **life) for n in range(compared.priorities))
    queue = b.BrokerQueue(
        "q", (b.QueuePublisher("p", arrivals),), works, (b.QueueWorkers("w", compared.servers),),
        order=b.DeliveryOrder.PRIORITY if compared.priorities > 1 else b.DeliveryOrder.FIFO,
        limits=b.LengthLimits(max_messages=compared.limit or -1),
    )  # fmt: skip
    scenario = Scenario("c", Model.QUEUE, seed=11, horizon_ns=horizon, warm_up_ns=horizon // 10, queue=queue)
    waits, lost = [], []
    for repetition in range(4 * REPETITIONS):
        (figures,) = simulate_figures(dataclasses.replace(scenario), repetition)
        assert figures.wait_mean_ns is not None
        waits.append(figures.wait_mean_ns / SECOND_NS)
        lost.append(figures.loss_ratio)
    return waits, lost


def theirs(compared: Compared) -> tuple[list[float], list[float]]:
    """Return the same of Ciw."""
    rate = compared.load * compared.servers
    end = MESSAGES / rate
    each = rate / compared.priorities
    arrivals = ciw.dists.Exponential(rate=each) if compared.arrivals == "poisson" else None
    names = [f"Class {n}" for n in range(compared.priorities)]
    settings: dict[str, Any] = {
        "arrival_distributions": {n: [arrivals or ciw.dists.Deterministic(value=1.0 / rate)] for n in names},
        "service_distributions": {n: [their_work(compared.work)] for n in names},
        "number_of_servers": [compared.servers],
    }
    if compared.limit is not None:
        settings["system_capacity"] = compared.limit
    if compared.priorities > 1:
        settings["priority_classes"] = {name: compared.priorities - 1 - n for n, name in enumerate(names)}
    if compared.patience_s is not None:
        settings["reneging_time_distributions"] = {
            n: [ciw.dists.Deterministic(value=compared.patience_s)] for n in names
        }
    network = ciw.create_network(**settings)
    waits, lost = [], []
    for repetition in range(REPETITIONS):
        ciw.seed(repetition)
        simulation = ciw.Simulation(network)
        simulation.simulate_until_max_time(end)
        found = simulation.get_all_records()
        served = [r for r in found if r.record_type == "service" and r.service_start_date >= end / 10]
        gone = [r for r in found if r.record_type in ("rejection", "renege") and r.exit_date >= end / 10]
        waits.append(sum(r.waiting_time for r in served) / len(served))
        lost.append(len(gone) / (len(gone) + len(served)))
    return waits, lost


@pytest.mark.campaign
@pytest.mark.parametrize("compared", SCENARIOS, ids=lambda compared: compared.name.replace(" ", "-"))
def test_ciw_agrees(compared: Compared) -> None:
    for what, mine, other in zip(("wait", "lost"), ours(compared), theirs(compared), strict=True):
        difference = difference_of_means(mine, other, CONFIDENCE).interval
        assert difference.low <= 0.0 <= difference.high, (what, difference)
