"""What a test starts ends with it: the process and its children, after a failed start, and after a killed test run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dds.service_process import ServiceProcess
from tests.patience import eventually
from tests.processes import end, is_alive, run, running

ROOT = Path(__file__).parent.parent

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""

TEST_RUN = """
import sys, time
from tests.processes import start
process = start([sys.executable, "-c", "import time; time.sleep(600)"])
print(process.pid, flush=True)
time.sleep(600)
"""


def test_a_process_ends_with_its_block_and_its_children_with_it() -> None:
    with pytest.raises(ZeroDivisionError), running([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as process:
        child = int(process.stdout.readline())
        assert is_alive(child)
        raise ZeroDivisionError
    assert process.poll() == -signal.SIGKILL
    assert eventually(lambda: not is_alive(child))
    end(process)


def test_children_end_also_where_the_process_ended_first() -> None:
    with running([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as process:
        child = int(process.stdout.readline())
        process.kill()
        process.wait()
        assert is_alive(child)
    assert eventually(lambda: not is_alive(child))


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells a process of its parent's death")
def test_a_process_ends_with_a_test_run_that_is_killed() -> None:
    with running([sys.executable, "-c", TEST_RUN], stdout=subprocess.PIPE, cwd=ROOT) as test_run:
        started = int(test_run.stdout.readline())
        assert is_alive(started)
        os.kill(test_run.pid, signal.SIGKILL)
        assert eventually(lambda: not is_alive(started))


def test_a_command_that_does_not_end_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tests.processes.PATIENCE_S", 0.5)
    program = f"import os, pathlib, time; pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
    with pytest.raises(subprocess.TimeoutExpired):
        run([sys.executable, "-c", program + "time.sleep(600)"])
    if (tmp_path / "pid").exists():
        assert not is_alive(int((tmp_path / "pid").read_text()))


def test_a_process_can_be_interrupted_where_the_test_run_ignores_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = run([sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGINT)"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert "KeyboardInterrupt" in done.stderr


def test_a_service_whose_start_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def fail(self: ServiceProcess) -> None:
        assert self.process is not None
        started.append(self.process)
        raise AssertionError("it did not start in time")

    monkeypatch.setattr(ServiceProcess, "_await_start", fail)
    with pytest.raises(AssertionError, match="did not start in time"):
        ServiceProcess(tmp_path, 230)
    assert [process.poll() for process in started] == [-signal.SIGKILL]


def test_tests_start_processes_in_one_place_only() -> None:
    elsewhere = [
        path
        for path in Path(__file__).parent.rglob("*.py")
        if re.search(r"\bPopen\(", path.read_text(encoding="utf-8"))
        and path.name not in {"processes.py", "test_processes.py"}
        and path.parent.name != "benchmarks"
    ]
    assert elsewhere == []
