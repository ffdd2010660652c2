"""Time of 200 tests with a queue each and `qsctl_service`, against 200 empty tests, as whole processes.

The bound of issue 55 is ten seconds of wall time a form on a machine that does nothing else; it is shown as
`wall_s`. What is kept is the ratio of processor times, which a busy machine moves less.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.ratios import keep_ratio
from tests.testing.two_hundred import EMPTY, FORMS

ROUNDS = 3


def timed(directory: Path, test: str) -> tuple[float, float]:
    """Run a test's text with pytest in a process of its own; return its processor time and wall time in seconds."""
    (directory / "test_it.py").write_text(test, encoding="utf-8")
    is_found = any(each.name == "qsctl" for each in entry_points(group="pytest11"))
    plugin = () if is_found else ("-p", "qsctl.testing.plugin")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, "test_it.py"]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    wall_s = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "200 passed" in done.stdout, done.stdout + done.stderr
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall_s


@pytest.mark.parametrize("form", FORMS)
def test_two_hundred_tests_to_empty_ones(benchmark: Any, tmp_path: Path, form: str) -> None:
    empty: list[tuple[float, float]] = []
    full: list[tuple[float, float]] = []
    timed(tmp_path, EMPTY)  # reads the files and compiles

    def in_turns() -> None:
        empty.append(timed(tmp_path, EMPTY))
        full.append(timed(tmp_path, FORMS[form]))

    benchmark.pedantic(in_turns, rounds=ROUNDS)
    ratio = statistics.median(one / other for (one, _), (other, _) in zip(full, empty, strict=True))
    benchmark.extra_info |= {
        "ratio": ratio,
        "cpu_s": statistics.median(cpu_s for cpu_s, _ in full),
        "wall_s": statistics.median(wall_s for _, wall_s in full),
        "empty_cpu_s": statistics.median(cpu_s for cpu_s, _ in empty),
    }
    keep_ratio(f"200 tests with qsctl_service to 200 empty ones, {form}, processor time", ratio, False)
