"""Processor time of a search for a depth that knows results, against one that simulates all, in one run.

200 clients with bursts, 2 s of some 28,000 messages each. The path of the only profile is the same setting, of which no
result is known: each candidate is simulated.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from qsctl.sim.sizing.targets import parse_setting, parse_target
from qsctl.summary.sweeps.local_runner import LocalRunner
from qsctl.summary.sweeps.points import EVERY_MEASURE
from qsctl.summary.sweeps.size import size
from tests.benchmarks.ratios import keep_ratio

ALL = "max-depth(D-1)=2..20000"
ONE = "profile[trading]/queue[D-1]/max-depth=2..20000"
TURNS = 2


def search(scenario: Scenario, setting: str) -> tuple[float, object]:
    began = time.process_time()
    found = size(
        scenario,
        [parse_target("discards(D-1)=0", tuple(EVERY_MEASURE))],
        [parse_setting(setting)],
        confidence=0.95,
        runner=LocalRunner(scenario),
    )
    assert found.answer is not None
    return time.process_time() - began, (found.answer.values, found.answer.evidence)


def test_a_search_of_depths_that_were_never_reached(benchmark: Any) -> None:
    changes = {
        "group[desks]/count": "200", "horizon": "2s", "port[p1]/rate": "100 Mbit/s",
        "traffic[quotes]/on-off/rate": "1400/s", "traffic[quotes]/on-off/on": "100ms",
        "traffic[quotes]/on-off/off": "3s", "traffic[quotes]/on-off/fixed": "false",
        "traffic[trades]/poisson/rate": "20/s",
    }  # fmt: skip
    scenario = apply_overrides(read_scenario(find_scenario("burst")), changes)
    search(apply_overrides(scenario, {"horizon": "20ms"}), ALL)  # compiles
    ratios = []

    def turn() -> None:
        quick, answer = search(scenario, ALL)
        slow, same = search(scenario, ONE)
        assert answer == same
        ratios.append(quick / slow)

    benchmark.pedantic(turn, rounds=TURNS)
    benchmark.extra_info |= {"cpu_ratio": statistics.median(ratios), "ratios": ratios}
    keep_ratio(
        "a search of depths with known results to one without", statistics.median(ratios), higher_is_better=False
    )
    assert statistics.median(ratios) < 0.5
