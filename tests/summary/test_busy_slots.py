"""Executors of a real Spark that are kept busy by uneven tasks, and sweeps on them that something ends in the middle.

Tasks wait instead of computing (`slow_work`), for a machine has fewer processors than such a cluster has slots.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qsctl.errors import InvalidInput
from qsctl.sim.sweep import SweepPlan, parse_axes, plan_sweep
from qsctl.summary.spark.session import SparkOptions, spark_session, stop_spark
from qsctl.summary.sweeps.local_runner import LocalRunner
from qsctl.summary.sweeps.sweep import SweepProgress, run_sweep
from qsctl.summary.sweeps.sweep_folder import PointResult, read_results, read_sweep
from tests.campaigns import is_campaign
from tests.patience import PATIENCE_S, eventually
from tests.processes import end, start
from tests.summary.overloaded import DEPTH, overloaded, results_here
from tests.summary.slow_work import busy_share, compilations_counted, intervals, slowed
from tests.summary.standalone import EXECUTORS, java_of_a_cluster, spark_environment, standalone_cluster

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(not is_campaign(), reason="starts clusters: -m campaign runs it"),
]

MEAN_S = 8.0
"""Of a task: that it is given out costs a tenth of a second of a processor, and the first of an executor half a minute
where others use the processors, too; cluster and tests have few of them."""


def plan_of(points: int, replications: int) -> SweepPlan:
    return plan_sweep(
        overloaded(), parse_axes([f"{DEPTH}={','.join(str(100 + place) for place in range(points))}"]), replications
    )


def equal_and_whole(folder: Path, expected: list[PointResult]) -> None:
    """A finished sweep's folder has every result once, all of it listed, and nothing besides."""
    assert read_results(folder) == sorted(expected, key=lambda each: (each.point.key, each.replication))
    assert {path.name for path in (folder / "points").iterdir()} == set(read_sweep(folder)["parts"])


@pytest.fixture
def local_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The variables with which a master `local-cluster[…]` starts its executors."""
    for name, value in spark_environment(java_of_a_cluster()).items():
        monkeypatch.setenv(name, value)
    stop_spark()
    yield
    stop_spark()


@contextlib.contextmanager
def slots_noted(session: Any) -> Iterator[list[tuple[float, int]]]:
    """Yield the numbers of slots that a session has, with the instants at which they changed."""
    noted = [(time.time(), session.sparkContext.defaultParallelism)]
    is_over = threading.Event()

    def note() -> None:
        while not is_over.wait(0.2):
            slots = session.sparkContext.defaultParallelism
            if slots != noted[-1][1]:
                noted.append((time.time(), slots))

    thread = threading.Thread(target=note)
    thread.start()
    try:
        yield noted
    finally:
        is_over.set()
        thread.join()


def shown(what: str, share: float, capsys: pytest.CaptureFixture[str]) -> float:
    """Print a share for those who read the output of a campaign, and return it."""
    with capsys.disabled():
        print(f"\n{what}: {100 * share:.1f} % of the slots' time busy", file=sys.stderr)  # noqa: T201
    return share


@pytest.mark.usefixtures("local_cluster")
def test_uneven_tasks_keep_eight_executors_of_one_thread_busy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_of(60, 4)
    expected = results_here(plan)  # compiles the kernels, too, where nothing has done that before
    options = SparkOptions("local-cluster[8,1,600]", EXECUTORS)
    with slowed(tmp_path / "busy", MEAN_S):
        session = spark_session(options, brief=True)
        assert eventually(lambda: session.sparkContext.defaultParallelism == 8)
        with slots_noted(session) as slots:
            found = run_sweep(plan, tmp_path / "sweep", options)
    assert [count for _, count in slots] == [8]
    assert shown("8 executors of one thread", busy_share(intervals(tmp_path / "busy"), slots), capsys) >= 0.85
    assert found == expected
    equal_and_whole(tmp_path / "sweep", found)


def test_an_executor_that_is_added_in_the_middle_is_kept_busy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_of(80, 4)
    expected = results_here(plan)
    added: list[int] = []
    with standalone_cluster(tmp_path, workers=4, cores=2) as cluster:

        def add(progress: SweepProgress) -> None:
            if progress.done > 50 and not added:
                cluster.add_worker(2)
                added.append(progress.done)

        options = SparkOptions(cluster.address, {**EXECUTORS, "spark.executor.cores": "2"})
        with slowed(tmp_path / "busy", MEAN_S):
            session = spark_session(options, brief=True)
            assert eventually(lambda: session.sparkContext.defaultParallelism == 8)
            with slots_noted(session) as slots:
                found = run_sweep(plan, tmp_path / "sweep", options, add)
    assert [count for _, count in slots] == [8, 10], "the executor that was added has registered"
    share = busy_share(intervals(tmp_path / "busy"), slots)
    assert shown("4 executors of two threads and one added", share, capsys) >= 0.70
    assert found == expected
    equal_and_whole(tmp_path / "sweep", found)


def test_a_sweep_that_begins_with_one_worker_uses_those_that_register_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_of(80, 4)
    expected = results_here(plan)
    with standalone_cluster(tmp_path, workers=1, cores=1) as cluster:

        def add(progress: SweepProgress) -> None:
            while progress.done and len(cluster.workers) < 4:
                cluster.add_worker(2)

        options = SparkOptions(cluster.address, EXECUTORS)
        with slowed(tmp_path / "busy", MEAN_S), slots_noted(spark_session(options, brief=True)) as slots:
            found = run_sweep(plan, tmp_path / "sweep", options, add)
    assert slots[-1][1] == 7
    assert shown("1 slot and 6 later", busy_share(intervals(tmp_path / "busy"), slots), capsys) >= 0.70
    assert found == expected


def test_an_executor_that_is_killed_in_the_middle_costs_its_pieces_alone(tmp_path: Path) -> None:
    plan = plan_of(40, 4)
    expected = results_here(plan)
    killed: list[int] = []
    with standalone_cluster(tmp_path, workers=2, cores=2) as cluster:

        def kill(progress: SweepProgress) -> None:
            if progress.done > 20 and not killed:
                cluster.kill_executor(0)
                killed.append(progress.done)

        with slowed(tmp_path / "busy", 0.5):
            found = run_sweep(plan, tmp_path / "sweep", SparkOptions(cluster.address, EXECUTORS), kill)
    assert killed
    assert found == expected
    equal_and_whole(tmp_path / "sweep", found)


DRIVER = """
import sys
from pathlib import Path
from qsctl.summary.spark.session import SparkOptions
from qsctl.summary.sweeps.sweep import run_sweep
from tests.summary.slow_work import slowed
from tests.summary.standalone import EXECUTORS
from tests.summary.test_busy_slots import plan_of

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with slowed(folder / "busy", 0.5):
        run_sweep(plan_of(40, 4), folder / "sweep", SparkOptions("local-cluster[4,1,600]", EXECUTORS))
