"""A first run on a terminal says that the simulator is being compiled; a later one, and one in a pipe, says nothing."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from qsctl.sim import replication
from qsctl.sim.egress import solace
from qsctl.sim.kernel import compilations
from qsctl.sim.kernel.compilations import compilation_reported, compilation_timed, ended, started
from qsctl.sim.simulate import simulate
from tests.commands import command_line
from tests.processes import run

SAID = "Compiling the simulator"


def test_compilation_is_announced_once_before_the_first_kernel() -> None:
    told: list[str] = []
    with compilation_reported(lambda: told.append("compiling")):
        assert told == []
        for _ in range(2):
            started()
            ended()
    started()
    assert told == ["compiling"]


@pytest.mark.slow
def test_compilation_is_announced_in_one_line_on_a_terminal_and_not_in_a_pipe(tmp_path: Path) -> None:
    program = (
        "import io, sys\n"
        "class Terminal(io.StringIO):\n"
        "    def isatty(self): return {terminal}\n"
        "sys.stderr = kept = Terminal()\n"
        "from qsctl.cli.simulation.progress.run_progress import run_progress\n"
        "from qsctl.sim.replication import ReplicationProgress\n"
        "with run_progress('r', 2) as progress:\n"
        "    for number in (0, 1):\n"
        "        if progress: progress(ReplicationProgress(number, 0, 1, 0, compiles=True))\n"
        "print(kept.getvalue())\n"
    )
    said = []
    for terminal in (True, False):
        command = [sys.executable, "-c", program.replace("{terminal}", str(terminal))]
        done = run(command, env={**os.environ, "TERM": "dumb"}, check=True)
        said.append(done.stdout.count(SAID))
    assert said == [1, 0]


def test_compiling_is_timed() -> None:
    with compilation_timed() as compile_s:
        assert compile_s() == 0.0
        started()
        time.sleep(0.05)
        ended()
        assert compile_s() >= 0.05


def test_the_rate_of_a_first_run_leaves_compiling_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def long_compilation() -> Iterator[Callable[[], float]]:
        yield lambda: 1_000_000.0

    monkeypatch.setattr(compilations, "compilation_timed", long_compilation)
    arguments = ["simulate", "burst", "--set", "horizon=1ms", "--out"]
    document = json.loads(CliRunner().invoke(command_line(), [*arguments, str(tmp_path / "a"), "-o", "json"]).stdout)
    assert (document["elapsed_s"], document["compile_s"]) == (0.0, 1_000_000.0)
    shown = CliRunner().invoke(command_line(), [*arguments, str(tmp_path / "b"), "-o", "table"]).stdout
    assert "after 1000000 s of compiling" in " ".join(shown.split())


def test_a_replication_reports_once_that_it_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(*arguments: Any) -> Any:
        for _ in range(2):
            started()
            ended()
        return solace.prepare(*arguments)

    monkeypatch.setattr(replication, "model_of", lambda _: SimpleNamespace(prepare=prepare))
    reports: list[replication.ReplicationProgress] = []
    simulate("burst", settings={"horizon": "1ms"}, out=str(tmp_path / "run"), progress=reports.append)
    first, *others = reports
    assert (first.compiles, first.simulated_ns) == (True, 0)
    assert not any(each.compiles for each in others)
    assert min(each.memory_bytes for each in others) > 16 << 20
