"""Completion in real shells: installed by the command, and asked for with the tabulator on a terminal."""

from __future__ import annotations

import os
import pty
import select
import shutil
import sys
import time
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.processes import run, running

PROGRAMS = Path(sys.executable).parent
NAME = "Unmistakable"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home of its own with a service that has one queue."""
    home = tmp_path / "home"
    home.mkdir()
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("QSCTL", "XDG", "ZDOTDIR", "BASH"))}
    made = {**kept, "HOME": str(home), "TERM": "xterm", "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"}
    made["QSCTL_STATE_DIR"] = str(tmp_path / "state")
    run([PROGRAMS / "qsctl", "create-queue", NAME], env=made, check=True)
    return made


def shell_named(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not here")
    return path


def typed(command: list[str], environment: dict[str, str], lines: list[str], awaited: str) -> str:
    """What a shell on a terminal shows for these keys, up to an awaited text."""
    controller, terminal = pty.openpty()
    shown = b""
    try:
        with running(command, env=environment, stdin=terminal, stdout=terminal, stderr=terminal):
            os.close(terminal)
            deadline = time.monotonic() + PATIENCE_S
            os.write(controller, lines.pop(0).encode())
            while awaited.encode() not in shown and time.monotonic() < deadline:
                if not select.select([controller], [], [], 1.0)[0]:
                    continue
                shown += os.read(controller, 65536)
                if lines and b"ready>" in shown:
                    os.write(controller, lines.pop(0).encode())
    finally:
        os.close(controller)
    return shown.decode(errors="replace")


@pytest.mark.slow
@pytest.mark.parametrize(("shell", "options"), [("bash", ["-i"]), ("zsh", ["-i"])])
def test_tabulator_completes_a_queue(shell: str, options: list[str], environment: dict[str, str]) -> None:
    path = shell_named(shell)
    (Path(environment["HOME"]) / f".{shell}rc").write_text("# my own line\n")
    for _ in range(2 if shell == "bash" else 1):
        run([PROGRAMS / "qsctl", "completion", "install", "--shell", shell], env=environment, check=True)
    prompt = "PS1='rea''dy>'\n"
    keys = [prompt, "qsctl get data Unmis\t -o json\n"]
    shown = typed([path, *options], environment, keys, '"queue_name"')
    assert f'"queue_name": "DomainParticipant/SharedSubscriber/{NAME}"' in shown.replace("\r", ""), shown
    start = (Path(environment["HOME"]) / f".{shell}rc").read_text()
    assert start.count("# >>> qsctl completion >>>") == 1
    run([PROGRAMS / "qsctl", "completion", "remove", "--shell", shell], env=environment, check=True)
    assert (Path(environment["HOME"]) / f".{shell}rc").read_text() == "# my own line\n"


def test_fish_completes_a_queue(environment: dict[str, str]) -> None:
    path = shell_named("fish")
    environment["SHELL"] = path
    run([PROGRAMS / "qsctl", "completion", "install"], env=environment, check=True)
    for line, word in (("qsctl delete-queue Unm", NAME), ("qsctl simulate bur", "burst"), ("qsctl ge", "get")):
        found = run([path, "-i", "-c", f"complete -C '{line}'"], env=environment, check=True).stdout
        assert word in [each.partition("\t")[0] for each in found.splitlines()], found


@pytest.mark.slow
def test_shell_without_a_script_is_named(environment: dict[str, str]) -> None:
    done = run([PROGRAMS / "qsctl", "completion", "install"], env={**environment, "SHELL": "/bin/tcsh"})
    assert done.returncode == 2
    assert "SHELL is 'tcsh'" in done.stderr