"""


def test_the_sweep_of_a_driver_that_is_killed_on_a_cluster_is_continued_without_spark(tmp_path: Path) -> None:
    plan, folder = plan_of(40, 4), tmp_path / "sweep"
    expected = results_here(plan)
    (tmp_path / "driver.py").write_text(DRIVER)
    environment = {
        **os.environ, **spark_environment(java_of_a_cluster()), "PYTHONPATH": str(Path(__file__).parents[2]),
    }  # fmt: skip
    driver = start([sys.executable, str(tmp_path / "driver.py"), str(tmp_path)], is_fresh=True, env=environment)
    try:
        assert eventually(lambda: len(list(folder.glob("points/part-*"))) > 8 or driver.poll() is not None)
        driver.send_signal(signal.SIGKILL)
        driver.wait(PATIENCE_S)
    finally:
        end(driver)
    seen: list[SweepProgress] = []
    with LocalRunner(plan.scenario, 2) as runner:
        found = run_sweep(plan, folder, progress=seen.append, runner=runner)
    assert 8 <= seen[0].reused < len(found)
    assert found == expected
    # Executors may write what they have begun even now: a part that is there already, in other words.
    equal_and_whole(folder, found)


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of a few octets for the time of a block; the test is skipped where none can be mounted."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.usefixtures("local_cluster")
def test_a_full_disk_in_out_is_one_message_and_the_sweep_is_continued(tmp_path: Path) -> None:
    plan = plan_of(40, 4)
    expected = results_here(plan)
    options = SparkOptions("local-cluster[4,1,600]", EXECUTORS)
    with small_disk(tmp_path / "disk", "640k") as disk:
        with slowed(tmp_path / "busy", 0.2), pytest.raises(InvalidInput, match="No space left on device") as caught:
            run_sweep(plan, disk / "sweep", options)
        assert str(disk / "sweep") in caught.value.message
        assert "Free some space" in caught.value.remedy
        assert 0 < len(read_results(disk / "sweep")) < 160
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        with slowed(tmp_path / "again", 0.2):
            found = run_sweep(plan, disk / "sweep", options)
        assert found == expected
        equal_and_whole(disk / "sweep", found)


@pytest.mark.usefixtures("local_cluster")
def test_of_the_workers_of_a_cold_host_one_compiles_each_kernel(tmp_path: Path) -> None:
    cold = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "QSCTL_KERNELS": str(tmp_path / "none")}
    settings = {f"spark.executorEnv.{name}": value for name, value in cold.items()}
    plan = plan_of(4, 4)
    with compilations_counted(tmp_path / "compiled"):
        found = run_sweep(plan, tmp_path / "sweep", SparkOptions("local-cluster[4,1,600]", {**EXECUTORS, **settings}))
    assert found == results_here(plan)
    by_process = [file.read_text().split() for file in (tmp_path / "compiled").glob("process-*")]
    assert len(by_process) == 4
    compiled = [name for each in by_process for name in each]
    assert len(compiled) > 2
    assert sorted(compiled) == sorted(set(compiled)), "no kernel is compiled by two workers"
