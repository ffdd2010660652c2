"""A standalone master and two workers on loopback: a sweep gives there what it gives here, also when a worker dies."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from qsctl.instant import SECOND_NS
from qsctl.sim.run import run
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.scenario import ClientGroup, ConstantSize, PoissonArrivals, Port, Profile, Scenario, Traffic
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from qsctl.sim.sweep import parse_axes, plan_sweep, run_task
from qsctl.summary.spark.session import SparkOptions, stop_spark
from qsctl.summary.sweeps.sweep import SweepProgress, run_sweep
from qsctl.summary.sweeps.sweep_folder import PointResult
from tests.campaigns import is_campaign
from tests.summary.spark_elsewhere import everything_of
from tests.summary.standalone import EXECUTORS, StandaloneCluster, standalone_cluster

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(
        not is_campaign(),
        reason="starts five Java machines: -m campaign runs it",
    ),
]


def overloaded() -> Scenario:
    return Scenario(
        name="overloaded", horizon_ns=SECOND_NS, seed=11, ports=(Port("p", 8_000_000),), profiles=(Profile("default"),),
        groups=(ClientGroup("c", port="p", profile="default"),),
        traffic=(Traffic("t", to="c", arrivals=PoissonArrivals(2000), size=ConstantSize(1000)),),
    )  # fmt: skip


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    """Two workers, one core each."""
    with standalone_cluster(tmp_path, workers=2, cores=1) as cluster:
        yield cluster


@pytest.mark.parametrize("kill", [False, True], ids=["both-live", "one-dies"])
def test_a_sweep_on_a_cluster_gives_what_the_tasks_give_here(
    kill: bool, cluster: StandaloneCluster, tmp_path: Path
) -> None:
    plan = plan_sweep(overloaded(), parse_axes(["profile[default]/queue[D-1]/max-depth=50,100,200,400,800"]), 20)
    expected = [
        PointResult(task.point, task.replication, task.seed, tuple(run_task(plan.scenario, task)))
        for task in plan.tasks()
    ]
    killed = threading.Event()

    def told(progress: SweepProgress) -> None:
        if kill and progress.done and not killed.is_set():
            cluster.kill_worker(0)
            killed.set()

    assert run_sweep(plan, tmp_path / "sweep", SparkOptions(cluster.address, EXECUTORS), told) == expected
    assert killed.is_set() is kill


def test_a_summary_is_the_same_on_a_cluster_that_loses_a_worker(cluster: StandaloneCluster, tmp_path: Path) -> None:
    run(apply_overrides(read_scenario(find_scenario("burst")), {"horizon": "3s"}), tmp_path / "run", replications=4)
    options = SparkOptions(cluster.address, EXECUTORS)
    # The first call starts the executors; of the second one of them dies.
    whole = everything_of(tmp_path / "run", options)
    timer = threading.Timer(1.0, lambda: cluster.kill_worker(0))
    timer.start()
    maimed = everything_of(tmp_path / "run", options)
    timer.join()
    assert cluster.workers[0].wait(30) == -signal.SIGKILL
    stop_spark()
    here = everything_of(tmp_path / "run", SparkOptions("local[2]"))
    assert whole == here
    assert maimed == here
