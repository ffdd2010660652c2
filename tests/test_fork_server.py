"""A forked process is what a fresh interpreter would be: its state, its output, its end, and whose child it is."""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import fork_server
from tests.fork_server import STARTS_BEFORE_SERVER, ForkedProcess, ForkServer, ForkServers
from tests.patience import eventually
from tests.processes import _start_server, end, is_alive, run, running

ROOT = Path(__file__).parent.parent
PROGRAM = [sys.executable, "-m", "tests.started_program"]

pytestmark = pytest.mark.skipif(not fork_server._IS_SUPPORTED, reason="each start is that of a fresh interpreter here")


@pytest.fixture(autouse=True)
def a_server(tmp_path: Path) -> None:
    """Start processes in the test's environment until they are forked."""
    for _ in range(STARTS_BEFORE_SERVER + 1):
        with running([sys.executable, "-m", "qsctl", "--version"], cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
            if isinstance(process, ForkedProcess):
                return
    raise AssertionError("no process is forked")


def test_a_program_sees_the_same_start(tmp_path: Path) -> None:
    (tmp_path / "inherited").touch()
    environment = {**os.environ, "QSCTL_CONTEXT": "of the test", "PYTHONPATH": str(ROOT)}
    environment.pop("COLUMNS")
    seen = []
    with (tmp_path / "inherited").open("rb") as inherited:
        high = fcntl.fcntl(inherited.fileno(), fcntl.F_DUPFD, 77)  # the next free one: the test's process may have many
        options: dict[str, Any] = {"cwd": tmp_path, "env": environment, "input": "é and\r\na second line"}
        options["pass_fds"] = [inherited.fileno(), high]
        for _ in range(STARTS_BEFORE_SERVER + 1):
            seen.append(json.loads(run([*PROGRAM, "state", "é", ""], **options).stdout))
        os.close(high)
    first, *others = seen
    assert first["environment"]["QSCTL_CONTEXT"] == "of the test"
    assert first["input"] == options["input"]
    for other in others:
        assert other == first


@pytest.mark.slow
def test_a_command_prints_the_same(tmp_path: Path) -> None:
    for words in ("get status", "create-queue", "validate nowhere.xml", "help", "simulate --no-such-option"):
        line = [sys.executable, "-m", "qsctl", *words.split()]
        here, fresh = (run(line, cwd=tmp_path, is_fresh=is_fresh) for is_fresh in (False, True))
        assert (here.returncode, here.stdout, here.stderr) == (fresh.returncode, fresh.stdout, fresh.stderr)
        assert here.stdout or here.stderr


@pytest.mark.parametrize("what", ["text", "error", "interrupt", "ends"])
def test_a_program_ends_the_same_way(what: str) -> None:
    here, fresh = (run([*PROGRAM, what], cwd=ROOT, is_fresh=is_fresh) for is_fresh in (False, True))
    assert (here.returncode, here.stdout) == (fresh.returncode, fresh.stdout)
    assert here.stderr.splitlines()[-1:] == fresh.stderr.splitlines()[-1:]
    assert (here.returncode, here.stdout) == {
        "text": (1, ""),
        "error": (1, ""),
        "interrupt": (-signal.SIGINT, ""),
        "ends": (0, "not flushed; a thread\nat its end\n"),
    }[what]


def test_a_program_that_does_not_exist_is_the_same_error() -> None:
    here, fresh = (
        run([sys.executable, "-m", "tests.no_such_program"], cwd=ROOT, is_fresh=is_fresh) for is_fresh in (False, True)
    )
    assert (here.returncode, here.stderr) == (fresh.returncode, fresh.stderr)


def test_a_forked_process_is_a_child_of_the_test() -> None:
    with running([*PROGRAM, "wait"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert isinstance(process, ForkedProcess)
        assert int(process.stdout.readline()) == os.getpid()
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait() == -signal.SIGTERM


def test_processes_are_forked_for_threads_at_once() -> None:
    found: list[str] = []

    def fork() -> None:
        found.append(run([*PROGRAM, "ends"], cwd=ROOT).stdout)

    threads = [threading.Thread(target=fork) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert set(found) == {"not flushed; a thread\nat its end\n"}


@pytest.fixture(scope="module")
def servers() -> Iterator[ForkServers]:
    servers = ForkServers(_start_server, packages=())
    yield servers
    servers.close()


def server(servers: ForkServers, **options: Any) -> ForkServer | None:
    return [servers.find(PROGRAM, options) for _ in range(STARTS_BEFORE_SERVER + 1)][-1]


def test_another_environment_is_another_server(servers: ForkServers) -> None:
    usual = server(servers, env={**os.environ})
    assert usual is not None
    assert usual is server(servers, env={**os.environ, "QSCTL_STATE_DIR": "elsewhere", "COLUMNS": "40"})
    unbuffered = "" if os.environ.get("PYTHONUNBUFFERED") else "1"
    other_streams = {"PYTHONIOENCODING": "latin-1:replace", "PYTHONUNBUFFERED": unbuffered}
    options: dict[str, Any] = {"env": {**os.environ, **other_streams}, "cwd": ROOT}
    assert servers.find(PROGRAM, options) is None, "most environments are one test's own"
    other = server(servers, **options)
    assert other is not None
    assert other is not usual
    with ForkedProcess(other, [*PROGRAM, "state"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **options) as here:
        state = json.loads(here.stdout.read())
    fresh = json.loads(run([*PROGRAM, "state"], is_fresh=True, **options).stdout)
    assert state["streams"] == fresh["streams"]
    assert state["streams"][1][5:7] == ["iso8859-1", "replace"]


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ([sys.executable, "-c", "pass"], {}),
        ([sys.executable, "-P", "-m", "qsctl"], {}),
        ([sys.executable, "-m", "http.server"], {}),
        (["strace", *PROGRAM], {}),
        (PROGRAM, {"umask": 0o77}),
        (PROGRAM, {"executable": "/bin/true"}),
    ],
)
def test_other_programs_and_options_are_a_fresh_interpreter_s(
    servers: ForkServers, command: list[str], options: dict[str, Any]
) -> None:
    assert not any(servers.find(command, options) for _ in range(STARTS_BEFORE_SERVER + 2))


def test_signals_that_the_test_ignores_or_blocks_are_so_in_what_it_starts(servers: ForkServers) -> None:
    assert server(servers) is not None
    before = signal.getsignal(signal.SIGHUP)
    signal.signal(signal.SIGHUP, signal.SIG_DFL if before is signal.SIG_IGN else signal.SIG_IGN)
    try:
        assert servers.find(PROGRAM, {}) is None
    finally:
        signal.signal(signal.SIGHUP, before)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        assert servers.find(PROGRAM, {}) is None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def test_a_server_ends_with_its_test_and_what_it_forked_with_it() -> None:
    program = (
        "import subprocess, sys, time\nfrom tests.processes import _SERVERS, start\n"
        f"processes = [start({[*PROGRAM, 'wait']!r}, stdout=subprocess.DEVNULL) for _ in range(4)]\n"
        "servers = [each.process.pid for each in _SERVERS._servers.values()]\n"
        "print(*servers, *(each.pid for each in processes), flush=True)\ntime.sleep(600)\n"
    )
    with running([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as test:
        numbers = [int(each) for each in test.stdout.readline().split()]
        assert len(numbers) == 5
        test.kill()
        test.wait()
        assert eventually(lambda: not any(map(is_alive, numbers)))


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()", "threads"),
        ("import os\nSERVICE = os.environ.get('QSCTL_SERVICE')", "reads QSCTL_SERVICE"),
        ("import os\nIS_NARROW = 'COLUMNS' in os.environ", "reads COLUMNS"),
    ],
    ids=["thread", "variable", "presence"],
)
def test_a_server_refuses_modules_that_a_fork_would_get_wrong(program: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "imported.py").write_text(program)
    look = (
        "from tests import fork_server\nfork_server.LIBRARIES, fork_server._prepare = ('imported',), lambda: None\n"
        "fork_server._import([])"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = run([sys.executable, "-c", look], env=environment)
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr


def test_modules_that_are_not_imported_before_a_fork_exist() -> None:
    for name in fork_server.NOT_IMPORTED:
        assert importlib.util.find_spec(name) is not None


def test_a_server_outlives_the_thread_that_was_the_first_to_want_it(servers: ForkServers) -> None:
    found: list[ForkServer | None] = []
    environment = {**os.environ, "WANTED_BY": "a thread"}
    thread = threading.Thread(target=lambda: found.append(server(servers, env=environment)))
    thread.start()
    thread.join()
    (first,) = found
    assert first is not None
    for _ in range(2):
        done = ForkedProcess(first, [*PROGRAM, "ends"], cwd=ROOT, env=environment, stdout=subprocess.PIPE)
        assert done.communicate()[0]
        end(done)
    assert first.process.poll() is None


@pytest.mark.slow
def test_a_server_that_ended_is_an_error_and_no_wait(servers: ForkServers) -> None:
    ended = server(servers)
    assert ended is not None
    end(ended.process)
    with pytest.raises(ChildProcessError, match="fork"):
        ForkedProcess(ended, PROGRAM)
