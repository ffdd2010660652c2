"""Where compiled code is kept: the simulator's in a directory of its own, the caller's where the caller had it."""

from __future__ import annotations

import sys
from pathlib import Path

from tests import processes

ROOT = Path(__file__).parent.parent.parent

PROGRAM = """
import sys
from pathlib import Path

import numba

before = numba.config.CACHE_DIR
import qsctl.sim.egress.run
from qsctl.sim.egress.advance import advance
from qsctl.sim.kernel.jit import CACHED, CACHE_DIRECTORY
from callers import twice

assert numba.config.CACHE_DIR == before
assert twice(21) == 42
assert CACHED
print(CACHE_DIRECTORY)
print(advance.stats.cache_path)
print(twice.stats.cache_path)
"""

CALLERS = """
import numba


@numba.njit(cache=True)
def twice(value):
    return 2 * value
"""


def test_importing_the_kernels_leaves_the_callers_cache_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "callers.py").write_text(CALLERS)
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{tmp_path}", "XDG_CACHE_HOME": str(tmp_path)}
    done = processes.run([sys.executable, "-c", PROGRAM], env=environment, cwd=tmp_path, check=True)
    ours, kernels, callers = map(Path, done.stdout.split())
    assert ours in kernels.parents
    assert callers == tmp_path / "__pycache__"
