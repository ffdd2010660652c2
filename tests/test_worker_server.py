"""A forked worker is what an interpreter would be, but for the tests that it has imported, and ends as one."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests import worker_server
from tests.patience import eventually
from tests.processes import is_alive, run, running, start
from tests.worker_server import WorkerServer

ROOT = Path(__file__).parent.parent
STATE = """
import json, os, sys
streams = [(type(each).__name__, each.name, each.mode, each.encoding) for each in (sys.stdin, sys.stdout, sys.stderr)]
state = sys.argv, sys.orig_argv, sys.path, dict(os.environ), os.getcwd(), __name__, sys.dont_write_bytecode, streams
print(json.dumps([state, sys.stdin.readline(), sorted(each for each in sys.modules if "of_a_run" in each)]))
"""

pytestmark = pytest.mark.skipif(not worker_server.IS_SUPPORTED, reason="each worker is a fresh interpreter here")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerServer]:
    """The server of a run of two small files, of which one is skipped, beside what is prepared for them."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "prepared.py").write_text("def prepare(): import made_of_a_run")
    (folder / "made_of_a_run.py").touch()
    (folder / "test_skipped_of_a_run.py").write_text("import pytest\npytest.skip('here', allow_module_level=True)")
    (folder / "test_of_a_run.py").write_text("def test_something(): assert 1 + 1 == 2")
    server = WorkerServer(
        partial(start, cwd=folder), ["--numprocesses", "4", "--import-mode", "importlib", str(folder)], "prepared"
    )
    yield server
    server.close()
    assert server.process.returncode == 0


def command(server: WorkerServer, program: str) -> list[str]:
    return [*shlex.split(server.interpreter), "-u", "-c", program]


def test_a_worker_is_an_interpreter_that_has_imported_the_tests(server: WorkerServer, tmp_path: Path) -> None:
    here, fresh = (
        json.loads(run(line, cwd=tmp_path, input="a line\n").stdout)
        for line in (command(server, STATE), [sys.executable, "-u", "-c", STATE])
    )
    assert here == [fresh[0], "a line\n", ["made_of_a_run", "test_of_a_run"]]
    assert fresh[1:] == ["a line\n", []]


def test_a_launcher_ends_when_its_worker_does(server: WorkerServer) -> None:
    for program in ("import os; os._exit(3)", "raise SystemExit", "print('the last', end='')"):
        done = run(command(server, program))
        assert done.stdout == ("the last" if "print" in program else "")
    error = run(command(server, "raise LookupError('of a worker')")).stderr
    assert "LookupError: of a worker" in error


def test_workers_end_with_what_started_their_server(tmp_path: Path) -> None:
    program = f"""
import shlex, subprocess, time
from tests.processes import start
from tests.worker_server import WorkerServer
server = WorkerServer(start, [{str(tmp_path)!r}])
program = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
wait = [*shlex.split(server.interpreter), "-u", "-c", program]
workers = [start(wait, stdout=subprocess.PIPE, text=True) for _ in range(2)]
print(server.process.pid, *(int(each.stdout.readline()) for each in workers), flush=True)
time.sleep(600)
"""
    with running([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as controller:
        numbers = [int(each) for each in controller.stdout.readline().split()]
        assert len(numbers) == 3
        controller.kill()
        controller.wait()
        assert eventually(lambda: not any(map(is_alive, numbers)))
