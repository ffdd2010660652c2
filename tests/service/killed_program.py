"""The crash program, and how to kill its children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.campaigns import trials
from tests.patience import PATIENCE_S
from tests.processes import running

KILLS = trials("QSCTL_TEST_KILLS", 5, 500)
"""How often each test kills."""


KILLS_EACH = 50
"""Kills that a state directory sees: what it holds grows with each, and the time of a start with it."""


def seeds_of_directories() -> Iterator[range]:
    """Yield the seeds of the kills of each state directory."""
    for first in range(1, KILLS + 1, KILLS_EACH):
        yield range(first, min(first + KILLS_EACH, KILLS + 1))


class Hears(Protocol):
    """Who is given what the killed process said."""

    def hear(self, line: str) -> None:
        """One line of it."""


class Program:
    """The crash program, and how to kill its children."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def run_and_kill(self, state_dir: Path, seed: int, account: Hears, after_lines: int, after_s: float) -> None:
        """Kill a child so long after it has said so many things: on a busy machine too it gets that far."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{state_dir} {seed}\n")
        self.process.stdin.flush()
        word, pid = self.process.stdout.readline().split()
        assert word == "pid"
        for _ in range(after_lines):
            account.hear(self.process.stdout.readline())
        time.sleep(after_s)
        os.kill(int(pid), signal.SIGKILL)
        for line in self.process.stdout:
            if line.startswith("ended"):
                return
            account.hear(line)
        raise AssertionError("the crash program ended unexpectedly")


@pytest.fixture
def program() -> Iterator[Program]:
    command = [sys.executable, "-m", "tests.service.crash_program"]
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Program(process)
        assert process.stdin
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0
