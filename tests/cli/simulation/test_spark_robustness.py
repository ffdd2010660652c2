"""What Spark would answer with a page of Java is one message: foreign files, a Python that is none, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qsctl.errors import UsageError
from qsctl.sim.run import run as simulate
from qsctl.sim.scenario.xml import read_scenario
from qsctl.summary.spark.faults import translate
from qsctl.summary.spark.session import SparkOptions, spark_session
from tests.cli.simulation.small_runs import SCENARIO, SPARK, qsctl
from tests.patience import PATIENCE_S, eventually
from tests.processes import end, start


def foreign(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"price": [1.0, 2.0]}), file)
    return file


@pytest.mark.parametrize("command", ["summarize", "report", "compare"])
def test_foreign_parquet_is_one_message(command: str, tmp_path: Path) -> None:
    file = foreign(tmp_path / "data" / "x.parquet")
    for named in (file, file.parent):
        second = [named] if command == "compare" else []
        done = qsctl(command, named, *second)
        assert done.exit_code in {1, 4}, done.stderr
        assert str(named) in "".join(done.stderr.split("\n"))
        assert len(done.stderr.splitlines()) <= 6
        assert "Traceback" not in done.stderr


def test_a_foreign_file_in_a_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "tiny.xml").write_text(SCENARIO)
    simulate(read_scenario(tmp_path / "tiny.xml"), tmp_path / "run", replications=1)
    foreign(tmp_path / "run" / "messages" / "replication=0" / "x.parquet")
    done = qsctl("summarize", tmp_path / "run", *SPARK)
    assert done.exit_code == 9
    assert "x.parquet does not belong to this run" in " ".join(done.stderr.split())


@pytest.mark.usefixtures("no_spark")
def test_a_python_that_is_none_is_one_message_before_java_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/no/such/python")

    def start(*_: object, **__: object) -> None:
        raise AssertionError("Java was started")

    monkeypatch.setattr("qsctl.summary.spark.session.start_gateway", start)
    with pytest.raises(UsageError, match="PYSPARK_PYTHON names /no/such/python, which cannot be run") as caught:
        spark_session(SparkOptions(master="local[1]"))
    assert caught.value.remedy


@pytest.mark.usefixtures("no_spark")
def test_a_wrong_master_does_not_end_the_session_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    class Session:
        def stop(self) -> None:
            raise AssertionError("the session was ended")

    session = Session()
    monkeypatch.setattr("qsctl.summary.spark.session._start", lambda *_, **__: (session, None))
    assert spark_session(SparkOptions(master="local[1]")) is session
    with pytest.raises(UsageError, match="is not a Spark master"):
        spark_session(SparkOptions(master="locl"))
    assert spark_session(SparkOptions(master="local[1]")) is session


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('java.io.IOException: Cannot run program "python9": error=2', "tasks cannot start Python: python9"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9\n", "run another Python"),
        ('No FileSystem for scheme "gopher"', "no connector for the scheme gopher:"),
        (
            "Lost task 0.0 (TID 1) (10.0.0.7 executor 2): [FAILED_READ_FILE.FILE_NOT_EXIST] x\n"
            "java.io.FileNotFoundException: File file:/data/run/part-0.parquet does not exist",
            "the executor on 10.0.0.7 does not see file:/data/run/part-0.parquet",
        ),
    ],
)
def test_a_fault_of_an_executor_is_named(text: str, message: str) -> None:
    error = translate(text)
    assert message in error.message
    assert error.remedy


@pytest.mark.parametrize("module", ["java_gateway", "clientserver"])
def test_py4j_logs_nothing_whichever_logger_it_asks(module: str, tmp_path: Path) -> None:
    """An interrupt may reach it while it waits for Java, or while it closes the connection for another one."""
    (tmp_path / "py4j").mkdir()
    (tmp_path / "py4j" / "__init__.py").touch()
    (tmp_path / "py4j" / f"{module}.py").write_text(
        "import logging\n"
        "logging.getLogger('py4j').addHandler(logging.NullHandler())\n"
        "def interrupted():\n"
        "    logging.exception('sending')\n"
        f"    logging.getLogger('py4j.{module}').exception('shutting down')\n"
    )
    program = (
        "import logging; from qsctl.summary.spark.session import silence_py4j; silence_py4j()\n"
        f"from py4j.{module} import interrupted; interrupted(); logging.error('ours')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.stderr == "ERROR:root:ours\n"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.xdist_group("own java")
def test_a_session_whose_tasks_ran_python_ends_without_a_trace() -> None:
    """Begun for a small summary, and used for a sweep or for whatever the caller likes."""
    program = (
        "import time\n"
        "from pyspark.sql.functions import udf\n"
        "from qsctl.summary.spark import session\n"
        "options = session.SparkOptions(master='local[1]')\n"
        "session.spark_session(options, brief=True, runs_python=False)\n"
        "spark = session.spark_session(options)\n"
        "print(spark.range(2).select(udf(lambda n: n + 1, 'long', useArrow=False)('id')).count())\n"
        "session._leave()\n"
        "time.sleep(1)  # the threads of PySpark notice\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.stdout, done.stderr) == ("2\n", "")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.xdist_group("own java")
def test_an_interrupt_of_a_sweep_is_one_line_and_what_was_done_stays(tmp_path: Path) -> None:
    (tmp_path / "tiny.xml").write_text(SCENARIO)
    command = [
        sys.executable, "-m", "qsctl", "sweep", str(tmp_path / "tiny.xml"), "--grid", "horizon=1s,2s,3s",
        "--replications", "4000", "--master", "local[1]", "--out", str(tmp_path / "sweep"),
    ]  # fmt: skip
    with (tmp_path / "errors").open("wb") as errors:
        process = start(command, stdout=errors, stderr=errors, cwd=tmp_path, env=dict(os.environ))
        try:
            points = tmp_path / "sweep" / "points"
            assert eventually(lambda: list(points.glob("part-*")) or process.poll() is not None)
            assert process.poll() is None, (tmp_path / "errors").read_text()
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 130, (tmp_path / "errors").read_text()
        finally:
            end(process)
    said = (tmp_path / "errors").read_text()
    assert "interrupted" in said
    assert "Traceback" not in said
    assert "py4j" not in said
    assert "Exception" not in said
