"""`python -m tests.kernels`: compile the simulator's kernels for the tests that simulate, beside those that wait.

A whole run of the tests begins it before its workers. Where the kernels were never compiled, a test that simulates
would compile them itself, for a minute, while the tests after it in its group wait. What it has compiled it leaves in
numba's cache, where the tests find it; a test that needs a kernel sooner waits for the one that is being compiled, or
compiles its own, which is found here. So it has the priority of the tests: at a lower one, all would wait for it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from qsctl.eventlog.location import location
from qsctl.sim.kernel.cache_directory import CACHE_DIRECTORY
from qsctl.sim.kernel.jit import COMPILED
from qsctl.sim.ready_kernels import SCENARIOS
from qsctl.sim.simulate import simulate

COMPLETE: Final = CACHE_DIRECTORY / "compiled-for-tests"
"""Exists when the scenarios' kernels have been compiled."""

A_MOMENT: Final = {"warm-up": "0s", "horizon": "100ms"}


def compile_kernels() -> None:
    """Simulate a moment of each scenario whose kernels are made ready for users."""
    with tempfile.TemporaryDirectory() as runs:
        for each in SCENARIOS:
            simulate(each, settings=A_MOMENT, replications=1, level="messages", out=location(str(Path(runs) / each)))
    if CACHE_DIRECTORY.is_dir():
        COMPLETE.touch()


if __name__ == "__main__":
    if COMPILED and not COMPLETE.exists():
        compile_kernels()
