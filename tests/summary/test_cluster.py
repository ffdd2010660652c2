"""A standalone master and two workers on loopback: a sweep gives there what it gives here, also when a worker dies."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from qsctl.instant import SECOND_NS
from qsctl.sim.run import run
from qsctl.sim.scenario.overrides import apply_overrides
from qsctl.sim.scenario.scenario import ClientGroup, ConstantSize, PoissonArrivals, Port, Profile, Scenario, Traffic
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from qsctl.sim.sweep import parse_axes, plan_sweep, run_task
from qsctl.summary.spark.java import JavaRuntime, find_java
from qsctl.summary.spark.session import SparkOptions, stop_spark
from qsctl.summary.sweeps.sweep import SweepProgress, run_sweep
from qsctl.summary.sweeps.sweep_folder import PointResult
from tests import processes
from tests.campaigns import is_campaign
from tests.patience import eventually
from tests.summary.spark_elsewhere import answers, everything_of, free_port

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


def start(java: JavaRuntime, log: IO[bytes], environment: dict[str, str], *arguments: str) -> subprocess.Popen[bytes]:
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars" / "*"
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.nio", "sun.nio.ch")]
    return processes.start(
        [str(java.executable), "-Xmx256m", *opened, "-cp", str(jars), *arguments],
        stdout=log, stderr=log, env=environment,
    )  # fmt: skip


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The master's address, and its two workers, one core each."""
    import pyspark

    java = find_java()
    if java.modules and "jdk.incubator.vector" not in java.modules:
        pytest.skip("Spark's own scripts start executors with a module that this Java does not have")
    environment = {
        **os.environ, "JAVA_HOME": str(java.home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "127.0.0.1",
        "SPARK_HOME": str(Path(pyspark.__file__).parent), "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    # Spark's own scripts tell its workers this; without them it looks for a place where it was built.
    core = next((Path(pyspark.__file__).parent / "jars").glob("spark-core_*.jar"))
    environment["SPARK_SCALA_VERSION"] = core.name.removeprefix("spark-core_").partition("-")[0]
    port = free_port()
    started: list[subprocess.Popen[bytes]] = []
    stop_spark()
    with (tmp_path / "cluster.log").open("wb") as log, contextlib.ExitStack() as stack:

        def begin(*arguments: str) -> None:
            process = start(java, log, environment, *arguments)
            stack.callback(processes.end, process)
            started.append(process)

        master = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port))
        begin(*master, "--webui-port", str(free_port()))
        assert eventually(lambda: answers(port)), f"no process listens at {port}"
        for number in range(2):
            begin(
                "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "600m",
                "--work-dir", str(tmp_path / f"worker-{number}"), "--webui-port", str(free_port()),
                f"spark://127.0.0.1:{port}",
            )  # fmt: skip
        stack.callback(_terminate, started)
        stack.callback(stop_spark)
        yield f"spark://127.0.0.1:{port}", started[1:]


def _terminate(started: list[subprocess.Popen[bytes]]) -> None:
    """Let workers end their executors; whatever does not is killed with its group afterwards."""
    for process in reversed(started):
        process.terminate()
    for process in started:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=30)


def executors_of(worker: subprocess.Popen[bytes]) -> list[int]:
    """The processes that a worker started, by its id."""
    children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children")
    found = [int(each) for each in children.read_text().split()] if children.exists() else []
    return found or [
        int(each.name)
        for each in Path("/proc").iterdir()
        if each.name.isdigit() and f"\nPPid:\t{worker.pid}\n" in status_of(each)
    ]


def status_of(process: Path) -> str:
    with contextlib.suppress(OSError):
        return (process / "status").read_text()
    return ""


@pytest.mark.parametrize("kill", [False, True], ids=["both-live", "one-dies"])
def test_a_sweep_on_a_cluster_gives_what_the_tasks_give_here(
    kill: bool, cluster: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path
) -> None:
    master, workers = cluster
    plan = plan_sweep(overloaded(), parse_axes(["profile[default]/queue[D-1]/max-depth=50,100,200,400,800"]), 20)
    expected = [
        PointResult(task.point, task.replication, task.seed, tuple(run_task(plan.scenario, task)))
        for task in plan.tasks()
    ]
    killed = threading.Event()

    def told(progress: SweepProgress) -> None:
        if kill and progress.done and not killed.is_set():
            for process in [*executors_of(workers[0]), workers[0].pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            killed.set()

    settings: dict[str, Any] = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.cores.max": "2"}
    assert run_sweep(plan, tmp_path / "sweep", SparkOptions(master, settings), told) == expected
    assert killed.is_set() is kill


def test_a_summary_is_the_same_on_a_cluster_that_loses_a_worker(
    cluster: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path
) -> None:
    master, workers = cluster
    run(apply_overrides(read_scenario(find_scenario("burst")), {"horizon": "3s"}), tmp_path / "run", replications=4)
    settings: dict[str, Any] = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.cores.max": "2"}
    options = SparkOptions(master, settings)
    # The first call starts the executors; of the second one of them dies.
    whole = everything_of(tmp_path / "run", options)
    victims = [*executors_of(workers[0]), workers[0].pid]

    def kill() -> None:
        for process in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    timer = threading.Timer(1.0, kill)
    timer.start()
    maimed = everything_of(tmp_path / "run", options)
    timer.join()
    assert workers[0].wait(30) == -signal.SIGKILL
    stop_spark()
    here = everything_of(tmp_path / "run", SparkOptions("local[2]"))
    assert whole == here
    assert maimed == here
