"""A kernel that stops for a full log, a short slab or a short list goes on as if it had not; no index leaves its array.

Compiled kernels know arrays by address and check no index. Where they are plain Python each index is checked.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qsctl.eventlog.schema import LogLevel
from qsctl.sim.egress.layout import arrays as egress_arrays
from qsctl.sim.scenario.scenario import Scenario
from tests.example_counts import examples
from tests.processes import run
from tests.sim.compared_solace import kernel_counted
from tests.sim.random_scenarios import Ran, solace_scenarios, tibco_scenarios

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def slab_of_one_node() -> Any:
    """So that the slab of nodes and all that is as long as it grows many times."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(egress_arrays, "FIRST_NODES", 1)
        yield


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(st.one_of(solace_scenarios(), tibco_scenarios()), st.integers(1, 20))
def test_a_log_chunk_of_few_rows_and_a_small_slab_give_the_same_rows(
    slab_of_one_node: None, scenario: Scenario, chunk_rows: int
) -> None:
    small = Ran(scenario, chunk_rows=chunk_rows)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(egress_arrays, "FIRST_NODES", 1 << 12)
        large = Ran(scenario, chunk_rows=1 << 16)
    assert small.rows == large.rows
    assert small.events == large.events
    assert kernel_counted(small) == kernel_counted(large)
    assert list(small.run.slow_percent) == list(large.run.slow_percent)


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(st.one_of(solace_scenarios(), tibco_scenarios()))
def test_the_counters_are_the_same_with_a_log_and_without(scenario: Scenario) -> None:
    assert kernel_counted(Ran(scenario)) == kernel_counted(Ran(scenario, LogLevel.COUNTERS))


IN_PLAIN_PYTHON = """
import warnings
from dataclasses import replace
from hypothesis import HealthCheck, given, seed, settings
from qsctl.sim.kernel.jit import COMPILED, row
from qsctl.sim.egress.layout import arrays as egress_arrays
from tests.sim.random_scenarios import solace_scenarios
from tests.sim.compared_solace import compare
import numpy as np

assert not COMPILED
warnings.simplefilter("ignore", RuntimeWarning)  # the plain model's own random numbers wrap
nodes = np.zeros(3, np.dtype([("next", "i4")])).view(np.recarray)
for index in (-1, 3):
    try:
        row(nodes, index, nodes.dtype)
    except IndexError as error:
        print(error)
egress_arrays.FIRST_NODES = 1

@seed({seed})
@settings(max_examples={examples}, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(solace_scenarios())
def check(scenario):
    compare(replace(scenario, horizon_ns=scenario.horizon_ns // 5, warm_up_ns=scenario.warm_up_ns // 5), 3)

check()
"""


@pytest.mark.slow
def test_no_index_leaves_its_array() -> None:
    """Random scenarios with the kernels in plain Python, beside the plain model."""
    program = IN_PLAIN_PYTHON.format(seed=1, examples=examples(20, 300))
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)}
    done = run([sys.executable, "-c", program], env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert [line.split(" of ")[0] for line in done.stdout.splitlines()] == ["row -1", "row 3"]
