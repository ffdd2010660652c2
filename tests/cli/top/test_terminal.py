"""`qsctl top` on a pseudo-terminal: it starts, hears keys, and leaves the terminal as it was."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qsctl.cli.top.look import Rates
from qsctl.client.administration import FromService
from qsctl.core.statistics.status import Counters, SharedReaderQueueStatus, StatisticMetrics, StatisticVariable
from qsctl.errors import ExitStatus
from qsctl.shipped import shipped
from tests.commands import command_line
from tests.patience import PATIENCE_S
from tests.processes import running

TOP = (sys.executable, "-m", "qsctl", "top")
MONDAY = Path(str(shipped("fixtures"))) / "recordings" / "monday"


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both sides of a terminal of 80×24: the person's, and the program's."""
    person, program = os.openpty()
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    yield person, program
    os.close(person)
    os.close(program)


def read_until(person: int, text: bytes, seen: bytes = b"") -> bytes:
    deadline = time.monotonic() + PATIENCE_S
    while text not in seen:
        ready, _, _ = select.select([person], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"{text!r} did not come: {seen!r}"
        seen += os.read(person, 65536)
    return seen


def test_a_recording_is_replayed_and_q_leaves_the_terminal_as_it_was(terminal: tuple[int, int]) -> None:
    person, program = terminal
    before = termios.tcgetattr(program)
    streams = {"stdin": program, "stdout": program, "stderr": program, "env": {**os.environ, "TERM": "xterm"}}
    with running([*TOP, "--run", str(MONDAY), "--speed", "1000"], **streams) as process:
        read_until(person, b"Shop/Orders", read_until(person, b"the end"))
        os.write(person, b"/")
        read_until(person, b"filter: _")
        os.write(person, b"jobs\r\r")
        read_until(person, b"consumers of Shop/Jobs")
        os.write(person, b"q")
        read_until(person, b"\x1b[?1049l")
        assert process.wait(PATIENCE_S) == ExitStatus.DONE
    assert termios.tcgetattr(program) == before


def test_control_c_ends_it_too(terminal: tuple[int, int]) -> None:
    person, program = terminal
    streams = {"stdin": program, "stdout": program, "stderr": program, "env": {**os.environ, "TERM": "xterm"}}
    with running([*TOP, "--run", str(MONDAY)], **streams) as process:
        read_until(person, b"Shop/Orders")
        process.send_signal(2)
        assert process.wait(PATIENCE_S) == ExitStatus.DONE


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--run", str(MONDAY)), ExitStatus.USAGE, "needs a terminal"),
        (("--interval", "1ms"), ExitStatus.USAGE, "--interval 1ms is too short"),
        (("--speed", "0"), ExitStatus.USAGE, "--speed 0 is not a speed"),
    ],
)
def test_what_cannot_be_is_one_error(arguments: tuple[str, ...], status: int, message: str) -> None:
    done = CliRunner().invoke(command_line(), ["top", *arguments])
    assert done.exit_code == status
    assert message in done.stderr


def status(received: int, acknowledged: int) -> FromService[SharedReaderQueueStatus]:
    variables = [StatisticVariable(StatisticMetrics(1000, mean=mean)) for mean in (1.0, 2.0, 3.0, 4.0)]
    counters = Counters(received_message_count=received, acknowledged_message_count=acknowledged)
    return FromService("One", SharedReaderQueueStatus("P/S/Q", counters, counters, 0, 0, 0, 0, *variables))


def test_rates_are_of_the_time_between_two_looks() -> None:
    rates = Rates()
    key = ("One", "P/S/Q")
    assert rates.of([status(100, 50)], 10**9)[key] == (2.0, 3.0), "the service's own"
    assert rates.of([status(300, 60)], 3 * 10**9)[key] == (100.0, 5.0)
    assert rates.of([status(7, 1)], 4 * 10**9)[key] == (2.0, 3.0), "it was started again"
    assert rates.of([status(8, 1)], 5 * 10**9)[key] == (1.0, 0.0)
