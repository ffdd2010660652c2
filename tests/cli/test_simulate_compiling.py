"""A first run on a terminal says that the simulator is being compiled; a later one, and one in a pipe, says nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from numba.core.event import Event, EventStatus, broadcast

from qsctl.sim.kernel.jit import told_of_compilation

SAID = "Compiling the simulator"


def test_it_is_told_once_before_the_first_kernel_is_compiled() -> None:
    told: list[str] = []
    with told_of_compilation(lambda: told.append("compiling")):
        assert told == []
        for _ in range(2):
            broadcast(Event("numba:compile", EventStatus.START))
            broadcast(Event("numba:compile", EventStatus.END))
    broadcast(Event("numba:compile", EventStatus.START))
    assert told == ["compiling"]


def test_a_terminal_is_told_in_one_line_of_standard_error_and_a_pipe_is_not(tmp_path: Path) -> None:
    program = (
        "import io, sys\n"
        "class Terminal(io.StringIO):\n"
        "    def isatty(self): return {terminal}\n"
        "sys.stderr = kept = Terminal()\n"
        "from qsctl.cli.simulate_progress import run_progress\n"
        "with run_progress('r', 1, compiled=True):\n"
        "    from numba.core.event import Event, EventStatus, broadcast\n"
        "    broadcast(Event('numba:compile', EventStatus.START))\n"
        "print(kept.getvalue())\n"
    )
    said = []
    for terminal in (True, False):
        command = [sys.executable, "-c", program.replace("{terminal}", str(terminal))]
        done = subprocess.run(command, env={**os.environ, "TERM": "dumb"}, capture_output=True, text=True, check=True)
        said.append(done.stdout.count(SAID))
    assert said == [1, 0]
