"""An interrupt at any moment of a command leaves no process, no Java, no folder, no temporary file and no signal.

Each trial starts a command with a folder for temporary files and a mark in its environment, which all that it starts
inherits, interrupts it at a random instant, and looks for what is left. `QSCTL_TEST_INTERRUPTS` is the number of trials
of each command (by default one or two of the quick ones), `QSCTL_TEST_SEED` where their instants begin.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qsctl import endings
from qsctl.shipped import shipped
from tests.campaigns import trials
from tests.patience import PATIENCE_S, eventually
from tests.processes import end, run, start

TRIALS = trials("QSCTL_TEST_INTERRUPTS", 0, 20)
SEED = int(os.environ.get("QSCTL_TEST_SEED", "1"))
EXAMPLE = str(shipped("fixtures/config/manual/section_3.1.xml"))
DOMAIN = 94

COMMANDS: dict[str, tuple[str, float]] = {
    "get": ("get status", 0.8),
    "produce": ("produce Orders --count 200000 --text x", 3.0),
    "consume": ("consume Orders --timeout 5s", 3.0),
    "import": ("import - Orders", 3.0),
    "wait": ("wait Orders --until current_message_count=7 --timeout 5s", 3.0),
    "serve": (f"serve {EXAMPLE} --domain-id-base {DOMAIN}", 3.0),
    "dds": (f"get status --service dds:{DOMAIN} --timeout 2s", 2.5),
    "simulate": ("simulate steady --out run --replications 3 --workers 2", 6.0),
    "sweep": ("sweep burst --grid group/count=20,40 --replications 2 --master local[1] --out sweep", 12.0),
    "summarize": ("simulate burst --spark --out spark --replications 1", 12.0),
    "engine": ("engine run clinic --database db", 5.0),
    "size": ("size burst --target discards(D-1)=0 --vary max-depth(D-1)", 5.0),
}
"""Command lines, and how long they last at most before they are interrupted."""

PROGRAM = f"""
import os, sys
from qsctl.__main__ import main
os.write(1, b"+")
os.dup2(os.open({os.devnull!r}, os.O_WRONLY), 1)
main()
"""
"""Says when it begins: what Python does of an interrupt before is Python's."""

QUICK = {"get": 2, "produce": 2, "serve": 2, "simulate": 1}
QUICK_S = 1.5
"""What they last in an ordinary run at most."""


def trials() -> Iterator[tuple[str, int]]:
    for name in COMMANDS if TRIALS else QUICK:
        for number in range(TRIALS or QUICK[name]):
            yield name, number


def left_processes(mark: str) -> list[str]:
    """Processes, ended ones that were not waited for aside, whose environment has the mark."""
    found = []
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit() or int(directory.name) == os.getpid():
            continue
        try:
            if mark.encode() in (directory / "environ").read_bytes():
                found.append((directory / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:120])
        except OSError:
            continue
    return found


@pytest.mark.slow(beyond=1)
@pytest.mark.campaign
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(("name", "number"), list(trials()))
def test_an_interrupt_at_any_instant_leaves_nothing(name: str, number: int, tmp_path: Path) -> None:
    line, longest_s = COMMANDS[name]
    longest_s = longest_s if TRIALS else min(longest_s, QUICK_S)
    draw = random.Random(f"{SEED} {name} {number}")
    after_s, which = draw.uniform(0.02, longest_s), draw.choice(endings.INTERRUPTS[:2])
    temporary, work = tmp_path / "temporary", tmp_path / "work"
    temporary.mkdir()
    work.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "QSCTL_TEST_MARK": str(tmp_path)}
    run([sys.executable, "-m", "qsctl", "create-queue", "Orders", "--type", "DDS::String"], cwd=work, check=True)
    with (tmp_path / "errors").open("wb") as errors:
        command = [sys.executable, "-c", PROGRAM, *line.split()]
        process = start(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=work, env=environment
        )
        try:
            assert process.stdout is not None
            assert process.stdout.read(1) == b"+"
            deadline = time.monotonic() + after_s
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
            process.send_signal(which)
            if draw.random() < 0.3:  # somebody is impatient
                time.sleep(draw.uniform(0, 0.5))
                process.send_signal(which)
            status = process.wait(PATIENCE_S)
            said = (tmp_path / "errors").read_text()
            assert 0 <= status <= 130, (which, after_s, said)
            assert "Traceback" not in said
            assert eventually(lambda: not left_processes(str(tmp_path)), 3.0), left_processes(str(tmp_path))
            assert [path.name for path in temporary.rglob("*")] == [], (which, after_s, said)
            assert [path.name for path in work.iterdir() if path.name.startswith((".Orders", ".db"))] == []
        finally:
            end(process)


LEAVES = """
import os, sys, threading, time
from subprocess import Popen as start
from qsctl import endings
folder = endings.TemporaryFolder()
(folder.path / "file").write_text("x")
process, _ = endings.start_held(lambda: start(
    [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True))
print(process.pid, folder.path, flush=True)
{how}
"""


@pytest.mark.parametrize(
    "how",
    [
        "endings.leave(3)",
        "endings.leave_in_order(3)",
        "threading.Thread(target=endings.leave, args=(3,)).start(); time.sleep(600)",
    ],
)
def test_what_is_held_ends_with_the_process(how: str, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = run([sys.executable, "-c", LEAVES.format(how=how)], env=environment)
    assert done.returncode == 3, done.stderr
    pid, folder = done.stdout.split()
    assert not Path(folder).exists()
    assert not Path(f"/proc/{pid}").exists()


def test_an_interrupt_waits_for_the_end_of_a_step() -> None:
    done: list[str] = []

    def step() -> None:
        with endings.one_step():
            signal.raise_signal(signal.SIGINT)
            with endings.one_step():
                done.append("nested")
            done.append("whole")

    def handler(*_: object) -> None:
        if not endings.waits_for_step():
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            step()
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == ["nested", "whole"]


def test_nothing_is_started_once_the_process_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endings._state, "is_leaving", True)
    with pytest.raises(SystemExit), endings.one_step():
        raise AssertionError


def test_an_interrupt_that_a_library_loses_ends_the_process() -> None:
    program = """
import signal, sys, time
from qsctl.__main__ import main
import qsctl.cli.app as app
class Loses:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
def command():
    Loses()
    time.sleep(60)
app.main = command
main()
"""
    done = run([sys.executable, "-c", program])
    assert (done.returncode, done.stderr) == (130, "Error: interrupted\n")


def test_a_process_of_a_pool_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(
        "import os, sys, time\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "import multiprocessing\n"
        "from qsctl.endings import children_without_signals, end_with_parent\n"
        "if __name__ == '__main__':\n"
        "    pool = ProcessPoolExecutor(1, multiprocessing.get_context('spawn'), end_with_parent)\n"
        "    with children_without_signals():\n"
        "        future = pool.submit(os.getpid)\n"
        "    print(future.result(), flush=True)\n"
        "    time.sleep(600)\n"
    )
    process = start([sys.executable, "work.py"], cwd=tmp_path, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        child = Path(f"/proc/{int(process.stdout.readline())}")
        assert child.exists()
        process.kill()
        process.wait()
        assert eventually(lambda: not child.exists())
    finally:
        end(process)


def test_commands_of_the_campaign_are_twelve() -> None:
    assert len(COMMANDS) == 12
