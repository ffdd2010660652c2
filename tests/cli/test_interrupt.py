"""Ctrl-C at any moment of a command: status 130, one line, no trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from qsctl.shipped import shipped
from tests.patience import PATIENCE_S
from tests.processes import run, running

EXAMPLE = str(shipped("fixtures/config/manual/section_3.1.xml"))

PROGRAM = """
import builtins, os, signal, sys
from qsctl.__main__ import main
at = {at!r}
real = builtins.__import__
def load(name, *arguments, **options):
    global at
    if name == at:
        at = None
        os.kill(os.getpid(), signal.SIGINT)
    return real(name, *arguments, **options)
builtins.__import__ = load
sys.argv = ["qsctl", *{arguments!r}]
main()
"""
"""Interrupts itself as it comes to load a module: moments that a clock could not name."""


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(
    ("at", "arguments"),
    [
        ("typer", ["serve", EXAMPLE]),
        ("qsctl.cli._rti_options", ["serve", EXAMPLE]),
        ("qsctl.service.process.background", ["serve", EXAMPLE]),
        ("qsctl.config.load", ["serve", EXAMPLE]),
        ("qsctl.service.process.start", ["serve", EXAMPLE]),
        ("cyclonedds.core", ["serve", EXAMPLE]),
        ("qsctl.config.load", ["validate", EXAMPLE]),
        ("qsctl.service.directory.embedded", ["get", "data"]),
        ("rich.console", ["get", "data"]),
    ],
)
def test_an_interrupt_while_a_command_starts_ends_it_with_130(at: str, arguments: list[str], tmp_path: Path) -> None:
    program = PROGRAM.format(at=at, arguments=arguments)
    done = run([sys.executable, "-c", program], cwd=tmp_path)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert "interrupted" in done.stderr


def test_an_interrupt_of_a_service_that_is_up_stops_it_in_order(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "qsctl", "serve", EXAMPLE, "--domain-id-base", "90"]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as service:
        assert service.stderr is not None
        line = service.stderr.readline()
        while "is up" not in line:
            assert line, service.wait(PATIENCE_S)
            line = service.stderr.readline()
        os.kill(service.pid, signal.SIGINT)
        out, err = service.communicate(timeout=PATIENCE_S)
    assert (service.returncode, "Traceback" in err) == (0, False)
    assert out == "service QueuingService_1 left: SIGINT\n"


def test_processes_of_sessions_are_started_without_the_signals_of_a_terminal() -> None:
    from qsctl.endings import children_without_signals

    with children_without_signals():
        program = "import signal; print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())))"
        child = run([sys.executable, "-c", program], check=True)
    assert "SIGINT" in child.stdout
    assert "SIGTERM" in child.stdout
    assert not {signal.SIGINT, signal.SIGTERM} & signal.pthread_sigmask(signal.SIG_BLOCK, ())
