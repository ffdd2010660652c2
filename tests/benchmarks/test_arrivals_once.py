"""What it saves that all candidates of a search share drawn arrivals: CPU seconds with it and without, in turns.

200 clients and 1.7 million messages a replication, which are kept: 40 MB. Arrivals of which one replication alone has
more than `remembered.MOST_BYTES` (some 22 million messages) are drawn again by each candidate, as before.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from qsctl.sim.arrivals.remembered import Memory, remembering
from qsctl.sim.replication import simulate_figures
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from tests.benchmarks.ratios import keep_ratio

TURNS = 3
DEPTHS = range(1_000, 13_000, 1_500)
"""As many candidates as a search by halves over 256 values has."""
REPLICATIONS = 2


def search(scenario: Scenario, memory: Memory) -> float:
    """Return the CPU seconds of all candidates."""
    began = time.process_time()
    with remembering(memory):
        for depth in DEPTHS:
            candidate = apply_overrides(scenario, {"profile[*]/queue[D-1]/max-depth": str(depth)})
            for replication in range(REPLICATIONS):
                simulate_figures(candidate, replication)
    return time.process_time() - began


def test_arrivals_that_are_drawn_once_save_time(benchmark: Any) -> None:
    scenario = read_scenario(find_scenario("burst"))
    scenario = apply_overrides(scenario, {"group[desks]/count": "200", "horizon": "1s"})
    search(apply_overrides(scenario, {"horizon": "20ms"}), Memory())  # compiles
    ratios = []

    def turn() -> None:
        again = search(scenario, Memory(most_bytes=0))
        memory = Memory()
        ratios.append(search(scenario, memory) / again)
        assert memory.hits == (len(DEPTHS) - 1) * REPLICATIONS

    benchmark.pedantic(turn, rounds=TURNS)
    benchmark.extra_info |= {"candidates": len(DEPTHS), "cpu_ratio": statistics.median(ratios), "ratios": ratios}
    keep_ratio("a search with kept arrivals to one without", statistics.median(ratios), higher_is_better=False)
    assert statistics.median(ratios) < 0.85
