"""A Spark that another program has in this process is used, and left as it was."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from qsctl.errors import UsageError
from qsctl.sim.kernel.cache_directory import cache_root
from qsctl.summary.spark._shared_session import session_beside
from qsctl.summary.spark.java import find_java

NOTEBOOK = """
from pyspark.sql import SparkSession
own = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
       .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
       .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
       .config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "Asia/Tokyo").getOrCreate())
from qsctl.summary.spark.session import spark_session, stop_spark
found = spark_session()
assert found is spark_session()
assert found.sparkContext is own.sparkContext
assert found.conf.get("spark.sql.session.timeZone") == "UTC"
from qsctl.sim.simulate import open_scenario
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.sweep import Point, Task
from qsctl.summary.sweeps._spark_runner import SparkRunner
scenario = apply_overrides(open_scenario("burst", {}, {}), {"horizon": "100ms", "group[desks]/count": "1"})
(result,) = SparkRunner(scenario).run([Task(Point(()), 0, 1)])
assert result.figures[0].arrived_messages > 0
stop_spark()
assert own.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
assert own.range(3).count() == 3
own.stop()
print("done")
"""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.xdist_group("own java")
def test_the_session_of_a_notebook_is_used_and_left_as_it_was() -> None:
    """It was a bare ValueError: "Cannot run multiple SparkContexts at once"."""
    java = find_java()
    environment = {
        "JAVA_HOME": str(java.home),
        "PATH": "/usr/bin:/bin",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout.strip().endswith("done"), done.stderr[-2000:]


SUBMITTED = """
import sys
from pathlib import Path
from qsctl.sim.run import run
from qsctl.sim.simulate import open_scenario
from qsctl.summary.job import summarize_run
from qsctl.summary.spark.session import spark_session
scenario = open_scenario("trace-solace", {}, {})
report = run(scenario, Path(sys.argv[1]), replications=1)
summary = summarize_run(report.folder, by=("queue",))
assert sum(each.arrived_messages for each in summary.queues) == report.info.arrived_messages > 0
from pyspark.sql import SparkSession
own = SparkSession.builder.getOrCreate()
assert spark_session().sparkContext is own.sparkContext
assert own.conf.get("spark.sql.shuffle.partitions") == "2"
print("done at", own.sparkContext.master)
"""


OWN_SESSION = "from pyspark.sql import SparkSession; SparkSession.builder.getOrCreate()"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.xdist_group("own java")
@pytest.mark.parametrize("first", ["", OWN_SESSION], ids=["without a session of its own", "with one"])
def test_a_program_of_spark_submit_summarizes_a_run_in_its_own_session(first: str, tmp_path: Path) -> None:
    """Without a session it was NotADirectoryError: Java was to start from inside pyspark.zip."""
    import pyspark

    program = tmp_path / "program.py"
    program.write_text(first + SUBMITTED, encoding="utf-8")
    environment = {
        "JAVA_HOME": str(find_java().home),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "HOME": str(tmp_path),
        "NUMBA_CACHE_DIR": str(cache_root()),
    }
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    given = ["--master", "local[1]", "--driver-java-options", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"]
    for setting in ("spark.ui.enabled=false", "spark.driver.host=127.0.0.1", "spark.sql.shuffle.partitions=2"):
        given += ["--conf", setting]
    done = subprocess.run(
        ["bash", str(submit), *given, str(program), str(tmp_path / "run")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert "done at local[1]" in done.stdout, done.stderr[-2000:]


def test_another_master_than_the_one_that_runs_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(master="yarn", applicationId="a")
    pretended = SimpleNamespace(SparkContext=SimpleNamespace(_active_spark_context=context))
    monkeypatch.setitem(sys.modules, "pyspark", pretended)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"already, at yarn: a process cannot have local\[2\], too"):
        session_beside("local[2]", {})
    assert session_beside("yarn", {"a": "the session"}) == "the session"  # type: ignore[dict-item]


def test_no_session_is_beside_where_no_spark_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    assert session_beside("", {}) is None
