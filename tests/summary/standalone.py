"""A standalone master of Spark and its workers on loopback, for tests of clusters."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from qsctl.summary.spark.java import JavaRuntime, find_java
from qsctl.summary.spark.session import stop_spark
from tests import processes
from tests.patience import PATIENCE_S, eventually
from tests.summary.spark_elsewhere import answers, free_port

EXECUTORS = {"spark.executor.memory": "512m", "spark.executor.cores": "1"}
"""Settings of executors that a worker of `StandaloneCluster` has room for."""
_MEMORY_A_CORE = 600


def java_of_a_cluster() -> JavaRuntime:
    """Return the Java that starts executors; the test is skipped where none can."""
    java = find_java()
    if java.modules and "jdk.incubator.vector" not in java.modules:
        pytest.skip("Spark's own scripts start executors with a module that this Java does not have")
    return java


def spark_environment(java: JavaRuntime) -> dict[str, str]:
    """Return the variables without which what Spark starts looks for a place where it was built."""
    import pyspark

    home = Path(pyspark.__file__).parent
    core = next((home / "jars").glob("spark-core_*.jar"))
    return {
        "JAVA_HOME": str(java.home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "127.0.0.1",
        "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable,
        "SPARK_SCALA_VERSION": core.name.removeprefix("spark-core_").partition("-")[0],
    }  # fmt: skip


@dataclass
class StandaloneCluster:
    """A master and its workers."""

    address: str
    folder: Path
    java: JavaRuntime
    log: IO[bytes]
    stack: contextlib.ExitStack
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def add_worker(self, cores: int) -> None:
        """Start a worker; its executors register when the application has asked for more than there are."""
        number = len(self.workers)
        self.workers.append(
            self.begin(
                "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", str(cores),
                "--memory", f"{_MEMORY_A_CORE * cores}m", "--work-dir", str(self.folder / f"worker-{number}"),
                "--webui-port", str(free_port()), self.address,
            )
        )  # fmt: skip

    def begin(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a Java machine of the cluster."""
        import pyspark

        jars = Path(pyspark.__file__).parent / "jars" / "*"
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.nio", "sun.nio.ch")]
        process = processes.start(
            [str(self.java.executable), "-Xmx256m", *opened, "-cp", str(jars), *arguments],
            stdout=self.log, stderr=self.log, env={**os.environ, **spark_environment(self.java)},
        )  # fmt: skip
        self.stack.callback(processes.end, process)
        return process

    def kill_worker(self, number: int) -> None:
        """Kill a worker and its executors."""
        for process in [*executors_of(self.workers[number]), self.workers[number].pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def kill_executor(self, number: int) -> None:
        """Kill the executors of a worker, which starts others in their place."""
        for process in executors_of(self.workers[number]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


@contextlib.contextmanager
def standalone_cluster(folder: Path, workers: int, cores: int) -> Iterator[StandaloneCluster]:
    """Run a master and workers for the time of a block; a session of this process that is on them ends with it."""
    java = java_of_a_cluster()
    port = free_port()
    stop_spark()
    with (folder / "cluster.log").open("wb") as log, contextlib.ExitStack() as stack:
        cluster = StandaloneCluster(f"spark://127.0.0.1:{port}", folder, java, log, stack)
        master = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port))
        began = [cluster.begin(*master, "--webui-port", str(free_port()))]
        assert eventually(lambda: answers(port)), f"no process listens at {port}"
        for _ in range(workers):
            cluster.add_worker(cores)
        stack.callback(lambda: _terminate([*began, *cluster.workers]))
        stack.callback(stop_spark)
        with pytest.MonkeyPatch.context() as patched:
            # A master that has the processor now and then only is not stuck.
            patched.setattr("qsctl.summary.spark._master.ANSWER_SECONDS", PATIENCE_S)
            yield cluster


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
        if each.name.isdigit() and f"\nPPid:\t{worker.pid}\n" in _status_of(each)
    ]


def _status_of(process: Path) -> str:
    with contextlib.suppress(OSError):
        return (process / "status").read_text()
    return ""
