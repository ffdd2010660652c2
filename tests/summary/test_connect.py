"""A Spark Connect server on loopback: what runs there is what runs here, without Java in this process."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qsctl.errors import Damaged, Unavailable, UsageError
from qsctl.sim.run import run, simulate_counters
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from qsctl.sim.sizing.targets import parse_setting, parse_target
from qsctl.sim.sweep import parse_axes, plan_sweep
from qsctl.summary import read_runs, summarize, summary_frames
from qsctl.summary.spark._gateway import java_home
from qsctl.summary.spark.java import find_java
from qsctl.summary.spark.session import SparkOptions, spark_session, stop_spark
from qsctl.summary.sweeps._spark_runner import SparkRunner, check_executors
from qsctl.summary.sweeps.local_runner import LocalRunner
from qsctl.summary.sweeps.points import EVERY_MEASURE
from qsctl.summary.sweeps.size import size
from qsctl.summary.sweeps.sweep import SweepProgress, run_sweep
from tests import processes
from tests.campaigns import is_campaign
from tests.patience import PATIENCE_S, eventually
from tests.summary.growing_recording import GrowingRecording
from tests.summary.overloaded import DEPTH, overloaded, results_here
from tests.summary.slow_work import busy_share, intervals, slowed
from tests.summary.spark_elsewhere import answers, everything_of, free_port, row_text

pytest.importorskip("grpc", reason="Spark Connect's packages are not installed: pip install 'qsctl[connect]'")
pytest.importorskip("pandas", reason="Spark Connect needs pandas")
pytestmark = [
    pytest.mark.campaign,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(
        not is_campaign(),
        reason="starts a server of its own: -m campaign runs it",
    ),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a server that has the processor now and then only, where a user would hear that it is stuck."""
    monkeypatch.setattr("qsctl.summary.spark._master.ANSWER_SECONDS", PATIENCE_S)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that the jar of the pyspark wheel holds."""
    import pyspark

    home = Path(pyspark.__file__).parent
    if not list((home / "jars").glob("spark-connect_*.jar")):
        pytest.skip("this pyspark has no Spark Connect server")
    folder = tmp_path_factory.mktemp("connect")
    port = free_port()
    environment = {
        **os.environ, "JAVA_HOME": str(java_home(find_java(), folder)), "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost", "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.memory": "1g",
        "spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.sql.catalogImplementation": "in-memory",
        "spark.local.dir": str(folder / "local"),
    }  # fmt: skip
    stop_spark()
    with (folder / "server.log").open("wb") as log, contextlib.ExitStack() as stack:
        command = [str(home / "bin" / "spark-submit"), "--master", "local[2]"]
        for name, value in settings.items():
            command += ["--conf", f"{name}={value}"]
        command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
        process = processes.start(command, stdout=log, stderr=log, env=environment, cwd=folder)
        stack.callback(processes.end, process)
        stack.callback(stop_spark)
        assert eventually(lambda: answers(port) or process.poll() is not None)
        assert process.poll() is None, (folder / "server.log").read_text()[-2000:]
        yield f"sc://127.0.0.1:{port}"


def test_a_sweep_there_gives_what_the_tasks_give_here(server: str, tmp_path: Path) -> None:
    plan = plan_sweep(overloaded(), parse_axes([f"{DEPTH}=100,400"]), 3)
    assert run_sweep(plan, tmp_path / "sweep", SparkOptions(server)) == results_here(plan)


def test_a_size_there_is_the_size_here(server: str) -> None:
    targets = [parse_target("P(discards(D-1)>0)<20%", tuple(EVERY_MEASURE))]
    settings = [parse_setting("max-depth(D-1)=500,1000,1500,2000")]
    with LocalRunner(overloaded()) as runner:
        here = size(overloaded(), targets, settings, confidence=0.95, runner=runner)
    assert here.answer is not None
    assert size(overloaded(), targets, settings, confidence=0.95, options=SparkOptions(server)) == here


def test_slots_there_are_busy_also_while_they_are_counted(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_sweep(overloaded(), parse_axes([f"{DEPTH}=100,200,300,400"]), 10)
    expected = results_here(plan)
    with slowed(tmp_path / "busy", 2.0):
        assert run_sweep(plan, tmp_path / "sweep", SparkOptions(server)) == expected
    busy = intervals(tmp_path / "busy")
    share = busy_share(busy, [(0.0, 2)])
    with capsys.disabled():
        print(f"\nSpark Connect, 2 slots: {100 * share:.1f} % of the slots' time busy", file=sys.stderr)  # noqa: T201
    assert share >= 0.70


def test_an_interrupt_ends_the_tasks_there_and_the_sweep_is_continued(server: str, tmp_path: Path) -> None:
    plan = plan_sweep(overloaded(), parse_axes([f"{DEPTH}=100,200,300,400"]), 10)

    def interrupt(progress: SweepProgress) -> None:
        if progress.done > 1:
            raise KeyboardInterrupt

    with slowed(tmp_path / "busy", 2.0), pytest.raises(KeyboardInterrupt):
        run_sweep(plan, tmp_path / "sweep", SparkOptions(server), interrupt)
    # The server works on jobs in their order: without an interrupt it would do the sixteen pieces of the window before.
    assert spark_session(SparkOptions(server)).range(0, 2, 1, 2).count() == 2
    assert 2 <= len(intervals(tmp_path / "busy")) < 12
    seen: list[SweepProgress] = []
    assert run_sweep(plan, tmp_path / "sweep", SparkOptions(server), seen.append) == results_here(plan)
    assert seen[0].reused >= 2


def test_no_java_starts_in_this_process(server: str) -> None:
    from pyspark import SparkContext

    session = spark_session(SparkOptions(server))
    assert type(session).__module__.startswith("pyspark.sql.connect")
    assert SparkContext._active_spark_context is None
    assert SparkRunner(overloaded(), spark=session).slots == 2


def test_an_executor_with_another_qsctl_is_named(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = spark_session(SparkOptions(server))
    here = {"host": "here", "python": ".".join(map(str, sys.version_info[:3])), "version": "9.9", "problem": ""}
    monkeypatch.setattr("qsctl.summary.sweeps._spark_runner.self_report", lambda: here)
    with pytest.raises(Unavailable, match=r"the executor on \S+ has qsctl \S+; this process has qsctl 9\.9"):
        check_executors(session, 2)


def test_a_summary_there_is_the_summary_here(server: str, tmp_path: Path) -> None:
    run(apply_overrides(read_scenario(find_scenario("burst")), {"horizon": "1s"}), tmp_path / "run", replications=3)
    there = everything_of(tmp_path / "run", SparkOptions(server))
    stop_spark()
    assert there == everything_of(tmp_path / "run", SparkOptions("local[2]"))


def test_frames_of_many_runs_there_are_those_here(server: str, all_runs: list[Path]) -> None:
    """Of runs with repetitions, with events and without a log, and of a recording."""
    runs = [all_runs[place] for place in (0, 2, 4, -1)]
    made = []
    for options in (SparkOptions(server), SparkOptions("local[2]")):
        session = spark_session(options)
        frames = summary_frames(session, runs, by=["queue"], share_moves=True)
        tables = {name: sorted(map(row_text, frames[name].toArrow().to_pylist())) for name in frames}
        joined = session.sql(
            "select scenario, sum(arrived_messages) as arrived from {queues} join {runs} using (run_id) group by all",
            queues=frames["queues"],
            runs=frames["runs"],
        )
        by_scenario = {row["scenario"]: row["arrived"] for row in joined.collect()}
        summary = summarize(session, runs, by=["queue"])
        assert len(summary.queues) == len(tables["queues"])
        made.append((tables, by_scenario, sorted(map(str, summary.queues))))
        stop_spark()
    assert made[0] == made[1]
    tables, by_scenario, _ = made[0]
    assert tables.keys() >= {"runs", "queues", "losses", "delays", "windows", "depth", "intervals", "slow_subscribers"}
    assert {name for name, rows in tables.items() if not rows} <= {"changes"}, "of which runs this short have none"
    assert {"burst", "dead-messages", "Shop"} <= by_scenario.keys()
    assert all(by_scenario.values())


def test_runs_are_appended_to_tables_there(server: str, all_runs: list[Path], tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for _ in range(2):  # the second time in the place of the first
        session = spark_session(SparkOptions(server))
        summarize(session, [all_runs[0], all_runs[-1]], by=["queue"], measures=["losses"], out=lake, append=True)
    rows = session.read.parquet(str(lake / "losses")).toArrow().to_pylist()
    found = summary_frames(session, [all_runs[0], all_runs[-1]], by=["queue"], measures=["losses"])["losses"]
    assert sorted(row["run_id"] for row in rows) == sorted(found.toPandas()["run_id"])
    assert len({row["scenario"] for row in rows}) == 2


def test_a_changed_page_is_damage_there_too(server: str, tmp_path: Path) -> None:
    run(apply_overrides(read_scenario(find_scenario("burst")), {"horizon": "1s"}), tmp_path / "run", replications=1)
    part = next((tmp_path / "run").glob("messages/*/part-*.parquet"))
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 4
    part.write_bytes(content)
    with pytest.raises(Damaged) as damage:
        everything_of(tmp_path / "run", SparkOptions(server))
    assert damage.value.message.startswith(f"{part} was changed after it was written"), damage.value.message


def test_format_is_found_by_the_server_as_a_table_and_as_a_stream(server: str, tmp_path: Path) -> None:
    session = spark_session(SparkOptions(server))
    scenario = apply_overrides(read_scenario(find_scenario("burst")), {"horizon": "100ms"})
    there = session.read.format("qsctl").option("set.horizon", "100ms").load("burst")
    found = {(row["client"], row["queue"]): row["arrived_messages"] for row in there.collect()}
    expected = simulate_counters(scenario, 0).to_pylist()
    assert found == {(row["client"], row["queue"]): row["arrived_messages"] for row in expected}
    recording = GrowingRecording(tmp_path / "rec")
    for count in (30, 60):
        recording.grow(count)
        rows = session.readStream.format("qsctl").load(str(recording.folder))
        copying = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).format("parquet")
        copying.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    copied = session.read.parquet(str(tmp_path / "out"))
    batch = read_runs(session, [recording.folder]).select(*copied.columns)
    assert copied.count() == 60
    assert copied.exceptAll(batch).count() == batch.exceptAll(copied).count() == 0


def test_session_of_a_platform_is_used_as_it_is(server: str, tmp_path: Path) -> None:
    from pyspark.sql import SparkSession

    stop_spark()
    own = SparkSession.builder.remote(server).config("spark.sql.session.timeZone", "Asia/Tokyo").getOrCreate()
    try:
        assert spark_session() is own
        with pytest.raises(UsageError, match=r"active in this process already: it cannot have local\[2\], too"):
            spark_session(SparkOptions("local[2]"))
        run(apply_overrides(read_scenario(find_scenario("burst")), {"horizon": "100ms"}), tmp_path / "run")
        assert summarize(spark_session(), [tmp_path / "run"], measures=["queues"]).queues
        assert own.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        assert own.conf.get("spark.sql.ansi.enabled") == "true"
    finally:
        own.stop()
        stop_spark()
